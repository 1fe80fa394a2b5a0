//! Where variables lie: parameters, shared and local memory, constants and global variables of the module.

use std::collections::HashMap;

use gpuemu_ptx::code::{Code, Meaning};
use gpuemu_ptx::syntax::{
    Address, AddressBase, Declaration, Float, Function, Initialiser, Linkage, Module, Operand, ScalarType, StateSpace,
    SyntaxError, Variable,
};

use super::Parameter;
use crate::memory::{Space, address::base_of};

/// Bytes of a thread's own memory, the most that the hardware has.
const MOST_FRAME_BYTES: u64 = 512 * 1024;

/// Bytes of all parameters of an entry, the most that a launch can pass.
const MOST_PARAMETER_BYTES: u64 = 32_764;

/// Bytes of all variables of a module in global and constant memory together.
const MOST_VARIABLE_BYTES: u64 = 1 << 30;

/// A variable of the module in global or constant memory.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ModuleVariable {
    pub name: String,
    pub bytes: usize,
    /// What it holds at the beginning, and zeros beyond that.
    pub contents: Vec<u8>,
    /// Whether it may only be read.
    pub read_only: bool,
}

/// Places of all variables.
#[derive(Debug, Default)]
pub(super) struct Layout {
    /// By where the name is declared in the text, which no two variables share.
    places: HashMap<usize, (Space, u64)>,
    pub(super) parameters: Vec<Parameter>,
    pub(super) parameter_bytes: u64,
    pub(super) variables: Vec<ModuleVariable>,
    /// Bytes of these together.
    variable_bytes: u64,
    pub(super) static_shared_bytes: u32,
    pub(super) shared_variables: Vec<(String, u32, u32)>,
    pub(super) frame_bytes: u32,
    /// Dynamic shared memory, which lies behind all that is static.
    dynamic: Vec<(usize, u64)>,
}

fn key(variable: &Variable<'_>) -> usize {
    variable.name.as_ptr() as usize
}

/// Where a variable of a size begins and ends behind an offset, and at most at an end.
fn placed(offset: u64, alignment: u64, bytes: u64, most: u64) -> Option<(u64, u64)> {
    let start = offset.checked_next_multiple_of(alignment.max(1))?;
    let end = start.checked_add(bytes)?;
    (end <= most).then_some((start, end))
}

impl Layout {
    /// Places the variables of the module and the parameters of its entry.
    pub(super) fn of_module<'a>(module: &Module<'a>, entry: &Function<'a>) -> Result<Self, SyntaxError<'a>> {
        let mut layout = Self::default();
        for declaration in module.variables() {
            for variable in &declaration.variables {
                match declaration.space {
                    StateSpace::Global | StateSpace::Constant => layout.module_variable(declaration, variable)?,
                    // Shared variables are placed where code mentions them: those of other entries take no room.
                    _ => {}
                }
            }
        }
        layout.fill_in_symbols(module);
        for declaration in &entry.parameters {
            for variable in &declaration.variables {
                let bytes = sized(declaration, variable)?;
                let place = placed(layout.parameter_bytes, declaration.alignment_bytes(), bytes, MOST_PARAMETER_BYTES);
                let Some((offset, end)) = place else {
                    let message = format!(
                        "parameter '{}' does not fit: an entry has {MOST_PARAMETER_BYTES} bytes of them",
                        variable.name
                    );
                    return Err(SyntaxError::new(variable.name, message));
                };
                layout.parameter_bytes = end;
                layout.places.insert(key(variable), (Space::Parameter, offset));
                layout.parameters.push(Parameter {
                    name: variable.name.to_string(),
                    bytes,
                    scalar: declaration.scalar,
                    offset,
                });
            }
        }
        Ok(layout)
    }

    /// Places the variables of a function: local ones, shared ones, and the parameters of calls.
    pub(super) fn add_function<'a>(&mut self, code: &Code<'_, 'a>, is_entry: bool) -> Result<(), SyntaxError<'a>> {
        let formal = code.function.parameters.iter().chain(&code.function.results).filter(|_| !is_entry);
        for declaration in formal.chain(code.declarations.iter().copied()) {
            for variable in &declaration.variables {
                match declaration.space {
                    StateSpace::Shared => self.shared(declaration, variable)?,
                    StateSpace::Local | StateSpace::Parameter => self.frame(declaration, variable)?,
                    StateSpace::Global | StateSpace::Constant => self.module_variable(declaration, variable)?,
                    StateSpace::Register | StateSpace::Texture => {}
                }
            }
        }
        for (step, found) in code.steps.iter().enumerate() {
            for operand in &found.instruction.operands {
                self.mentioned(code, step, operand)?;
            }
        }
        Ok(())
    }

    /// Places a shared variable of the module that an operand mentions.
    fn mentioned<'a>(
        &mut self,
        code: &Code<'_, 'a>,
        step: usize,
        operand: &Operand<'a>,
    ) -> Result<(), SyntaxError<'a>> {
        let name = match operand {
            Operand::Name(name) | Operand::Symbol(name, _) => name,
            Operand::Address(Address { base: AddressBase::Name(name), .. }) => name,
            _ => return Ok(()),
        };
        match code.meaning(step, name) {
            Some(Meaning::Variable(declaration, variable)) if declaration.space == StateSpace::Shared => {
                self.shared(declaration, variable)
            }
            _ => Ok(()),
        }
    }

    /// Places dynamic shared memory, once all that is static has its place.
    pub(super) fn place_dynamic(&mut self) {
        let Some(alignment) = self.dynamic.iter().map(|(_, alignment)| *alignment).max() else { return };
        let offset = u64::from(self.static_shared_bytes);
        // What does not fit is refused when it is launched, as all shared memory that is too large.
        let start =
            placed(offset, alignment.max(16), 0, u64::from(u32::MAX)).map_or(u32::MAX, |(start, _)| start as u32);
        self.static_shared_bytes = start;
        for (variable, _) in &self.dynamic {
            self.places.insert(*variable, (Space::Shared, u64::from(start)));
        }
    }

    /// The space and address of a variable.
    pub(super) fn place(&self, variable: &Variable<'_>) -> Option<(Space, u64)> {
        self.places.get(&key(variable)).copied()
    }

    fn shared<'a>(&mut self, declaration: &Declaration<'a>, variable: &Variable<'a>) -> Result<(), SyntaxError<'a>> {
        if self.places.contains_key(&key(variable)) {
            return Ok(());
        }
        let dynamic = declaration.linkage == Some(Linkage::Extern) || declaration.bytes(variable).is_none();
        if dynamic {
            self.dynamic.push((key(variable), declaration.alignment_bytes()));
            return Ok(());
        }
        let bytes = sized(declaration, variable)?;
        let used = u64::from(self.static_shared_bytes);
        let Some((offset, end)) = placed(used, declaration.alignment_bytes(), bytes, u64::from(u32::MAX)) else {
            return Err(SyntaxError::new(variable.name, format!("'{}' does not fit shared memory", variable.name)));
        };
        self.shared_variables.push((variable.name.to_string(), offset as u32, end as u32));
        self.static_shared_bytes = end as u32;
        self.places.insert(key(variable), (Space::Shared, offset));
        Ok(())
    }

    fn frame<'a>(&mut self, declaration: &Declaration<'a>, variable: &Variable<'a>) -> Result<(), SyntaxError<'a>> {
        let bytes = sized(declaration, variable)?;
        let used = u64::from(self.frame_bytes);
        let Some((offset, end)) = placed(used, declaration.alignment_bytes().max(8), bytes, MOST_FRAME_BYTES) else {
            let message =
                format!("'{}' does not fit local memory: a thread has {MOST_FRAME_BYTES} bytes", variable.name);
            return Err(SyntaxError::new(variable.name, message));
        };
        self.frame_bytes = end as u32;
        self.places.insert(key(variable), (Space::Local, offset));
        Ok(())
    }

    fn module_variable<'a>(
        &mut self,
        declaration: &Declaration<'a>,
        variable: &Variable<'a>,
    ) -> Result<(), SyntaxError<'a>> {
        if self.places.contains_key(&key(variable)) {
            return Ok(());
        }
        // An array without a size has that of its initialiser.
        let bytes = match (declaration.bytes(variable), &variable.initialiser) {
            (Some(bytes), _) => bytes,
            (None, Some(Initialiser::List(elements))) => declaration.element_bytes() * elements.len() as u64,
            (None, _) => 0,
        };
        let mut contents = Vec::new();
        if let Some(initialiser) = &variable.initialiser {
            write_initialiser(initialiser, declaration.scalar, &mut contents);
        }
        let bytes = bytes.max(contents.len() as u64);
        self.variable_bytes = self.variable_bytes.saturating_add(bytes);
        if self.variable_bytes > MOST_VARIABLE_BYTES {
            let message = format!(
                "'{}' with {bytes} bytes is too large: a module has {MOST_VARIABLE_BYTES} bytes of variables",
                variable.name
            );
            return Err(SyntaxError::new(variable.name, message));
        }
        self.places.insert(key(variable), (Space::Global, base_of(self.variables.len(), 0)));
        self.variables.push(ModuleVariable {
            name: variable.name.to_string(),
            bytes: bytes as usize,
            contents,
            read_only: declaration.space == StateSpace::Constant,
        });
        Ok(())
    }

    /// Pointers in initialisers, once all variables have addresses.
    fn fill_in_symbols(&mut self, module: &Module<'_>) {
        let by_name: HashMap<&str, u64> = module
            .variables()
            .flat_map(|declaration| &declaration.variables)
            .filter_map(|variable| Some((variable.name, self.place(variable)?.1)))
            .collect();
        let places: HashMap<String, usize> =
            self.variables.iter().enumerate().map(|(place, variable)| (variable.name.clone(), place)).collect();
        let all = module.variables().flat_map(|declaration| &declaration.variables);
        for variable in all {
            let Some((Space::Global, _)) = self.place(variable) else { continue };
            let Some(initialiser) = &variable.initialiser else { continue };
            let elements = match initialiser {
                Initialiser::List(elements) => elements.as_slice(),
                one => std::slice::from_ref(one),
            };
            for (place, element) in elements.iter().enumerate() {
                if let Initialiser::Symbol(symbol) = element
                    && let Some(address) = by_name.get(symbol.name)
                    && let Some(found) = places.get(variable.name).and_then(|place| self.variables.get_mut(*place))
                    && let Some(bytes) = found.contents.get_mut(place * 8..place * 8 + 8)
                {
                    bytes.copy_from_slice(&address.wrapping_add_signed(symbol.offset).to_le_bytes());
                }
            }
        }
    }
}

fn sized<'a>(declaration: &Declaration<'a>, variable: &Variable<'a>) -> Result<u64, SyntaxError<'a>> {
    declaration
        .bytes(variable)
        .ok_or_else(|| SyntaxError::new(variable.name, format!("the size of '{}' is not known", variable.name)))
}

fn write_initialiser(initialiser: &Initialiser<'_>, scalar: ScalarType, into: &mut Vec<u8>) {
    let bytes = scalar.bytes().unwrap_or(8) as usize;
    match initialiser {
        Initialiser::Integer(integer) => into.extend_from_slice(&integer.bits.to_le_bytes()[..bytes.min(8)]),
        Initialiser::Float(Float::Single(bits)) => into.extend_from_slice(&bits.to_le_bytes()[..bytes.min(4)]),
        Initialiser::Float(Float::Double(bits)) if bytes == 4 => {
            into.extend_from_slice(&(f64::from_bits(*bits) as f32).to_bits().to_le_bytes());
        }
        Initialiser::Float(Float::Double(bits)) => into.extend_from_slice(&bits.to_le_bytes()[..bytes.min(8)]),
        Initialiser::Symbol(_) => into.extend_from_slice(&[0; 8][..bytes.min(8)]),
        Initialiser::List(elements) => elements.iter().for_each(|element| write_initialiser(element, scalar, into)),
    }
}
