//! Loops, and which blocks are in them.

use super::graph::Graph;

/// The most levels of nesting that are told apart.
pub const MOST_LEVELS: u64 = 32;

/// The loops of a function.
#[derive(Debug, Clone, Default)]
pub struct Loops {
    /// How many there are: places that a jump backwards goes to.
    pub count: u64,
    /// How deep they are nested; never more than [`MOST_LEVELS`].
    pub depth: u64,
    depths: Vec<u32>,
    outermost: Vec<Option<u32>>,
}

impl Loops {
    /// The loops of a function.
    pub fn of(graph: &Graph) -> Self {
        let order = depth_first(graph);
        let mut loops =
            Self { count: order.targets, depth: 0, depths: vec![0; graph.len()], outermost: vec![None; graph.len()] };
        let mut inside: Vec<bool> = order.numbers.iter().map(Option::is_some).collect();
        while loops.depth < MOST_LEVELS {
            let components = strongly_connected(graph.len(), |block| graph.successors(block), |block| inside[block]);
            let found = loops.level(graph, &components, &order.numbers, &mut inside);
            if !found {
                break;
            }
            loops.depth += 1;
        }
        loops
    }

    /// Takes in the loops of one level and removes their heads, so that those inside come apart.
    fn level(&mut self, graph: &Graph, components: &Components, numbers: &[Option<u32>], inside: &mut [bool]) -> bool {
        let mut heads: Vec<Option<u32>> = vec![None; components.count];
        let mut sizes = vec![0u32; components.count];
        for (block, component) in components.of.iter().enumerate() {
            let Some(component) = component.map(|component| component as usize) else { continue };
            sizes[component] += 1;
            let earlier = heads[component].is_none_or(|head| numbers[block] < numbers[head as usize]);
            if earlier {
                heads[component] = Some(block as u32);
            }
        }
        let mut found = false;
        for (block, component) in components.of.iter().enumerate() {
            let Some(component) = component.map(|component| component as usize) else { continue };
            let loops = sizes[component] > 1 || graph.successors(block).contains(&(block as u32));
            if !loops {
                inside[block] = false;
                continue;
            }
            found = true;
            self.depths[block] += 1;
            self.outermost[block] = self.outermost[block].or(heads[component]);
            if heads[component] == Some(block as u32) {
                inside[block] = false;
            }
        }
        found
    }

    /// How many loops a block is in.
    pub fn depth_of(&self, block: usize) -> u64 {
        self.depths.get(block).copied().unwrap_or_default().into()
    }

    /// The first block of the outermost loop that a block is in.
    pub fn outermost(&self, block: usize) -> Option<usize> {
        self.outermost.get(block).copied().flatten().map(|head| head as usize)
    }
}

struct Order {
    /// When each block was first seen.
    numbers: Vec<Option<u32>>,
    /// Blocks that a jump goes back to.
    targets: u64,
}

fn depth_first(graph: &Graph) -> Order {
    let mut numbers = vec![None; graph.len()];
    let mut open = vec![false; graph.len()];
    let mut jumped_to = vec![false; graph.len()];
    let mut stack: Vec<(u32, u32)> = Vec::new();
    let mut next = 0;
    if !graph.is_empty() {
        stack.push((0, 0));
        numbers[0] = Some(0);
        open[0] = true;
    }
    while let Some((block, edge)) = stack.last_mut() {
        let here = *block as usize;
        let Some(target) = graph.successors(here).get(*edge as usize).map(|target| *target as usize) else {
            open[here] = false;
            stack.pop();
            continue;
        };
        *edge += 1;
        if numbers[target].is_none() {
            next += 1;
            numbers[target] = Some(next);
            open[target] = true;
            stack.push((target as u32, 0));
        } else if open[target] {
            jumped_to[target] = true;
        }
    }
    Order { numbers, targets: jumped_to.iter().filter(|found| **found).count() as u64 }
}

/// Sets of nodes that all reach each other.
#[derive(Debug, Clone, Default)]
pub(crate) struct Components {
    /// The set of each node; nothing for those left out.
    pub of: Vec<Option<u32>>,
    pub count: usize,
}

/// Tarjan's sets of nodes that reach each other, without recursion: a chain may be a million long.
pub(crate) fn strongly_connected<'s>(
    count: usize,
    successors: impl Fn(usize) -> &'s [u32],
    included: impl Fn(usize) -> bool,
) -> Components {
    const UNSEEN: u32 = u32::MAX;
    let mut found = Components { of: vec![None; count], count: 0 };
    let mut numbers = vec![UNSEEN; count];
    let mut lowest = vec![UNSEEN; count];
    let mut waiting: Vec<u32> = Vec::new();
    let mut stack: Vec<(u32, u32)> = Vec::new();
    let mut next = 0;
    for root in 0..count {
        if numbers[root] != UNSEEN || !included(root) {
            continue;
        }
        stack.push((root as u32, 0));
        while let Some((node, edge)) = stack.last_mut() {
            let (here, place) = (*node as usize, *edge as usize);
            if place == 0 {
                numbers[here] = next;
                lowest[here] = next;
                next += 1;
                waiting.push(here as u32);
            }
            *edge += 1;
            if let Some(target) = successors(here).get(place).map(|target| *target as usize) {
                if !included(target) || found.of[target].is_some() {
                    continue;
                }
                if numbers[target] == UNSEEN {
                    stack.push((target as u32, 0));
                } else {
                    lowest[here] = lowest[here].min(numbers[target]);
                }
                continue;
            }
            stack.pop();
            if let Some((parent, _)) = stack.last() {
                lowest[*parent as usize] = lowest[*parent as usize].min(lowest[here]);
            }
            if lowest[here] == numbers[here] {
                while let Some(member) = waiting.pop() {
                    found.of[member as usize] = Some(found.count as u32);
                    if member as usize == here {
                        break;
                    }
                }
                found.count += 1;
            }
        }
    }
    found
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::flow::uses::tests::with_code;

    #[test]
    fn nested_loops_are_counted_with_their_depth() {
        let body = "A: mov.u32 %r1, 0;\n B: mov.u32 %r2, 0;\n C: @%p1 bra C;\n @%p1 bra B;\n D: @%p2 bra D;\n\
                    @%p1 bra A;\n E: @%p1 bra E;\n ret;";
        with_code(body, |code| {
            let graph = Graph::of(code);
            let loops = Loops::of(&graph);
            assert_eq!((loops.count, loops.depth), (5, 3));
            let depth = |step| loops.depth_of(graph.block_of(step).unwrap());
            assert_eq!([0, 1, 2, 3, 4, 5, 6, 7].map(depth), [1, 2, 3, 2, 2, 1, 1, 0]);
            assert_eq!(loops.outermost(graph.block_of(4).unwrap()), graph.block_of(0));
        });
    }

    #[test]
    fn code_that_is_never_reached_has_no_loops() {
        with_code("ret;\n A: bra A;", |code| {
            let loops = Loops::of(&Graph::of(code));
            assert_eq!((loops.count, loops.depth), (0, 0));
        });
    }

    #[test]
    fn nesting_beyond_the_limit_is_capped_and_fast() {
        let labels: String = (0..2000).map(|level| format!("L{level}: mov.u32 %r1, {level};\n")).collect();
        let jumps: String = (0..2000).rev().map(|level| format!("@%p1 bra L{level};\n")).collect();
        with_code(&format!("{labels}{jumps}ret;"), |code| {
            let loops = Loops::of(&Graph::of(code));
            assert_eq!((loops.count, loops.depth), (2000, MOST_LEVELS));
        });
    }
}
