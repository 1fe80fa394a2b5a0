//! Asynchronous copies: what was begun, and what has been waited for. Nothing arrives before that.

use std::collections::VecDeque;

use crate::registers::LANES;

/// Most bytes of a lane.
pub const ROW: usize = 16;

/// What one instruction began: a copy of each of its lanes, as far as it has not arrived.
#[derive(Debug, Clone, PartialEq, Eq)]
struct PendingCopy {
    /// Where each lane's goes.
    offsets: [u32; LANES],
    rows: [[u8; ROW]; LANES],
    lane_bytes: usize,
    /// Lanes whose copy has not arrived.
    lanes: u32,
    /// The group that they belong to.
    group: u32,
}

/// The copies of a warp.
#[derive(Debug, Clone, Default)]
pub struct Copies {
    /// In the order in which they were begun, which is mostly the one in which they arrive.
    pending: VecDeque<PendingCopy>,
    /// Groups that each lane has ended.
    ended: [u32; LANES],
}

impl Copies {
    /// As at the beginning of a block.
    pub fn clear(&mut self) {
        self.pending.clear();
        self.ended = [0; LANES];
    }

    /// How many have not arrived, those of one instruction and group counted once.
    pub fn len(&self) -> usize {
        self.pending.len()
    }

    /// Begins a copy of each of these lanes.
    #[inline(always)]
    pub fn begin(&mut self, offsets: &[u32; LANES], rows: &[[u8; ROW]; LANES], lane_bytes: usize, lanes: u32) {
        let mut left = lanes;
        // Lanes that went different ways may be in different groups.
        while left != 0 {
            let group = self.ended[left.trailing_zeros() as usize];
            let mut alike = 0;
            for (lane, ended) in self.ended.iter().enumerate() {
                alike |= u32::from(*ended == group) << lane;
            }
            let taken = left & alike;
            self.pending.push_back(PendingCopy { offsets: *offsets, rows: *rows, lane_bytes, lanes: taken, group });
            left &= !taken;
        }
    }

    /// Ends the group of each of these lanes.
    pub fn commit(&mut self, lanes: u32) {
        for (lane, ended) in self.ended.iter_mut().enumerate() {
            *ended += (lanes >> lane) & 1;
        }
    }

    /// Calls with lane, offset and bytes of every copy that has arrived once at most `left` groups of these lanes are under
    /// way; with all if none is given.
    #[inline(always)]
    pub fn wait(&mut self, lanes: u32, left: Option<u32>, mut arrived: impl FnMut(usize, usize, &[u8])) {
        let ended = self.ended;
        let mut gone = 0;
        for copy in &mut self.pending {
            let mut waiting = copy.lanes & lanes;
            // Lanes that ended fewer groups since have not waited long enough.
            if let Some(left) = left {
                for (lane, ended) in ended.iter().enumerate() {
                    waiting &= !(u32::from(copy.group + left >= *ended) << lane);
                }
            }
            copy.lanes &= !waiting;
            gone += usize::from(copy.lanes == 0);
            while waiting != 0 {
                let lane = waiting.trailing_zeros() as usize;
                waiting &= waiting - 1;
                arrived(lane, copy.offsets[lane] as usize, &copy.rows[lane][..copy.lane_bytes]);
            }
        }
        while self.pending.pop_front_if(|copy| copy.lanes == 0).is_some() {
            gone -= 1;
        }
        if gone > 0 {
            self.pending.retain(|copy| copy.lanes != 0);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn begin(copies: &mut Copies, lanes: u32, offset: u32) {
        let offsets = std::array::from_fn(|lane| offset + 16 * lane as u32);
        copies.begin(&offsets, &[[7; ROW]; LANES], ROW, lanes);
    }

    fn waited(copies: &mut Copies, lanes: u32, left: Option<u32>) -> Vec<usize> {
        let mut arrived = Vec::new();
        copies.wait(lanes, left, |_, offset, bytes| {
            assert_eq!(bytes, [7; ROW]);
            arrived.push(offset);
        });
        arrived
    }

    #[test]
    fn a_copy_arrives_when_its_group_is_waited_for() {
        let mut copies = Copies::default();
        begin(&mut copies, 1, 0);
        copies.commit(1);
        begin(&mut copies, 1, 1000);
        copies.commit(1);
        begin(&mut copies, 1, 2000);
        assert_eq!(waited(&mut copies, 1, Some(2)), Vec::<usize>::new());
        assert_eq!(waited(&mut copies, 2, Some(0)), Vec::<usize>::new(), "another lane has none");
        assert_eq!(waited(&mut copies, 1, Some(1)), [0]);
        assert_eq!(waited(&mut copies, 1, Some(0)), [1000]);
        assert_eq!(waited(&mut copies, 1, None), [2000], "not in a group yet");
    }

    #[test]
    fn lanes_that_wait_alone_get_only_their_own() {
        let mut copies = Copies::default();
        begin(&mut copies, 0b11100, 0);
        copies.commit(u32::MAX);
        assert_eq!(waited(&mut copies, 0b1000, Some(0)), [48]);
        assert_eq!(waited(&mut copies, u32::MAX, Some(0)), [32, 64]);
        assert!(copies.pending.is_empty());
    }

    #[test]
    fn lanes_in_different_groups_arrive_apart() {
        let mut copies = Copies::default();
        copies.commit(0b01);
        begin(&mut copies, 0b11, 0);
        assert_eq!(copies.pending.len(), 2);
        copies.commit(0b10);
        assert_eq!(waited(&mut copies, 0b11, Some(0)), [16]);
        copies.commit(0b01);
        assert_eq!(waited(&mut copies, 0b11, Some(0)), [0]);
    }
}
