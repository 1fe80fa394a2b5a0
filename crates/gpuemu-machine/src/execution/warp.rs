//! A warp: its registers, the lanes that go different ways, and what it waits for.

use crate::registers::RegisterFile;

use super::copies::Copies;
use super::local::LocalMemory;

/// What keeps lanes from going on.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Wait {
    Ready,
    /// A barrier of the block.
    Barrier(u32),
    /// Other lanes of the warp that an instruction names.
    Members,
}

/// Lanes of a warp that are at the same instruction.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Fragment {
    pub step: u32,
    pub lanes: u32,
    pub wait: Wait,
    /// The calls that they are in: where each was made.
    pub calls: Vec<u32>,
}

/// A warp of a block.
#[derive(Debug, Clone, Default)]
pub struct Warp {
    /// Its number in the block.
    pub number: u32,
    pub file: RegisterFile,
    /// Its lanes that have not ended, by where they are.
    pub fragments: Vec<Fragment>,
    /// Lanes that the block has threads for.
    pub threads: u32,
    /// Lanes that have not ended.
    pub live: u32,
    /// The threads' own memory.
    pub local: LocalMemory,
    pub copies: Copies,
    /// Instructions since lanes last took turns.
    pub turn: u32,
    /// Whether the next instruction of several lanes is to be done by those that are there.
    pub forced: bool,
}

impl Warp {
    /// The lanes that can go on and shall do so first: the deepest in calls, then those that are furthest behind. Lanes
    /// that come to where others are go on together.
    pub fn next(&mut self) -> Option<usize> {
        if self.fragments.len() > 1 {
            self.merge();
        }
        let ready = self.fragments.iter().enumerate().filter(|(_, fragment)| fragment.wait == Wait::Ready);
        ready.min_by_key(|(_, fragment)| (usize::MAX - fragment.calls.len(), fragment.step)).map(|(place, _)| place)
    }

    fn merge(&mut self) {
        let mut place = 0;
        while place < self.fragments.len() {
            let mut other = place + 1;
            while other < self.fragments.len() {
                let (left, right) = (&self.fragments[place], &self.fragments[other]);
                // Those at a barrier have arrived already; newcomers have to arrive for themselves.
                let mergeable = |wait: Wait| !matches!(wait, Wait::Barrier(_));
                let same = left.step == right.step
                    && left.calls == right.calls
                    && mergeable(left.wait)
                    && mergeable(right.wait);
                if same {
                    let lanes = right.lanes;
                    self.fragments[place].lanes |= lanes;
                    self.fragments[place].wait = Wait::Ready;
                    self.fragments.swap_remove(other);
                } else {
                    other += 1;
                }
            }
            place += 1;
        }
    }

    /// Whether all lanes have ended.
    pub fn ended(&self) -> bool {
        self.fragments.is_empty()
    }
}
