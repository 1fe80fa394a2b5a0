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
}

/// Whether an instruction is the last of its block.
fn ends_block(base: &str) -> bool {
    matches!(base, "bra" | "brx" | "ret" | "exit" | "trap")
}

impl Graph {
    /// The blocks of a function.
    pub fn of(code: &Code<'_, '_>) -> Self {
        let steps = code.steps.len();
        let mut leaders = vec![false; steps + 1];
        if let Some(first) = leaders.first_mut() {
            *first = true;
        }
        for (number, step) in code.steps.iter().enumerate() {
            if !ends_block(step.instruction.base()) {
                continue;
            }
            for leader in code.targets(number).into_iter().chain([number + 1]) {
                if let Some(place) = leaders.get_mut(leader) {
                    *place = true;
                }
            }
        }
        let mut graph = Self { owners: Vec::with_capacity(steps), ..Self::default() };
        for (number, leader) in leaders.iter().take(steps).enumerate() {
            if *leader {
                graph.starts.push(number as u32);
            }
            graph.owners.push(graph.starts.len() as u32 - 1);
        }
        graph.starts.push(steps as u32);
        for block in 0..graph.len() {
            graph.connect(code, block);
        }
        graph.edge_starts.push(graph.edges.len() as u32);
        graph
    }

    fn connect(&mut self, code: &Code<'_, '_>, block: usize) {
        self.edge_starts.push(self.edges.len() as u32);
        let mut leaves = false;
        let last = self.steps(block).end.saturating_sub(1);
        let mut follow = vec![last + 1];
        if let Some(step) = code.steps.get(last)
            && ends_block(step.instruction.base())
        {
            if step.instruction.guard.is_none() {
                follow.clear();
            }
            let targets = code.targets(last);
            // A jump to nowhere that is known, a return and a trap all leave.
            leaves = targets.is_empty();
            follow.extend(targets);
        }
        for step in follow {
            match self.owners.get(step) {
                Some(next) => self.edges.push(*next),
                None => leaves = true,
            }
        }
        self.leaves.push(leaves);
    }

    /// How many blocks there are.
    pub fn len(&self) -> usize {
        self.starts.len().saturating_sub(1)
    }

    /// Whether there is no code.
    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }

    /// The steps of a block.
    pub fn steps(&self, block: usize) -> Range<usize> {
        match (self.starts.get(block), self.starts.get(block + 1)) {
            (Some(first), Some(end)) => *first as usize..*end as usize,
            _ => 0..0,
        }
    }

    /// The block of a step.
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
