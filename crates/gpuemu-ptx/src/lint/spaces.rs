//! Where addresses point to whose accesses do not say it.

use super::function::Analysed;
use crate::code::{Code, Meaning};
use crate::flow::Version;
use crate::syntax::{Operand, StateSpace};

/// Versions of registers that hold addresses in some of the given spaces, by number.
pub(super) fn pointers(function: &Analysed<'_, '_>, spaces: &[StateSpace]) -> Vec<bool> {
    let code = &function.code;
    let mut found = vec![false; function.uses.len()];
    let mut waiting: Vec<Version> = Vec::new();
    for (number, step) in code.steps.iter().enumerate() {
        let instruction = step.instruction;
        let converted = instruction.base() == "cvta"
            && !instruction.has("to")
            && spaces.iter().any(|space| instruction.has(space.name()));
        if converted || instruction.operands.iter().any(|operand| is_variable(code, number, operand, spaces)) {
            waiting.extend(function.uses.results(number));
        }
    }
    while let Some(version) = waiting.pop() {
        let Some(place) = found.get_mut(version.index()) else { continue };
        if std::mem::replace(place, true) {
            continue;
        }
        for reader in function.uses.readers(version) {
            let base = code.steps.get(*reader as usize).map_or("", |step| step.instruction.base());
            if matches!(base, "mov" | "add" | "sub" | "or" | "cvta" | "selp" | "mad" | "cvt") {
                waiting.extend(function.uses.results(*reader as usize));
            }
        }
    }
    found
}

fn is_variable(code: &Code<'_, '_>, step: usize, operand: &Operand<'_>, spaces: &[StateSpace]) -> bool {
    let (Operand::Name(name) | Operand::Symbol(name, _)) = operand else { return false };
    // Registers, which most operands are, are looked up no further.
    if name.starts_with('%') {
        return false;
    }
    matches!(code.meaning(step, name), Some(Meaning::Variable(declaration, _)) if spaces.contains(&declaration.space))
}
