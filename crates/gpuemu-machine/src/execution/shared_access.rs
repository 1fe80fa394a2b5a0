//! Accesses to shared memory, and what its shadow has against them.

use gpuemu_model::emulation::AccessFault;

use super::block::Block;
use super::launch::POISON;
use super::transfer::{Access, Run, aligned, is_strong, verb};
use super::worker::Worker;
use crate::checks::shared_shadow::{SharedRun, Stamp};
use crate::checks::{Conflict, Sighting};
use crate::memory::copy;
use crate::registers::LANES;

impl Worker<'_, '_> {
    #[inline(always)]
    pub(super) fn read_shared(&mut self, block: &mut Block, warp: u32, run: Run, access: Access, stamp: Stamp) {
        if !self.try_read_shared(block, warp, run, access, stamp) {
            self.read_shared_singly(block, warp, run, access, stamp);
        }
    }

    #[cold]
    fn read_shared_singly(&mut self, block: &mut Block, warp: u32, run: Run, access: Access, stamp: Stamp) {
        for one in run.singly(access.lane_bytes) {
            if !self.try_read_shared(block, warp, one, access, stamp) {
                self.bad_shared(block, warp, one, access);
                self.staged(one, access.lane_bytes).fill(POISON);
            }
        }
    }

    #[inline(always)]
    fn try_read_shared(&mut self, block: &mut Block, warp: u32, run: Run, access: Access, stamp: Stamp) -> bool {
        let Some(target) = shared_run(block, run, access) else { return false };
        let from = &block.shared[target.offset..target.offset + run.lanes * access.lane_bytes];
        copy(self.staged(run, access.lane_bytes), from);
        if self.context.checks.race || self.context.checks.init {
            let steps = &self.context.program.steps;
            let strong = |step: u32| steps.get(step as usize).is_some_and(|decoded| is_strong(&decoded.action));
            if let Some(conflict) = block.shadow.read(target, stamp, &block.clocks, strong) {
                self.shared_conflict(block, warp, run, access, conflict);
            }
        }
        true
    }

    #[inline(always)]
    pub(super) fn write_shared(&mut self, block: &mut Block, warp: u32, run: Run, access: Access, stamp: Stamp) {
        if !self.try_write_shared(block, run, access, stamp) {
            self.write_shared_singly(block, warp, run, access, stamp);
        }
    }

    #[cold]
    fn write_shared_singly(&mut self, block: &mut Block, warp: u32, run: Run, access: Access, stamp: Stamp) {
        for one in run.singly(access.lane_bytes) {
            if !self.try_write_shared(block, one, access, stamp) {
                self.bad_shared(block, warp, one, access);
            }
        }
    }

    #[inline(always)]
    fn try_write_shared(&mut self, block: &mut Block, run: Run, access: Access, stamp: Stamp) -> bool {
        let Some(target) = shared_run(block, run, access) else { return false };
        let from = self.staged(run, access.lane_bytes);
        copy(&mut block.shared[target.offset..target.offset + from.len()], from);
        if self.context.checks.race || self.context.checks.init {
            block.shadow.write(target, stamp);
        }
        true
    }

    /// Whether a write of shared memory races with what was done before its instruction, of which all lanes are given.
    #[inline(always)]
    pub(super) fn race_of_write(
        &mut self,
        block: &Block,
        warp: u32,
        run: Run,
        access: Access,
        stamp: Stamp,
        together: (&[u64; LANES], u32),
    ) {
        // What lies outside is never written, and noted there.
        match shared_run(block, run, access) {
            Some(target) => self.race_of_run(block, warp, run, access, stamp, together, target),
            None => self.race_of_write_singly(block, warp, run, access, stamp, together),
        }
    }

    #[cold]
    fn race_of_write_singly(
        &mut self,
        block: &Block,
        warp: u32,
        run: Run,
        access: Access,
        stamp: Stamp,
        together: (&[u64; LANES], u32),
    ) {
        for one in run.singly(access.lane_bytes) {
            if let Some(target) = shared_run(block, one, access) {
                self.race_of_run(block, warp, one, access, stamp, together, target);
            }
        }
    }

    #[allow(clippy::too_many_arguments, reason = "what is known of an access, as it is")]
    #[inline(always)]
    fn race_of_run(
        &mut self,
        block: &Block,
        warp: u32,
        run: Run,
        access: Access,
        stamp: Stamp,
        (all, active): (&[u64; LANES], u32),
        target: SharedRun,
    ) {
        let (offset, bytes) = (target.offset, run.lanes * access.lane_bytes);
        let from = &bytemuck::cast_slice::<u64, u8>(self.stage.as_slice())[run.first * access.lane_bytes..][..bytes];
        let steps = &self.context.program.steps;
        let strong = |step: u32| steps.get(step as usize).is_some_and(|decoded| is_strong(&decoded.action));
        let unchanged = |at: usize, length: usize| {
            let at = at.max(offset);
            let lane = run.first + (at - offset) / access.lane_bytes;
            // Of lanes that write the same place at once the last one wins: what the others write is never seen.
            let later = (lane + 1..LANES).filter(|lane| active >> lane & 1 == 1);
            let mut later = later.map(|lane| all[lane]..all[lane].saturating_add(access.lane_bytes as u64));
            later.any(|place| place.contains(&(at as u64)))
                || block.shared.get(at..at + length) == from.get(at - offset..at - offset + length)
        };
        if let Some(conflict) = block.shadow.before_write(target, stamp, &block.clocks, strong, unchanged) {
            self.shared_conflict(block, warp, run, access, conflict);
        }
    }

    /// A read or write of shared memory that must not be.
    #[cold]
    pub(super) fn bad_shared(&mut self, block: &Block, warp: u32, run: Run, access: Access) {
        let thread = self.thread_place(block.place, warp, run.first as u32);
        let (verb, address, bytes) = (verb(access.write), run.start, access.lane_bytes as u64);
        let size = block.shared.len() as u64;
        let (fault, message) = if run.start.checked_add(bytes).is_some_and(|end| end <= size) {
            let message = format!(
                "{verb} of {bytes} bytes of shared memory at {address:#x}, which is not a multiple of {}",
                access.alignment
            );
            (AccessFault::Misaligned, message)
        } else {
            let message =
                format!("{verb} of {bytes} bytes of shared memory at {address:#x}; the block has {size} bytes of it");
            (AccessFault::OutOfBounds, message)
        };
        self.collector.note(block.number, Some(access.step), fault, None, || Sighting {
            fault,
            message,
            step: Some(access.step),
            thread: Some(thread),
            address: Some(address),
            buffer: Some("shared memory".to_string()),
            offset: Some(address as i64),
            other: None,
        });
    }

    /// What the shadow of shared memory has against an access.
    #[cold]
    pub(super) fn shared_conflict(
        &mut self,
        block: &Block,
        warp: u32,
        run: Run,
        access: Access,
        (at, conflict): (usize, Conflict),
    ) {
        let checks = self.context.checks;
        let lane = run.first + (at as u64).saturating_sub(run.start) as usize / access.lane_bytes.max(1);
        let thread = self.thread_place(block.place, warp, lane.min(LANES - 1) as u32);
        let verb = verb(access.write);
        let (fault, message, other) = match conflict {
            Conflict::Uninitialised if checks.init => (
                AccessFault::Uninitialised,
                format!("read of shared memory at {at:#x}, which nothing has written"),
                None,
            ),
            Conflict::InFlight { step, by } if checks.race => {
                let other = self.thread_place(block.place, by.warp, by.lane);
                let message =
                    format!("{verb} of shared memory at {at:#x} while an asynchronous copy to it is in flight");
                (AccessFault::CopyInFlight, message, Some((step, other, true)))
            }
            Conflict::Unsure => {
                self.unsure |= checks.race;
                return;
            }
            Conflict::Race { step, other, wrote } if checks.race => {
                let other = self.thread_place(block.place, other.warp, other.lane);
                let did = if wrote { "wrote" } else { "read" };
                let message =
                    format!("{verb} of shared memory at {at:#x} that another thread {did}, and no barrier between");
                (AccessFault::Race, message, Some((step, other, wrote)))
            }
            _ => return,
        };
        let buffer = self.shared_name(at);
        self.collector.note(block.number, Some(access.step), fault, other.map(|(step, ..)| step), || Sighting {
            fault,
            message,
            step: Some(access.step),
            thread: Some(thread),
            address: Some(at as u64),
            buffer: Some(buffer),
            offset: Some(at as i64),
            other,
        });
    }

    fn shared_name(&self, at: usize) -> String {
        let variables = &self.context.program.shared_variables;
        let found = variables.iter().find(|(_, start, end)| (*start as usize..*end as usize).contains(&at));
        found.map_or_else(|| "shared memory".to_string(), |(name, ..)| name.clone())
    }
}

/// Where a run lies in shared memory; none if it does not, or is not aligned.
#[inline(always)]
pub(super) fn shared_run(block: &Block, run: Run, access: Access) -> Option<SharedRun> {
    let bytes = (run.lanes * access.lane_bytes) as u64;
    let inside = run.start < block.shared.len() as u64 && bytes <= block.shared.len() as u64 - run.start;
    let target =
        || SharedRun { offset: run.start as usize, lane_bytes: access.lane_bytes, lanes: run.lanes, first: run.first };
    (inside && aligned(run.start, access)).then(target)
}
