//! Products against recordings, against each other, and against plain restatements.

mod agreement;
mod recorded;
mod restated;
mod transferred;

use super::{MatrixProduct, PreparedProduct, TensorCore};
use crate::registers::{LANES, Level, RegisterFile, RegisterWidth, Slot};

/// Registers of a product, D first, then A, B and C.
struct Registers {
    file: RegisterFile,
    slots: Vec<Slot>,
    product: MatrixProduct,
}

impl Registers {
    fn new(opcode: &str) -> Self {
        let product = MatrixProduct::from_opcode(opcode).unwrap().unwrap();
        let fragments = product.registers();
        let mut slots = Vec::new();
        let mut rows = 0;
        for fragment in [fragments.d, fragments.a, fragments.b, fragments.c] {
            for _ in 0..fragment.count {
                slots.push(Slot(rows));
                rows += fragment.width.rows();
            }
        }
        Self { file: RegisterFile::new(rows as usize), slots, product }
    }

    /// The slots of D, A, B and C.
    fn matrices(&self) -> [std::ops::Range<usize>; 4] {
        let fragments = self.product.registers();
        let mut first = 0;
        [fragments.d, fragments.a, fragments.b, fragments.c].map(|fragment| {
            let range = first..first + fragment.count;
            first = range.end;
            range
        })
    }

    fn is_wide(&self) -> bool {
        self.product.registers().d.width == RegisterWidth::B64
    }

    fn bits(&self, slot: usize, lane: usize) -> u64 {
        if self.is_wide() {
            self.file.b64(self.slots[slot])[lane]
        } else {
            self.file.b32(self.slots[slot])[lane].into()
        }
    }

    fn set(&mut self, slot: usize, lane: usize, bits: u64) {
        if self.is_wide() {
            self.file.b64_mut(self.slots[slot])[lane] = bits;
        } else {
            self.file.b32_mut(self.slots[slot])[lane] = bits as u32;
        }
    }

    /// D, register by register.
    fn result(&self) -> Vec<u64> {
        self.matrices()[0].clone().flat_map(|slot| (0..LANES).map(move |lane| self.bits(slot, lane))).collect()
    }

    fn computed(&mut self, model: TensorCore, level: Level) -> Vec<u64> {
        let prepared: PreparedProduct = self.product.prepare(model, level);
        prepared.execute(&mut self.file, &self.slots);
        self.result()
    }
}

/// Levels that this processor has.
fn levels() -> impl Iterator<Item = Level> {
    [Level::Baseline, Level::Avx2, Level::Avx512].into_iter().filter(|&level| level <= Level::detect())
}

/// Numbers that look random and are always the same.
struct Noise(u64);

impl Noise {
    fn next(&mut self) -> u64 {
        self.0 ^= self.0 << 13;
        self.0 ^= self.0 >> 7;
        self.0 ^= self.0 << 17;
        self.0.wrapping_mul(0x2545_F491_4F6C_DD1D)
    }

    fn below(&mut self, bound: u64) -> u64 {
        (self.next() >> 32) % bound
    }
}
