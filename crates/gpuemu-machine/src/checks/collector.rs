//! Findings as they are seen: one for each place in the code, with how often it was seen.

use std::collections::BTreeMap;

use gpuemu_model::emulation::{AccessFault, AccessFinding, OtherAccess, ThreadPlace};

use crate::decode::places::Places;

/// Something wrong, as the machine sees it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Sighting {
    pub fault: AccessFault,
    pub message: String,
    pub step: Option<u32>,
    pub thread: Option<ThreadPlace>,
    pub address: Option<u64>,
    /// The buffer or variable.
    pub buffer: Option<String>,
    /// Bytes from its beginning.
    pub offset: Option<i64>,
    /// The other side: instruction, thread, whether it wrote.
    pub other: Option<(u32, ThreadPlace, bool)>,
}

type Key = (Option<u32>, AccessFault, Option<u32>);

/// All that was seen, by place.
#[derive(Debug, Clone, Default)]
pub struct Collector {
    found: BTreeMap<Key, (u64, Sighting, u64)>,
}

impl Collector {
    /// Notes that something was seen in a block. The message is only made for the first of its place.
    pub fn note(
        &mut self,
        block: u64,
        step: Option<u32>,
        fault: AccessFault,
        other: Option<u32>,
        sighting: impl FnOnce() -> Sighting,
    ) {
        self.note_times(1, block, step, fault, other, sighting);
    }

    /// As `note`, of something that was seen so many times.
    pub fn note_times(
        &mut self,
        times: u64,
        block: u64,
        step: Option<u32>,
        fault: AccessFault,
        other: Option<u32>,
        sighting: impl FnOnce() -> Sighting,
    ) {
        let key = (step, fault, other);
        match self.found.get_mut(&key) {
            Some((first, _, count)) if *first <= block => *count += times,
            Some((first, kept, count)) => {
                *first = block;
                *kept = sighting();
                *count += times;
            }
            None => {
                self.found.insert(key, (block, sighting(), times));
            }
        }
    }

    /// Takes over what another has seen; of the same place, the one in the first block is kept.
    pub fn merge(&mut self, other: Collector) {
        for (key, (block, sighting, count)) in other.found {
            match self.found.get_mut(&key) {
                Some((first, kept, known)) => {
                    *known += count;
                    if block < *first {
                        (*first, *kept) = (block, sighting);
                    }
                }
                None => {
                    self.found.insert(key, (block, sighting, count));
                }
            }
        }
    }

    /// Whether there is a race among them.
    pub fn has_race(&self) -> bool {
        self.found.keys().any(|(_, fault, _)| *fault == AccessFault::Race)
    }

    /// The findings in the order of the code, at most so many, and how many there are beyond them.
    pub fn finish(self, places: &Places, most: usize) -> (Vec<AccessFinding>, u64) {
        let beyond = self.found.len().saturating_sub(most) as u64;
        let findings = self.found.into_values().take(most).map(|(_, sighting, occurrences)| AccessFinding {
            fault: sighting.fault,
            message: sighting.message,
            place: sighting.step.map(|step| places.place(step)),
            thread: sighting.thread,
            address: sighting.address,
            buffer: sighting.buffer,
            offset: sighting.offset,
            other: sighting.other.map(|(step, thread, write)| OtherAccess { place: places.place(step), thread, write }),
            occurrences,
        });
        (findings.collect(), beyond)
    }
}
