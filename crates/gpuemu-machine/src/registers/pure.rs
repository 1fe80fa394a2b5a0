//! Instructions that read registers and write registers, and nothing else.

use gpuemu_ptx::syntax::ScalarType;

use super::file::{RegisterFile, Slot};

/// Does an instruction for the lanes in the mask.
pub type Execute = fn(&mut RegisterFile, &Pure, u32);

/// Most registers of one instruction: results, sources, and the carry.
pub const MOST_SLOTS: usize = 8;

/// A decoded instruction that only touches registers.
#[derive(Debug, Clone, Copy)]
pub struct Pure {
    pub execute: Execute,
    /// Its registers, results first, vectors and pairs element by element, the carry last where it takes part.
    pub slots: [Slot; MOST_SLOTS],
    /// What else it needs: a table of bits, a constant.
    pub extra: u32,
}

/// How many bits a register holds.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub enum RegisterWidth {
    Predicate,
    /// 16 bits; 8-bit registers too.
    B16,
    /// 32 bits.
    B32,
    /// 64 bits.
    B64,
}

impl RegisterWidth {
    /// Rows of the register file.
    pub const fn rows(self) -> u32 {
        match self {
            RegisterWidth::Predicate | RegisterWidth::B16 => 1,
            RegisterWidth::B32 => 2,
            RegisterWidth::B64 => 4,
        }
    }

    /// The width of registers of a type; none for those that are no registers.
    pub const fn of(scalar: ScalarType) -> Option<Self> {
        match (scalar, scalar.bytes()) {
            (ScalarType::Pred, _) => Some(Self::Predicate),
            (_, Some(1 | 2)) => Some(Self::B16),
            (_, Some(4)) => Some(Self::B32),
            (_, Some(8)) => Some(Self::B64),
            _ => None,
        }
    }
}

/// What stands in the place of an operand.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum OperandShape {
    /// A register, special registers among them.
    Register(RegisterWidth),
    /// A number, or the address of a variable. It becomes a register of the type that the form says.
    Immediate,
    /// `_`: a result that is thrown away. It becomes a register of the type that the form says.
    Sink,
    /// `{a, b}`, element by element.
    Vector(Vec<OperandShape>),
    /// `a|b`, both.
    Pair(Box<(OperandShape, OperandShape)>),
}

/// How an instruction is done, before its registers are known.
#[derive(Debug, Clone)]
pub struct PureForm {
    pub execute: Execute,
    /// The type of each operand, flattened as `Pure::slots` is, without the carry: immediates and sinks take it.
    pub operands: Vec<ScalarType>,
    /// Whether the carry takes part, as a predicate in the slot after the operands.
    pub carry: bool,
    /// As in `Pure`.
    pub extra: u32,
}
