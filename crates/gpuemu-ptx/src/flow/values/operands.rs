//! What is known of an operand.

use super::{MOST_ALIGNED, Value, Values};
use crate::code::{Code, Meaning};
use crate::flow::uses::Uses;
use crate::syntax::{Operand, ScalarType};

/// Blocks of a grid in x, and in y and z.
const MOST_BLOCKS: [u64; 3] = [(1 << 31) - 1, 65_535, 65_535];
/// Threads of a block in x and y, and in z.
const MOST_THREADS: [u64; 3] = [1024, 1024, 64];

impl Values {
    /// What is known of an operand of a step; nothing yet for a register that no step seen so far writes.
    pub(crate) fn operand(
        &self,
        code: &Code<'_, '_>,
        uses: &Uses,
        step: usize,
        operand: &Operand<'_>,
    ) -> Option<Value> {
        match operand {
            Operand::Integer(number) => Some(Value::constant(written(code, step, number.value()))),
            Operand::Name(name) => match code.meaning(step, name) {
                Some(Meaning::Register(register)) => {
                    let version = uses.read(code, step, register)?;
                    self.known.get(version.index()).copied().flatten()
                }
                Some(Meaning::Special(special)) => Some(special_value(code, special, None)),
                _ => Some(Value::data(u64::MAX)),
            },
            Operand::Component(name, element) => match code.meaning(step, name) {
                Some(Meaning::Special(special)) => Some(special_value(code, special, Some(element))),
                _ => Some(Value::data(u64::MAX)),
            },
            _ => Some(Value::data(u64::MAX)),
        }
    }
}

/// A number as an instruction of 32 bits takes it: `0xFFFFFFF8` is -8.
fn written(code: &Code<'_, '_>, step: usize, number: i64) -> i64 {
    let Some(instruction) = code.steps.get(step).map(|step| step.instruction) else { return number };
    let narrow = instruction.types().next().and_then(ScalarType::bytes) == Some(4) && !instruction.has("wide");
    match u32::try_from(number) {
        Ok(bits) if narrow => bits.cast_signed().into(),
        _ => number,
    }
}

fn special_value(code: &Code<'_, '_>, name: &str, element: Option<&str>) -> Value {
    let place = match element {
        Some("x") => 0,
        Some("y") => 1,
        Some("z") => 2,
        _ => 3,
    };
    let size_of = |directive: &str| {
        let sizes = code.function.directive(directive)?;
        // Sizes that are left out are 1.
        if place < 3 { Some(sizes.get(place).copied().unwrap_or(1)) } else { None }
    };
    let required = size_of("reqntid");
    // `.maxntid` bounds the product of all, so each as well.
    let bounded = code.function.directive("maxntid").map(|sizes| sizes.iter().copied().fold(1, u64::saturating_mul));
    let most_threads = MOST_THREADS.get(place).copied().unwrap_or(u64::MAX).min(bounded.unwrap_or(u64::MAX));
    let threads = required.unwrap_or(most_threads);
    let blocks = MOST_BLOCKS.get(place).copied().unwrap_or(u64::MAX);
    match name {
        "%tid" if threads <= 1 => Value::constant(0),
        "%tid" => Value::index(threads - 1),
        "%ntid" => match required.and_then(|size| i64::try_from(size).ok()) {
            Some(size) => Value::constant(size),
            // Sizes of blocks are multiples of a warp more often than not.
            None => Value { alignment: MOST_ALIGNED, ..Value::index(threads) },
        },
        "%ctaid" => Value::index(blocks - 1),
        "%nctaid" => Value::index(blocks),
        "%laneid" => Value::index(31),
        "%warpid" | "%nwarpid" => Value::index(63),
        "WARP_SZ" => Value::constant(32),
        _ => Value::index(u64::MAX),
    }
}
