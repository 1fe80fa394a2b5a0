//! Asynchronous copies: what was begun, and what has been waited for. Nothing arrives before that.

use crate::checks::shared_shadow::SharedRun;
use crate::registers::LANES;

/// Bytes of one piece: four lanes of the longest copies.
const PIECE: usize = 64;

/// Copies of lanes side by side that are under way.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct PendingCopy {
    /// Where they go.
    pub run: SharedRun,
    bytes: [u8; PIECE],
    /// The group that they belong to.
    group: u32,
}

impl PendingCopy {
    /// What they bring.
    #[inline(always)]
    pub fn bytes(&self) -> &[u8] {
        &self.bytes[..self.run.lane_bytes * self.run.lanes]
    }

    fn lanes(&self) -> u32 {
        (u32::MAX >> (LANES - self.run.lanes.clamp(1, LANES))) << self.run.first
    }

    /// Each lane for itself.
    fn singly(self) -> impl Iterator<Item = PendingCopy> {
        let SharedRun { offset, lane_bytes, lanes, first } = self.run;
        (0..lanes).map(move |lane| {
            let run = SharedRun { offset: offset + lane * lane_bytes, lane_bytes, lanes: 1, first: first + lane };
            let mut bytes = [0; PIECE];
            bytes[..lane_bytes].copy_from_slice(&self.bytes[lane * lane_bytes..][..lane_bytes]);
            PendingCopy { run, bytes, group: self.group }
        })
    }
}

/// The copies of a warp.
#[derive(Debug, Clone, Default)]
pub struct Copies {
    pending: Vec<PendingCopy>,
    /// Groups that each lane has ended.
    ended: [u32; LANES],
}

impl Copies {
    /// As at the beginning of a block.
    pub fn clear(&mut self) {
        self.pending.clear();
        self.ended = [0; LANES];
    }

    /// Begins copies of lanes side by side.
    #[inline(always)]
    pub fn begin(&mut self, run: SharedRun, bytes: &[u8]) {
        let at_once = (PIECE / run.lane_bytes).max(1);
        for (piece, bytes) in bytes.chunks(at_once * run.lane_bytes).enumerate() {
            let skipped = piece * at_once;
            let lanes = bytes.len() / run.lane_bytes;
            let first = run.first + skipped;
            let group = self.ended[first];
            let one = SharedRun { offset: run.offset + skipped * run.lane_bytes, lanes, first, ..run };
            let mut kept = [0; PIECE];
            super::shared_access::copy(&mut kept[..bytes.len()], bytes);
            let copy = PendingCopy { run: one, bytes: kept, group };
            if self.ended[first..first + lanes].iter().all(|other| *other == group) {
                self.pending.push(copy);
            } else {
                // Lanes that went different ways: each for itself.
                let ended = self.ended;
                self.pending.extend(copy.singly().map(|one| PendingCopy { group: ended[one.run.first], ..one }));
            }
        }
    }

    /// Ends the group of each of these lanes.
    pub fn commit(&mut self, lanes: u32) {
        for (lane, ended) in self.ended.iter_mut().enumerate() {
            *ended += (lanes >> lane) & 1;
        }
    }

    /// Calls with the copies that have arrived once at most `left` groups of these lanes are under way; with all if none is
    /// given.
    #[inline(always)]
    pub fn wait(&mut self, lanes: u32, left: Option<u32>, mut arrived: impl FnMut(&PendingCopy)) {
        let ended = self.ended;
        let mut split = Vec::new();
        self.pending.retain(|copy| {
            let due = left.is_none_or(|left| copy.group + left < ended[copy.run.first]);
            let waiting = copy.lanes() & lanes;
            if !due || waiting == 0 {
                return true;
            }
            if waiting == copy.lanes() {
                arrived(copy);
            } else {
                split.push(*copy);
            }
            false
        });
        for one in split.into_iter().flat_map(PendingCopy::singly) {
            if (lanes >> one.run.first) & 1 == 1 { arrived(&one) } else { self.pending.push(one) }
        }
    }
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
        copies.begin(copy(2, 6, 64), &[5; 96]);
        copies.commit(u32::MAX);
        assert_eq!(waited(&mut copies, 0b1000, Some(0)), [(80, 1)]);
        assert_eq!(waited(&mut copies, u32::MAX, Some(0)), [(128, 2), (64, 1), (96, 1), (112, 1)]);
    }

    #[test]
    fn lanes_in_different_groups_arrive_apart() {
        let mut copies = Copies::default();
        copies.commit(0b01);
        copies.begin(copy(0, 2, 0), &[7; 32]);
        copies.commit(0b11);
        assert_eq!(waited(&mut copies, 0b11, Some(0)), [(0, 1), (16, 1)]);
    }
}
