//! Where the elements of a matrix lie in the registers of a warp.

use super::element::Element;
use super::product::Family;
use crate::registers::RegisterWidth;

/// Which matrix of a product.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum Matrix {
    /// The left operand, m by k.
    A,
    /// The right operand, k by n.
    B,
    /// The accumulator, m by n.
    C,
    /// The result, m by n.
    D,
}

/// How a matrix lies in memory.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum Order {
    Rows,
    Columns,
}

/// The layout of one matrix of a product.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Layout {
    pub(super) family: Family,
    pub(super) matrix: Matrix,
    pub(super) m: usize,
    pub(super) n: usize,
    pub(super) k: usize,
    pub(super) element: Element,
}

/// An element: of which of several products, in which row and column.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Place {
    pub(super) product: usize,
    pub(super) row: usize,
    pub(super) column: usize,
}

impl Layout {
    /// Registers of a lane.
    pub(super) fn registers(&self) -> usize {
        match self.family {
            Family::MmaQuadPairs { .. } => match (self.matrix, self.element) {
                (Matrix::A | Matrix::B, _) => 2,
                (_, Element::F16) => 4,
                _ => 8,
            },
            // Half-precision operands take as many registers as on the first chips, where every element lay in two lanes.
            Family::Wmma if self.element == Element::F16 && matches!(self.matrix, Matrix::A | Matrix::B) => 8,
            _ => self.distinct_registers(),
        }
    }

    /// Registers that are needed if every element lies in one lane only.
    fn distinct_registers(&self) -> usize {
        let (rows, columns) = self.extent();
        rows * columns / (32 * self.element.in_register())
    }

    /// The width of these registers.
    pub(super) fn width(&self) -> RegisterWidth {
        if self.element == Element::F64 { RegisterWidth::B64 } else { RegisterWidth::B32 }
    }

    /// Rows and columns of the matrix.
    pub(super) fn extent(&self) -> (usize, usize) {
        match self.matrix {
            Matrix::A => (self.m, self.k),
            Matrix::B => (self.k, self.n),
            Matrix::C | Matrix::D => (self.m, self.n),
        }
    }

    /// The element at a part of a register of a lane, parts counted from the low bits.
    pub(super) fn place(&self, lane: usize, register: usize, part: usize) -> Place {
        if let Family::MmaQuadPairs { a_by_columns, b_by_columns } = self.family {
            return self.place_in_quad_pair(lane, register, part, a_by_columns, b_by_columns);
        }
        // A product that is wider than high is the transposed product of the transposed matrices.
        let turned = self.n > self.m;
        let (row, column) = match (self.matrix, turned) {
            (Matrix::A, false) => self.left(self.m, lane, register, part),
            (Matrix::B, true) => swap(self.left(self.n, lane, register, part)),
            (Matrix::B, false) => self.right(self.n, lane, register, part),
            (Matrix::A, true) => swap(self.right(self.m, lane, register, part)),
            (Matrix::C | Matrix::D, false) => self.accumulator(self.m, self.n, lane, register, part),
            (Matrix::C | Matrix::D, true) => swap(self.accumulator(self.n, self.m, lane, register, part)),
        };
        Place { product: 0, row, column }
    }

    /// The left operand of a product of tiles of 16 by 8, or 8 by 8, one tile after the other.
    fn left(&self, rows: usize, lane: usize, register: usize, part: usize) -> (usize, usize) {
        let (group, thread, in_register) = (lane / 4, lane % 4, self.element.in_register());
        let halves = tile_rows(rows) / 8;
        let of_tile = (halves * self.k / (4 * in_register)).max(1);
        let register = register % self.distinct_registers().max(1);
        let (tile, register) = (register / of_tile, register % of_tile);
        let row = tile * tile_rows(rows) + group + 8 * (register % halves);
        (row, thread * in_register + part + register / halves * 4 * in_register)
    }

    /// The right operand, likewise.
    fn right(&self, columns: usize, lane: usize, register: usize, part: usize) -> (usize, usize) {
        let (group, thread, in_register) = (lane / 4, lane % 4, self.element.in_register());
        let of_tile = (self.k / (4 * in_register)).max(1);
        let register = register % (columns / 8 * of_tile);
        let (tile, register) = (register / of_tile, register % of_tile);
        (thread * in_register + part + register * 4 * in_register, tile * 8 + group)
    }

    /// The accumulator, likewise: tiles along a row follow one another.
    fn accumulator(&self, rows: usize, columns: usize, lane: usize, register: usize, part: usize) -> (usize, usize) {
        let (group, thread) = (lane / 4, lane % 4);
        let of_tile = tile_rows(rows) / 8 * 2;
        let element = register * self.element.in_register() + part;
        let (tile, element) = (element / of_tile, element % of_tile);
        let tiles_in_row = columns / 8;
        let row = tile / tiles_in_row * tile_rows(rows) + group + 8 * (element / 2);
        (row, tile % tiles_in_row * 8 + 2 * thread + element % 2)
    }

    fn place_in_quad_pair(
        &self,
        lane: usize,
        register: usize,
        part: usize,
        a_by_columns: bool,
        b_by_columns: bool,
    ) -> Place {
        let (product, thread, high) = (lane % 16 / 4, lane % 4, lane / 16 * 4);
        let element = register * self.element.in_register() + part;
        let (row, column) = match (self.matrix, self.element) {
            (Matrix::A, _) if a_by_columns => (element + high, thread),
            (Matrix::A, _) => (thread + high, element),
            (Matrix::B, _) if b_by_columns => (element, thread + high),
            (Matrix::B, _) => (thread, element + high),
            (_, Element::F16) => (thread + high, element),
            _ => ((lane & 1) + (element & 2) + high, (element & 4) + (lane & 2) + (element & 1)),
        };
        Place { product, row, column }
    }
}

fn tile_rows(rows: usize) -> usize {
    if rows.is_multiple_of(16) { 16 } else { 8 }
}

fn swap((row, column): (usize, usize)) -> (usize, usize) {
    (column, row)
}
