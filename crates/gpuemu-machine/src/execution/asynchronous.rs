//! Asynchronous copies from global to shared memory.

use super::block::Block;
use super::copies::ROW;
use super::launch::LaunchError;
use super::transfer::{Access, Run, addresses};
use super::warp::Warp;
use super::worker::Worker;
use crate::checks::shared_shadow::{SharedRun, Stamp};
use crate::decode::instruction::{CopyAsync, Ordering};
use crate::memory::{Space, copy};
use crate::registers::LANES;

impl Worker<'_, '_> {
    /// Begins copies: what they bring is read now, and arrives when it is waited for.
    #[inline(always)]
    pub(super) fn copy_async(
        &mut self,
        block: &mut Block,
        warp: &mut Warp,
        copy: &CopyAsync,
        step: u32,
        active: u32,
    ) -> Result<(), LaunchError> {
        let bytes = usize::from(copy.bytes);
        let targets = addresses(warp, &copy.target);
        let sources = addresses(warp, &copy.source);
        let mut reads = [bytes as u32; LANES];
        if let Some(slot) = copy.read_bytes {
            reads = warp.file.b32(slot).map(|count| count.min(bytes as u32));
        }
        if let Some(slot) = copy.ignore_source {
            let ignored = warp.file.predicate(slot);
            for (lane, count) in reads.iter_mut().enumerate() {
                if ignored >> lane & 1 == 1 {
                    *count = 0;
                }
            }
        }
        let access =
            Access { step, lane_bytes: bytes, alignment: bytes as u64, write: false, ordering: Ordering::default() };
        let whole = lanes_where(active, |lane| reads[lane] as usize == bytes);
        let partial = active & !whole & lanes_where(active, |lane| reads[lane] > 0);
        let stage: &mut [u8] = bytemuck::cast_slice_mut(self.stage.as_mut_slice());
        stage[..LANES * bytes].fill(0);
        self.read_lanes(block, warp, Space::Global, &sources, access, whole);
        for lane in (0..LANES).filter(|lane| partial >> lane & 1 == 1) {
            self.read_part(block, warp, &sources, access, lane, reads[lane] as usize);
        }
        let lanes = self.begin_copies(block, warp.number, &targets, Access { write: true, ..access }, active);
        let stage: &[u8] = bytemuck::cast_slice(self.stage.as_slice());
        let mut rows = [[0; ROW]; LANES];
        if bytes == ROW {
            rows.copy_from_slice(bytemuck::cast_slice(&stage[..LANES * ROW]));
        } else {
            for (lane, row) in rows.iter_mut().enumerate() {
                row[..bytes].copy_from_slice(&stage[lane * bytes..][..bytes]);
            }
        }
        let before = warp.copies.len();
        warp.copies.begin(&targets.map(|target| target as u32), &rows, bytes, lanes);
        self.add_copies(warp.copies.len() - before)
    }

    /// A lane that reads fewer bytes than it writes: byte by byte, so that no other is touched.
    fn read_part(
        &mut self,
        block: &mut Block,
        warp: &mut Warp,
        sources: &[u64; LANES],
        access: Access,
        lane: usize,
        count: usize,
    ) {
        let mut brought = [0; 16];
        for (place, byte) in brought.iter_mut().enumerate().take(count) {
            let one = Access { lane_bytes: 1, alignment: 1, ..access };
            let mut all = *sources;
            all[lane] = all[lane].wrapping_add(place as u64);
            let kept = self.stage.clone();
            self.read_lanes(block, warp, Space::Global, &all, one, 1 << lane);
            *byte = bytemuck::cast_slice::<u64, u8>(self.stage.as_slice())[lane];
            self.stage = kept;
        }
        let stage: &mut [u8] = bytemuck::cast_slice_mut(self.stage.as_mut_slice());
        stage[lane * access.lane_bytes..][..access.lane_bytes].copy_from_slice(&brought[..access.lane_bytes]);
    }

    /// The lanes whose target is right; what is wrong with the others, or with accesses before, is noted.
    #[inline(always)]
    fn begin_copies(
        &mut self,
        block: &mut Block,
        warp: u32,
        targets: &[u64; LANES],
        access: Access,
        active: u32,
    ) -> u32 {
        let bytes = access.lane_bytes as u64;
        let end = (block.shared.len() as u64 + 1).saturating_sub(bytes);
        let mut right = 0;
        for (lane, target) in targets.iter().enumerate() {
            right |= u32::from(*target < end && target & (bytes - 1) == 0) << lane;
        }
        if active & !right != 0 {
            self.bad_targets(block, warp, targets, access, active & !right);
        }
        let lanes = active & right;
        if self.context.checks.race || self.context.checks.init {
            let stamp = Stamp::new(warp, access.step, &block.clocks);
            for (lane, target) in targets.iter().enumerate() {
                if (lanes >> lane) & 1 == 0 {
                    continue;
                }
                let run = SharedRun { offset: *target as usize, lane_bytes: access.lane_bytes, lanes: 1, first: lane };
                if let Some(conflict) = block.shadow.begin_copy(run, stamp, &block.clocks) {
                    let run = Run { first: lane, lanes: 1, start: *target };
                    self.shared_conflict(block, warp, run, access, conflict);
                }
            }
        }
        lanes
    }

    #[cold]
    fn bad_targets(&mut self, block: &Block, warp: u32, targets: &[u64; LANES], access: Access, lanes: u32) {
        for lane in (0..LANES).filter(|lane| (lanes >> lane) & 1 == 1) {
            self.bad_shared(block, warp, Run { first: lane, lanes: 1, start: targets[lane] }, access);
        }
    }

    /// Copies that are waited for arrive.
    #[inline(always)]
    pub(super) fn wait_group(&mut self, block: &mut Block, warp: &mut Warp, left: Option<u32>, active: u32) {
        let before = warp.copies.len();
        let watched = self.context.checks.race || self.context.checks.init;
        let Block { shared, shadow, clocks, .. } = block;
        let number = warp.number;
        warp.copies.wait(
            active,
            left,
            #[inline(always)]
            |lane, offset, bytes| {
                if let Some(target) = shared.get_mut(offset..offset + bytes.len()) {
                    copy(target, bytes);
                }
                if watched {
                    let run = SharedRun { offset, lane_bytes: bytes.len(), lanes: 1, first: lane };
                    shadow.end_copy(run, number, clocks);
                }
            },
        );
        self.pending_copies -= before - warp.copies.len();
    }
}

fn lanes_where(active: u32, holds: impl Fn(usize) -> bool) -> u32 {
    (0..LANES).filter(|lane| active >> lane & 1 == 1 && holds(*lane)).fold(0, |lanes, lane| lanes | 1 << lane)
}
