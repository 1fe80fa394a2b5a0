//! `mov`: copies, and words taken apart and put together.

use gpuemu_ptx::syntax::ScalarType::{self, *};

use super::lanes::{Each, functions};
use super::words::{Found, Words};
use crate::registers::file::{ALL_LANES, RegisterFile, Slot};
use crate::registers::pure::{OperandShape, Pure};
use crate::registers::simd::Operation;

functions! {
    Copy16(a: u16) -> u16 = a;
    Copy32(a: u32) -> u32 = a;
    Split32(a: u32) -> (u16, u16) = (a as u16, (a >> 16) as u16);
    Split64(a: u64) -> (u32, u32) = (a as u32, (a >> 32) as u32);
    SplitQuarters(a: u64) -> (u16, u16, u16, u16) = (a as u16, (a >> 16) as u16, (a >> 32) as u16, (a >> 48) as u16);
    Join32(a: u16, b: u16) -> u32 = u32::from(a) | u32::from(b) << 16;
    Join64(a: u32, b: u32) -> u64 = u64::from(a) | u64::from(b) << 32;
    JoinQuarters(a: u16, b: u16, c: u16, d: u16) -> u64 =
        u64::from(a) | u64::from(b) << 16 | u64::from(c) << 32 | u64::from(d) << 48;
}

/// Four rows at once where all lanes take part.
struct Copy64;

impl Operation for Copy64 {
    #[inline(always)]
    fn run(file: &mut RegisterFile, pure: &Pure, mask: u32) {
        let [Slot(result), Slot(source), ..] = pure.slots;
        if mask == ALL_LANES {
            file.rows_mut().copy_within(source as usize..source as usize + 4, result as usize);
        } else {
            let values = *file.b64(Slot(source));
            file.set_b64(Slot(result), &values, mask);
        }
    }
}

struct CopyPredicate;

impl Operation for CopyPredicate {
    #[inline(always)]
    fn run(file: &mut RegisterFile, pure: &Pure, mask: u32) {
        let bits = file.predicate(pure.slots[1]);
        file.set_predicate(pure.slots[0], bits, mask);
    }
}

/// The type of an element of a word in so many parts.
fn part(scalar: ScalarType, parts: usize) -> Option<ScalarType> {
    match (scalar, parts) {
        (B32, 2) | (B64, 4) => Some(B16),
        (B64, 2) => Some(B32),
        _ => None,
    }
}

/// `mov`
pub fn copy(words: &mut Words<'_>, operands: &[OperandShape]) -> Found {
    let scalar = words.scalar()?;
    match operands {
        [OperandShape::Vector(parts), source] if !matches!(source, OperandShape::Vector(_)) => {
            match (scalar, parts.len(), part(scalar, parts.len())) {
                (B32, _, Some(part)) => words.form::<Each<Split32>>(&[part, part, B32], 0),
                (B64, 2, Some(part)) => words.form::<Each<Split64>>(&[part, part, B64], 0),
                (B64, _, Some(part)) => words.form::<Each<SplitQuarters>>(&[part, part, part, part, B64], 0),
                _ => words.unknown(&format!("it cannot be taken apart into {} parts", parts.len())),
            }
        }
        [_, OperandShape::Vector(parts)] => match (scalar, parts.len(), part(scalar, parts.len())) {
            (B32, _, Some(part)) => words.form::<Each<Join32>>(&[B32, part, part], 0),
            (B64, 2, Some(part)) => words.form::<Each<Join64>>(&[B64, part, part], 0),
            (B64, _, Some(part)) => words.form::<Each<JoinQuarters>>(&[B64, part, part, part, part], 0),
            _ => words.unknown(&format!("it cannot be put together of {} parts", parts.len())),
        },
        _ => match scalar {
            Pred => words.form::<CopyPredicate>(&[Pred; 2], 0),
            B16 | U16 | S16 => words.form::<Each<Copy16>>(&[scalar; 2], 0),
            B32 | U32 | S32 | F32 => words.form::<Each<Copy32>>(&[scalar; 2], 0),
            B64 | U64 | S64 | F64 => words.form::<Copy64>(&[scalar; 2], 0),
            other => words.refuse(other),
        },
    }
}
