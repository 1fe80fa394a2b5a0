//! Immediates and constants: what two kernels with equal counts may still differ in.

use std::collections::BTreeMap;
use std::fmt::Write as _;

use gpuemu_model::artifact::Constants;

use super::memory::Declared;
use super::steps;
use crate::code::Code;
use crate::syntax::{Address, Declaration, Float, Initialiser, Instruction, Integer, Operand, ScalarType, Variable};

/// Values of a variable that are shown.
const SHOWN: usize = 8;

/// Collects every immediate with the instruction that it stands in, every offset of an address, and what the
/// module's variables hold at first. Registers and labels do not count: compilers number them as they like.
pub(super) fn fingerprint<'a>(codes: &[Code<'_, 'a>], mentioned: &[Declared<'_, 'a>]) -> Constants {
    let mut values: BTreeMap<String, u64> = BTreeMap::new();
    let mut add = |value: String| *values.entry(value).or_insert(0) += 1;
    let mut waiting: Vec<&Operand<'a>> = Vec::new();
    for step in steps(codes) {
        let instruction = step.instruction;
        waiting.extend(instruction.operands.iter().rev());
        while let Some(operand) = waiting.pop() {
            match operand {
                Operand::Integer(integer) => add(format!("{} {}", instruction.opcode, whole(instruction, *integer))),
                Operand::Float(float) => add(format!("{} {}", instruction.opcode, point(*float))),
                Operand::Symbol(_, offset) if *offset != 0 => add(format!("{} [{offset:+}]", instruction.opcode)),
                Operand::Vector(elements) | Operand::List(elements) => waiting.extend(elements.iter().rev()),
                Operand::Address(Address { offset, rest, .. }) => {
                    if *offset != 0 {
                        add(format!("{} [{offset:+}]", instruction.opcode));
                    }
                    waiting.extend(rest.iter().rev());
                }
                _ => {}
            }
        }
    }
    for (declaration, variable) in mentioned {
        if let Some(initialiser) = &variable.initialiser {
            add(initial(declaration, variable, initialiser));
        }
    }
    let mut state = blake2b_simd::Params::new().hash_length(8).to_state();
    for (value, count) in &values {
        state.update(value.as_bytes()).update(&[0]).update(&count.to_le_bytes());
    }
    Constants { fingerprint: state.finalize().to_hex().to_string(), values }
}

/// A whole number as the instruction's type sees it, so that -1 and 0xFFFFFFFF are one constant in 32 bits.
fn whole(instruction: &Instruction<'_>, integer: Integer) -> String {
    match instruction.types().last().map(|scalar| (scalar, scalar.bytes())) {
        Some((ScalarType::B32 | ScalarType::F32, _)) => {
            let bits = integer.bits as u32;
            match as_float(bits) {
                Some(float) => format!("{} (0x{bits:08X}, {float} as float32)", bits as i32),
                None => (bits as i32).to_string(),
            }
        }
        Some((_, Some(4))) => (integer.bits as i32).to_string(),
        Some((_, Some(2))) => (integer.bits as i16).to_string(),
        _ => integer.value().to_string(),
    }
}

/// What bits are as a float, where they are likely to be one: compilers write -inf as -8388608.
fn as_float(bits: u32) -> Option<f32> {
    let float = f32::from_bits(bits);
    let likely = float.is_infinite() || (1e-9..1e9).contains(&float.abs());
    likely.then_some(float)
}

fn point(float: Float) -> String {
    match float {
        Float::Single(bits) => format!("{float} ({})", f32::from_bits(bits)),
        Float::Double(bits) => format!("{float} ({})", f64::from_bits(bits)),
    }
}

/// What a variable holds: its first values, and a word for all of them.
fn initial(declaration: &Declaration<'_>, variable: &Variable<'_>, initialiser: &Initialiser<'_>) -> String {
    let mut state = blake2b_simd::Params::new().hash_length(4).to_state();
    let mut text = format!("{} {}", declaration.space, declaration.scalar);
    for dimension in &variable.dimensions {
        let _ = write!(text, "[{}]", dimension.map_or(String::new(), |length| length.to_string()));
    }
    text.push_str(" =");
    let mut waiting = vec![initialiser];
    let mut count = 0;
    while let Some(value) = waiting.pop() {
        if let Initialiser::List(values) = value {
            waiting.extend(values.iter().rev());
            continue;
        }
        let value = value.to_string();
        state.update(value.as_bytes()).update(&[0]);
        if count < SHOWN {
            let _ = write!(text, " {value}");
        }
        count += 1;
    }
    if count > SHOWN {
        let _ = write!(text, " and {} more, {}", count - SHOWN, state.finalize().to_hex());
    }
    text
}
