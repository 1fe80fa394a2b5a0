//! `wmma.load` and `wmma.store`: fragments between memory and registers.

use super::element::Element;
use super::forms::{self, Form, Operands};
use super::fragment::{Layout, Matrix, Order};
use super::opcode;
use super::product::{Family, FragmentRegisters};

/// A transfer of a fragment of `wmma`. Which lane holds which element is known to this crate alone, as it is to a chip:
/// some elements lie in several lanes.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct WmmaTransfer {
    layout: Layout,
    /// How the matrix lies in memory.
    pub order: Order,
}

impl WmmaTransfer {
    /// The transfer of an opcode with all its modifiers; none for other instructions. A form that is not known is an error
    /// that says what of it is not.
    pub fn from_opcode(opcode: &str) -> Result<Option<Self>, String> {
        let parts: Vec<&str> = opcode.split('.').collect();
        let (matrix, modifiers) = match parts.as_slice() {
            ["wmma", "load", "a", rest @ ..] => (Matrix::A, rest),
            ["wmma", "load", "b", rest @ ..] => (Matrix::B, rest),
            ["wmma", "load", "c", rest @ ..] => (Matrix::C, rest),
            ["wmma", "store", "d", rest @ ..] => (Matrix::D, rest),
            ["wmma", "load" | "store", ..] => return Err(format!("{opcode}: it says no matrix")),
            _ => return Ok(None),
        };
        let (mut order, mut shape, mut element) = (None, None, None);
        for &part in modifiers {
            match part {
                "sync" | "aligned" | "global" | "shared" | "shared::cta" => {}
                "row" => order = Some(Order::Rows),
                "col" => order = Some(Order::Columns),
                other => match (opcode::shape(other), Element::from_name(other)) {
                    (Some(read), _) => shape = Some(read),
                    (_, Some(read)) => element = Some(read),
                    _ => return Err(format!("{opcode}: the modifier `{other}` is not known")),
                },
            }
        }
        let (Some(order), Some((m, n, k)), Some(element)) = (order, shape, element) else {
            return Err(format!("{opcode}: the order, the shape or the type is missing"));
        };
        if !forms::WMMA.iter().any(|form| has(form, matrix, (m, n, k), element)) {
            return Err(format!("{opcode}: there is no such matrix of this shape and type"));
        }
        let layout = Layout { family: Family::Wmma, matrix, m, n, k, element };
        match (element.bits() < 8, matrix, order) {
            (true, Matrix::A, Order::Columns) | (true, Matrix::B, Order::Rows) => {
                Err(format!("{opcode}: matrices of elements smaller than a byte lie along k"))
            }
            _ => Ok(Some(Self { layout, order })),
        }
    }

    /// Which matrix; D is stored, the others are loaded.
    pub fn matrix(&self) -> Matrix {
        self.layout.matrix
    }

    /// Rows of the matrix.
    pub fn rows(&self) -> usize {
        self.layout.extent().0
    }

    /// Columns of the matrix.
    pub fn columns(&self) -> usize {
        self.layout.extent().1
    }

    /// The type of its elements; those smaller than a byte lie in memory from the low bits on.
    pub fn element_type(&self) -> Element {
        self.layout.element
    }

    pub fn element_bits(&self) -> u32 {
        self.layout.element.bits()
    }

    /// Elements that a register holds, from the low bits on. Those smaller than a byte, all of one register, follow one
    /// another in memory.
    pub fn parts(&self) -> usize {
        self.layout.element.in_register()
    }

    /// Registers of a lane.
    pub fn registers(&self) -> FragmentRegisters {
        FragmentRegisters { count: self.layout.registers(), width: self.layout.width() }
    }

    /// Row and column of the element that lies in a part of a register of a lane.
    pub fn element(&self, lane: usize, register: usize, part: usize) -> (usize, usize) {
        let place = self.layout.place(lane, register, part);
        (place.row, place.column)
    }

    /// The distance of an element from the first in memory, in elements, where rows or columns are `stride` elements
    /// apart.
    pub fn offset(&self, row: usize, column: usize, stride: u64) -> u64 {
        match self.order {
            Order::Rows => row as u64 * stride + column as u64,
            Order::Columns => column as u64 * stride + row as u64,
        }
    }

    /// The stride of a matrix that is stored without gaps, which is meant when an instruction gives none.
    pub fn dense_stride(&self) -> u64 {
        match self.order {
            Order::Rows => self.columns() as u64,
            Order::Columns => self.rows() as u64,
        }
    }
}

/// Whether products of a form have such a matrix.
fn has(form: &Form, matrix: Matrix, shape: (usize, usize, usize), element: Element) -> bool {
    let of_type = match matrix {
        Matrix::A | Matrix::B => match form.operands {
            Operands::Same(operand) => operand == element,
            Operands::Any(operands) => operands.contains(&element),
        },
        Matrix::C => form.accumulators.iter().any(|&(_, c)| c == element),
        Matrix::D => form.accumulators.iter().any(|&(d, _)| d == element),
    };
    of_type && form.shapes.contains(&shape)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::registers::{LANES, RegisterWidth};

    fn transfer(opcode: &str) -> WmmaTransfer {
        WmmaTransfer::from_opcode(opcode).unwrap().unwrap()
    }

    #[test]
    fn every_element_is_held_by_as_many_lanes_as_any_other() {
        for (opcode, count) in [
            ("wmma.load.a.sync.aligned.row.m16n16k16.shared.f16", 8),
            ("wmma.load.b.sync.aligned.col.m16n16k16.global.f16", 8),
            ("wmma.load.a.sync.aligned.row.m8n32k16.f16", 8),
            ("wmma.load.b.sync.aligned.row.m32n8k16.f16", 8),
            ("wmma.load.a.sync.aligned.col.m32n8k16.bf16", 8),
            ("wmma.load.a.sync.aligned.col.m8n32k16.bf16", 2),
            ("wmma.load.b.sync.aligned.col.m8n32k16.s8", 4),
            ("wmma.load.a.sync.aligned.row.m16n16k16.u8", 2),
            ("wmma.load.b.sync.aligned.row.m16n16k8.tf32", 4),
            ("wmma.load.c.sync.aligned.row.m16n16k16.f16", 4),
            ("wmma.load.c.sync.aligned.col.m8n32k16.f16", 4),
            ("wmma.load.c.sync.aligned.row.m16n16k8.f32", 8),
            ("wmma.store.d.sync.aligned.row.m8n32k16.shared::cta.f32", 8),
            ("wmma.store.d.sync.aligned.row.m32n8k16.s32", 8),
            ("wmma.load.a.sync.aligned.row.m8n8k32.s4", 1),
            ("wmma.load.b.sync.aligned.col.m8n8k128.b1", 1),
            ("wmma.store.d.sync.aligned.col.m8n8k4.f64", 2),
        ] {
            let transfer = transfer(opcode);
            assert_eq!(transfer.registers().count, count, "{opcode}");
            let mut held = vec![0; transfer.rows() * transfer.columns()];
            for lane in 0..LANES {
                for register in 0..count {
                    for part in 0..transfer.parts() {
                        let (row, column) = transfer.element(lane, register, part);
                        assert!(row < transfer.rows() && column < transfer.columns(), "{opcode}");
                        held[row * transfer.columns() + column] += 1;
                    }
                }
            }
            let expected = LANES * count * transfer.parts() / held.len();
            assert!(expected > 0 && held.iter().all(|&times| times == expected), "{opcode}");
        }
        assert_eq!(transfer("wmma.store.d.sync.aligned.row.m8n8k4.f64").registers().width, RegisterWidth::B64);
    }

    #[test]
    fn offsets_follow_the_order() {
        let rows = transfer("wmma.load.a.sync.aligned.row.m32n8k16.f16");
        assert_eq!((rows.offset(3, 5, 20), rows.dense_stride()), (65, 16));
        let columns = transfer("wmma.load.a.sync.aligned.col.m32n8k16.f16");
        assert_eq!((columns.offset(3, 5, 40), columns.dense_stride()), (203, 32));
    }

    #[test]
    fn forms_that_are_not_known_are_refused() {
        for opcode in [
            "wmma.load.a.sync.aligned.row.m16n16k16.s32",
            "wmma.load.c.sync.aligned.row.m16n16k16.bf16",
            "wmma.load.a.sync.aligned.row.m16n16k8.f16",
            "wmma.load.a.sync.aligned.m16n16k16.f16",
            "wmma.load.d.sync.aligned.row.m16n16k16.f16",
            "wmma.load.a.sync.aligned.col.m8n8k32.s4",
            "wmma.load.a.sync.aligned.row.m16n16k16.param.f16",
        ] {
            assert!(WmmaTransfer::from_opcode(opcode).unwrap_err().contains(opcode));
        }
        assert_eq!(WmmaTransfer::from_opcode("wmma.mma.sync.aligned.row.col.m16n16k16.f32.f32"), Ok(None));
    }
}
