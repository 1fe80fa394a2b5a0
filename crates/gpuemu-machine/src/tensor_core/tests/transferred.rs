//! Fragments that are loaded, multiplied and stored make the product of the matrices in memory.

use super::{Noise, Registers, levels};
use crate::registers::{LANES, Level};
use crate::tensor_core::{TensorCore, WmmaTransfer};

/// A small integer in a type. Every type has those, and their sums are exact.
fn encode(name: &str, bits: u32, value: i64) -> u64 {
    let single = u64::from((value as f32).to_bits());
    match name {
        "f64" => (value as f64).to_bits(),
        "f32" | "tf32" => single,
        "bf16" => single >> 16,
        "f16" if value == 0 => 0,
        // The exponent is 112 less, and the sign moves to the sixteenth bit.
        "f16" => (single >> 16 & 0x8000) | (((single & 0x7FFF_FFFF) >> 13) - (112 << 10)),
        _ => value as u64 & ((1 << bits) - 1),
    }
}

/// Cases: shape, types of A and B, of C, and of D, and the modifiers of the product.
const CASES: &[(&str, &str, &str, &str, &str)] = &[
    ("m16n16k16", "f16", "f32", "f32", "f32.f32"),
    ("m16n16k16", "f16", "f16", "f16", "f16.f16"),
    ("m8n32k16", "f16", "f16", "f32", "f32.f16"),
    ("m32n8k16", "f16", "f32", "f16", "f16.f32"),
    ("m8n32k16", "bf16", "f32", "f32", "f32.bf16.bf16.f32"),
    ("m32n8k16", "bf16", "f32", "f32", "f32.bf16.bf16.f32"),
    ("m16n16k16", "s8", "s32", "s32", "s32.s8.s8.s32"),
    ("m8n32k16", "u8", "s32", "s32", "s32.u8.u8.s32"),
    ("m32n8k16", "s8", "s32", "s32", "s32.s8.s8.s32.satfinite"),
    ("m16n16k8", "tf32", "f32", "f32", "f32.tf32.tf32.f32"),
    ("m8n8k4", "f64", "f64", "f64", "f64.f64.f64.f64"),
    ("m8n8k32", "s4", "s32", "s32", "s32.s4.s4.s32"),
    ("m8n8k32", "u4", "s32", "s32", "s32.u4.u4.s32"),
];

#[test]
fn wmma_multiplies_what_was_loaded() {
    let mut noise = Noise(5);
    for &(shape, operand, c, d, product) in CASES {
        let signed = !operand.starts_with('u');
        for level in levels() {
            for model in TensorCore::ALL {
                check(&mut noise, shape, [operand, operand, c, d], product, signed, model, level);
            }
        }
    }
}

fn check(
    noise: &mut Noise,
    shape: &str,
    types: [&str; 4],
    product: &str,
    signed: bool,
    model: TensorCore,
    level: Level,
) {
    let small = types[0].ends_with('4') && types[0] != "f64";
    let mut registers = Registers::new(&format!("wmma.mma.sync.aligned.row.col.{shape}.{product}"));
    let [d_slots, a_slots, b_slots, c_slots] = registers.matrices();
    let mut values: Vec<Vec<Vec<i64>>> = Vec::new();
    for (letter, order, slots, name) in
        [("a", "row", a_slots, types[0]), ("b", "col", b_slots, types[1]), ("c", "col", c_slots, types[2])]
    {
        let opcode = format!("wmma.load.{letter}.sync.aligned.{order}.{shape}.{name}");
        let transfer = WmmaTransfer::from_opcode(&opcode).unwrap().unwrap();
        assert_eq!(transfer.registers().count, slots.len());
        let least = if signed && !(small && letter == "c") { -3 } else { 0 };
        let matrix: Vec<Vec<i64>> = (0..transfer.rows())
            .map(|_| (0..transfer.columns()).map(|_| noise.below(7) as i64 + least).collect())
            .collect();
        for (slot, lane) in slots.clone().flat_map(|slot| (0..LANES).map(move |lane| (slot, lane))) {
            let bits = (0..transfer.parts()).fold(0, |bits, part| {
                let (row, column) = transfer.element(lane, slot - slots.start, part);
                bits | encode(name, transfer.element_bits(), matrix[row][column])
                    << (part as u32 * transfer.element_bits())
            });
            registers.set(slot, lane, bits);
        }
        values.push(matrix);
    }
    registers.computed(model, level);
    let opcode = format!("wmma.store.d.sync.aligned.row.{shape}.{}", types[3]);
    let transfer = WmmaTransfer::from_opcode(&opcode).unwrap().unwrap();
    for (slot, lane) in d_slots.clone().flat_map(|slot| (0..LANES).map(move |lane| (slot, lane))) {
        for part in 0..transfer.parts() {
            let (row, column) = transfer.element(lane, slot - d_slots.start, part);
            let sum: i64 = values[0][row].iter().zip(&values[1]).map(|(a, b)| a * b[column]).sum::<i64>();
            let expected = encode(types[3], transfer.element_bits(), sum + values[2][row][column]);
            let mask = u64::MAX >> (64 - transfer.element_bits());
            let found = registers.bits(slot, lane) >> (part as u32 * transfer.element_bits()) & mask;
            assert_eq!(found, expected, "{opcode} {product} {model:?} {level:?} at {row}, {column}");
        }
    }
}
