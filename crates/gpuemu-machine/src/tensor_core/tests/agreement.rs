//! The fast ways compute what the plain one does.

use super::{Noise, Registers, levels};
use crate::registers::{LANES, Level};
use crate::tensor_core::{Element, TensorCore};

const OPCODES: &[&str] = &[
    "mma.sync.aligned.m16n8k16.row.col.f32.f16.f16.f32",
    "mma.sync.aligned.m16n8k16.row.col.f16.f16.f16.f16",
    "mma.sync.aligned.m16n8k16.row.col.f32.bf16.bf16.f32",
    "mma.sync.aligned.m16n8k8.row.col.f32.f16.f16.f32",
    "mma.sync.aligned.m16n8k8.row.col.f16.f16.f16.f16",
    "mma.sync.aligned.m16n8k8.row.col.f32.bf16.bf16.f32",
    "mma.sync.aligned.m16n8k8.row.col.f32.tf32.tf32.f32",
    "mma.sync.aligned.m16n8k4.row.col.f32.tf32.tf32.f32",
    "mma.sync.aligned.m16n8k32.row.col.f32.e4m3.e5m2.f32",
    "mma.sync.aligned.m16n8k32.row.col.f16.e5m2.e4m3.f16",
    "mma.sync.aligned.m16n8k16.row.col.f32.e5m2.e5m2.f32",
    "mma.sync.aligned.m16n8k16.row.col.f16.e4m3.e4m3.f16",
    "mma.sync.aligned.m8n8k4.row.col.f32.f16.f16.f32",
    "mma.sync.aligned.m8n8k4.col.row.f16.f16.f16.f16",
    "mma.sync.aligned.m16n8k32.row.col.satfinite.s32.s8.u8.s32",
    "mma.sync.aligned.m16n8k64.row.col.s32.s4.u4.s32",
    "mma.sync.aligned.m16n8k8.row.col.f64.f64.f64.f64",
    "wmma.mma.sync.aligned.row.col.m16n16k16.f32.f32",
    "wmma.mma.sync.aligned.row.col.m8n32k16.f16.f16",
    "wmma.mma.sync.aligned.row.col.m32n8k16.f16.f32",
    "wmma.mma.sync.aligned.row.col.m8n32k16.f32.bf16.bf16.f32",
    "wmma.mma.sync.aligned.row.col.m16n16k8.f32.tf32.tf32.f32",
];

/// What the elements of a matrix are like.
#[derive(Debug, Clone, Copy)]
enum Kind {
    /// Exponents around one, so many.
    Around(u64),
    /// The smallest exponents, subnormal numbers among them.
    Small,
    Large,
    /// All bits, infinities and NaNs among them.
    Any,
    /// Mostly zeros of both signs.
    Sparse,
    /// All alike and positive, with all bits of the significand: sums as large as they get.
    Full,
}

const KINDS: &[Kind] = &[
    Kind::Around(1),
    Kind::Around(6),
    Kind::Around(24),
    Kind::Small,
    Kind::Large,
    Kind::Any,
    Kind::Sparse,
    Kind::Full,
];

/// An element of a kind, of a type with so many bits of exponent and fraction.
fn element(noise: &mut Noise, kind: Kind, exponent_bits: u32, fraction_bits: u32) -> u64 {
    let bits = noise.next();
    let fraction = bits & ((1 << fraction_bits) - 1);
    let sign = (bits >> 63) << (exponent_bits + fraction_bits);
    let most = (1 << exponent_bits) - 1;
    let around = |spread: u64, noise: &mut Noise| {
        let spread = spread.min(most - 1);
        most / 2 + noise.below(spread) - spread / 2
    };
    let exponent = match kind {
        Kind::Around(spread) => around(spread, noise),
        Kind::Small => noise.below(4),
        Kind::Large => most - 1 - noise.below(4.min(most - 1)),
        Kind::Any => noise.below(most + 1),
        Kind::Sparse if noise.below(8) > 0 => return sign,
        Kind::Sparse => around(20, noise),
        Kind::Full => return ((most / 2) << fraction_bits) | ((1 << fraction_bits) - 1),
    };
    sign | exponent << fraction_bits | fraction
}

fn word(noise: &mut Noise, kind: Kind, of: Element) -> u64 {
    match of {
        Element::F64 => element(noise, kind, 11, 52),
        Element::F32 | Element::Tf32 => element(noise, kind, 8, 23),
        Element::F16 => element(noise, kind, 5, 10) | element(noise, kind, 5, 10) << 16,
        Element::Bf16 => element(noise, kind, 8, 7) | element(noise, kind, 8, 7) << 16,
        Element::E4m3 => (0..4).map(|byte| element(noise, kind, 4, 3) << (8 * byte)).sum(),
        Element::E5m2 => (0..4).map(|byte| element(noise, kind, 5, 2) << (8 * byte)).sum(),
        _ => noise.next() & 0xFFFF_FFFF,
    }
}

fn fill(registers: &mut Registers, noise: &mut Noise, operands: Kind, accumulator: Kind) {
    let [_, a, b, c] = registers.matrices();
    let product = registers.product;
    for (matrix, of, kind) in [(a, product.a, operands), (b, product.b, operands), (c, product.c, accumulator)] {
        for slot in matrix {
            for lane in 0..LANES {
                let bits = word(noise, kind, of);
                registers.set(slot, lane, bits);
            }
        }
    }
}

#[test]
fn all_levels_compute_the_same() {
    let mut noise = Noise(0x9E37_79B9_7F4A_7C15);
    for opcode in OPCODES {
        let mut registers = Registers::new(opcode);
        for (&operands, &accumulator) in KINDS.iter().flat_map(|a| KINDS.iter().map(move |c| (a, c))) {
            for _ in 0..2 {
                fill(&mut registers, &mut noise, operands, accumulator);
                for model in TensorCore::ALL {
                    let expected = registers.computed(model, Level::Baseline);
                    for level in levels() {
                        let found = registers.computed(model, level);
                        assert_eq!(found, expected, "{opcode} {model:?} {level:?} {operands:?} {accumulator:?}");
                    }
                }
            }
        }
    }
}

#[test]
fn the_result_may_lie_where_operands_did() {
    let mut noise = Noise(77);
    for opcode in OPCODES {
        for model in TensorCore::ALL {
            for level in levels() {
                for over in 1..4 {
                    let mut registers = Registers::new(opcode);
                    fill(&mut registers, &mut noise, Kind::Around(8), Kind::Around(8));
                    let expected = registers.computed(model, level);
                    let target = registers.matrices()[over].clone();
                    let result = registers.matrices()[0].clone();
                    let count = result.len().min(target.len());
                    for (d, other) in result.clone().zip(target) {
                        registers.slots[d] = registers.slots[other];
                    }
                    let found = registers.computed(model, level);
                    assert_eq!(
                        found[..count * LANES],
                        expected[..count * LANES],
                        "{opcode} {model:?} {level:?} {over}"
                    );
                }
            }
        }
    }
}

#[test]
fn subnormal_accumulators_of_half_precision_have_its_least_exponent() {
    // Half of the smallest number, and a product far below it. An accumulator of two of the smallest cuts that product off,
    // though its leading bit is close enough: what is left is a tie, and stays even. Without an accumulator it counts.
    let opcode = "mma.sync.aligned.m16n8k16.row.col.f16.f16.f16.f16";
    for (accumulator, chips, ieee) in [(0, 1, 1), (1, 2, 2), (2, 2, 3), (3, 4, 4), (4, 4, 5)] {
        let mut registers = Registers::new(opcode);
        let [_, a, b, c] = registers.matrices();
        registers.set(a.start, 0, 0x0008_0C00);
        registers.set(b.start, 0, 0x0001_0800);
        registers.set(c.start, 0, accumulator);
        for level in levels() {
            let found = TensorCore::ALL.map(|model| registers.computed(model, level)[0]);
            assert_eq!(found, [chips, chips, ieee], "{accumulator} {level:?}");
        }
    }
}

#[test]
fn double_precision_passes_its_nans_on() {
    let mut registers = Registers::new("mma.sync.aligned.m8n8k4.row.col.f64.f64.f64.f64");
    let [_, a, b, c] = registers.matrices();
    let (of_a, of_b, of_c) = (0x7FF1_0000_0000_0005, 0x7FF2_0000_0000_0006, 0x7FF8_0000_0000_0001);
    registers.set(a.start, 0, of_a);
    registers.set(b.start, 0, of_b);
    registers.set(c.start, 0, of_c);
    registers.set(c.start + 1, 0, of_c);
    // Row 1 has an infinity that meets zeros.
    registers.set(a.start, 4, f64::INFINITY.to_bits());
    for level in levels() {
        let result = registers.computed(TensorCore::H100, level);
        let (first, second) = result.split_at(LANES);
        assert_eq!((first[0], second[0]), (0x7FFA_0000_0000_0006, of_c), "B, then the accumulator");
        assert_eq!(first[1], 0x7FF9_0000_0000_0005, "then A");
        assert_eq!(second[5], 0xFFF8_0000_0000_0000);
    }
}
