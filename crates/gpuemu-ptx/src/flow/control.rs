//! Which blocks run only because a branch went one way.

use super::dominance::PostDominators;
use super::graph::Graph;

/// Blocks that depend on branches, marked branch by branch.
#[derive(Debug, Clone)]
pub struct ControlDependence {
    tree: PostDominators,
    /// The nearest ancestor that is not marked, or a shorter way to it.
    unmarked: Vec<u32>,
    cause: Vec<Option<u32>>,
}

impl ControlDependence {
    /// Nothing is marked at first.
    pub fn of(graph: &Graph) -> Self {
        let tree = PostDominators::of(graph);
        let unmarked = (0..=graph.len() as u32).collect();
        Self { tree, unmarked, cause: vec![None; graph.len()] }
    }

    /// Marks the blocks that depend on how a block branches, and returns those that were not marked before.
    pub fn mark(&mut self, graph: &Graph, branch: usize, cause: usize) -> Vec<usize> {
        let Some(join) = self.tree.next.get(branch).map(|join| *join as usize) else { return Vec::new() };
        let mut marked = Vec::new();
        for successor in graph.successors(branch) {
            // Marked blocks are stepped over, so all marking together takes no longer than one walk of the tree.
            let mut here = self.first_unmarked(*successor);
            while self.tree.depth[here as usize] > self.tree.depth[join] {
                self.cause[here as usize] = Some(cause as u32);
                self.unmarked[here as usize] = self.tree.next[here as usize];
                marked.push(here as usize);
                here = self.first_unmarked(here);
            }
        }
        marked
    }

    /// The branch that a marked block depends on.
    pub fn cause(&self, block: usize) -> Option<usize> {
        self.cause.get(block).copied().flatten().map(|cause| cause as usize)
    }

    fn first_unmarked(&mut self, block: u32) -> u32 {
        let mut root = block;
        while self.unmarked[root as usize] != root {
            root = self.unmarked[root as usize];
        }
        let mut here = block;
        while here != root {
            here = std::mem::replace(&mut self.unmarked[here as usize], root);
        }
        root
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::flow::uses::tests::with_code;

    #[test]
    fn what_lies_between_a_branch_and_its_join_depends_on_it() {
        let body = "@%p1 bra ELSE;\n @%p2 bra INNER;\n mov.u32 %r1, 1;\n INNER: bra JOIN;\n ELSE: mov.u32 %r1, 2;\n\
                    JOIN: ret;";
        with_code(body, |code| {
            let graph = Graph::of(code);
            let mut control = ControlDependence::of(&graph);
            let mut marked = control.mark(&graph, 0, 0);
            marked.sort_unstable();
            assert_eq!(marked, [1, 3, 4]);
            assert_eq!(control.mark(&graph, 1, 1), [2]);
            assert_eq!([0, 1, 2, 5].map(|block| control.cause(block)), [None, Some(0), Some(1), None]);
        });
    }

    #[test]
    fn all_that_follows_an_early_exit_depends_on_it() {
        with_code("@%p1 exit;\n @%p2 bra B;\n mov.u32 %r1, 1;\n B: ret;", |code| {
            let graph = Graph::of(code);
            let mut control = ControlDependence::of(&graph);
            let mut marked = control.mark(&graph, 0, 0);
            marked.sort_unstable();
            assert_eq!(marked, [1, 3]);
        });
    }
}
