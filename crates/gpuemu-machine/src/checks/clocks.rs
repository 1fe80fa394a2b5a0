//! What happens before what: a clock for each warp, and what each warp knows of the others' clocks.
//!
//! Barriers let the warps of a block know of each other, releases and acquires those of different blocks. An access is
//! ordered before another if whoever does the other knows of the first one's clock.

use std::collections::HashMap;

/// Most that a block keeps of what its warps once knew.
const MOST_KNOWLEDGE: usize = 1 << 21;

/// A warp of a launch: its block, and its number there.
pub type Agent = (u64, u32);

/// What a warp knows of others.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Knowledge {
    /// The clocks of the warps of its own block.
    pub own: Vec<u32>,
    pub least: u32,
    /// The clocks of warps of other blocks; all others are 0.
    pub foreign: HashMap<Agent, u32>,
}

impl Knowledge {
    fn join(&mut self, other: &Self) {
        for (mine, theirs) in self.own.iter_mut().zip(&other.own) {
            *mine = (*mine).max(*theirs);
        }
        join(&mut self.foreign, &other.foreign);
    }

    fn refresh(&mut self) {
        self.least = self.own.iter().copied().min().unwrap_or_default();
    }
}

/// What warps bring to a barrier that they do not wait at.
#[derive(Debug, Clone)]
pub struct Brought {
    knowledge: Knowledge,
    fenced: Option<HashMap<Agent, u32>>,
}

/// The clocks of the warps of a block, and all that they have come to know. Old knowledge is kept: accesses refer to it.
#[derive(Debug, Clone, Default)]
pub struct Clocks {
    block: u64,
    clock: Vec<u32>,
    current: Vec<u32>,
    all: Vec<Knowledge>,
    is_complete: bool,
    /// What a fence has made ready for the next strong write of a warp, and what strong reads have seen since the last.
    fenced: Vec<Option<HashMap<Agent, u32>>>,
    seen: Vec<HashMap<Agent, u32>>,
}

impl Clocks {
    /// Nothing is known at the beginning of a block.
    pub fn new(block: u64, warps: usize) -> Self {
        Self {
            block,
            clock: vec![1; warps],
            current: vec![0; warps],
            all: vec![Knowledge { own: vec![0; warps], least: 0, foreign: HashMap::new() }],
            is_complete: true,
            fenced: vec![None; warps],
            seen: vec![HashMap::new(); warps],
        }
    }

    #[inline(always)]
    pub fn clock(&self, warp: u32) -> u32 {
        self.clock[warp as usize]
    }

    /// The number of what a warp knows now.
    #[inline(always)]
    pub fn knowledge_number(&self, warp: u32) -> u32 {
        self.current[warp as usize]
    }

    /// What a warp knows now.
    #[inline(always)]
    pub fn knowledge(&self, warp: u32) -> &Knowledge {
        &self.all[self.current[warp as usize] as usize]
    }

    /// What was known, by its number.
    pub fn by_number(&self, number: u32) -> Option<&Knowledge> {
        self.all.get(number as usize)
    }

    fn learn(&mut self, warps: &[u32], knowledge: Knowledge) {
        match self.all.last_mut() {
            // Whoever refers to the last then knows more than it did: nothing is called a race that is none.
            Some(last) if !self.is_complete => {
                last.join(&knowledge);
                last.refresh();
            }
            _ => self.all.push(knowledge),
        }
        self.is_complete = self.all.len() < MOST_KNOWLEDGE;
        let number = self.all.len() as u32 - 1;
        for warp in warps {
            self.current[*warp as usize] = number;
        }
    }

    /// These warps came together: each knows what all of them did and knew, and what those brought who did not wait.
    /// Their clocks go on from the latest of them, so that those of warps which always meet stay the same.
    pub fn meet(&mut self, warps: &[u32], brought: Option<Brought>) {
        let Some(first) = warps.first() else { return };
        let mut joined = self.knowledge(*first).clone();
        let mut fenced: Option<HashMap<Agent, u32>> = None;
        for warp in warps {
            joined.join(&self.all[self.current[*warp as usize] as usize]);
            if let Some(ready) = &self.fenced[*warp as usize] {
                join(fenced.get_or_insert_default(), ready);
            }
        }
        if let Some(brought) = brought {
            joined.join(&brought.knowledge);
            if let Some(ready) = &brought.fenced {
                join(fenced.get_or_insert_default(), ready);
            }
        }
        let latest = warps.iter().map(|warp| self.clock(*warp)).max().unwrap_or_default();
        for warp in warps {
            joined.own[*warp as usize] = latest;
            self.clock[*warp as usize] = latest + 1;
            self.fenced[*warp as usize] = fenced.clone();
        }
        joined.refresh();
        self.learn(warps, joined);
    }

    /// A warp comes to where others will learn what it did and knows, and goes on without waiting for them.
    pub fn pass(&mut self, warp: u32, brought: &mut Option<Brought>) {
        let mut knowledge = self.knowledge(warp).clone();
        knowledge.own[warp as usize] = self.clock(warp);
        self.clock[warp as usize] += 1;
        let fenced = self.fenced[warp as usize].clone();
        let Some(brought) = brought else {
            *brought = Some(Brought { knowledge, fenced });
            return;
        };
        brought.knowledge.join(&knowledge);
        if let Some(ready) = &fenced {
            join(brought.fenced.get_or_insert_default(), ready);
        }
    }

    /// Whether all that was known at any time is kept.
    pub fn is_complete(&self) -> bool {
        self.is_complete
    }

    /// The latest clock of any warp.
    pub fn latest(&self) -> u32 {
        self.clock.iter().copied().max().unwrap_or_default()
    }

    /// All that a warp did and knows, as others will learn it.
    fn all_of(&self, warp: u32) -> HashMap<Agent, u32> {
        let known = self.knowledge(warp);
        let mut all = known.foreign.clone();
        for (number, clock) in known.own.iter().enumerate() {
            all.insert((self.block, number as u32), *clock);
        }
        all.insert((self.block, warp), self.clock(warp));
        all
    }

    fn learn_of_others(&mut self, warp: u32, others: &HashMap<Agent, u32>) {
        let known = self.knowledge(warp);
        let is_new = |((block, number), clock): (&Agent, &u32)| {
            if *block == self.block {
                *number != warp && known.own.get(*number as usize).is_some_and(|own| own < clock)
            } else {
                known.foreign.get(&(*block, *number)).is_none_or(|own| own < clock)
            }
        };
        if !others.iter().any(is_new) {
            return;
        }
        let mut knowledge = self.knowledge(warp).clone();
        for ((block, number), clock) in others {
            if *block == self.block {
                if let Some(own) = knowledge.own.get_mut(*number as usize).filter(|_| *number != warp) {
                    *own = (*own).max(*clock);
                }
            } else {
                let known = knowledge.foreign.entry((*block, *number)).or_default();
                *known = (*known).max(*clock);
            }
        }
        knowledge.refresh();
        self.learn(&[warp], knowledge);
    }

    pub fn release(&mut self, warp: u32, address: u64, table: &mut ReleaseTable) {
        join(table.released.entry(address).or_default(), &self.all_of(warp));
        self.clock[warp as usize] += 1;
    }

    pub fn acquire(&mut self, warp: u32, address: u64, table: &ReleaseTable) {
        if let Some(released) = table.released.get(&address) {
            self.learn_of_others(warp, released);
        }
    }

    /// A strong write, which a fence before may have given something to release.
    pub fn strong_write(&mut self, warp: u32, address: u64, table: &mut ReleaseTable) {
        if let Some(fenced) = &self.fenced[warp as usize] {
            join(table.released.entry(address).or_default(), fenced);
        }
    }

    /// A strong read, which a fence afterwards may make an acquire of.
    pub fn strong_read(&mut self, warp: u32, address: u64, table: &ReleaseTable) {
        if let Some(released) = table.released.get(&address) {
            join(&mut self.seen[warp as usize], released);
        }
    }

    pub fn fence(&mut self, warp: u32) {
        let seen = std::mem::take(&mut self.seen[warp as usize]);
        self.learn_of_others(warp, &seen);
        self.fenced[warp as usize] = Some(self.all_of(warp));
        self.clock[warp as usize] += 1;
    }
}

fn join(into: &mut HashMap<Agent, u32>, other: &HashMap<Agent, u32>) {
    for (agent, clock) in other {
        let known = into.entry(*agent).or_default();
        *known = (*known).max(*clock);
    }
}

/// What was released at which address.
#[derive(Debug, Default)]
pub struct ReleaseTable {
    released: HashMap<u64, HashMap<Agent, u32>>,
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_barrier_orders_what_was_before_it() {
        let mut clocks = Clocks::new(0, 2);
        assert!(clocks.knowledge(1).own[0] < clocks.clock(0));
        let before = clocks.clock(0);
        clocks.meet(&[0, 1], None);
        assert!(clocks.knowledge(1).own[0] >= before);
        assert!(clocks.knowledge(1).own[0] < clocks.clock(0), "what comes after it is not ordered");
    }

    #[test]
    fn warps_that_met_have_one_clock() {
        let mut clocks = Clocks::new(0, 3);
        clocks.meet(&[0], None);
        clocks.meet(&[0], None);
        let read = clocks.clock(0);
        assert!(read > clocks.clock(1));
        clocks.meet(&[0, 1, 2], None);
        assert_eq!(clocks.clock(0), clocks.clock(2));
        assert!(clocks.knowledge(1).least >= read);
    }

    #[test]
    fn who_passes_a_barrier_brings_what_was_before_and_learns_nothing() {
        let mut clocks = Clocks::new(0, 2);
        let (before, theirs) = (clocks.clock(0), clocks.clock(1));
        let mut brought = None;
        clocks.pass(0, &mut brought);
        let after = clocks.clock(0);
        clocks.meet(&[1], brought);
        assert!(clocks.knowledge(1).own[0] >= before);
        assert!(clocks.knowledge(1).own[0] < after, "what it did after it passed is not ordered");
        assert!(clocks.knowledge(0).own[1] < theirs, "it has not waited");
    }

    #[test]
    fn what_is_released_after_a_barrier_covers_the_whole_block() {
        let mut table = ReleaseTable::default();
        let (mut first, mut second) = (Clocks::new(0, 2), Clocks::new(1, 2));
        let written = first.clock(1);
        first.meet(&[0, 1], None);
        first.release(0, 64, &mut table);
        second.acquire(0, 64, &table);
        second.meet(&[0, 1], None);
        assert!(second.knowledge(1).foreign[&(0, 1)] >= written);
        assert!(second.knowledge(1).foreign[&(0, 0)] < first.clock(0), "later writes are not released");
    }

    #[test]
    fn a_fence_makes_a_relaxed_write_a_release() {
        let mut table = ReleaseTable::default();
        let (mut first, mut second) = (Clocks::new(0, 1), Clocks::new(1, 1));
        let written = first.clock(0);
        first.strong_write(0, 8, &mut table);
        first.fence(0);
        first.strong_write(0, 64, &mut table);
        second.strong_read(0, 8, &table);
        second.fence(0);
        assert!(second.knowledge(0).foreign.is_empty(), "nothing was fenced before the write at 8");
        second.strong_read(0, 64, &table);
        assert!(second.knowledge(0).foreign.is_empty(), "a fence must follow");
        second.fence(0);
        assert!(second.knowledge(0).foreign[&(0, 0)] >= written);
    }
}
