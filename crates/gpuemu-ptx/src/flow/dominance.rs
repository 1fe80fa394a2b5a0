//! Which block every way from a block to the end must pass: post-dominators.

use super::graph::Graph;
use super::uses::Lists;

const NONE: u32 = u32::MAX;

/// The tree of post-dominators. Its root is the end of the function, whose number is that of the blocks.
#[derive(Debug, Clone, Default)]
pub(crate) struct PostDominators {
    /// The next block that must be passed; the root is its own.
    pub next: Vec<u32>,
    /// How far a block is from the root.
    pub depth: Vec<u32>,
}

impl PostDominators {
    /// The tree of a function, by the algorithm of Lengauer and Tarjan, which no graph makes slow.
    pub fn of(graph: &Graph) -> Self {
        let reversed = Reversed::of(graph);
        let mut search = Search::over(&reversed);
        search.find(graph, &reversed);
        let mut tree = Self { next: vec![reversed.end; graph.len() + 1], depth: vec![0; graph.len() + 1] };
        for number in 1..search.order.len() {
            let block = search.order[number] as usize;
            let next = search.order[search.dominators[number] as usize];
            tree.next[block] = next;
            tree.depth[block] = tree.depth[next as usize] + 1;
        }
        tree
    }
}

/// The graph with every edge turned round.
struct Reversed {
    predecessors: Lists,
    /// Blocks that end a function, or that stand for code that never ends.
    ends: Vec<u32>,
    is_end: Vec<bool>,
    end: u32,
}

impl Reversed {
    fn of(graph: &Graph) -> Self {
        let edges = |block: usize| graph.successors(block).iter().map(move |next| (*next as usize, block as u32));
        let predecessors = Lists::of(graph.len(), (0..graph.len()).flat_map(edges));
        let is_end: Vec<bool> = (0..graph.len()).map(|block| graph.leaves(block)).collect();
        let mut reversed = Self { predecessors, ends: Vec::new(), is_end, end: graph.len() as u32 };
        reversed.end_what_never_ends();
        let ends = reversed.is_end.iter().enumerate().filter(|(_, end)| **end);
        reversed.ends = ends.map(|(block, _)| block as u32).collect();
        reversed
    }

    /// Blocks that never reach an end get one, from the last backwards.
    fn end_what_never_ends(&mut self) {
        let mut seen = self.is_end.clone();
        let mut waiting: Vec<u32> = (0..self.end).filter(|block| self.is_end[*block as usize]).collect();
        for last in (0..self.end).rev() {
            while let Some(block) = waiting.pop() {
                for before in self.predecessors.get(block as usize) {
                    if !std::mem::replace(&mut seen[*before as usize], true) {
                        waiting.push(*before);
                    }
                }
            }
            if !std::mem::replace(&mut seen[last as usize], true) {
                self.is_end[last as usize] = true;
                waiting.push(last);
            }
        }
    }

    fn before(&self, block: u32) -> &[u32] {
        if block == self.end { &self.ends } else { self.predecessors.get(block as usize) }
    }
}

/// Everything is numbered by when it was first seen; the root is 0.
struct Search {
    order: Vec<u32>,
    numbers: Vec<u32>,
    parents: Vec<u32>,
    semi: Vec<u32>,
    dominators: Vec<u32>,
    ancestors: Vec<u32>,
    best: Vec<u32>,
    path: Vec<u32>,
}

impl Search {
    fn over(reversed: &Reversed) -> Self {
        let count = reversed.end as usize + 1;
        let mut search = Self {
            order: vec![reversed.end],
            numbers: vec![NONE; count],
            parents: vec![0],
            semi: (0..count as u32).collect(),
            dominators: vec![0; count],
            ancestors: vec![NONE; count],
            best: (0..count as u32).collect(),
            path: Vec::new(),
        };
        search.numbers[reversed.end as usize] = 0;
        let mut stack = vec![(reversed.end, 0usize)];
        while let Some((block, edge)) = stack.last_mut() {
            let Some(before) = reversed.before(*block).get(*edge).copied() else {
                stack.pop();
                continue;
            };
            *edge += 1;
            if search.numbers[before as usize] == NONE {
                let parent = search.numbers[*block as usize];
                search.numbers[before as usize] = search.order.len() as u32;
                search.order.push(before);
                search.parents.push(parent);
                stack.push((before, 0));
            }
        }
        search
    }

    fn find(&mut self, graph: &Graph, reversed: &Reversed) {
        let count = self.order.len();
        // Lists of those whose dominator is still open, by semi-dominator.
        let (mut first, mut following) = (vec![NONE; count], vec![NONE; count]);
        for number in (1..count as u32).rev() {
            let block = self.order[number as usize];
            let end = reversed.is_end[block as usize].then_some(reversed.end);
            for after in graph.successors(block as usize).iter().copied().chain(end) {
                let after = self.numbers[after as usize];
                if after != NONE {
                    let lowest = self.lowest(after);
                    self.semi[number as usize] = self.semi[number as usize].min(self.semi[lowest as usize]);
                }
            }
            let semi = self.semi[number as usize] as usize;
            following[number as usize] = std::mem::replace(&mut first[semi], number);
            let parent = self.parents[number as usize];
            self.ancestors[number as usize] = parent;
            let mut open = std::mem::replace(&mut first[parent as usize], NONE);
            while open != NONE {
                let lowest = self.lowest(open);
                let earlier = self.semi[lowest as usize] < self.semi[open as usize];
                self.dominators[open as usize] = if earlier { lowest } else { parent };
                open = following[open as usize];
            }
        }
        for number in 1..count {
            if self.dominators[number] != self.semi[number] {
                self.dominators[number] = self.dominators[self.dominators[number] as usize];
            }
        }
    }

    /// The one of lowest semi-dominator on the way to the root of its tree, which gets shorter by asking.
    fn lowest(&mut self, number: u32) -> u32 {
        if self.ancestors[number as usize] == NONE {
            return number;
        }
        let mut here = number;
        while self.ancestors[self.ancestors[here as usize] as usize] != NONE {
            self.path.push(here);
            here = self.ancestors[here as usize];
        }
        while let Some(below) = self.path.pop() {
            let above = self.ancestors[below as usize] as usize;
            if self.semi[self.best[above] as usize] < self.semi[self.best[below as usize] as usize] {
                self.best[below as usize] = self.best[above];
            }
            self.ancestors[below as usize] = self.ancestors[above];
        }
        self.best[number as usize]
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::flow::uses::tests::with_code;
    use gpuemu_tensor::Stream;

    /// Blocks that are on every way from a block to the end, by trying to do without each.
    fn by_definition(graph: &Graph, reversed: &Reversed, block: usize) -> Vec<usize> {
        let reaches_end_without = |avoided: usize| {
            let mut seen = vec![false; graph.len()];
            let mut waiting = vec![block];
            while let Some(here) = waiting.pop() {
                if here == avoided || std::mem::replace(&mut seen[here], true) {
                    continue;
                }
                if reversed.is_end[here] {
                    return true;
                }
                waiting.extend(graph.successors(here).iter().map(|next| *next as usize));
            }
            false
        };
        (0..graph.len()).filter(|other| *other != block && !reaches_end_without(*other)).collect()
    }

    #[test]
    fn the_tree_holds_what_every_way_passes() {
        let mut random = Stream::new(17, "post-dominators");
        for _ in 0..300 {
            let count = 1 + random.below(14);
            let lines = (0..count).map(|label| {
                let target = random.below(count);
                let ending = match random.below(5) {
                    0 => "ret;".to_string(),
                    1 => format!("bra L{target};"),
                    2 => "@%p1 exit;".to_string(),
                    _ => format!("@%p1 bra L{target};"),
                };
                format!("L{label}: {ending}\n")
            });
            let body: String = lines.collect();
            with_code(&body, |code| {
                let graph = Graph::of(code);
                let reversed = Reversed::of(&graph);
                let tree = PostDominators::of(&graph);
                for block in 0..graph.len() {
                    let mut passed = Vec::new();
                    let mut here = tree.next[block];
                    while here != reversed.end {
                        passed.push(here as usize);
                        here = tree.next[here as usize];
                    }
                    assert_eq!(tree.depth[block] as usize, passed.len() + 1);
                    passed.sort_unstable();
                    assert_eq!(passed, by_definition(&graph, &reversed, block), "block {block} of\n{body}");
                }
            });
        }
    }
}
