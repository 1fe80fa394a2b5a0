//! The code of one function in one list: blocks flattened, every name resolved.
//!
//! This is where a name that nothing declares is refused, so what comes after can rely on names.

use std::collections::HashMap;

use crate::special_registers::is_special;
use crate::syntax::{
    AddressBase, Declaration, Function, Instruction, Location, Module, Operand, Pointer, ScalarType, Span, StateSpace,
    Statement, SyntaxError, TargetKind, Variable,
};

/// A register that the code mentions. Numbers are dense, in the order of first mention.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct Register(pub u32);

impl Register {
    /// Its place in a table of all registers.
    pub const fn index(self) -> usize {
        self.0 as usize
    }
}

/// What is known of a register.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct RegisterInfo<'a> {
    pub name: &'a str,
    pub scalar: ScalarType,
    /// Elements, of a vector register.
    pub elements: u64,
}

/// What a name stands for.
#[derive(Debug, Clone, Copy)]
pub enum Meaning<'m, 'a> {
    Register(Register),
    /// `%tid` and the like.
    Special(&'a str),
    /// A variable in memory, of the module or of the function.
    Variable(&'m Declaration<'a>, &'m Variable<'a>),
    /// A parameter of the function, or one of a call that it prepares.
    Parameter(&'m Declaration<'a>, &'m Variable<'a>),
    /// A place in the code: the number of the instruction that follows it.
    Label(usize),
    Function(&'m Function<'a>),
}

/// An instruction in its place.
#[derive(Debug, Clone)]
pub struct Step<'m, 'a> {
    pub instruction: &'m Instruction<'a>,
    /// Where it comes from.
    pub location: Option<&'m Location<'a>>,
    scope: u32,
    reads: (u32, u32),
    writes: (u32, u32),
}

/// The code of a function.
#[derive(Debug, Clone)]
pub struct Code<'m, 'a> {
    pub function: &'m Function<'a>,
    /// Its instructions, in order.
    pub steps: Vec<Step<'m, 'a>>,
    /// The registers that it mentions.
    pub registers: Vec<RegisterInfo<'a>>,
    /// Declarations in its body, in order: registers, shared and local variables, parameters of calls.
    pub declarations: Vec<&'m Declaration<'a>>,
    uses: Vec<Register>,
    scopes: Vec<Scope<'m, 'a>>,
    /// Labels of a block are its own: inline assembly repeats them.
    labels: HashMap<(u32, &'a str), usize>,
    lists: HashMap<(u32, &'a str), (TargetKind, &'m [&'a str])>,
    names: &'m ModuleNames<'m, 'a>,
    mentioned: HashMap<(u32, &'a str), Register>,
}

/// The names of a module that its functions share.
#[derive(Debug, Clone, Default)]
pub struct ModuleNames<'m, 'a> {
    functions: HashMap<&'a str, &'m Function<'a>>,
    variables: HashMap<&'a str, (&'m Declaration<'a>, &'m Variable<'a>)>,
}

#[derive(Debug, Clone, Default)]
struct Scope<'m, 'a> {
    parent: Option<u32>,
    /// By name; registers that stand for many by the name before their number.
    single: HashMap<&'a str, (&'m Declaration<'a>, &'m Variable<'a>)>,
    numbered: HashMap<&'a str, (&'m Declaration<'a>, &'m Variable<'a>)>,
}

impl<'m, 'a> ModuleNames<'m, 'a> {
    pub fn of(module: &'m Module<'a>) -> Self {
        let mut names = Self::default();
        for declaration in module.variables() {
            for variable in &declaration.variables {
                names.variables.insert(variable.name, (declaration, variable));
            }
        }
        for function in module.functions() {
            let known = names.functions.entry(function.name).or_insert(function);
            // A definition says more than the declaration before it.
            if known.body.is_none() {
                *known = function;
            }
        }
        names
    }

    pub fn function(&self, name: &str) -> Option<&'m Function<'a>> {
        self.functions.get(name).copied()
    }

    /// A variable outside of functions.
    pub fn variable(&self, name: &str) -> Option<(&'m Declaration<'a>, &'m Variable<'a>)> {
        self.variables.get(name).copied()
    }
}

impl<'m, 'a> Code<'m, 'a> {
    /// The code of a function; a function that is only declared has none.
    pub fn of(function: &'m Function<'a>, names: &'m ModuleNames<'m, 'a>) -> Result<Self, SyntaxError<'a>> {
        let mut code = Self {
            function,
            steps: Vec::new(),
            registers: Vec::new(),
            declarations: Vec::new(),
            uses: Vec::new(),
            scopes: vec![Scope::default()],
            labels: HashMap::new(),
            lists: HashMap::new(),
            names,
            mentioned: HashMap::new(),
        };
        for declaration in function.parameters.iter().chain(&function.results) {
            code.declare(0, declaration)?;
        }
        let body = function.body.as_deref().unwrap_or_default();
        code.flatten(body)?;
        code.resolve()?;
        Ok(code)
    }

    /// Registers that a step reads, its guard and addresses included.
    pub fn reads(&self, step: usize) -> &[Register] {
        self.steps.get(step).map_or(&[], |found| &self.uses[found.reads.0 as usize..found.reads.1 as usize])
    }

    pub fn writes(&self, step: usize) -> &[Register] {
        self.steps.get(step).map_or(&[], |found| &self.uses[found.writes.0 as usize..found.writes.1 as usize])
    }

    /// The register of a name, as a step sees it.
    pub fn register(&self, step: usize, name: &str) -> Option<Register> {
        match self.meaning(step, name)? {
            Meaning::Register(register) => Some(register),
            _ => None,
        }
    }

    /// What a name stands for, as a step sees it.
    pub fn meaning(&self, step: usize, name: &str) -> Option<Meaning<'m, 'a>> {
        self.meaning_in(self.steps.get(step)?.scope, name)
    }

    /// The number of the instruction that follows a label, as a step sees it; that of the last plus one at the end.
    pub fn label(&self, step: usize, name: &str) -> Option<usize> {
        self.in_scopes(self.steps.get(step)?.scope, name, &self.labels)
    }

    /// What a table has under a name in a scope, or in one that holds it.
    fn in_scopes<T: Copy>(&self, scope: u32, name: &str, table: &HashMap<(u32, &'a str), T>) -> Option<T> {
        let mut next = Some(scope);
        while let Some(scope) = next {
            if let Some(found) = table.get(&(scope, name)) {
                return Some(*found);
            }
            next = self.scopes.get(scope as usize)?.parent;
        }
        None
    }

    /// Where a branch may go, in order; nothing for other instructions.
    pub fn targets(&self, step: usize) -> Vec<usize> {
        let Some(Step { instruction, scope, .. }) = self.steps.get(step) else { return Vec::new() };
        let names: Vec<&str> = match (instruction.base(), instruction.operands.as_slice()) {
            ("bra", [Operand::Name(label), ..]) => vec![label],
            ("brx", [_, Operand::Name(list), ..]) => {
                self.in_scopes(*scope, list, &self.lists).map_or_else(Vec::new, |(_, names)| names.to_vec())
            }
            _ => Vec::new(),
        };
        names.into_iter().filter_map(|name| self.label(step, name)).collect()
    }

    /// What `.ptr` says of a parameter.
    pub fn pointer(&self, parameter: &str) -> Option<Pointer> {
        let declaration = self
            .function
            .parameters
            .iter()
            .find(|declaration| declaration.variables.iter().any(|variable| variable.name == parameter))?;
        declaration.pointer
    }

    fn flatten(&mut self, body: &'m [Statement<'a>]) -> Result<(), SyntaxError<'a>> {
        // The parser bounds how deep blocks nest; a list of what is left keeps the stack flat all the same.
        let mut waiting = vec![(body.iter(), 0u32)];
        let mut location = None;
        // The labels since the last instruction: they name a list of targets that follows.
        let mut since = Vec::new();
        while let Some((statements, scope)) = waiting.last_mut() {
            let scope = *scope;
            let Some(statement) = statements.next() else {
                waiting.pop();
                continue;
            };
            match statement {
                Statement::Instruction(instruction) => {
                    since.clear();
                    self.steps.push(Step { instruction, location, scope, reads: (0, 0), writes: (0, 0) });
                }
                Statement::Label(name) => {
                    if self.labels.insert((scope, name), self.steps.len()).is_some() {
                        return Err(SyntaxError::new(name, format!("label '{name}' is there twice")));
                    }
                    since.push(*name);
                }
                Statement::Location(found) => location = Some(found),
                Statement::Variables(declaration) => {
                    self.declare(scope, declaration)?;
                    self.declarations.push(declaration);
                }
                Statement::Block(inner) => {
                    self.scopes.push(Scope { parent: Some(scope), ..Scope::default() });
                    waiting.push((inner.iter(), self.scopes.len() as u32 - 1));
                }
                Statement::Targets(kind, names) => {
                    if let Some(name) = since.last() {
                        self.lists.insert((scope, name), (*kind, names));
                    }
                }
                Statement::Pragma(_) | Statement::Prototype(_) => {}
            }
        }
        Ok(())
    }

    fn declare(&mut self, scope: u32, declaration: &'m Declaration<'a>) -> Result<(), SyntaxError<'a>> {
        let Some(found) = self.scopes.get_mut(scope as usize) else { return Ok(()) };
        for variable in &declaration.variables {
            let table = if variable.count.is_some() { &mut found.numbered } else { &mut found.single };
            if table.insert(variable.name, (declaration, variable)).is_some() {
                let message = format!("'{}' is declared twice", variable.name);
                return Err(SyntaxError::new(variable.name, message));
            }
        }
        Ok(())
    }

    fn resolve(&mut self) -> Result<(), SyntaxError<'a>> {
        let mut reads = Vec::new();
        let mut writes = Vec::new();
        for number in 0..self.steps.len() {
            let (instruction, scope) = (self.steps[number].instruction, self.steps[number].scope);
            reads.clear();
            writes.clear();
            if let Some(guard) = instruction.guard {
                self.mention(scope, guard.predicate, instruction, &mut reads)?;
            }
            let results = instruction.results();
            for (place, operand) in instruction.operands.iter().enumerate() {
                let into = if place < results { &mut writes } else { &mut reads };
                self.mention_operand(scope, operand, instruction, into)?;
                // The registers of an address are read, wherever it stands.
                if place < results && matches!(operand, Operand::Address(_)) {
                    reads.append(&mut writes);
                }
            }
            // An accumulator that is written in place is read too.
            if instruction.base() == "wgmma" {
                reads.extend_from_slice(&writes);
            }
            let step = &mut self.steps[number];
            let start = self.uses.len() as u32;
            self.uses.extend_from_slice(&reads);
            step.reads = (start, self.uses.len() as u32);
            self.uses.extend_from_slice(&writes);
            step.writes = (step.reads.1, self.uses.len() as u32);
        }
        Ok(())
    }

    fn mention_operand(
        &mut self,
        scope: u32,
        operand: &Operand<'a>,
        instruction: &Instruction<'a>,
        into: &mut Vec<Register>,
    ) -> Result<(), SyntaxError<'a>> {
        match operand {
            Operand::Name(name) | Operand::Component(name, _) | Operand::Not(name) | Operand::Symbol(name, _) => {
                self.mention(scope, name, instruction, into)
            }
            Operand::Integer(_) | Operand::Float(_) | Operand::Sink => Ok(()),
            Operand::Pair(pair) => {
                self.mention_operand(scope, &pair.0, instruction, into)?;
                self.mention_operand(scope, &pair.1, instruction, into)
            }
            Operand::Vector(elements) | Operand::List(elements) => {
                elements.iter().try_for_each(|element| self.mention_operand(scope, element, instruction, into))
            }
            Operand::Address(address) => {
                if let AddressBase::Name(name) = address.base {
                    self.mention(scope, name, instruction, into)?;
                }
                address.rest.iter().try_for_each(|rest| self.mention_operand(scope, rest, instruction, into))
            }
        }
    }

    fn mention(
        &mut self,
        scope: u32,
        name: &'a str,
        instruction: &Instruction<'a>,
        into: &mut Vec<Register>,
    ) -> Result<(), SyntaxError<'a>> {
        match self.mentioned.get(&(scope, name)) {
            Some(register) => into.push(*register),
            None => match self.look_up(scope, name) {
                Some((owner, declaration, _)) if declaration.space == StateSpace::Register => {
                    let register = match self.mentioned.get(&(owner, name)) {
                        Some(register) => *register,
                        None => {
                            let elements = declaration.vector.map_or(1, |vector| vector.elements());
                            self.registers.push(RegisterInfo { name, scalar: declaration.scalar, elements });
                            Register(self.registers.len() as u32 - 1)
                        }
                    };
                    self.mentioned.insert((owner, name), register);
                    self.mentioned.insert((scope, name), register);
                    into.push(register);
                }
                Some(_) => {}
                None => {
                    let known = self.in_scopes(scope, name, &self.labels).is_some()
                        || is_special(name)
                        || self.names.variables.contains_key(name)
                        || self.names.functions.contains_key(name);
                    if !known {
                        let message = format!("'{name}' in `{}` is declared nowhere", instruction.opcode);
                        return Err(SyntaxError::new(name, message));
                    }
                }
            },
        }
        Ok(())
    }

    /// The scope that declares a name, and its declaration.
    fn look_up(&self, scope: u32, name: &str) -> Option<(u32, &'m Declaration<'a>, &'m Variable<'a>)> {
        let digits = name.bytes().rev().take_while(u8::is_ascii_digit).count();
        let (stem, number) = name.split_at(name.len() - digits);
        let canonical = digits == 1 || !number.starts_with('0');
        let number: Option<u32> = number.parse().ok().filter(|_| canonical);
        let mut next = Some(scope);
        while let Some(scope) = next {
            let found = self.scopes.get(scope as usize)?;
            if let Some((declaration, variable)) = found.single.get(name) {
                return Some((scope, declaration, variable));
            }
            if let (Some(number), Some((declaration, variable))) = (number, found.numbered.get(stem))
                && variable.count.is_some_and(|count| number < count)
            {
                return Some((scope, declaration, variable));
            }
            next = found.parent;
        }
        None
    }

    fn meaning_in(&self, scope: u32, name: &str) -> Option<Meaning<'m, 'a>> {
        if let Some((owner, declaration, variable)) = self.look_up(scope, name) {
            return match declaration.space {
                StateSpace::Register => self.mentioned.get(&(owner, name)).map(|register| Meaning::Register(*register)),
                StateSpace::Parameter => Some(Meaning::Parameter(declaration, variable)),
                _ => Some(Meaning::Variable(declaration, variable)),
            };
        }
        if let Some((declaration, variable)) = self.names.variable(name) {
            return Some(Meaning::Variable(declaration, variable));
        }
        if let Some(place) = self.in_scopes(scope, name, &self.labels) {
            return Some(Meaning::Label(place));
        }
        if let Some(function) = self.names.function(name) {
            return Some(Meaning::Function(function));
        }
        crate::special_registers::special(name).map(Meaning::Special)
    }
}

/// Where a step was written.
impl Step<'_, '_> {
    /// Its span in the text.
    pub fn span(&self) -> Span {
        self.instruction.span
    }
}
