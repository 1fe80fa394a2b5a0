//! Tensor cores and the transfers that feed them.

use gpuemu_ptx::syntax::{Instruction, Operand, ScalarType};

use super::instruction::{Action, FragmentTransfer, MatrixTransfer, Product};
use super::{Decoder, InFunction};
use crate::memory::Space;
use crate::registers::{RegisterWidth, Slot};
use crate::tensor_core::{self, Direction, FragmentRegisters, Matrix, MatrixProduct, WmmaTransfer};

fn scalar_of(width: RegisterWidth) -> ScalarType {
    match width {
        RegisterWidth::Predicate => ScalarType::Pred,
        RegisterWidth::B16 => ScalarType::B16,
        RegisterWidth::B32 => ScalarType::B32,
        RegisterWidth::B64 => ScalarType::B64,
    }
}

impl<'m, 'a> Decoder<'_, 'm, 'a> {
    pub(super) fn matrices(
        &mut self,
        at: &InFunction<'_, 'm, 'a>,
        instruction: &Instruction<'a>,
    ) -> Result<Action, String> {
        let unknown = || format!("`{}` is not a form that the machine knows", instruction.opcode);
        let operands = instruction.operands.as_slice();
        if let Some(matrix) = tensor_core::MatrixTransfer::from_opcode(instruction.opcode)? {
            let stores = matrix.direction == Direction::Store;
            let (registers, address) = match (stores, operands) {
                (false, [registers, address]) | (true, [address, registers]) => (registers, address),
                _ => return Err(unknown()),
            };
            let address = self.address(at, Some(address), space_of(instruction))?;
            let registers =
                self.fragment(at, registers, FragmentRegisters { count: matrix.matrices, width: RegisterWidth::B32 })?;
            let transfer = Box::new(MatrixTransfer { matrix, address, registers });
            return Ok(if stores { Action::MatrixStore(transfer) } else { Action::MatrixLoad(transfer) });
        }
        if let Some(fragment) = WmmaTransfer::from_opcode(instruction.opcode)? {
            return self.fragment_transfer(at, instruction, fragment);
        }
        let Some(product) = MatrixProduct::from_opcode(instruction.opcode)? else { return Err(unknown()) };
        let fragments = product.registers();
        let [d, a, b, c] = operands else { return Err(unknown()) };
        let mut slots = Vec::new();
        for (operand, fragment) in [(d, fragments.d), (a, fragments.a), (b, fragments.b), (c, fragments.c)] {
            slots.extend(self.fragment(at, operand, fragment)?);
        }
        let product = product.prepare(self.options.tensor_core, self.options.level);
        Ok(Action::Product(Box::new(Product { product, slots })))
    }

    fn fragment(
        &mut self,
        at: &InFunction<'_, 'm, 'a>,
        operand: &Operand<'a>,
        FragmentRegisters { count, width }: FragmentRegisters,
    ) -> Result<Vec<Slot>, String> {
        let elements = match operand {
            Operand::Vector(elements) => elements.as_slice(),
            one => std::slice::from_ref(one),
        };
        if elements.len() != count {
            return Err(format!("a fragment of {count} registers is given {}", elements.len()));
        }
        elements.iter().map(|element| self.operand_of_width(at, element, scalar_of(width))).collect()
    }

    fn fragment_transfer(
        &mut self,
        at: &InFunction<'_, 'm, 'a>,
        instruction: &Instruction<'a>,
        fragment: WmmaTransfer,
    ) -> Result<Action, String> {
        let stores = fragment.matrix() == Matrix::D;
        let (registers, address, stride) = match (stores, instruction.operands.as_slice()) {
            (false, [registers, address]) | (true, [address, registers]) => (registers, address, None),
            (false, [registers, address, stride]) | (true, [address, registers, stride]) => {
                (registers, address, Some(stride))
            }
            _ => return Err(format!("`{}` with a wrong number of operands", instruction.opcode)),
        };
        let address = self.address(at, Some(address), space_of(instruction))?;
        let layout = fragment.registers();
        let slots = self.fragment(at, registers, layout)?;
        let stride = stride.map(|stride| self.operand_of_width(at, stride, ScalarType::U32)).transpose()?;
        if address.space != Space::Global {
            self.shared_granule = self.shared_granule.min((fragment.element_bits() / 8).max(1));
        }
        let registers = slots.into_iter().map(|slot| (slot, layout.width)).collect();
        let transfer = Box::new(FragmentTransfer { fragment, address, stride, registers });
        Ok(if stores { Action::FragmentStore(transfer) } else { Action::FragmentLoad(transfer) })
    }
}

fn space_of(instruction: &Instruction<'_>) -> Space {
    if instruction.has("shared") {
        Space::Shared
    } else if instruction.has("global") {
        Space::Global
    } else {
        Space::Generic
    }
}
