//! Asynchronous copies: what was begun, and what has been waited for. Nothing arrives before that.

use crate::checks::shared_shadow::SharedRun;
use crate::registers::LANES;

/// Copies of lanes side by side that are under way.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct PendingCopy {
    /// Where they go.
    pub run: SharedRun,
    /// What they bring.
    pub bytes: Vec<u8>,
    /// The group that they belong to.
    group: u32,
}

/// The copies of a warp.
#[derive(Debug, Clone, Default)]
pub struct Copies {
    pending: Vec<PendingCopy>,
    /// Groups that each lane has ended.
    ended: [u32; LANES],
    /// Memory of copies that have arrived.
    spare: Vec<Vec<u8>>,
}

fn lanes_of(run: SharedRun) -> u32 {
    (u32::MAX >> (LANES - run.lanes.clamp(1, LANES))) << run.first
}

impl Copies {
    /// As at the beginning of a block.
    pub fn clear(&mut self) {
        self.pending.clear();
        self.ended = [0; LANES];
    }

    /// Begins copies of lanes side by side.
    pub fn begin(&mut self, run: SharedRun, bytes: &[u8]) {
        let group = self.ended[run.first];
        let groups = &self.ended[run.first..run.first + run.lanes];
        if run.lanes > 1 && groups.iter().any(|other| *other != group) {
            // Lanes that went different ways: each for itself.
            for (lane, bytes) in bytes.chunks_exact(run.lane_bytes).enumerate() {
                self.begin(one_lane(run, lane), bytes);
            }
            return;
        }
        let mut kept = self.spare.pop().unwrap_or_default();
        kept.clear();
        kept.extend_from_slice(bytes);
        self.pending.push(PendingCopy { run, bytes: kept, group });
    }

    /// Ends the group of each of these lanes.
    pub fn commit(&mut self, lanes: u32) {
        for (lane, ended) in self.ended.iter_mut().enumerate() {
            *ended += (lanes >> lane) & 1;
        }
    }

    /// Calls with the copies that have arrived once at most `left` groups of these lanes are under way; with all if none is
    /// given.
    pub fn wait(&mut self, lanes: u32, left: Option<u32>, mut arrived: impl FnMut(&PendingCopy)) {
        if self.pending.is_empty() {
            return;
        }
        let mut rest = Vec::new();
        for copy in std::mem::take(&mut self.pending) {
            let due = left.is_none_or(|left| copy.group + left < self.ended[copy.run.first]);
            let waiting = lanes_of(copy.run) & lanes;
            if !due || waiting == 0 {
                rest.push(copy);
            } else if waiting == lanes_of(copy.run) {
                arrived(&copy);
                self.spare.push(copy.bytes);
            } else {
                for (lane, bytes) in copy.bytes.chunks_exact(copy.run.lane_bytes).enumerate() {
                    let run = one_lane(copy.run, lane);
                    let one = PendingCopy { run, bytes: bytes.to_vec(), group: copy.group };
                    if (lanes >> run.first) & 1 == 1 { arrived(&one) } else { rest.push(one) }
                }
            }
        }
        self.pending = rest;
    }
}

fn one_lane(run: SharedRun, lane: usize) -> SharedRun {
    SharedRun { offset: run.offset + lane * run.lane_bytes, lanes: 1, first: run.first + lane, ..run }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn copy(first: usize, lanes: usize, offset: usize) -> SharedRun {
        SharedRun { offset, lane_bytes: 16, lanes, first }
    }

    fn waited(copies: &mut Copies, lanes: u32, left: Option<u32>) -> Vec<(usize, usize)> {
        let mut arrived = Vec::new();
        copies.wait(lanes, left, |copy| arrived.push((copy.run.offset, copy.run.lanes)));
        arrived
    }

    #[test]
    fn a_copy_arrives_when_its_group_is_waited_for() {
        let mut copies = Copies::default();
        copies.begin(copy(0, 1, 0), &[1; 16]);
        copies.commit(1);
        copies.begin(copy(0, 1, 16), &[2; 16]);
        copies.commit(1);
        copies.begin(copy(0, 1, 32), &[3; 16]);
        assert_eq!(waited(&mut copies, 1, Some(2)), []);
        assert_eq!(waited(&mut copies, 2, Some(0)), [], "another lane has none");
        assert_eq!(waited(&mut copies, 1, Some(1)), [(0, 1)]);
        assert_eq!(waited(&mut copies, 1, Some(0)), [(16, 1)]);
        assert_eq!(waited(&mut copies, 1, None), [(32, 1)], "not in a group yet");
    }

    #[test]
    fn lanes_that_wait_alone_get_only_their_own() {
        let mut copies = Copies::default();
        copies.begin(copy(2, 4, 64), &[5; 64]);
        copies.commit(u32::MAX);
        assert_eq!(waited(&mut copies, 0b1000, Some(0)), [(80, 1)]);
        assert_eq!(waited(&mut copies, u32::MAX, Some(0)), [(64, 1), (96, 1), (112, 1)]);
    }
}
