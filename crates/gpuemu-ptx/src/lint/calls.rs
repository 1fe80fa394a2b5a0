//! Which functions call which.

use std::collections::{HashMap, HashSet};

use super::divergent_barrier::waits_for_all;
use crate::code::{Code, Meaning, ModuleNames};
use crate::syntax::{Function, FunctionKind, Instruction, Module, Operand, Statement, SyntaxError};

/// Functions whose code was taken already.
#[derive(Debug, Default)]
pub(super) struct Seen<'a> {
    names: HashSet<&'a str>,
    /// Something is called through a register: all were taken.
    all: bool,
}

/// The code of a function and of those that it calls, directly or not, that were not seen before. Behind a call
/// through a register may be any function.
pub(super) fn reached<'m, 'a>(
    entry: &'m Function<'a>,
    module: &'m Module<'a>,
    names: &'m ModuleNames<'m, 'a>,
    seen: &mut Seen<'a>,
) -> Result<Vec<Code<'m, 'a>>, SyntaxError<'a>> {
    let mut found = Vec::new();
    let mut waiting = vec![entry];
    seen.names.insert(entry.name);
    while let Some(function) = waiting.pop() {
        let code = Code::of(function, names)?;
        for (number, step) in code.steps.iter().enumerate().filter(|(_, step)| step.instruction.base() == "call") {
            let meanings = named(step.instruction).filter_map(|name| code.meaning(number, name));
            for meaning in meanings {
                match meaning {
                    Meaning::Function(callee) if callee.body.is_some() && seen.names.insert(callee.name) => {
                        waiting.push(callee);
                    }
                    Meaning::Register(_) if !std::mem::replace(&mut seen.all, true) => {
                        let functions = module.functions().filter(|other| other.kind == FunctionKind::Function);
                        waiting.extend(functions.filter(|other| other.body.is_some() && seen.names.insert(other.name)));
                    }
                    _ => {}
                }
            }
        }
        found.push(code);
    }
    Ok(found)
}

/// What a call names outside of its lists: the function, and what stands for its prototype.
fn named<'a>(instruction: &Instruction<'a>) -> impl Iterator<Item = &'a str> {
    instruction.operands.iter().filter_map(|operand| match operand {
        Operand::Name(name) => Some(*name),
        _ => None,
    })
}

/// Names of functions in which, or in one that they call, all threads of a block are waited for.
pub(super) fn functions_that_wait<'a>(module: &Module<'a>) -> HashSet<&'a str> {
    let mut callers: HashMap<&str, Vec<&'a str>> = HashMap::new();
    let mut waiting: Vec<&'a str> = Vec::new();
    for function in module.functions().filter(|function| function.kind == FunctionKind::Function) {
        let mut bodies: Vec<&[Statement<'a>]> = function.body.as_deref().into_iter().collect();
        while let Some(body) = bodies.pop() {
            for statement in body {
                match statement {
                    Statement::Block(inner) => bodies.push(inner),
                    Statement::Instruction(instruction) if instruction.base() == "call" => {
                        named(instruction).for_each(|callee| callers.entry(callee).or_default().push(function.name));
                    }
                    Statement::Instruction(instruction) if waits_for_all(instruction) => waiting.push(function.name),
                    _ => {}
                }
            }
        }
    }
    let mut found = HashSet::new();
    while let Some(name) = waiting.pop() {
        if found.insert(name) {
            waiting.extend(callers.get(name).into_iter().flatten());
        }
    }
    found
}

/// The function of these that an instruction calls.
pub(super) fn called_of<'a>(instruction: &Instruction<'a>, functions: &HashSet<&'a str>) -> Option<&'a str> {
    if functions.is_empty() || instruction.base() != "call" {
        return None;
    }
    named(instruction).find(|name| functions.contains(name))
}
