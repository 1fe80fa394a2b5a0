//! Models against restatements from their descriptions, in another arithmetic: addends are double-precision numbers that
//! are exact, cut off by division and counted.

use super::{Noise, Registers, levels};
use crate::registers::LANES;
use crate::tensor_core::TensorCore;

/// A product of matrices: m by 16, 16 by n, as lists of rows.
struct Matrices {
    a: [[f32; 16]; 16],
    b: [[f32; 8]; 16],
    c: [[f32; 8]; 16],
}

/// The place of an element among the lanes and registers of `m16n8k16`, as the manual draws it: row and column of A.
fn a_place(row: usize, column: usize) -> (usize, usize, usize) {
    (row % 8 * 4 + column % 8 / 2, row / 8 + 2 * (column / 8), column % 2)
}

fn b_place(row: usize, column: usize) -> (usize, usize, usize) {
    (column * 4 + row % 8 / 2, row / 8, row % 2)
}

fn c_place(row: usize, column: usize) -> (usize, usize) {
    (row % 8 * 4 + column / 2, row / 8 * 2 + column % 2)
}

/// bf16 numbers are the upper halves of single-precision ones.
fn put_half(registers: &mut Registers, slot: usize, (lane, register, part): (usize, usize, usize), value: f32) {
    let bits = u64::from(value.to_bits() >> 16) << (16 * part);
    let before = registers.bits(slot + register, lane) & !(0xFFFF << (16 * part));
    registers.set(slot + register, lane, before | bits);
}

fn product(matrices: &Matrices, model: TensorCore) -> Vec<[[f32; 8]; 16]> {
    let mut registers = Registers::new("mma.sync.aligned.m16n8k16.row.col.f32.bf16.bf16.f32");
    let [d, a, b, c] = registers.matrices();
    for index in 0..16 * 16 {
        put_half(&mut registers, a.start, a_place(index / 16, index % 16), matrices.a[index / 16][index % 16]);
    }
    for index in 0..16 * 8 {
        let (row, column) = (index / 8, index % 8);
        put_half(&mut registers, b.start, b_place(row, column), matrices.b[row][column]);
        let (lane, register) = c_place(row, column);
        registers.set(c.start + register, lane, matrices.c[row][column].to_bits().into());
    }
    levels()
        .map(|level| {
            let found = registers.computed(model, level);
            std::array::from_fn(|row| {
                std::array::from_fn(|column| {
                    let (lane, register) = c_place(row, column);
                    f32::from_bits(found[(d.start + register) * LANES + lane] as u32)
                })
            })
        })
        .collect()
}

/// The exponent of a number that is not subnormal.
fn exponent(value: f64) -> i32 {
    (value.to_bits() >> 52 & 0x7FF) as i32 - 1023
}

/// Adds a block: the addends in units of the last bit that is kept, cut off; then the 24 leading bits of the sum.
fn block(pairs: &[(f64, f64)], accumulator: f64, extra_bits: i32) -> f64 {
    let of_pairs = pairs.iter().filter(|(a, b)| a * b != 0.0).map(|&(a, b)| exponent(a) + exponent(b));
    let largest = of_pairs.chain((accumulator != 0.0).then(|| exponent(accumulator))).max().unwrap_or(0);
    let unit = 2f64.powi(largest - 23 - extra_bits);
    let count = pairs.iter().map(|(a, b)| (a * b / unit).trunc()).sum::<f64>() + (accumulator / unit).trunc();
    if count == 0.0 {
        return 0.0;
    }
    let last = 2f64.powi((exponent(count) - 23).max(0));
    (count / last).trunc() * last * unit
}

fn restated(matrices: &Matrices, row: usize, column: usize, block_length: usize, extra_bits: i32) -> f32 {
    let pairs: Vec<(f64, f64)> =
        (0..16).map(|place| (matrices.a[row][place].into(), matrices.b[place][column].into())).collect();
    let accumulator = f64::from(matrices.c[row][column]);
    pairs.chunks(block_length).fold(accumulator, |sum, pairs| block(pairs, sum, extra_bits)) as f32
}

/// A number with eight bits and an exponent among so many; or zero.
fn number(noise: &mut Noise, spread: u64) -> f32 {
    if noise.below(12) == 0 {
        return 0.0;
    }
    let exponent = 127 - spread / 2 + noise.below(spread);
    f32::from_bits(((noise.next() >> 63) << 31 | exponent << 23 | noise.below(128) << 16) as u32)
}

#[test]
fn chips_add_as_their_description_says() {
    let mut noise = Noise(42);
    for round in 0..60 {
        let spread = 1 + round % 20;
        let mut matrices = Matrices { a: [[0.0; 16]; 16], b: [[0.0; 8]; 16], c: [[0.0; 8]; 16] };
        matrices.a.as_flattened_mut().fill_with(|| number(&mut noise, spread));
        matrices.b.as_flattened_mut().fill_with(|| number(&mut noise, spread));
        // Accumulators have all their bits.
        let fraction = |noise: &mut Noise| f32::from_bits(noise.below(1 << 16) as u32 | 1.0f32.to_bits());
        matrices.c.as_flattened_mut().fill_with(|| number(&mut noise, spread) * fraction(&mut noise));
        for (model, block_length, extra_bits) in [(TensorCore::A100, 8, 1), (TensorCore::H100, 16, 2)] {
            for found in product(&matrices, model) {
                for (row, column) in (0..16).flat_map(|row| (0..8).map(move |column| (row, column))) {
                    let expected = restated(&matrices, row, column, block_length, extra_bits);
                    assert_eq!(found[row][column].to_bits(), expected.to_bits(), "{model:?} {round} {row} {column}");
                }
            }
        }
        for found in product(&matrices, TensorCore::Ieee) {
            for (row, column) in (0..16).flat_map(|row| (0..8).map(move |column| (row, column))) {
                let pairs = (0..16).map(|place| (matrices.a[row][place], matrices.b[place][column]));
                let expected = pairs.fold(matrices.c[row][column], |sum, (a, b)| a.mul_add(b, sum));
                assert_eq!(found[row][column].to_bits(), expected.to_bits(), "{round} {row} {column}");
            }
        }
    }
}

/// One result, whose column of B is all ones.
fn sum_of(values: [f32; 16], accumulator: f32, model: TensorCore) -> f32 {
    let mut matrices = Matrices { a: [[0.0; 16]; 16], b: [[1.0; 8]; 16], c: [[0.0; 8]; 16] };
    matrices.a[3] = values;
    matrices.c[3][5] = accumulator;
    let found = product(&matrices, model);
    assert!(found.windows(2).all(|pair| pair[0] == pair[1]));
    found[0][3][5]
}

#[test]
fn sums_worked_out_by_hand() {
    use TensorCore::{A100, H100, Ieee};
    let small = 2f32.powi(-25);
    // One, then four times 2^-25 in the second half. Two extra bits keep them, and together they are a bit of the result.
    // A100 comes to them with a sum of one and keeps a bit less. IEEE rounds each of them away.
    let mut late = [0.0; 16];
    late[0] = 1.0;
    late[12..].fill(small);
    assert_eq!([A100, H100, Ieee].map(|model| sum_of(late, 0.0, model)), [1.0, 1.0 + 2f32.powi(-23), 1.0]);
    // The other way around A100 has added them up before it comes to the one.
    let mut early = [0.0; 16];
    early[..4].fill(small);
    early[15] = 1.0;
    let kept = 1.0 + 2f32.powi(-23);
    assert_eq!([A100, H100, Ieee].map(|model| sum_of(early, 0.0, model)), [kept; 3]);
    // Three quarters of the last bit: cut off by the chips, towards zero for both signs, rounded up by IEEE.
    for sign in [1.0, -1.0] {
        let mut values = [0.0; 16];
        values[0] = sign;
        values[1] = sign * 2f32.powi(-24);
        values[2] = sign * 2f32.powi(-25);
        let up = sign * (1.0 + 2f32.powi(-23));
        assert_eq!([A100, H100].map(|model| sum_of(values, 0.0, model)), [sign; 2]);
        values[1] *= 1.5;
        values[2] = 0.0;
        assert_eq!([A100, H100, Ieee].map(|model| sum_of(values, 0.0, model)), [sign, sign, up]);
    }
    // A large accumulator leaves nothing of the products; its own bits stay.
    assert_eq!([A100, H100].map(|model| sum_of([1.0; 16], 2f32.powi(60), model)), [2f32.powi(60); 2]);
    // Zero is positive on the chips. IEEE keeps the sign of a zero to which negative zeros are added.
    assert_eq!([A100, H100, Ieee].map(|model| sum_of([-0.0; 16], -0.0, model).to_bits()), [0, 0, 1 << 31]);
}
