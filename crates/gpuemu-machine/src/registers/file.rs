//! Where the registers of one warp lie.

use bytemuck::{Pod, Zeroable};

/// Lanes of a warp.
pub const LANES: usize = 32;

pub const ALL_LANES: u32 = u32::MAX;

/// One row of the file: 32 lanes of 16 bits. 32-bit registers take two, 64-bit ones four, predicates one, of which only
/// the first 32 bits are used, a bit a lane.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Pod, Zeroable)]
#[repr(C, align(64))]
pub struct Row([u32; 16]);

/// The place of a register in the file: its first row.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct Slot(pub u32);

/// The registers of a warp. A slot that lies outside is a mistake of the decoder and panics.
#[derive(Debug, Clone, Default)]
pub struct RegisterFile {
    rows: Vec<Row>,
}

macro_rules! lanes {
    ($read:ident, $write:ident, $whole:ident, $element:ty, $rows:literal) => {
        /// The lanes of a register of this width.
        #[inline(always)]
        pub fn $read(&self, slot: Slot) -> &[$element; LANES] {
            let first = slot.0 as usize;
            bytemuck::cast_ref::<[Row; $rows], [$element; LANES]>(
                self.rows[first..first + $rows].first_chunk().unwrap_or(&[Row([0; 16]); $rows]),
            )
        }

        /// The lanes of a register of this width, to be written; those of lanes that do not take part must be kept.
        #[inline(always)]
        pub fn $whole(&mut self, slot: Slot) -> &mut [$element; LANES] {
            let first = slot.0 as usize;
            let rows: &mut [Row] = &mut self.rows[first..first + $rows];
            // The slice has as many rows as the array: both are of the same constant length.
            bytemuck::from_bytes_mut(bytemuck::cast_slice_mut::<Row, u8>(rows))
        }

        /// Writes the lanes in `mask`.
        #[inline(always)]
        pub fn $write(&mut self, slot: Slot, values: &[$element; LANES], mask: u32) {
            let target = self.$whole(slot);
            if mask == ALL_LANES {
                *target = *values;
            } else {
                for lane in 0..LANES {
                    if mask >> lane & 1 == 1 {
                        target[lane] = values[lane];
                    }
                }
            }
        }
    };
}

impl RegisterFile {
    /// A file of so many rows, all zero.
    pub fn new(rows: usize) -> Self {
        Self { rows: vec![Row::default(); rows] }
    }

    pub fn rows(&self) -> &[Row] {
        &self.rows
    }

    /// All rows, to be written.
    pub fn rows_mut(&mut self) -> &mut [Row] {
        &mut self.rows
    }

    /// Sets rows to zero.
    pub fn clear(&mut self, slot: Slot, rows: u32) {
        self.rows[slot.0 as usize..(slot.0 + rows) as usize].fill(Row::default());
    }

    lanes!(b16, set_b16, b16_mut, u16, 1);
    lanes!(b32, set_b32, b32_mut, u32, 2);
    lanes!(b64, set_b64, b64_mut, u64, 4);

    /// A predicate: a bit a lane.
    #[inline(always)]
    pub fn predicate(&self, slot: Slot) -> u32 {
        self.rows[slot.0 as usize].0[0]
    }

    /// Writes the lanes of a predicate in `mask`.
    #[inline(always)]
    pub fn set_predicate(&mut self, slot: Slot, bits: u32, mask: u32) {
        let word = &mut self.rows[slot.0 as usize].0[0];
        *word = (*word & !mask) | (bits & mask);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn lanes_that_do_not_take_part_are_kept() {
        let mut file = RegisterFile::new(8);
        file.set_b32(Slot(2), &[7; LANES], ALL_LANES);
        file.set_b32(Slot(2), &[9; LANES], 0x8000_0001);
        assert_eq!((file.b32(Slot(2))[0], file.b32(Slot(2))[1], file.b32(Slot(2))[31]), (9, 7, 9));
        assert_eq!(file.b64(Slot(4)), &[0; LANES]);
        file.set_predicate(Slot(0), 0xFFFF_FFFF, 0xF0);
        assert_eq!(file.predicate(Slot(0)), 0xF0);
    }
}
