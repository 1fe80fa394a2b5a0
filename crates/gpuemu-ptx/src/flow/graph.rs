//! Blocks of code that are entered only at their first instruction, and where control goes after each.

use std::ops::Range;

use crate::code::Code;

/// The blocks of a function, in the order of the code.
#[derive(Debug, Clone, Default)]
pub struct Graph {
    /// First step of each block, then the number of all steps.
    starts: Vec<u32>,
    /// Successors of all blocks, one after the other.
    edges: Vec<u32>,
    /// Where the successors of each block begin, then the number of all edges.
    edge_starts: Vec<u32>,
    leaves: Vec<bool>,
    /// The block of each step.
    owners: Vec<u32>,
    incomplete: bool,
}

/// Whether an instruction is the last of its block.
fn ends_block(base: &str) -> bool {
    matches!(base, "bra" | "brx" | "ret" | "exit" | "trap")
}

/// How many targets jumps by table may have in all. Many jumps that share a long table would have no end of them.
const MOST_TABLE_TARGETS: usize = 4_000_000;

/// Steps that end blocks, and where each may go.
struct Jumps {
    steps: Vec<usize>,
    targets: Vec<Vec<usize>>,
    incomplete: bool,
}

impl Jumps {
    fn of(code: &Code<'_, '_>) -> Self {
        let mut jumps = Self { steps: Vec::new(), targets: Vec::new(), incomplete: false };
        let mut table_targets = 0;
        for (number, step) in code.steps.iter().enumerate() {
            let base = step.instruction.base();
            if !ends_block(base) {
                continue;
            }
            let beyond = base == "brx" && table_targets >= MOST_TABLE_TARGETS;
            let targets = if beyond { Vec::new() } else { code.targets(number) };
            if base == "brx" {
                table_targets += targets.len();
                jumps.incomplete |= beyond;
            }
            jumps.steps.push(number);
            jumps.targets.push(targets);
        }
        jumps
    }

    /// Where a step may jump to; nothing for a step that does not end a block.
    fn of_step(&self, step: usize) -> Option<&[usize]> {
        let place = self.steps.binary_search(&step).ok()?;
        self.targets.get(place).map(Vec::as_slice)
    }
}

impl Graph {
    /// The blocks of a function.
    pub fn of(code: &Code<'_, '_>) -> Self {
        let steps = code.steps.len();
        let jumps = Jumps::of(code);
        let mut leaders = vec![false; steps + 1];
        let after = jumps.steps.iter().map(|step| step + 1);
        for leader in jumps.targets.iter().flatten().copied().chain(after).chain([0]) {
            if let Some(place) = leaders.get_mut(leader) {
                *place = true;
            }
        }
        let owners = Vec::with_capacity(steps);
        let mut graph = Self { owners, incomplete: jumps.incomplete, ..Self::default() };
        for (number, leader) in leaders.iter().take(steps).enumerate() {
            if *leader {
                graph.starts.push(number as u32);
            }
            graph.owners.push(graph.starts.len() as u32 - 1);
        }
        graph.starts.push(steps as u32);
        for block in 0..graph.len() {
            graph.connect(code, &jumps, block);
        }
        graph.edge_starts.push(graph.edges.len() as u32);
        graph
    }

    fn connect(&mut self, code: &Code<'_, '_>, jumps: &Jumps, block: usize) {
        self.edge_starts.push(self.edges.len() as u32);
        let last = self.steps(block).end.saturating_sub(1);
        let targets = jumps.of_step(last);
        let guarded = code.steps.get(last).is_some_and(|step| step.instruction.guard.is_some());
        let falls_through = targets.is_none() || guarded;
        // A jump to nowhere that is known, a return and a trap all leave.
        let mut leaves = targets.is_some_and(<[usize]>::is_empty);
        let next = falls_through.then_some(last + 1);
        for step in next.into_iter().chain(targets.into_iter().flatten().copied()) {
            match self.owners.get(step) {
                Some(next) => self.edges.push(*next),
                None => leaves = true,
            }
        }
        self.leaves.push(leaves);
    }

    /// Whether some jumps by table were left out, because there are too many of them.
    pub fn is_incomplete(&self) -> bool {
        self.incomplete
    }

    /// How many blocks there are.
    pub fn len(&self) -> usize {
        self.starts.len().saturating_sub(1)
    }

    /// Whether there is no code.
    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }

    pub fn steps(&self, block: usize) -> Range<usize> {
        match (self.starts.get(block), self.starts.get(block + 1)) {
            (Some(first), Some(end)) => *first as usize..*end as usize,
            _ => 0..0,
        }
    }

    pub fn block_of(&self, step: usize) -> Option<usize> {
        self.owners.get(step).map(|block| *block as usize)
    }

    /// Where control may go after a block. A block may be there twice.
    pub fn successors(&self, block: usize) -> &[u32] {
        match (self.edge_starts.get(block), self.edge_starts.get(block + 1)) {
            (Some(first), Some(end)) => self.edges.get(*first as usize..*end as usize).unwrap_or_default(),
            _ => &[],
        }
    }

    /// Whether the function may be left after a block.
    pub fn leaves(&self, block: usize) -> bool {
        self.leaves.get(block).copied().unwrap_or_default()
    }

    /// Whether control may go to more than one place after a block.
    pub fn branches(&self, block: usize) -> bool {
        let successors = self.successors(block);
        let first = successors.first();
        successors.iter().any(|next| Some(next) != first) || (self.leaves(block) && first.is_some())
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::flow::uses::tests::with_code;

    #[test]
    fn blocks_end_at_jumps_and_begin_at_labels_that_are_jumped_to() {
        let body = "mov.u32 %r1, 0;\n L1: add.s32 %r1, %r1, 1;\n unused: setp.lt.s32 %p1, %r1, 8;\n @%p1 bra L1;\n\
                    @%p1 ret;\n bra.uni L3;\n mov.u32 %r2, 1;\n L3: exit;";
        with_code(body, |code| {
            let graph = Graph::of(code);
            let blocks: Vec<_> = (0..graph.len()).map(|block| graph.steps(block)).collect();
            assert_eq!(blocks, [0..1, 1..4, 4..5, 5..6, 6..7, 7..8]);
            let successors: Vec<_> = (0..graph.len()).map(|block| graph.successors(block).to_vec()).collect();
            assert_eq!(successors, [vec![1], vec![2, 1], vec![3], vec![5], vec![5], vec![]]);
            let leaves: Vec<_> = (0..graph.len()).map(|block| graph.leaves(block)).collect();
            assert_eq!(leaves, [false, false, true, false, false, true]);
            assert!(graph.branches(1) && graph.branches(2) && !graph.branches(3) && !graph.branches(5));
            assert_eq!(graph.block_of(3), Some(1));
        });
    }

    #[test]
    fn code_that_runs_off_its_end_leaves() {
        with_code("mov.u32 %r1, 0;\n @%p1 bra end;\n trap;\n end:", |code| {
            let graph = Graph::of(code);
            assert!(graph.leaves(0) && graph.leaves(1));
            assert_eq!(graph.successors(0), [1]);
        });
        with_code("", |code| assert!(Graph::of(code).is_empty()));
    }

    #[test]
    fn a_jump_by_table_goes_to_every_label_of_it() {
        with_code("ts: .branchtargets A, B;\n brx.idx %r1, ts;\n A: ret;\n B: ret;", |code| {
            let graph = Graph::of(code);
            assert_eq!(graph.successors(0), [1, 2]);
            assert!(!graph.leaves(0));
        });
    }
}
