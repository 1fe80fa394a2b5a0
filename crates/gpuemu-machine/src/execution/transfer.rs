//! Loads and stores: addresses of 32 lanes become runs of bytes side by side, each checked once.

use super::block::Block;
use super::execute::addresses_in;
use super::warp::Warp;
use super::worker::Worker;
use crate::checks::AccessRecord;
use crate::checks::shared_shadow::Stamp;
use crate::decode::instruction::{Action, Address, Ordering, Transfer};
use crate::memory::Space;
use crate::memory::address::resolve;
use crate::registers::{LANES, RegisterFile, RegisterWidth, Slot};

/// An access of a warp, as the checks see it.
#[derive(Debug, Clone, Copy)]
pub(super) struct Access {
    pub(super) step: u32,
    pub(super) lane_bytes: usize,
    /// What the address must be a multiple of.
    pub(super) alignment: u64,
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

impl Run {
    /// Each of its lanes alone.
    pub(super) fn singly(self, lane_bytes: usize) -> impl Iterator<Item = Run> {
        (0..self.lanes).map(move |lane| Run {
            first: self.first + lane,
            lanes: 1,
            start: self.start.wrapping_add((lane * lane_bytes) as u64),
        })
    }
}

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
    let mut whole = active == u32::MAX;
    for lane in 1..LANES {
        whole &= addresses[lane] == addresses[0].wrapping_add(lane as u64 * bytes);
    }
    let mut left = active;
    while left != 0 {
        let first = left.trailing_zeros() as usize;
        let mut last = if whole { LANES - 1 } else { first };
        while last + 1 < LANES
            && (left >> (last + 1)) & 1 == 1
            && addresses[last + 1] == addresses[last].wrapping_add(bytes)
        {
            last += 1;
        }
        left &= if last == LANES - 1 { 0 } else { u32::MAX << (last + 1) };
        each(Run { first, lanes: last - first + 1, start: addresses[first] });
    }
}

impl Worker<'_, '_> {
    #[inline(always)]
    pub(super) fn load(&mut self, block: &mut Block, warp: &mut Warp, transfer: &Transfer, step: u32, active: u32) {
        let lane_bytes = transfer.bytes();
        let access =
            Access { step, lane_bytes, alignment: lane_bytes as u64, write: false, ordering: transfer.ordering };
        if transfer.address.space == Space::Parameter && transfer.address.base.is_none() && self.parameter(transfer) {
            spread(&self.stage, transfer, &mut warp.file, active);
            return;
        }
        let all = addresses(warp, &transfer.address);
        self.read_lanes(block, warp, transfer.address.space, &all, access, active);
        if transfer.ordering.strong {
            self.order_after_read(block, warp.number, &all, active, transfer.ordering);
        }
        spread(&self.stage, transfer, &mut warp.file, active);
    }

    /// A parameter at a place that is known, the same for all lanes, into the stage; false if it is not there.
    fn parameter(&mut self, transfer: &Transfer) -> bool {
        let bytes = transfer.bytes();
        let start = transfer.address.offset as usize;
        let from = start.checked_add(bytes).and_then(|end| self.context.parameters.get(start..end));
        let Some(from) = from.filter(|_| start.is_multiple_of(bytes.min(16))) else { return false };
        let stage: &mut [u8] = bytemuck::cast_slice_mut(self.stage.as_mut_slice());
        stage[..LANES * bytes].chunks_exact_mut(bytes).for_each(|lane| lane.copy_from_slice(from));
        true
    }

    #[inline(always)]
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
    #[inline(always)]
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
            Space::Global => for_runs(
                all,
                active,
                access.lane_bytes,
                #[inline(always)]
                |run| self.read_global(block, warp.number, run, access),
            ),
            Space::Shared => {
                let stamp = Stamp::new(warp.number, access.step, &block.clocks);
                for_runs(
                    all,
                    active,
                    access.lane_bytes,
                    #[inline(always)]
                    |run| self.read_shared(block, warp.number, run, access, stamp),
                );
            }
            Space::Local | Space::Parameter => self.read_own(block, warp, space, all, access, active),
        }
    }

    /// Bytes of active lanes out of the stage.
    #[inline(always)]
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
                let hidden =
                    run.lanes == 1 && (after..LANES).any(|lane| active >> lane & 1 == 1 && all[lane] == run.start);
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
                for_runs(
                    all,
                    active,
                    access.lane_bytes,
                    #[inline(always)]
                    |run| self.write_shared(block, warp.number, run, access, stamp),
                );
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

    #[inline(always)]
    pub(super) fn staged(&mut self, run: Run, lane_bytes: usize) -> &mut [u8] {
        let bytes: &mut [u8] = bytemuck::cast_slice_mut(self.stage.as_mut_slice());
        &mut bytes[run.first * lane_bytes..(run.first + run.lanes) * lane_bytes]
    }

    /// What strong accesses before a write make known.
    pub(super) fn order_before_write(
        &mut self,
        block: &mut Block,
        warp: u32,
        all: &[u64; LANES],
        active: u32,
        ordering: Ordering,
    ) {
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
    pub(super) fn order_after_read(
        &mut self,
        block: &mut Block,
        warp: u32,
        all: &[u64; LANES],
        active: u32,
        ordering: Ordering,
    ) {
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
pub(super) fn aligned(address: u64, access: Access) -> bool {
    address & (access.alignment - 1) == 0
}

pub(super) fn verb(write: bool) -> &'static str {
    if write { "write" } else { "read" }
}

/// The stage into registers.
#[inline(always)]
fn spread(stage: &[u64; 32 * 8], transfer: &Transfer, file: &mut RegisterFile, active: u32) {
    let count = transfer.registers.len();
    for (place, register) in transfer.registers.iter().enumerate() {
        let Some((slot, width)) = register else { continue };
        match (transfer.element_bytes, width) {
            (4, RegisterWidth::B32) => {
                let words: &[u32] = bytemuck::cast_slice(stage.as_slice());
                let mut values = [0u32; LANES];
                match count {
                    1 => every::<1>(words, place, &mut values),
                    2 => every::<2>(words, place, &mut values),
                    4 => every::<4>(words, place, &mut values),
                    _ => every::<8>(words, place, &mut values),
                }
                file.set_b32(*slot, &values, active);
            }
            (bytes, width) => {
                let bytes = usize::from(bytes);
                let from: &[u8] = bytemuck::cast_slice(stage.as_slice());
                let mut values = [0u64; LANES];
                for (lane, value) in values.iter_mut().enumerate() {
                    *value = number_of(&from[(lane * count + place) * bytes..], bytes, transfer.signed);
                }
                set_lanes(file, *slot, *width, &values, active);
            }
        }
    }
}

/// A number of 1, 2, 4 or 8 bytes.
#[inline(always)]
fn number_of(from: &[u8], bytes: usize, signed: bool) -> u64 {
    let mut word = [0; 8];
    match bytes {
        1 => word[..1].copy_from_slice(&from[..1]),
        2 => word[..2].copy_from_slice(&from[..2]),
        4 => word[..4].copy_from_slice(&from[..4]),
        _ => word.copy_from_slice(&from[..8]),
    }
    let value = u64::from_le_bytes(word);
    let shift = 64 - 8 * bytes as u32;
    if signed { ((value << shift) as i64 >> shift) as u64 } else { value }
}

/// One word of every so many.
#[inline(always)]
fn every<const COUNT: usize>(words: &[u32], place: usize, values: &mut [u32; LANES]) {
    let Some(words) = words.first_chunk::<256>() else { return };
    for (lane, value) in values.iter_mut().enumerate() {
        *value = words[(lane * COUNT + place) & 255];
    }
}

/// Registers into the stage.
#[inline(always)]
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
