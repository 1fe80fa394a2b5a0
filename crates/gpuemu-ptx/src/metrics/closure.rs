//! An entry with the functions that it calls.

use std::collections::BTreeSet;

use crate::code::{Code, ModuleNames};
use crate::syntax::{Function, Instruction, Operand, SyntaxError};

/// The code of an entry, then that of each function that it reaches, in the order of first mention.
pub(super) fn codes<'m, 'a>(
    entry: &'m Function<'a>,
    names: &'m ModuleNames<'m, 'a>,
) -> Result<Vec<Code<'m, 'a>>, SyntaxError<'a>> {
    let mut codes = vec![Code::of(entry, names)?];
    let mut known = BTreeSet::from([entry.name]);
    let mut next = 0;
    while let Some(code) = codes.get(next) {
        let called = code.steps.iter().flat_map(|step| mentioned_functions(step.instruction, names));
        let new: Vec<&Function<'_>> =
            called.filter(|function| function.body.is_some() && known.insert(function.name)).collect();
        for function in new {
            codes.push(Code::of(function, names)?);
        }
        next += 1;
    }
    Ok(codes)
}

/// Functions that are called and have no code here, as `vprintf`, and whether some are called that cannot be named.
pub(super) fn declared_only<'m, 'a>(codes: &[Code<'m, 'a>], names: &'m ModuleNames<'m, 'a>) -> Vec<String> {
    let steps = codes.iter().flat_map(|code| &code.steps);
    let called = steps.flat_map(|step| mentioned_functions(step.instruction, names));
    let missing: BTreeSet<&str> =
        called.filter(|function| function.body.is_none()).map(|function| function.name).collect();
    let mut names: Vec<String> = missing.into_iter().map(str::to_string).collect();
    // Who is called through a register cannot be told, and so is not counted.
    if codes.iter().any(|code| (0..code.steps.len()).any(|step| is_indirect(code, step))) {
        names.push("(through a register)".to_string());
    }
    names
}

fn is_indirect(code: &Code<'_, '_>, step: usize) -> bool {
    let instruction = code.steps[step].instruction;
    let is_register = |operand: &Operand<'_>| match operand {
        Operand::Name(name) => code.register(step, name).is_some(),
        _ => false,
    };
    instruction.base() == "call" && instruction.operands.iter().any(is_register)
}

/// Functions that an instruction calls, or takes the address of to call them later.
fn mentioned_functions<'m, 'a>(
    instruction: &Instruction<'a>,
    names: &'m ModuleNames<'m, 'a>,
) -> impl Iterator<Item = &'m Function<'a>> {
    let relevant = matches!(instruction.base(), "call" | "mov" | "cvta");
    let operands = if relevant { instruction.operands.as_slice() } else { &[] };
    operands.iter().filter_map(|operand| match operand {
        Operand::Name(name) => names.function(name),
        _ => None,
    })
}
