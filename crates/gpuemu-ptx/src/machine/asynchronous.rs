//! Asynchronous copies from global to shared memory.

use super::block::Block;
use super::shared_access::shared_run;
use super::transfer::{Access, Run, addresses, for_runs};
use super::warp::Warp;
use super::worker::Worker;
use crate::checks::shared_shadow::Stamp;
use crate::decode::instruction::{CopyAsync, Ordering};
use crate::memory::Space;
use crate::registers::LANES;

impl Worker<'_, '_> {
    /// Begins copies: what they bring is read now, and arrives when it is waited for.
    #[inline(always)]
    pub(super) fn copy_async(&mut self, block: &mut Block, warp: &mut Warp, copy: &CopyAsync, step: u32, active: u32) {
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
        let into = Access { write: true, ..access };
        let stamp = Stamp::new(warp.number, step, &block.clocks);
        for_runs(&targets, active, bytes, |run| self.begin_copies(block, warp, run, into, stamp));
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

    #[inline]
    fn begin_copies(&mut self, block: &mut Block, warp: &mut Warp, run: Run, access: Access, stamp: Stamp) {
        let Some(target) = shared_run(block, run, access) else {
            if run.lanes == 1 {
                self.bad_shared(block, warp.number, run, access);
            }
            for one in run.singly(access.lane_bytes).filter(|_| run.lanes > 1) {
                self.begin_copies(block, warp, one, access, stamp);
            }
            return;
        };
        if self.context.checks.race || self.context.checks.init {
            let conflict = block.shadow.begin_copy(target, stamp, &block.clocks);
            if let Some(conflict) = conflict {
                self.shared_conflict(block, warp.number, run, access, conflict);
            }
        }
        let stage: &[u8] = bytemuck::cast_slice(self.stage.as_slice());
        warp.copies.begin(target, &stage[run.first * access.lane_bytes..][..run.lanes * access.lane_bytes]);
    }

    /// Copies that are waited for arrive.
    #[inline(always)]
    pub(super) fn wait_group(&mut self, block: &mut Block, warp: &mut Warp, left: Option<u32>, active: u32) {
        let watched = self.context.checks.race || self.context.checks.init;
        let Block { shared, shadow, clocks, .. } = block;
        warp.copies.wait(active, left, |copy| {
            let bytes = copy.bytes();
            if let Some(target) = shared.get_mut(copy.run.offset..copy.run.offset + bytes.len()) {
                super::shared_access::copy(target, bytes);
            }
            if watched {
                shadow.end_copy(copy.run, warp.number, clocks);
            }
        });
    }
}

fn lanes_where(active: u32, holds: impl Fn(usize) -> bool) -> u32 {
    (0..LANES).filter(|lane| active >> lane & 1 == 1 && holds(*lane)).fold(0, |lanes, lane| lanes | 1 << lane)
}
