//! Whether what a thread read matters: values that come of racing reads are followed through registers, until something
//! that can be seen depends on them, or the thread ends.
//!
//! Compilers let several threads read the same element and only one of them go on with it: such a read may race with that
//! one's write, and does no harm.

use std::collections::{HashMap, HashSet};

use crate::registers::Slot;

/// Lanes of a warp that read at an instruction.
pub type Reader = (u64, u32, u32);

/// What is followed in a launch.
#[derive(Debug, Clone, Default)]
pub struct Suspects {
    lanes: HashMap<Reader, u32>,
}

impl Suspects {
    /// Adds a lane of a warp, in a block, that read at an instruction.
    pub fn add(&mut self, reader: Reader, lane: u32) {
        *self.lanes.entry(reader).or_default() |= 1 << (lane & 31);
    }

    /// Whether there are none.
    pub fn is_empty(&self) -> bool {
        self.lanes.is_empty()
    }
}

/// For each register, the instructions whose reads its value depends on, and the lanes where it does.
type Origins = HashMap<Slot, Vec<(u32, u32)>>;

/// What is known of the values of a warp, and of all warps that came before it.
#[derive(Debug, Clone, Default)]
pub struct Taint {
    suspects: Suspects,
    /// For each warp that is running, what the values in its registers depend on.
    registers: HashMap<(u64, u32), Origins>,
    used: HashSet<Reader>,
}

impl Taint {
    pub fn of(suspects: Suspects) -> Self {
        Self { suspects, ..Self::default() }
    }

    /// The readers whose values were used.
    pub fn into_used(self) -> HashSet<Reader> {
        self.used
    }

    /// An instruction of active lanes. What it reads goes into what it writes, across lanes if it does; where it can be
    /// seen from outside, its sources count as used.
    pub fn step(&mut self, (block, warp, step): Reader, active: u32, reads: &[Slot], writes: &[Slot], flow: Flow) {
        let key = (block, warp);
        let loaded = self.suspects.lanes.get(&(block, warp, step)).map_or(0, |lanes| lanes & active);
        if loaded == 0 && !self.registers.contains_key(&key) {
            return;
        }
        let known = self.registers.entry(key).or_default();
        let mut sources: Vec<(u32, u32)> = Vec::new();
        for slot in reads {
            for (origin, lanes) in known.get(slot).into_iter().flatten() {
                if lanes & active != 0 {
                    sources.push((*origin, lanes & active));
                }
            }
        }
        if flow == Flow::Seen {
            self.used.extend(sources.iter().map(|(origin, _)| (block, warp, *origin)));
        }
        if loaded != 0 {
            sources.push((step, loaded));
        }
        for slot in writes {
            let kept = known.entry(*slot).or_default();
            for (_, lanes) in kept.iter_mut() {
                *lanes &= !active;
            }
            kept.retain(|(_, lanes)| *lanes != 0);
            let across = |lanes: u32| if flow == Flow::AcrossLanes { active } else { lanes };
            kept.extend(sources.iter().map(|(origin, lanes)| (*origin, across(*lanes))));
        }
    }

    pub fn end(&mut self, block: u64, warp: u32) {
        self.registers.remove(&(block, warp));
    }
}

/// Where the values of an instruction go.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Flow {
    /// Into registers of the same lane.
    SameLane,
    /// Into registers of other lanes too.
    AcrossLanes,
    /// Into memory, or it decides where lanes go on.
    Seen,
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_value_counts_once_it_is_stored() {
        let mut suspects = Suspects::default();
        suspects.add((3, 1, 10), 4);
        let mut taint = Taint::of(suspects);
        let lane = 1 << 4;
        taint.step((3, 1, 10), u32::MAX, &[], &[Slot(0)], Flow::SameLane);
        taint.step((3, 1, 11), u32::MAX, &[Slot(0), Slot(2)], &[Slot(4)], Flow::SameLane);
        taint.step((3, 1, 12), !lane, &[Slot(4)], &[], Flow::Seen);
        assert!(taint.used.is_empty(), "the lane does not take part in the store");
        taint.step((3, 1, 13), u32::MAX, &[], &[Slot(0)], Flow::SameLane);
        taint.step((3, 1, 14), u32::MAX, &[Slot(0)], &[], Flow::Seen);
        assert!(taint.used.is_empty(), "the register was overwritten");
        taint.step((3, 1, 15), lane, &[Slot(4)], &[], Flow::Seen);
        assert!(taint.used.contains(&(3, 1, 10)));
    }

    #[test]
    fn other_lanes_may_carry_it_on() {
        let mut suspects = Suspects::default();
        suspects.add((0, 0, 1), 0);
        let mut taint = Taint::of(suspects);
        taint.step((0, 0, 1), 1, &[], &[Slot(0)], Flow::SameLane);
        taint.step((0, 0, 2), u32::MAX, &[Slot(0)], &[Slot(2)], Flow::AcrossLanes);
        taint.step((0, 0, 3), 1 << 9, &[Slot(2)], &[], Flow::Seen);
        assert_eq!(taint.into_used().len(), 1);
    }
}
