//! What an atomic operation makes of the cell it finds.

use gpuemu_ptx::syntax::ScalarType;

use super::float::{FloatKind, FloatRules};
use super::rounding::Rounding;

/// An operation of `atom` and `red`.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
#[allow(missing_docs, reason = "the variants are their own names")]
pub enum AtomicOperation {
    Add,
    Min,
    Max,
    Inc,
    Dec,
    And,
    Or,
    Xor,
    Exchange,
    CompareAndSwap,
}

impl AtomicOperation {
    /// What a word says.
    pub fn from_word(word: &str) -> Option<Self> {
        Some(match word {
            "add" => Self::Add,
            "min" => Self::Min,
            "max" => Self::Max,
            "inc" => Self::Inc,
            "dec" => Self::Dec,
            "and" => Self::And,
            "or" => Self::Or,
            "xor" => Self::Xor,
            "exch" => Self::Exchange,
            "cas" => Self::CompareAndSwap,
            _ => return None,
        })
    }
}

/// What the cell holds afterwards, by what it held and the operands. Bits above the type are ignored, and 0 in what
/// comes back. `swap` is the new value of a compare-and-swap; the others ignore it.
pub type AtomicFunction = fn(old: u64, operand: u64, swap: u64) -> u64;

/// How an operation on a type is done; none if there is no such one. `unflushed` is `.noftz`, which the 16-bit formats
/// must say and the others must not. In global memory the chip adds f32 with subnormal numbers flushed, in shared
/// memory it does not.
pub fn atomic(operation: AtomicOperation, scalar: ScalarType, shared: bool, unflushed: bool) -> Option<AtomicFunction> {
    use AtomicOperation::*;
    use ScalarType::*;
    if unflushed != matches!(scalar, F16 | F16x2 | Bf16 | Bf16x2) {
        return None;
    }
    Some(match (operation, scalar) {
        (Add, U32 | S32) => |old, operand, _| u64::from((old as u32).wrapping_add(operand as u32)),
        (Add, U64 | S64) => |old, operand, _| old.wrapping_add(operand),
        (Add, F16) => |old, operand, _| sum(FloatKind::F16, false, old & 0xFFFF, operand & 0xFFFF),
        (Add, Bf16) => |old, operand, _| sum(FloatKind::Bf16, false, old & 0xFFFF, operand & 0xFFFF),
        (Add, F16x2) => |old, operand, _| sum_of_pairs(FloatKind::F16, old, operand),
        (Add, Bf16x2) => |old, operand, _| sum_of_pairs(FloatKind::Bf16, old, operand),
        (Add, F32) if shared => |old, operand, _| sum(FloatKind::F32, false, old as u32 as u64, operand as u32 as u64),
        (Add, F32) => |old, operand, _| sum(FloatKind::F32, true, old as u32 as u64, operand as u32 as u64),
        // Recorded: in shared memory the NaN of the cell is kept, quietened; in global memory that of the operand, as
        // it is.
        (Add, F64) if shared => |old, operand, _| sum(FloatKind::F64, false, operand, old),
        (Add, F64) => |old, operand, _| match (FloatKind::F64.is_nan(old), FloatKind::F64.is_nan(operand)) {
            (_, true) => operand,
            (true, false) => old,
            _ => sum(FloatKind::F64, false, old, operand),
        },
        (Min, U32) => |old, operand, _| u64::from((old as u32).min(operand as u32)),
        (Min, S32) => |old, operand, _| u64::from((old as i32).min(operand as i32) as u32),
        (Min, U64) => |old, operand, _| old.min(operand),
        (Min, S64) => |old, operand, _| (old as i64).min(operand as i64) as u64,
        (Max, U32) => |old, operand, _| u64::from((old as u32).max(operand as u32)),
        (Max, S32) => |old, operand, _| u64::from((old as i32).max(operand as i32) as u32),
        (Max, U64) => |old, operand, _| old.max(operand),
        (Max, S64) => |old, operand, _| (old as i64).max(operand as i64) as u64,
        (Inc, U32) => |old, operand, _| {
            let (old, most) = (old as u32, operand as u32);
            u64::from(if old >= most { 0 } else { old + 1 })
        },
        (Dec, U32) => |old, operand, _| {
            let (old, most) = (old as u32, operand as u32);
            u64::from(if old == 0 || old > most { most } else { old - 1 })
        },
        (And, B32) => |old, operand, _| u64::from(old as u32 & operand as u32),
        (And, B64) => |old, operand, _| old & operand,
        (Or, B32) => |old, operand, _| u64::from(old as u32 | operand as u32),
        (Or, B64) => |old, operand, _| old | operand,
        (Xor, B32) => |old, operand, _| u64::from(old as u32 ^ operand as u32),
        (Xor, B64) => |old, operand, _| old ^ operand,
        (Exchange, B32) => |_, operand, _| u64::from(operand as u32),
        (Exchange, B64) => |_, operand, _| operand,
        (CompareAndSwap, B16) => |old, operand, swap| {
            let old = old as u16;
            u64::from(if old == operand as u16 { swap as u16 } else { old })
        },
        (CompareAndSwap, B32) => |old, operand, swap| {
            let old = old as u32;
            u64::from(if old == operand as u32 { swap as u32 } else { old })
        },
        (CompareAndSwap, B64) => |old, operand, swap| if old == operand { swap } else { old },
        _ => return None,
    })
}

fn sum(kind: FloatKind, flush: bool, old: u64, operand: u64) -> u64 {
    FloatRules { kind, rounding: Rounding::Nearest, flush, saturate: false, relu: false }.sum(old, operand)
}

fn sum_of_pairs(kind: FloatKind, old: u64, operand: u64) -> u64 {
    let half = |shift: u32| sum(kind, false, old >> shift & 0xFFFF, operand >> shift & 0xFFFF);
    half(0) | half(16) << 16
}

#[cfg(test)]
mod tests {
    use super::*;
    use AtomicOperation::*;
    use ScalarType::*;

    /// Recorded on an NVIDIA H200: the cell, the operand, and the cell afterwards.
    #[test]
    fn sums_are_those_recorded() {
        for (scalar, shared, old, operand, expected) in [
            (F32, false, 0x1, 0x1, 0x0),
            (F32, false, 0x8000_0001, 0x0, 0x0),
            (F32, true, 0x1, 0x1, 0x2),
            (F32, true, 0x8000_0001, 0x0, 0x8000_0001),
            (F32, true, 0x7083_FE19, 0xF003_FE19, 0x7003_FE19),
            (F16x2, false, 0xCDCF_6CFC, 0x7BFF_CE9C, 0x7BFE_6CF5),
            (Bf16x2, false, 0xBB48_C20A, 0x43D8_9257, 0x43D8_C20A),
            (F64, false, 0x7FF0_0000_0000_0001, 0x7FF8_0000_0000_0000, 0x7FF8_0000_0000_0000),
            (F64, false, 0x7FF4_1234_5678_9ABC, 0, 0x7FF4_1234_5678_9ABC),
            (F64, true, 0x7FF0_0000_0000_0001, 0x7FF8_0000_0000_0000, 0x7FF8_0000_0000_0001),
            (F64, true, u64::MAX, 0x7FF8_0000_0000_0000, u64::MAX),
        ] {
            let function = atomic(Add, scalar, shared, matches!(scalar, F16x2 | Bf16x2)).unwrap();
            assert_eq!(function(old, operand, 0), expected, "{scalar} {old:x} {operand:x}");
        }
    }

    #[test]
    fn counters_wrap_at_their_limit() {
        let (up, down) = (atomic(Inc, U32, false, false).unwrap(), atomic(Dec, U32, false, false).unwrap());
        assert_eq!([up(3, 5, 0), up(5, 5, 0), up(9, 5, 0)], [4, 0, 0]);
        assert_eq!([down(3, 5, 0), down(0, 5, 0), down(9, 5, 0)], [2, 5, 5]);
    }

    #[test]
    fn what_does_not_exist_is_refused() {
        assert!(atomic(Add, F16x2, false, false).is_none() && atomic(Add, F32, false, true).is_none());
        assert!(atomic(Inc, S32, false, false).is_none() && atomic(Min, F32, false, false).is_none());
        assert!(atomic(CompareAndSwap, B128, false, false).is_none());
    }
}
