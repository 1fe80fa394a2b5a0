//! Which memory an instruction moves, and where its address stands.

use crate::code::{Code, Register};
use crate::syntax::{Address, AddressBase, Instruction, Operand, ScalarType, VectorWidth};

/// Whether an access reads, writes or both.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub(crate) enum Direction {
    Load,
    Store,
    Other,
}

/// An access to memory that is, or may be, global.
#[derive(Debug, Clone, Copy)]
pub(crate) struct GlobalAccess<'i, 'a> {
    pub direction: Direction,
    pub address: &'i Address<'a>,
    /// The instruction names no space: it may be any.
    pub generic: bool,
    pub element_bytes: u64,
    pub elements: u64,
}

impl GlobalAccess<'_, '_> {
    /// The register that the address starts from.
    pub fn base(&self, code: &Code<'_, '_>, step: usize) -> Option<Register> {
        match self.address.base {
            AddressBase::Name(name) => code.register(step, name),
            AddressBase::Absolute(_) => None,
        }
    }
}

const SPACES: [&str; 5] = ["global", "shared", "local", "param", "const"];

/// The access of an instruction to global memory, or to memory that may be global.
pub(crate) fn global_access<'i, 'a>(instruction: &'i Instruction<'a>) -> Option<GlobalAccess<'i, 'a>> {
    let direction = match instruction.base() {
        "ld" | "ldu" => Direction::Load,
        "st" => Direction::Store,
        "atom" | "red" | "cp" | "wmma" => Direction::Other,
        _ => return None,
    };
    if instruction.has("tensor") {
        return None;
    }
    // Copies name the space of the destination, then that of the source.
    let words = instruction.modifiers().map(|word| word.split("::").next().unwrap_or_default());
    let spaces: Vec<&str> = words.filter(|word| SPACES.contains(word)).collect();
    let place = spaces.iter().position(|word| *word == "global");
    let generic = spaces.is_empty();
    let mut addresses = instruction.operands.iter().filter_map(|operand| match operand {
        Operand::Address(address) => Some(address),
        _ => None,
    });
    let address = match place {
        Some(place) => addresses.nth(place)?,
        None if generic && instruction.base() != "cp" => addresses.next()?,
        None => return None,
    };
    let element_bytes = match (instruction.base(), instruction.operands.get(2)) {
        ("cp", Some(Operand::Integer(bytes))) => bytes.bits.clamp(1, 16),
        _ => instruction.types().next().and_then(ScalarType::bytes).unwrap_or(1),
    };
    let elements = instruction.modifiers().find_map(VectorWidth::from_name).map_or(1, VectorWidth::elements);
    Some(GlobalAccess { direction, address, generic, element_bytes, elements })
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::flow::uses::tests::with_code;

    #[test]
    fn the_address_that_is_global_is_found() {
        let body = "ld.global.v4.b32 {%r1, %r2, %r3, %r4}, [%rd1];\n st.u16 [%rd2], %rs1;\n\
                    ld.shared.u32 %r1, [%rd3];\n\
                    cp.async.cg.shared.global [%r1], [%rd4], 16, %r2;\n atom.global.add.u32 %r1, [%rd5], 1;\n\
                    red.shared::cta.add.u32 [%rd6], 1;\n ld.param.u64 %rd7, [a];\n ld.const.u32 %r1, [%rd8];\n\
                    cp.async.commit_group;\n ret;";
        with_code(body, |code| {
            let found = code.steps.iter().enumerate().map(|(number, step)| {
                let access = global_access(step.instruction)?;
                let base = access.base(code, number)?;
                Some((code.registers[base.index()].name, access.generic, access.element_bytes, access.elements))
            });
            let expected = [("%rd1", false, 4, 4), ("%rd2", true, 2, 1), ("%rd4", false, 16, 1), ("%rd5", false, 4, 1)];
            assert_eq!(found.flatten().collect::<Vec<_>>(), expected);
        });
    }
}
