//! Products of matrices that one instruction of a warp computes.

use super::element::Element;
use super::fragment::{Layout, Matrix};
use super::model::TensorCore;
use super::opcode;
use super::plan::PreparedProduct;
use crate::registers::{Level, RegisterWidth};

/// Which instructions a product belongs to: they lay matrices out in registers in different ways.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum Family {
    /// `mma.sync`.
    Mma,
    /// `mma.sync.m8n8k4` of half precision: four products at once, each by a quarter of the lanes. Its operands lie in
    /// registers by the order of their elements.
    MmaQuadPairs {
        /// Whether A lies by columns.
        a_by_columns: bool,
        /// Whether B lies by columns.
        b_by_columns: bool,
    },
    /// `wmma.mma.sync`. Its fragments are opaque: only `wmma.load` and `wmma.store` give them a meaning.
    Wmma,
}

/// How two elements are combined before they are added.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum Combination {
    Product,
    /// The number of bits that differ.
    DifferentBits,
    /// The number of bits that both have.
    CommonBits,
}

/// A product of matrices with an accumulator, D = A·B + C, as an opcode says it.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub struct MatrixProduct {
    pub family: Family,
    /// Rows of A and C.
    pub m: usize,
    /// Columns of B and C.
    pub n: usize,
    /// Columns of A and rows of B.
    pub k: usize,
    /// Elements of the result.
    pub d: Element,
    /// Elements of the left operand.
    pub a: Element,
    /// Elements of the right operand.
    pub b: Element,
    /// Elements of the accumulator.
    pub c: Element,
    /// How elements are combined.
    pub combination: Combination,
    /// Whether sums of integers stop at the ends of the range, instead of wrapping around.
    pub saturate: bool,
}

/// Registers of one matrix.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct FragmentRegisters {
    /// How many a lane has.
    pub count: usize,
    /// How wide they are.
    pub width: RegisterWidth,
}

/// Registers of the matrices of a product, in the order of the operands.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Fragments {
    pub d: FragmentRegisters,
    pub a: FragmentRegisters,
    pub b: FragmentRegisters,
    pub c: FragmentRegisters,
}

impl MatrixProduct {
    /// The product of an opcode with all its modifiers; none for other instructions. A form that is not known is an
    /// error that says what of it is not.
    pub fn from_opcode(opcode: &str) -> Result<Option<Self>, String> {
        opcode::product(opcode)
    }

    /// The registers that it reads and writes.
    pub fn registers(&self) -> Fragments {
        let of = |matrix| {
            let layout = self.layout(matrix);
            FragmentRegisters { count: layout.registers(), width: layout.width() }
        };
        Fragments { d: of(Matrix::D), a: of(Matrix::A), b: of(Matrix::B), c: of(Matrix::C) }
    }

    /// The product as a tensor core computes it, ready to be executed. A level above what the processor has is lowered.
    pub fn prepare(&self, model: TensorCore, level: Level) -> PreparedProduct {
        PreparedProduct::new(*self, model, level)
    }

    /// Where the elements of a matrix lie.
    pub(super) fn layout(&self, matrix: Matrix) -> Layout {
        Layout { family: self.family, matrix, m: self.m, n: self.n, k: self.k, element: self.element(matrix) }
    }

    fn element(&self, matrix: Matrix) -> Element {
        match matrix {
            Matrix::A => self.a,
            Matrix::B => self.b,
            Matrix::C => self.c,
            Matrix::D => self.d,
        }
    }
}
