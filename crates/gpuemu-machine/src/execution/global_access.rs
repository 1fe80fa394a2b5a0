//! Accesses to global memory: a run of lanes is checked once, and lane by lane where something is wrong with it.

use gpuemu_model::emulation::AccessFault;

use super::block::Block;
use super::launch::POISON;
use super::transfer::{Access, Run, aligned, record_of, verb};
use super::worker::Worker;
use crate::checks::Sighting;
use crate::memory::Allocation;

impl Worker<'_, '_> {
    #[inline(always)]
    pub(super) fn read_global(&mut self, block: &Block, warp: u32, run: Run, access: Access) {
        if !self.try_read_global(block, warp, run, access) {
            self.read_global_singly(block, warp, run, access);
        }
    }

    /// Some of the lanes may be right: each for itself.
    #[cold]
    fn read_global_singly(&mut self, block: &Block, warp: u32, run: Run, access: Access) {
        for one in run.singly(access.lane_bytes) {
            if !self.try_read_global(block, warp, one, access) {
                self.bad_global(block, warp, one, access, self.context.memory.near(one.start));
                self.staged(one, access.lane_bytes).fill(POISON);
            }
        }
    }

    #[inline(always)]
    fn try_read_global(&mut self, block: &Block, warp: u32, run: Run, access: Access) -> bool {
        let context = self.context;
        let bytes = run.lanes * access.lane_bytes;
        let Some(allocation) = context.memory.near(run.start) else { return false };
        let place = allocation.inside(run.start, bytes as u64).filter(|_| aligned(run.start, access));
        let Some(offset) = place else { return false };
        allocation.bytes.read(offset, self.staged(run, access.lane_bytes));
        if allocation.read_only && allocation.written.is_none() {
            // Whatever is only read needs no more than this.
            return true;
        }
        if context.checks.init
            && let Some(written) = &allocation.written
            && !written.all_set(offset, bytes)
        {
            self.uninitialised_global(block, warp, run, access, allocation);
        }
        if context.checks.race && !allocation.read_only {
            self.log.push(record_of(block, warp, run, access), &[]);
        }
        true
    }

    #[inline(always)]
    pub(super) fn write_global(&mut self, block: &Block, warp: u32, run: Run, access: Access) {
        if !self.try_write_global(block, warp, run, access) {
            self.write_global_singly(block, warp, run, access);
        }
    }

    #[cold]
    fn write_global_singly(&mut self, block: &Block, warp: u32, run: Run, access: Access) {
        for one in run.singly(access.lane_bytes) {
            if !self.try_write_global(block, warp, one, access) {
                self.bad_global(block, warp, one, access, self.context.memory.near(one.start));
            }
        }
    }

    #[inline(always)]
    fn try_write_global(&mut self, block: &Block, warp: u32, run: Run, access: Access) -> bool {
        let context = self.context;
        let bytes = run.lanes * access.lane_bytes;
        let Some(allocation) = context.memory.near(run.start) else { return false };
        let place = allocation.inside(run.start, bytes as u64).filter(|_| aligned(run.start, access));
        let (Some(offset), Some(cells)) = (place, allocation.writable()) else { return false };
        let from = &bytemuck::cast_slice::<u64, u8>(self.stage.as_slice())[run.first * access.lane_bytes..][..bytes];
        cells.write(offset, from);
        if let Some(written) = &allocation.written {
            written.set(offset, bytes);
        }
        if context.checks.race {
            self.log.push(record_of(block, warp, run, access), from);
        }
        true
    }

    /// A read or write of global memory that must not be.
    pub(super) fn bad_global(
        &mut self,
        block: &Block,
        warp: u32,
        run: Run,
        access: Access,
        near: Option<&Allocation<'_>>,
    ) {
        let thread = self.thread_place(block.place, warp, run.first as u32);
        let (verb, address, bytes) = (verb(access.write), run.start, access.lane_bytes as u64);
        let (fault, message) = match near {
            None => {
                let what = if address < 1 << 20 { "a null pointer" } else { "no buffer" };
                (AccessFault::Unmapped, format!("{verb} of {bytes} bytes at {address:#x}, which is {what}"))
            }
            Some(allocation) if allocation.inside(address, bytes).is_none() => {
                (AccessFault::OutOfBounds, outside(allocation, address, bytes, verb))
            }
            Some(_) if !aligned(address, access) => (
                AccessFault::Misaligned,
                format!("{verb} of {bytes} bytes at {address:#x}, which is not a multiple of {}", access.alignment),
            ),
            Some(allocation) => (
                AccessFault::ReadOnly,
                format!("{verb} of {bytes} bytes to '{}', which may only be read", allocation.name),
            ),
        };
        let offset = near.map(|allocation| address.wrapping_sub(allocation.base) as i64);
        let buffer = near.map(|allocation| allocation.name.clone());
        self.collector.note(block.number, Some(access.step), fault, None, || Sighting {
            fault,
            message,
            step: Some(access.step),
            thread: Some(thread),
            address: Some(address),
            buffer,
            offset,
            other: None,
        });
    }

    pub(super) fn uninitialised_global(
        &mut self,
        block: &Block,
        warp: u32,
        run: Run,
        access: Access,
        allocation: &Allocation<'_>,
    ) {
        let Some(written) = &allocation.written else { return };
        for lane in 0..run.lanes {
            let address = run.start + (lane * access.lane_bytes) as u64;
            let offset = (address - allocation.base) as usize;
            if written.all_set(offset, access.lane_bytes) {
                continue;
            }
            let thread = self.thread_place(block.place, warp, (run.first + lane) as u32);
            let element = offset as u64 / u64::from(allocation.element_bytes);
            self.collector.note(block.number, Some(access.step), AccessFault::Uninitialised, None, || Sighting {
                fault: AccessFault::Uninitialised,
                message: format!("read of '{}' at element {element}, which nothing has written", allocation.name),
                step: Some(access.step),
                thread: Some(thread),
                address: Some(address),
                buffer: Some(allocation.name.clone()),
                offset: Some(offset as i64),
                other: None,
            });
            return;
        }
    }
}

fn outside(allocation: &Allocation<'_>, address: u64, bytes: u64, verb: &str) -> String {
    let offset = address.wrapping_sub(allocation.base) as i64;
    let size = allocation.len();
    let name = &allocation.name;
    let element = i64::from(allocation.element_bytes);
    let far = if offset < 0 {
        format!("{} bytes before its beginning", offset.unsigned_abs())
    } else if offset as u64 >= size {
        format!("{} bytes after its end", offset as u64 - size)
    } else {
        format!("{} bytes beyond its end", offset as u64 + bytes - size)
    };
    format!(
        "{verb} of {bytes} bytes outside of '{name}': {far} (element {}, the buffer has {})",
        offset.div_euclid(element),
        size as i64 / element
    )
}
