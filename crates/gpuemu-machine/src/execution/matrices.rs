//! Matrices between memory and registers.

use super::block::Block;
use super::transfer::{Access, Run, addresses, lanes_of, set_lanes};
use super::warp::Warp;
use super::worker::Worker;
use crate::checks::shared_shadow::{SharedRun, Stamp};
use crate::decode::instruction::{FragmentTransfer, MatrixTransfer, Ordering};
use crate::memory::Space;
use crate::registers::LANES;
use crate::tensor_core::WmmaTransfer;

/// Bytes of a row of a matrix.
const ROW: usize = 16;

impl Worker<'_, '_> {
    #[inline(always)]
    pub(super) fn matrix_load(
        &mut self,
        block: &mut Block,
        warp: &mut Warp,
        transfer: &MatrixTransfer,
        step: u32,
        active: u32,
    ) {
        let count = transfer.registers.len();
        // Eight rows a matrix; the addresses of other lanes are not looked at.
        let rows = if count >= 4 { u32::MAX } else { (1 << (8 * count)) - 1 };
        let access =
            Access { step, lane_bytes: ROW, alignment: ROW as u64, write: false, ordering: Ordering::default() };
        let all = addresses(warp, &transfer.address);
        let shared = transfer.address.space == Space::Shared;
        if !shared || !self.read_rows(block, warp.number, &all, access, rows) {
            self.read_lanes(block, warp, transfer.address.space, &all, access, rows);
        }
        let mut registers = [[0u32; LANES]; 4];
        let bytes: &[u8] = bytemuck::cast_slice(self.stage.as_slice());
        let rows: &[[u8; ROW]] = bytemuck::cast_slice(&bytes[..8 * count.min(4) * ROW]);
        transfer.matrix.distribute(rows, &mut registers[..count.min(4)]);
        for (slot, values) in transfer.registers.iter().zip(&registers) {
            warp.file.set_b32(*slot, values, active);
        }
    }

    /// Rows that all lie in shared memory as they must, into the stage; false if they do not.
    #[inline(always)]
    fn read_rows(&mut self, block: &mut Block, warp: u32, all: &[u64; LANES], access: Access, rows: u32) -> bool {
        let count = rows.count_ones() as usize;
        let end = (block.shared.len() as u64).saturating_sub(ROW as u64 - 1);
        let offsets: [u32; LANES] = all.map(|address| address as u32);
        let (mut most, mut bits) = (0, 0);
        for address in &all[..count] {
            most = most.max(*address);
            bits |= address;
        }
        if most >= end || bits & (ROW as u64 - 1) != 0 {
            return false;
        }
        let stage: &mut [[u8; ROW]] = bytemuck::cast_slice_mut(self.stage.as_mut_slice());
        for (row, offset) in stage.iter_mut().zip(&offsets[..count]) {
            if let Some(from) = block.shared[*offset as usize..].first_chunk::<ROW>() {
                *row = *from;
            }
        }
        if self.context.checks.race || self.context.checks.init {
            let stamp = Stamp::new(warp, access.step, &block.clocks);
            if block.shadow.read_rows(&offsets[..count], stamp, &block.clocks) {
                self.explain_rows(block, warp, all, access, stamp, count);
            }
        }
        true
    }

    #[cold]
    fn explain_rows(
        &mut self,
        block: &Block,
        warp: u32,
        all: &[u64; LANES],
        access: Access,
        stamp: Stamp,
        count: usize,
    ) {
        for (lane, address) in all[..count].iter().enumerate() {
            let target = SharedRun { offset: *address as usize, lane_bytes: ROW, lanes: 1, first: lane };
            if let Some(conflict) = block.shadow.explain_read(target, stamp, &block.clocks, |_| false) {
                let run = Run { first: lane, lanes: 1, start: *address };
                self.shared_conflict(block, warp, run, access, conflict);
            }
        }
    }

    pub(super) fn matrix_store(
        &mut self,
        block: &mut Block,
        warp: &mut Warp,
        transfer: &MatrixTransfer,
        step: u32,
        active: u32,
    ) {
        let count = transfer.registers.len().min(4);
        let lanes = if count >= 4 { u32::MAX } else { (1 << (8 * count)) - 1 };
        let mut registers = [[0u32; LANES]; 4];
        for (slot, values) in transfer.registers.iter().zip(&mut registers) {
            *values = *warp.file.b32(*slot);
        }
        let bytes: &mut [u8] = bytemuck::cast_slice_mut(self.stage.as_mut_slice());
        let rows: &mut [[u8; ROW]] = bytemuck::cast_slice_mut(&mut bytes[..8 * count * ROW]);
        transfer.matrix.collect(&registers[..count], rows);
        let access =
            Access { step, lane_bytes: ROW, alignment: ROW as u64, write: true, ordering: Ordering::default() };
        let all = addresses(warp, &transfer.address);
        self.write_lanes(block, warp, transfer.address.space, &all, access, lanes & active);
    }

    /// The address of the element that a lane holds in a part of a register.
    fn element_addresses(
        &self,
        warp: &Warp,
        transfer: &FragmentTransfer,
        register: usize,
        part: usize,
    ) -> [u64; LANES] {
        let fragment = &transfer.fragment;
        let mut all = addresses(warp, &transfer.address);
        let stride = transfer.stride.map(|slot| *warp.file.b32(slot));
        for (lane, address) in all.iter_mut().enumerate() {
            let (row, column) = fragment.element(lane, register, part);
            let stride = stride.map_or(fragment.dense_stride(), |stride| u64::from(stride[lane]));
            let bits = fragment.offset(row, column, stride).wrapping_mul(u64::from(fragment.element_bits()));
            *address = address.wrapping_add(bits / 8);
        }
        all
    }

    pub(super) fn fragment_load(
        &mut self,
        block: &mut Block,
        warp: &mut Warp,
        transfer: &FragmentTransfer,
        step: u32,
        active: u32,
    ) {
        let (bytes, parts) = pieces(&transfer.fragment);
        let access =
            Access { step, lane_bytes: bytes, alignment: bytes as u64, write: false, ordering: Ordering::default() };
        for (register, (slot, width)) in transfer.registers.iter().enumerate() {
            let mut values = [0u64; LANES];
            for part in 0..parts {
                let all = self.element_addresses(warp, transfer, register, part);
                self.read_lanes(block, warp, transfer.address.space, &all, access, active);
                let stage: &[u8] = bytemuck::cast_slice(self.stage.as_slice());
                for (lane, value) in values.iter_mut().enumerate() {
                    let mut word = [0; 8];
                    word[..bytes].copy_from_slice(&stage[lane * bytes..][..bytes]);
                    *value |= u64::from_le_bytes(word) << (8 * bytes * part);
                }
            }
            set_lanes(&mut warp.file, *slot, *width, &values, active);
        }
    }

    pub(super) fn fragment_store(
        &mut self,
        block: &mut Block,
        warp: &mut Warp,
        transfer: &FragmentTransfer,
        step: u32,
        active: u32,
    ) {
        let (bytes, parts) = pieces(&transfer.fragment);
        let access =
            Access { step, lane_bytes: bytes, alignment: bytes as u64, write: true, ordering: Ordering::default() };
        for (register, (slot, width)) in transfer.registers.iter().enumerate() {
            let values = lanes_of(&warp.file, *slot, *width);
            for part in 0..parts {
                let all = self.element_addresses(warp, transfer, register, part);
                let stage: &mut [u8] = bytemuck::cast_slice_mut(self.stage.as_mut_slice());
                for (lane, value) in values.iter().enumerate() {
                    let word = (value >> (8 * bytes * part)).to_le_bytes();
                    stage[lane * bytes..][..bytes].copy_from_slice(&word[..bytes]);
                }
                self.write_lanes(block, warp, transfer.address.space, &all, access, active);
            }
        }
    }
}

/// Bytes that are accessed at once, and how often for a register. Elements smaller than a byte, all of one register,
/// follow one another in memory.
fn pieces(fragment: &WmmaTransfer) -> (usize, usize) {
    match fragment.element_bits() {
        bits if bits < 8 => (4, 1),
        bits => ((bits / 8) as usize, fragment.parts()),
    }
}
