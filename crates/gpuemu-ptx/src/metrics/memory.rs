//! Registers and memory that the code declares.

use std::collections::{BTreeMap, BTreeSet};

use gpuemu_model::artifact::{MemoryUse, MemoryVariable, RegisterClass};

use crate::code::{Code, Meaning, ModuleNames};
use crate::syntax::{AddressBase, Declaration, Operand, ScalarType, StateSpace, Variable};

/// Virtual registers by class.
pub(super) fn registers(codes: &[Code<'_, '_>]) -> BTreeMap<RegisterClass, u64> {
    let mut classes = BTreeMap::new();
    for declaration in codes.iter().flat_map(|code| &code.declarations) {
        if declaration.space != StateSpace::Register {
            continue;
        }
        let elements = declaration.vector.map_or(1, |vector| vector.elements());
        let count = classes.entry(class_of(declaration.scalar)).or_insert(0u64);
        for variable in &declaration.variables {
            *count = count.saturating_add(elements.saturating_mul(u64::from(variable.count.unwrap_or(1))));
        }
    }
    classes
}

fn class_of(scalar: ScalarType) -> RegisterClass {
    match scalar.bytes() {
        Some(1) => RegisterClass::Bits8,
        Some(2) => RegisterClass::Bits16,
        Some(4) => RegisterClass::Bits32,
        // Opaque handles are addresses.
        Some(8) => RegisterClass::Bits64,
        Some(_) => RegisterClass::Bits128,
        None if scalar == ScalarType::Pred => RegisterClass::Predicate,
        None => RegisterClass::Bits64,
    }
}

pub(super) type Declared<'m, 'a> = (&'m Declaration<'a>, &'m Variable<'a>);

/// Shared memory: what the functions declare, and what they mention of the module's.
pub(super) fn shared<'m, 'a>(codes: &[Code<'m, 'a>], mentioned: &[Declared<'m, 'a>]) -> MemoryUse {
    let of_module = mentioned.iter().copied().filter(|(declaration, _)| declaration.space == StateSpace::Shared);
    total(of_module.chain(declared(codes, StateSpace::Shared)))
}

/// Local memory that the functions declare.
pub(super) fn local(codes: &[Code<'_, '_>]) -> MemoryUse {
    total(declared(codes, StateSpace::Local))
}

/// Constant and global variables that the functions mention.
pub(super) fn module_variables(mentioned: &[Declared<'_, '_>]) -> Vec<MemoryVariable> {
    let outside = mentioned.iter().filter(|(declaration, _)| declaration.space != StateSpace::Shared);
    outside.map(|(declaration, variable)| describe(declaration, variable)).collect()
}

/// The module's variables that are mentioned, in the order of first mention.
pub(super) fn mentioned<'m, 'a>(codes: &[Code<'m, 'a>], names: &'m ModuleNames<'m, 'a>) -> Vec<Declared<'m, 'a>> {
    let mut found = Vec::new();
    let mut known = BTreeSet::new();
    let mut waiting: Vec<&Operand<'a>> = Vec::new();
    let places = codes.iter().flat_map(|code| (0..code.steps.len()).map(move |place| (code, place)));
    for (code, place) in places {
        waiting.extend(code.steps[place].instruction.operands.iter().rev());
        while let Some(operand) = waiting.pop() {
            let name = match operand {
                Operand::Name(name) | Operand::Symbol(name, _) => name,
                Operand::Vector(elements) | Operand::List(elements) => {
                    waiting.extend(elements.iter().rev());
                    continue;
                }
                Operand::Address(address) => {
                    waiting.extend(address.rest.iter().rev());
                    match &address.base {
                        AddressBase::Name(name) => name,
                        AddressBase::Absolute(_) => continue,
                    }
                }
                _ => continue,
            };
            // A function may have a variable of the same name, which hides the module's.
            if let Some((declaration, variable)) = names.variable(name)
                && let Some(Meaning::Variable(_, meant)) = code.meaning(place, name)
                && std::ptr::eq(variable, meant)
                && known.insert(*name)
            {
                found.push((declaration, variable));
            }
        }
    }
    found
}

fn declared<'c, 'm, 'a>(
    codes: &'c [Code<'m, 'a>],
    space: StateSpace,
) -> impl Iterator<Item = Declared<'m, 'a>> + use<'c, 'm, 'a> {
    let declarations = codes.iter().flat_map(|code| code.declarations.iter().copied());
    let chosen = declarations.filter(move |declaration| declaration.space == space);
    chosen.flat_map(|declaration| declaration.variables.iter().map(move |variable| (declaration, variable)))
}

fn total<'m, 'a: 'm>(variables: impl Iterator<Item = Declared<'m, 'a>>) -> MemoryUse {
    let mut memory = MemoryUse::default();
    for (declaration, variable) in variables {
        let described = describe(declaration, variable);
        match described.bytes {
            Some(bytes) => {
                let alignment = described.alignment;
                let start = memory.bytes.div_ceil(alignment).saturating_mul(alignment);
                memory.bytes = start.saturating_add(bytes);
            }
            None => memory.dynamic = true,
        }
        memory.variables.push(described);
    }
    memory
}

fn describe(declaration: &Declaration<'_>, variable: &Variable<'_>) -> MemoryVariable {
    let scalar = declaration.scalar.name();
    let element_bytes = declaration.element_bytes();
    let bytes = declaration.bytes(variable);
    MemoryVariable {
        name: variable.name.to_string(),
        space: declaration.space.name().to_string(),
        element: declaration.vector.map_or_else(|| scalar.to_string(), |vector| format!("{}.{scalar}", vector.name())),
        element_bytes,
        elements: bytes.and_then(|bytes| bytes.checked_div(element_bytes)),
        bytes,
        alignment: declaration.alignment_bytes(),
    }
}
