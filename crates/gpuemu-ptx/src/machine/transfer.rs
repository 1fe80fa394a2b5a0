//! Loads and stores: addresses of 32 lanes become runs of bytes side by side, each checked once.

use gpuemu_common::emulation::AccessFault;

use super::block::Block;
use super::execute::addresses_in;
use super::launch::POISON;
use super::warp::Warp;
use super::worker::Worker;
use crate::checks::shared_shadow::{SharedRun, Stamp};
use crate::checks::{AccessRecord, Conflict, Sighting};
use crate::decode::instruction::{Action, Address, Ordering, Transfer};
use crate::memory::address::resolve;
use crate::memory::{Allocation, Space};
use crate::registers::{LANES, RegisterFile, RegisterWidth, Slot};

/// An access of a warp, as the checks see it.
#[derive(Debug, Clone, Copy)]
pub(super) struct Access {
    /// The instruction.
    pub(super) step: u32,
    /// Bytes of a lane.
    pub(super) lane_bytes: usize,
    /// What the address must be a multiple of.
    pub(super) alignment: u64,
    /// Whether it writes.
    pub(super) write: bool,
    /// How it takes part in the ordering of memory.
    pub(super) ordering: Ordering,
}

/// Lanes whose bytes lie side by side.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Run {
    pub(super) first: usize,
    pub(super) lanes: usize,
    pub(super) start: u64,
}

/// The addresses of all lanes.
#[inline(always)]
pub(super) fn addresses(warp: &Warp, address: &Address) -> [u64; LANES] {
    let Some(base) = address.base else { return [address.offset as u64; LANES] };
    let mut all = addresses_in(warp, base);
    if address.offset != 0 {
        for one in &mut all {
            *one = one.wrapping_add_signed(address.offset);
        }
    }
    if base.1 == RegisterWidth::B32 {
        // Addresses of 32 bits stay in 32 bits.
        for one in &mut all {
            *one &= 0xFFFF_FFFF;
        }
    }
    all
}

/// Calls with each run of active lanes that lie side by side.
#[inline(always)]
pub(super) fn for_runs(addresses: &[u64; LANES], active: u32, lane_bytes: usize, mut each: impl FnMut(Run)) {
    let bytes = lane_bytes as u64;
    if active == u32::MAX {
        let mut side_by_side = true;
        for lane in 1..LANES {
            side_by_side &= addresses[lane] == addresses[0].wrapping_add(lane as u64 * bytes);
        }
        if side_by_side {
            each(Run { first: 0, lanes: LANES, start: addresses[0] });
            return;
        }
    }
    let mut left = active;
    while left != 0 {
        let first = left.trailing_zeros() as usize;
        let mut last = first;
        while last + 1 < LANES
            && left >> (last + 1) & 1 == 1
            && addresses[last + 1] == addresses[last].wrapping_add(bytes)
        {
            last += 1;
        }
        each(Run { first, lanes: last - first + 1, start: addresses[first] });
        left &= if last == LANES - 1 { 0 } else { u32::MAX << (last + 1) };
    }
}

impl Worker<'_, '_> {
    /// Memory to registers.
    pub(super) fn load(&mut self, block: &mut Block, warp: &mut Warp, transfer: &Transfer, step: u32, active: u32) {
        let lane_bytes = transfer.bytes();
        let access = Access {
            step,
            lane_bytes,
            alignment: lane_bytes as u64,
            write: false,
            ordering: transfer.ordering,
        };
        let all = addresses(warp, &transfer.address);
        self.read_lanes(block, warp, transfer.address.space, &all, access, active);
        if transfer.ordering.strong {
            self.order_after_read(block, warp.number, &all, active, transfer.ordering);
        }
        spread(&self.stage, transfer, &mut warp.file, active);
    }

    /// Registers to memory.
    pub(super) fn store(&mut self, block: &mut Block, warp: &mut Warp, transfer: &Transfer, step: u32, active: u32) {
        let lane_bytes = transfer.bytes();
        let access =
            Access { step, lane_bytes, alignment: lane_bytes as u64, write: true, ordering: transfer.ordering };
        let all = addresses(warp, &transfer.address);
        gather(&mut self.stage, transfer, &warp.file);
        if transfer.ordering.strong {
            self.order_before_write(block, warp.number, &all, active, transfer.ordering);
        }
        self.write_lanes(block, warp, transfer.address.space, &all, access, active);
    }

    /// Bytes of active lanes into the stage.
    pub(super) fn read_lanes(
        &mut self,
        block: &mut Block,
        warp: &mut Warp,
        space: Space,
        all: &[u64; LANES],
        access: Access,
        active: u32,
    ) {
        match space {
            Space::Generic => self.by_space(all, active, |worker, space, all, lanes| {
                worker.read_lanes(block, warp, space, all, access, lanes);
            }),
            Space::Global => for_runs(all, active, access.lane_bytes, |run| {
                self.read_global(block, warp.number, run, access);
            }),
            Space::Shared => {
                let stamp = Stamp::new(warp.number, access.step, &block.clocks);
                for_runs(all, active, access.lane_bytes, |run| self.read_shared(block, warp.number, run, access, stamp));
            }
            Space::Local | Space::Parameter => self.read_own(block, warp, space, all, access, active),
        }
    }

    /// Bytes of active lanes out of the stage.
    pub(super) fn write_lanes(
        &mut self,
        block: &mut Block,
        warp: &mut Warp,
        space: Space,
        all: &[u64; LANES],
        access: Access,
        active: u32,
    ) {
        match space {
            Space::Generic => self.by_space(all, active, |worker, space, all, lanes| {
                worker.write_lanes(block, warp, space, all, access, lanes);
            }),
            Space::Global => for_runs(all, active, access.lane_bytes, |run| {
                // Of lanes that write the same place at once the last one wins: what the others write is never seen.
                let after = run.first + run.lanes;
                let hidden = run.lanes == 1 && (after..LANES).any(|lane| active >> lane & 1 == 1 && all[lane] == run.start);
                if !hidden {
                    self.write_global(block, warp.number, run, access);
                }
            }),
            Space::Shared => {
                let stamp = Stamp::new(warp.number, access.step, &block.clocks);
                if self.context.checks.race {
                    // Before any of it is written: of lanes that write the same place at once, one wins, and that is no race.
                    for_runs(all, active, access.lane_bytes, |run| {
                        self.race_of_write(block, warp.number, run, access, stamp, (all, active));
                    });
                }
                for_runs(all, active, access.lane_bytes, |run| self.write_shared(block, warp.number, run, access, stamp));
            }
            Space::Local | Space::Parameter => self.write_own(block, warp, space, all, access, active),
        }
    }

    /// Generic addresses, space by space.
    pub(super) fn by_space(
        &mut self,
        all: &[u64; LANES],
        active: u32,
        mut each: impl FnMut(&mut Self, Space, &[u64; LANES], u32),
    ) {
        let mut left = active;
        while left != 0 {
            let (space, _) = resolve(all[left.trailing_zeros() as usize]);
            let mut lanes = 0;
            let mut within = *all;
            for (lane, address) in within.iter_mut().enumerate() {
                let (own, there) = resolve(*address);
                if own == space {
                    lanes |= left & 1 << lane;
                    *address = there;
                }
            }
            each(self, space, &within, lanes);
            left &= !lanes;
        }
    }

    fn staged(&mut self, run: Run, lane_bytes: usize) -> &mut [u8] {
        let bytes: &mut [u8] = bytemuck::cast_slice_mut(self.stage.as_mut_slice());
        &mut bytes[run.first * lane_bytes..(run.first + run.lanes) * lane_bytes]
    }

    fn read_global(&mut self, block: &mut Block, warp: u32, run: Run, access: Access) {
        let context = self.context;
        let bytes = run.lanes * access.lane_bytes;
        let found = context.memory.near(run.start);
        let place = found.and_then(|allocation| allocation.inside(run.start, bytes as u64));
        let (Some(allocation), Some(offset), true) = (found, place, aligned(run.start, access)) else {
            if run.lanes > 1 {
                // Some of them may be right: each for itself.
                for lane in 0..run.lanes {
                    let start = run.start.wrapping_add((lane * access.lane_bytes) as u64);
                    self.read_global(block, warp, Run { first: run.first + lane, lanes: 1, start }, access);
                }
                return;
            }
            self.bad_global(block, warp, run, access, found);
            self.staged(run, access.lane_bytes).fill(POISON);
            return;
        };
        allocation.bytes.read(offset, self.staged(run, access.lane_bytes));
        if context.checks.init
            && let Some(written) = &allocation.written
            && !written.all_set(offset, bytes)
        {
            self.uninitialised_global(block, warp, run, access, allocation);
        }
        if context.checks.race && !allocation.read_only {
            self.log.push(record_of(block, warp, run, access), &[]);
        }
    }

    fn write_global(&mut self, block: &mut Block, warp: u32, run: Run, access: Access) {
        let context = self.context;
        let bytes = run.lanes * access.lane_bytes;
        let found = context.memory.near(run.start);
        let place = found.and_then(|allocation| allocation.inside(run.start, bytes as u64));
        let cells = found.and_then(Allocation::writable);
        let (Some(allocation), Some(cells), Some(offset), true) = (found, cells, place, aligned(run.start, access)) else {
            if run.lanes > 1 {
                for lane in 0..run.lanes {
                    let start = run.start.wrapping_add((lane * access.lane_bytes) as u64);
                    self.write_global(block, warp, Run { first: run.first + lane, lanes: 1, start }, access);
                }
                return;
            }
            self.bad_global(block, warp, run, access, found);
            return;
        };
        let from = &bytemuck::cast_slice::<u64, u8>(self.stage.as_slice())[run.first * access.lane_bytes..][..bytes];
        cells.write(offset, from);
        if let Some(written) = &allocation.written {
            written.set(offset, bytes);
        }
        if context.checks.race {
            self.log.push(record_of(block, warp, run, access), from);
        }
    }

    /// A read or write of global memory that must not be.
    pub(super) fn bad_global(&mut self, block: &Block, warp: u32, run: Run, access: Access, near: Option<&Allocation<'_>>) {
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
            Some(allocation) => {
                (AccessFault::ReadOnly, format!("{verb} of {bytes} bytes to '{}', which may only be read", allocation.name))
            }
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

    pub(super) fn uninitialised_global(&mut self, block: &Block, warp: u32, run: Run, access: Access, allocation: &Allocation<'_>) {
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

    fn read_shared(&mut self, block: &mut Block, warp: u32, run: Run, access: Access, stamp: Stamp) {
        let bytes = run.lanes * access.lane_bytes;
        let Some(offset) = self.shared_offset(block, warp, run, access) else {
            if run.lanes > 1 {
                for lane in 0..run.lanes {
                    let start = run.start.wrapping_add((lane * access.lane_bytes) as u64);
                    self.read_shared(block, warp, Run { first: run.first + lane, lanes: 1, start }, access, stamp);
                }
            } else {
                self.staged(run, access.lane_bytes).fill(POISON);
            }
            return;
        };
        let from = &block.shared[offset..offset + bytes];
        bytemuck::cast_slice_mut::<u64, u8>(self.stage.as_mut_slice())[run.first * access.lane_bytes..][..bytes]
            .copy_from_slice(from);
        if self.context.checks.race || self.context.checks.init {
            let steps = &self.context.program.steps;
            let strong = |step: u32| steps.get(step as usize).is_some_and(|decoded| is_strong(&decoded.action));
            let target = SharedRun { offset, lane_bytes: access.lane_bytes, lanes: run.lanes, first: run.first };
            let conflict = block.shadow.read(target, stamp, &block.clocks, strong);
            if let Some(conflict) = conflict {
                self.shared_conflict(block, warp, run, access, conflict);
            }
        }
    }

    fn write_shared(&mut self, block: &mut Block, warp: u32, run: Run, access: Access, stamp: Stamp) {
        let bytes = run.lanes * access.lane_bytes;
        let Some(offset) = self.shared_offset(block, warp, run, access) else {
            if run.lanes > 1 {
                for lane in 0..run.lanes {
                    let start = run.start.wrapping_add((lane * access.lane_bytes) as u64);
                    self.write_shared(block, warp, Run { first: run.first + lane, lanes: 1, start }, access, stamp);
                }
            }
            return;
        };
        let from = &bytemuck::cast_slice::<u64, u8>(self.stage.as_slice())[run.first * access.lane_bytes..][..bytes];
        block.shared[offset..offset + bytes].copy_from_slice(from);
        if self.context.checks.race || self.context.checks.init {
            block.shadow.write(SharedRun { offset, lane_bytes: access.lane_bytes, lanes: run.lanes, first: run.first }, stamp);
        }
    }

    /// Whether a write of shared memory races with what was done before its instruction.
    fn race_of_write(
        &mut self,
        block: &Block,
        warp: u32,
        run: Run,
        access: Access,
        stamp: Stamp,
        together: (&[u64; LANES], u32),
    ) {
        let bytes = run.lanes * access.lane_bytes;
        let inside = run.start.checked_add(bytes as u64).is_some_and(|end| end <= block.shared.len() as u64);
        if !inside {
            // What lies outside is never written, and noted there.
            for lane in (0..run.lanes).filter(|_| run.lanes > 1) {
                let start = run.start.wrapping_add((lane * access.lane_bytes) as u64);
                self.race_of_write(block, warp, Run { first: run.first + lane, lanes: 1, start }, access, stamp, together);
            }
            return;
        }
        let offset = run.start as usize;
        let from = &bytemuck::cast_slice::<u64, u8>(self.stage.as_slice())[run.first * access.lane_bytes..][..bytes];
        let steps = &self.context.program.steps;
        let strong = |step: u32| steps.get(step as usize).is_some_and(|decoded| is_strong(&decoded.action));
        let (all, active) = together;
        let unchanged = |at: usize, length: usize| {
            let at = at.max(offset);
            let lane = run.first + (at - offset) / access.lane_bytes;
            // Of lanes that write the same place at once the last one wins: what the others write is never seen.
            let later = (lane + 1..LANES).filter(|lane| active >> lane & 1 == 1);
            let mut later = later.map(|lane| all[lane]..all[lane].saturating_add(access.lane_bytes as u64));
            later.any(|place| place.contains(&(at as u64)))
                || block.shared.get(at..at + length) == from.get(at - offset..at - offset + length)
        };
        let target = SharedRun { offset, lane_bytes: access.lane_bytes, lanes: run.lanes, first: run.first };
        let conflict = block.shadow.before_write(target, stamp, &block.clocks, strong, unchanged);
        if let Some(conflict) = conflict {
            self.shared_conflict(block, warp, run, access, conflict);
        }
    }

    /// The offset of a run in shared memory; notes what is wrong with that of a single lane.
    pub(super) fn shared_offset(&mut self, block: &Block, warp: u32, run: Run, access: Access) -> Option<usize> {
        let bytes = (run.lanes * access.lane_bytes) as u64;
        let size = block.shared.len() as u64;
        let inside = run.start.checked_add(bytes).is_some_and(|end| end <= size);
        if inside && aligned(run.start, access) {
            return Some(run.start as usize);
        }
        if run.lanes == 1 {
            let thread = self.thread_place(block.place, warp, run.first as u32);
            let (verb, address) = (verb(access.write), run.start);
            let (fault, message) = if inside {
                let message = format!(
                    "{verb} of {bytes} bytes of shared memory at {address:#x}, which is not a multiple of {}",
                    access.alignment
                );
                (AccessFault::Misaligned, message)
            } else {
                let message = format!(
                    "{verb} of {bytes} bytes of shared memory at {address:#x}; the block has {size} bytes of it"
                );
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
        None
    }

    /// What the shadow of shared memory has against an access.
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
            Conflict::Uninitialised if checks.init => {
                (AccessFault::Uninitialised, format!("read of shared memory at {at:#x}, which nothing has written"), None)
            }
            Conflict::InFlight(step) if checks.race => {
                let message = format!("{verb} of shared memory at {at:#x} while an asynchronous copy to it is in flight");
                (AccessFault::CopyInFlight, message, Some((step, thread, true)))
            }
            Conflict::Race { step, other, wrote } if checks.race => {
                let other = self.thread_place(block.place, other.warp, other.lane);
                let did = if wrote { "wrote" } else { "read" };
                let message = format!("{verb} of shared memory at {at:#x} that another thread {did}, and no barrier between");
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

    fn read_own(&mut self, block: &Block, warp: &mut Warp, space: Space, all: &[u64; LANES], access: Access, active: u32) {
        let bytes = access.lane_bytes;
        for lane in (0..LANES).filter(|lane| active >> lane & 1 == 1) {
            let parameters = self.context.parameters.as_slice();
            let from = match space {
                Space::Parameter => usize::try_from(all[lane])
                    .ok()
                    .and_then(|start| parameters.get(start..start.checked_add(bytes)?)),
                _ => warp.local.get(lane, all[lane], bytes),
            };
            let stage: &mut [u8] = bytemuck::cast_slice_mut(self.stage.as_mut_slice());
            let into = &mut stage[lane * bytes..][..bytes];
            let run = Run { first: lane, lanes: 1, start: all[lane] };
            match from {
                Some(from) if aligned(all[lane], Access { alignment: access.alignment.min(16), ..access }) => {
                    into.copy_from_slice(from);
                    if space == Space::Local && self.context.checks.init && !warp.local.is_written(lane, all[lane], bytes) {
                        self.own_fault(block, warp, run, access, space, AccessFault::Uninitialised);
                    }
                }
                Some(_) => {
                    into.fill(POISON);
                    self.own_fault(block, warp, run, access, space, AccessFault::Misaligned);
                }
                None => {
                    into.fill(POISON);
                    self.own_fault(block, warp, run, access, space, AccessFault::OutOfBounds);
                }
            }
        }
    }

    fn write_own(&mut self, block: &Block, warp: &mut Warp, space: Space, all: &[u64; LANES], access: Access, active: u32) {
        let bytes = access.lane_bytes;
        for lane in (0..LANES).filter(|lane| active >> lane & 1 == 1) {
            let run = Run { first: lane, lanes: 1, start: all[lane] };
            if space == Space::Parameter {
                self.own_fault(block, warp, run, access, space, AccessFault::ReadOnly);
                continue;
            }
            let from = &bytemuck::cast_slice::<u64, u8>(self.stage.as_slice())[lane * bytes..][..bytes];
            if !aligned(all[lane], Access { alignment: access.alignment.min(16), ..access }) {
                self.own_fault(block, warp, run, access, space, AccessFault::Misaligned);
            } else if !warp.local.set(lane, all[lane], from) {
                self.own_fault(block, warp, run, access, space, AccessFault::OutOfBounds);
            }
        }
    }

    fn own_fault(&mut self, block: &Block, warp: &Warp, run: Run, access: Access, space: Space, fault: AccessFault) {
        let thread = self.thread_place(block.place, warp.number, run.first as u32);
        let (verb, bytes, address) = (verb(access.write), access.lane_bytes, run.start);
        let size = if space == Space::Local { warp.local.frame() } else { self.context.parameters.len() };
        let name = space.name();
        let message = match fault {
            AccessFault::Uninitialised => format!("read of {name} memory at {address:#x}, which nothing has written"),
            AccessFault::Misaligned => {
                format!("{verb} of {bytes} bytes of {name} memory at {address:#x}, which is not a multiple of {bytes}")
            }
            AccessFault::ReadOnly => format!("{verb} of {name} memory, which may only be read"),
            _ => format!("{verb} of {bytes} bytes of {name} memory at {address:#x}; the thread has {size} bytes of it"),
        };
        self.collector.note(block.number, Some(access.step), fault, None, || Sighting {
            fault,
            message,
            step: Some(access.step),
            thread: Some(thread),
            address: Some(address),
            buffer: Some(format!("{name} memory")),
            offset: Some(address as i64),
            other: None,
        });
    }

    /// What strong accesses before a write make known.
    pub(super) fn order_before_write(&mut self, block: &mut Block, warp: u32, all: &[u64; LANES], active: u32, ordering: Ordering) {
        if ordering.block_only {
            return;
        }
        for lane in (0..LANES).filter(|lane| active >> lane & 1 == 1) {
            if ordering.release {
                block.clocks.release(warp, all[lane], &mut self.releases);
            } else {
                block.clocks.strong_write(warp, all[lane], &mut self.releases);
            }
        }
    }

    /// What strong accesses after a read learn.
    pub(super) fn order_after_read(&mut self, block: &mut Block, warp: u32, all: &[u64; LANES], active: u32, ordering: Ordering) {
        if ordering.block_only {
            return;
        }
        for lane in (0..LANES).filter(|lane| active >> lane & 1 == 1) {
            if ordering.acquire {
                block.clocks.acquire(warp, all[lane], &self.releases);
            } else {
                block.clocks.strong_read(warp, all[lane], &self.releases);
            }
        }
    }
}

pub(super) fn record_of(block: &Block, warp: u32, run: Run, access: Access) -> AccessRecord {
    AccessRecord {
        start: run.start,
        bytes: (run.lanes * access.lane_bytes) as u32,
        step: access.step,
        block: block.number,
        clock: block.clocks.clock(warp),
        knowledge: block.clocks.knowledge_number(warp),
        data: 0,
        warp: warp as u8,
        lane: run.first as u8,
        lane_bytes: access.lane_bytes as u8,
        instance: block.instance,
        write: access.write,
        strong: access.ordering.strong,
        block_only: access.ordering.block_only,
    }
}

/// Whether an instruction's accesses are no race with others of their kind.
pub(super) fn is_strong(action: &Action) -> bool {
    match action {
        Action::Load(transfer) | Action::Store(transfer) => transfer.ordering.strong,
        Action::Atomic(_) => true,
        _ => false,
    }
}

/// Whether an address is a multiple of what an access needs, which is a power of two.
#[inline(always)]
fn aligned(address: u64, access: Access) -> bool {
    address & (access.alignment - 1) == 0
}

fn verb(write: bool) -> &'static str {
    if write { "write" } else { "read" }
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

/// The stage into registers.
fn spread(stage: &[u64; 32 * 8], transfer: &Transfer, file: &mut RegisterFile, active: u32) {
    let count = transfer.registers.len();
    for (place, register) in transfer.registers.iter().enumerate() {
        let Some((slot, width)) = register else { continue };
        match (transfer.element_bytes, width) {
            (4, RegisterWidth::B32) => {
                let words: &[u32] = bytemuck::cast_slice(stage.as_slice());
                let values: [u32; LANES] = match count {
                    1 => std::array::from_fn(|lane| words[lane]),
                    2 => std::array::from_fn(|lane| words[2 * lane + place]),
                    4 => std::array::from_fn(|lane| words[4 * lane + place]),
                    _ => std::array::from_fn(|lane| words[count * lane + place]),
                };
                file.set_b32(*slot, &values, active);
            }
            (bytes, width) => {
                let bytes = usize::from(bytes);
                let from: &[u8] = bytemuck::cast_slice(stage.as_slice());
                let values: [u64; LANES] = std::array::from_fn(|lane| {
                    let mut word = [0; 8];
                    word[..bytes].copy_from_slice(&from[(lane * count + place) * bytes..][..bytes]);
                    let value = u64::from_le_bytes(word);
                    let shift = 64 - 8 * bytes as u32;
                    if transfer.signed { ((value << shift) as i64 >> shift) as u64 } else { value }
                });
                set_lanes(file, *slot, *width, &values, active);
            }
        }
    }
}

/// Registers into the stage.
fn gather(stage: &mut [u64; 32 * 8], transfer: &Transfer, file: &RegisterFile) {
    let count = transfer.registers.len();
    for (place, register) in transfer.registers.iter().enumerate() {
        let Some((slot, width)) = register else { continue };
        match (transfer.element_bytes, width) {
            (4, RegisterWidth::B32) => {
                let words: &mut [u32] = bytemuck::cast_slice_mut(stage.as_mut_slice());
                let values = file.b32(*slot);
                match count {
                    1 => words[..LANES].copy_from_slice(values),
                    2 => values.iter().enumerate().for_each(|(lane, value)| words[2 * lane + place] = *value),
                    4 => values.iter().enumerate().for_each(|(lane, value)| words[4 * lane + place] = *value),
                    _ => values.iter().enumerate().for_each(|(lane, value)| words[count * lane + place] = *value),
                }
            }
            (bytes, width) => {
                let bytes = usize::from(bytes);
                let values = lanes_of(file, *slot, *width);
                let into: &mut [u8] = bytemuck::cast_slice_mut(stage.as_mut_slice());
                for (lane, value) in values.iter().enumerate() {
                    into[(lane * count + place) * bytes..][..bytes].copy_from_slice(&value.to_le_bytes()[..bytes]);
                }
            }
        }
    }
}

/// The lanes of a register of any width.
pub(super) fn lanes_of(file: &RegisterFile, slot: Slot, width: RegisterWidth) -> [u64; LANES] {
    match width {
        RegisterWidth::Predicate => std::array::from_fn(|lane| u64::from(file.predicate(slot) >> lane & 1)),
        RegisterWidth::B16 => file.b16(slot).map(u64::from),
        RegisterWidth::B32 => file.b32(slot).map(u64::from),
        RegisterWidth::B64 => *file.b64(slot),
    }
}

/// Writes the lanes of a register of any width.
pub(super) fn set_lanes(file: &mut RegisterFile, slot: Slot, width: RegisterWidth, values: &[u64; LANES], active: u32) {
    match width {
        RegisterWidth::Predicate => {
            let bits = values.iter().enumerate().fold(0, |bits, (lane, value)| bits | ((*value & 1) as u32) << lane);
            file.set_predicate(slot, bits, active);
        }
        RegisterWidth::B16 => file.set_b16(slot, &values.map(|value| value as u16), active),
        RegisterWidth::B32 => file.set_b32(slot, &values.map(|value| value as u32), active),
        RegisterWidth::B64 => file.set_b64(slot, values, active),
    }
}
