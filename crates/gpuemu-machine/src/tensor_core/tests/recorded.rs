//! Products that an H200 computed: two tiles of every form that was recorded, one with infinities and NaNs where the form
//! has them. Tensor cores of IEEE arithmetic and of A100 have integers and double precision in common with it.

use super::{Registers, levels};
use crate::registers::LANES;
use crate::tensor_core::{Element, TensorCore};

/// For each form the length of its opcode, the opcode, the number of tiles, and of each tile A, B, C and D, lane by lane.
const TILES: &[u8] = include_bytes!("../../../tests/data/tensor_core/tiles.bin");

/// What is left to read.
struct Left<'a>(&'a [u8]);

impl<'a> Left<'a> {
    fn take(&mut self, bytes: usize) -> &'a [u8] {
        let (taken, left) = self.0.split_at(bytes);
        self.0 = left;
        taken
    }

    fn number(&mut self) -> usize {
        u16::from_le_bytes(self.take(2).try_into().unwrap()).into()
    }

    fn bits(&mut self, wide: bool) -> u64 {
        if wide {
            u64::from_le_bytes(self.take(8).try_into().unwrap())
        } else {
            u32::from_le_bytes(self.take(4).try_into().unwrap()).into()
        }
    }
}

#[test]
fn recorded_tiles_are_reproduced_bit_for_bit() {
    let mut left = Left(TILES);
    let mut forms = 0;
    while !left.0.is_empty() {
        let length = left.number();
        let opcode = std::str::from_utf8(left.take(length)).unwrap();
        for tile in 0..left.number() {
            let mut registers = Registers::new(opcode);
            let [d, a, b, c] = registers.matrices();
            for matrix in [a, b, c] {
                for (lane, slot) in (0..LANES).flat_map(|lane| matrix.clone().map(move |slot| (lane, slot))) {
                    let bits = left.bits(registers.is_wide());
                    registers.set(slot, lane, bits);
                }
            }
            let mut expected = vec![0; d.len() * LANES];
            for (lane, register) in (0..LANES).flat_map(|lane| d.clone().map(move |register| (lane, register))) {
                expected[register * LANES + lane] = left.bits(registers.is_wide());
            }
            let exact = matches!(registers.product.d, Element::S32 | Element::F64);
            for model in TensorCore::ALL.into_iter().filter(|&model| exact || model == TensorCore::H100) {
                for level in levels() {
                    assert_eq!(
                        registers.computed(model, level),
                        expected,
                        "{opcode}, tile {tile}, {model:?} {level:?}"
                    );
                }
            }
        }
        forms += 1;
    }
    assert_eq!(forms, 33);
}
