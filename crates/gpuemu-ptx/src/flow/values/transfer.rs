//! What is known of a step's result by what is known of its operands.

use super::{MOST_ALIGNED, Value, Values};
use crate::code::Code;
use crate::flow::uses::Uses;
use crate::syntax::{Instruction, Operand, ScalarType};

impl Values {
    /// What a step computes; nothing while an operand is not known at all.
    pub(super) fn result(&self, code: &Code<'_, '_>, uses: &Uses, step: usize) -> Option<Value> {
        let instruction = code.steps.get(step)?.instruction;
        let unknown = Value::data(largest_of(instruction));
        // Several results at once are never whole numbers that are computed with.
        if !matches!(instruction.operands.first(), Some(Operand::Name(_))) {
            return Some(unknown);
        }
        if instruction.types().any(ScalarType::is_float) {
            return Some(unknown);
        }
        let operand = |place: usize| match instruction.operands.get(place) {
            Some(operand) => self.operand(code, uses, step, operand),
            None => Some(unknown),
        };
        Some(match instruction.base() {
            "mov" | "cvt" | "cvta" | "neg" | "abs" => copied(instruction, operand(1)?),
            "add" | "sub" => sum(instruction, operand(1)?, operand(2)?),
            "mul" | "mul24" if !instruction.has("hi") => product(operand(1)?, operand(2)?),
            "mad" | "mad24" if !instruction.has("hi") => {
                let product = product(operand(1)?, operand(2)?);
                added(product, operand(3)?)
            }
            "shl" => shifted_left(operand(1)?, operand(2)?, unknown),
            "shr" => shifted_right(operand(1)?, operand(2)?, unknown),
            "and" => masked(operand(1)?, operand(2)?),
            "or" | "xor" => added(operand(1)?, operand(2)?),
            "div" => quotient(operand(1)?, operand(2)?, unknown),
            "rem" => remainder(operand(1)?, operand(2)?, unknown),
            "min" => {
                let (left, right) = (operand(1)?, operand(2)?);
                Value { most: left.most.min(right.most), ..left.join(right) }
            }
            "max" | "selp" => operand(1)?.join(operand(2)?),
            "bfe" => {
                let length = operand(3)?.constant.and_then(|length| u32::try_from(length).ok());
                let most = length.and_then(|length| 1u64.checked_shl(length)).map_or(unknown.most, |end| end - 1);
                computed(Value { most: most.min(unknown.most), ..operand(1)? })
            }
            "popc" | "clz" | "bfind" => computed(Value { most: 64, ..operand(1)? }),
            "shfl" => computed(operand(1)?),
            _ => unknown,
        })
    }
}

/// The largest number that an instruction's type holds.
fn largest_of(instruction: &Instruction<'_>) -> u64 {
    let wide = instruction.has("wide");
    match instruction.types().next().and_then(ScalarType::bytes) {
        Some(1) => u8::MAX.into(),
        Some(2) if !wide => u16::MAX.into(),
        Some(2) => u32::MAX.into(),
        Some(4) if !wide => u32::MAX.into(),
        _ => u64::MAX,
    }
}

/// Not a constant, and aligned to nothing.
fn computed(value: Value) -> Value {
    Value { constant: None, alignment: 0, ..value }
}

fn copied(instruction: &Instruction<'_>, value: Value) -> Value {
    // A conversion to fewer bits keeps what fits.
    let narrow = instruction.base() == "cvt" && value.most > largest_of(instruction);
    if instruction.base() == "neg" || instruction.base() == "abs" || narrow {
        Value { constant: None, most: value.most.min(largest_of(instruction)), ..value }
    } else {
        value
    }
}

fn added(left: Value, right: Value) -> Value {
    Value { constant: None, most: left.most.saturating_add(right.most), ..left.join(right) }
}

fn sum(instruction: &Instruction<'_>, left: Value, right: Value) -> Value {
    let constant = left.constant.zip(right.constant).and_then(|(left, right)| match instruction.base() {
        "add" => left.checked_add(right),
        _ => left.checked_sub(right),
    });
    Value { constant, ..added(left, right) }
}

fn product(left: Value, right: Value) -> Value {
    Value {
        constant: left.constant.zip(right.constant).and_then(|(left, right)| left.checked_mul(right)),
        most: left.most.saturating_mul(right.most),
        sources: left.sources.join(right.sources),
        alignment: (left.alignment + right.alignment).min(MOST_ALIGNED),
    }
}

fn shifted_left(value: Value, by: Value, unknown: Value) -> Value {
    let factor = by.constant.and_then(|by| u32::try_from(by).ok()).filter(|by| *by < 63).map(|by| 1i64 << by);
    match factor {
        Some(factor) => product(value, Value::constant(factor)),
        None => Value { sources: value.sources.join(by.sources), alignment: value.alignment, ..unknown },
    }
}

fn shifted_right(value: Value, by: Value, unknown: Value) -> Value {
    let most = value.most.min(unknown.most);
    let by = by.constant.and_then(|by| u32::try_from(by).ok()).unwrap_or(0);
    computed(Value { most: most.checked_shr(by).unwrap_or(0), ..value })
}

fn masked(left: Value, right: Value) -> Value {
    let joined = left.join(right);
    let constant = left.constant.or(right.constant);
    let most = match constant {
        Some(mask) if mask >= 0 => (mask as u64).min(left.most.max(right.most)),
        // A mask that clears low bits keeps the magnitude of the other.
        Some(_) if left.constant.is_some() => right.most,
        Some(_) => left.most,
        None => joined.most,
    };
    Value { constant: None, most, alignment: left.alignment.max(right.alignment), ..joined }
}

fn quotient(value: Value, divisor: Value, unknown: Value) -> Value {
    let divisor_size = divisor.constant.map_or(1, i64::unsigned_abs).max(1);
    computed(Value { most: value.most.min(unknown.most) / divisor_size, ..value.join(divisor) })
}

fn remainder(value: Value, divisor: Value, unknown: Value) -> Value {
    let below = divisor.constant.map_or(divisor.most, i64::unsigned_abs).saturating_sub(1);
    computed(Value { most: value.most.min(below).min(unknown.most), ..value.join(divisor) })
}
