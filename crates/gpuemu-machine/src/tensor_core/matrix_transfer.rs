//! `ldmatrix` and `stmatrix`: matrices of 8 by 8 halves between rows in shared memory and registers.

use super::tile::Register;
use super::transposition::transpose;
use crate::registers::LANES;

#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum Direction {
    /// From memory to registers.
    Load,
    /// From registers to memory.
    Store,
}

/// A transfer of matrices of 8 by 8 elements of 16 bits. Row i of matrix m is 16 bytes at the address that lane 8m + i
/// gives; register m of each lane holds two elements of matrix m.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub struct MatrixTransfer {
    pub direction: Direction,
    /// Matrices, and so registers of a lane: 1, 2 or 4.
    pub matrices: usize,
    /// Whether the rows in memory are the columns in registers.
    pub transposed: bool,
}

/// Bytes of a row of a matrix.
type Row = [u8; 16];

impl MatrixTransfer {
    /// The transfer of an opcode with all its modifiers; none for other instructions. A form that is not known is an error
    /// that says what of it is not.
    pub fn from_opcode(opcode: &str) -> Result<Option<Self>, String> {
        let mut parts = opcode.split('.');
        let direction = match parts.next() {
            Some("ldmatrix") => Direction::Load,
            Some("stmatrix") => Direction::Store,
            _ => return Ok(None),
        };
        let (mut matrices, mut transposed, mut shape, mut element) = (None, false, false, false);
        for part in parts {
            match part {
                "sync" | "aligned" | "shared" | "shared::cta" => {}
                "m8n8" => shape = true,
                "x1" => matrices = Some(1),
                "x2" => matrices = Some(2),
                "x4" => matrices = Some(4),
                "trans" => transposed = true,
                "b16" => element = true,
                other => return Err(format!("{opcode}: `{other}` is not known; m8n8 matrices of b16 are")),
            }
        }
        match matrices {
            Some(matrices) if shape && element => Ok(Some(Self { direction, matrices, transposed })),
            _ => Err(format!("{opcode}: the shape `m8n8`, the number of matrices or the type `b16` is missing")),
        }
    }

    /// Brings rows to registers: eight rows a matrix, one register a matrix. Those that are missing are left out.
    #[inline(always)]
    pub fn distribute(&self, rows: &[Row], registers: &mut [Register]) {
        for (rows, register) in rows.as_chunks::<8>().0.iter().zip(registers).take(self.matrices) {
            let untouched = from_rows(rows);
            *register = if self.transposed { transpose(&untouched) } else { untouched };
        }
    }

    /// Brings registers to rows: one register a matrix, eight rows a matrix. Those that are missing are left out.
    pub fn collect(&self, registers: &[Register], rows: &mut [Row]) {
        for (register, rows) in registers.iter().zip(rows.as_chunks_mut::<8>().0).take(self.matrices) {
            let turned = if self.transposed { transpose(register) } else { *register };
            for (row, words) in rows.iter_mut().zip(turned.as_chunks::<4>().0) {
                for (bytes, word) in row.as_chunks_mut::<4>().0.iter_mut().zip(words) {
                    *bytes = word.to_le_bytes();
                }
            }
        }
    }
}

/// Each lane has two elements of one row: lane 4i + j those at 2j and 2j + 1 of row i.
#[inline(always)]
fn from_rows(rows: &[Row; 8]) -> Register {
    let mut register = [0; LANES];
    for (words, row) in register.as_chunks_mut::<4>().0.iter_mut().zip(rows) {
        for (word, &bytes) in words.iter_mut().zip(row.as_chunks::<4>().0) {
            *word = u32::from_le_bytes(bytes);
        }
    }
    register
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn opcodes_are_read() {
        let load = MatrixTransfer::from_opcode("ldmatrix.sync.aligned.m8n8.x4.trans.shared.b16");
        assert_eq!(load, Ok(Some(MatrixTransfer { direction: Direction::Load, matrices: 4, transposed: true })));
        let store = MatrixTransfer::from_opcode("stmatrix.sync.aligned.m8n8.x1.shared::cta.b16");
        assert_eq!(store, Ok(Some(MatrixTransfer { direction: Direction::Store, matrices: 1, transposed: false })));
        assert_eq!(MatrixTransfer::from_opcode("ld.shared.b16"), Ok(None));
        for opcode in
            ["ldmatrix.sync.aligned.m16n16.x1.trans.shared.b8", "ldmatrix.sync.aligned.m8n8.x3.b16", "ldmatrix.sync.x1"]
        {
            assert!(MatrixTransfer::from_opcode(opcode).unwrap_err().contains(opcode));
        }
    }

    /// Element (row, column) of a matrix is 256 times its row, plus its column.
    fn rows(matrices: u8) -> Vec<Row> {
        (0..8 * matrices)
            .map(|row| std::array::from_fn(|byte| if byte % 2 == 0 { (byte / 2) as u8 } else { row }))
            .collect()
    }

    #[test]
    fn lanes_have_two_elements_of_a_row_or_of_a_column() {
        let mut transfer = MatrixTransfer { direction: Direction::Load, matrices: 2, transposed: false };
        let mut registers = [[0; LANES]; 4];
        transfer.distribute(&rows(2), &mut registers);
        assert_eq!(registers[0][6], 0x0105_0104, "lane 6 has row 1, columns 4 and 5");
        assert_eq!(registers[1][31], 0x0F07_0F06);
        assert_eq!(registers[2], [0; LANES], "there are only two matrices");
        transfer.transposed = true;
        transfer.distribute(&rows(2), &mut registers);
        assert_eq!(registers[0][6], 0x0501_0401, "lane 6 has column 1, rows 4 and 5");
    }

    #[test]
    fn what_is_loaded_is_stored_again() {
        for (matrices, transposed) in [(1, false), (2, true), (4, false), (4, true)] {
            let transfer = MatrixTransfer { direction: Direction::Load, matrices, transposed };
            let (before, mut after) = (rows(matrices as u8), vec![[0; 16]; 8 * matrices]);
            let mut registers = vec![[0; LANES]; matrices];
            transfer.distribute(&before, &mut registers);
            transfer.collect(&registers, &mut after);
            assert_eq!(before, after);
        }
    }
}
