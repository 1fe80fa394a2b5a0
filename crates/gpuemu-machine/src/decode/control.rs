//! Branches, calls, ends, and barriers of a block.

use std::collections::HashMap;

use gpuemu_ptx::code::{Code, Meaning};
use gpuemu_ptx::syntax::{Declaration, Function, Instruction, Operand, ScalarType};

use super::instruction::{Action, Barrier, BarrierAction, Call, Frame, SystemCall, SystemFunction};
use super::{Decoder, InFunction};
use crate::memory::Space;
use crate::registers::RegisterWidth;

/// The function of the module that a step calls.
pub(super) fn callee<'m, 'a>(code: &Code<'m, 'a>, step: usize) -> Option<&'m Function<'a>> {
    let instruction = code.steps.get(step)?.instruction;
    if instruction.base() != "call" {
        return None;
    }
    let name = parts(instruction).ok()?.1;
    match code.meaning(step, name)? {
        Meaning::Function(function) if function.body.is_some() => Some(function),
        _ => None,
    }
}

/// A function that can come to call itself.
pub(super) fn recursive<'a>(calls: &[(&'a str, &Function<'a>)]) -> Option<&'a str> {
    let mut callees: HashMap<&str, Vec<&'a str>> = HashMap::new();
    for (caller, callee) in calls {
        callees.entry(caller).or_default().push(callee.name);
    }
    calls.iter().map(|(caller, _)| *caller).find(|start| {
        let mut seen = Vec::new();
        let mut waiting = callees.get(start).cloned().unwrap_or_default();
        while let Some(name) = waiting.pop() {
            if name == *start {
                return true;
            }
            if !seen.contains(&name) {
                seen.push(name);
                waiting.extend(callees.get(name).into_iter().flatten());
            }
        }
        false
    })
}

type CallParts<'i, 'a> = (&'i [Operand<'a>], &'a str, &'i [Operand<'a>]);

/// Results, name and arguments of a call.
fn parts<'i, 'a>(instruction: &'i Instruction<'a>) -> Result<CallParts<'i, 'a>, String> {
    match instruction.operands.as_slice() {
        [Operand::Name(name)] => Ok((&[], name, &[])),
        [Operand::Name(name), Operand::List(arguments)] => Ok((&[], name, arguments)),
        [Operand::List(results), Operand::Name(name)] => Ok((results, name, &[])),
        [Operand::List(results), Operand::Name(name), Operand::List(arguments)] => Ok((results, name, arguments)),
        _ => Err("a call through a register is not supported".to_string()),
    }
}

impl<'m, 'a> Decoder<'_, 'm, 'a> {
    pub(super) fn control(
        &mut self,
        at: &InFunction<'_, 'm, 'a>,
        instruction: &Instruction<'a>,
    ) -> Result<Action, String> {
        match instruction.base() {
            "bra" => match at.code.targets(at.step).as_slice() {
                [target] => Ok(Action::Branch(*target as u32)),
                _ => Err("the label of a branch is not there".to_string()),
            },
            "brx" => {
                let index = instruction.operands.first().ok_or("the index of the target is missing")?;
                let index = self.operand_of_width(at, index, ScalarType::U32)?;
                let targets: Box<[u32]> = at.code.targets(at.step).iter().map(|target| *target as u32).collect();
                if targets.is_empty() {
                    return Err("the targets of a branch are not there".to_string());
                }
                Ok(Action::BranchTable(index, targets))
            }
            "ret" if at.is_entry => Ok(Action::Exit),
            "ret" => Ok(Action::Return),
            "exit" => Ok(Action::Exit),
            "trap" => Ok(Action::Trap),
            "brkpt" | "nanosleep" | "pmevent" => Ok(Action::Nothing),
            "call" => self.call(at, instruction),
            _ => self.barrier(at, instruction),
        }
    }

    fn frame(&self, at: &InFunction<'_, 'm, 'a>, operand: &Operand<'a>) -> Result<Frame, String> {
        let Operand::Name(name) = operand else {
            return Err("an argument of a call must be a parameter".to_string());
        };
        match at.code.meaning(at.step, name) {
            Some(Meaning::Parameter(declaration, variable)) => {
                let bytes = declaration.bytes(variable).unwrap_or_default() as u32;
                match self.layout.place(variable) {
                    Some((Space::Local, offset)) => Ok(Frame { offset: offset as u32, bytes }),
                    _ => Err(format!("'{name}' is no parameter of a call")),
                }
            }
            _ => Err(format!("'{name}' is no parameter; registers as arguments of a call are not supported")),
        }
    }

    fn formal(&self, declarations: &[Declaration<'a>]) -> Result<Vec<Frame>, String> {
        let variables = declarations
            .iter()
            .flat_map(|declaration| declaration.variables.iter().map(move |variable| (declaration, variable)));
        variables
            .map(|(declaration, variable)| match self.layout.place(variable) {
                Some((Space::Local, offset)) => {
                    Ok(Frame { offset: offset as u32, bytes: declaration.bytes(variable).unwrap_or_default() as u32 })
                }
                _ => Err(format!("parameter '{}' in a register is not supported", variable.name)),
            })
            .collect()
    }

    fn call(&mut self, at: &InFunction<'_, 'm, 'a>, instruction: &Instruction<'a>) -> Result<Action, String> {
        let (results, name, arguments) = parts(instruction)?;
        let frames = |decoder: &Self, operands: &[Operand<'a>]| -> Result<Vec<Frame>, String> {
            operands.iter().map(|operand| decoder.frame(at, operand)).collect()
        };
        let (results, arguments) = (frames(self, results)?, frames(self, arguments)?);
        let Some(Meaning::Function(function)) = at.code.meaning(at.step, name) else {
            return Err(format!("'{name}' is no function"));
        };
        if function.body.is_none() {
            let known = match name {
                "vprintf" => SystemFunction::Print,
                "__assertfail" => SystemFunction::AssertFail,
                _ => return Err(format!("function '{name}' is not in this file, and not one that the machine has")),
            };
            let needed = if known == SystemFunction::Print { 2 } else { 5 };
            if arguments.len() != needed {
                return Err(format!("'{name}' has {needed} arguments, not {}", arguments.len()));
            }
            let result = results.first().copied();
            return Ok(Action::System(Box::new(SystemCall { function: known, arguments, result })));
        }
        let (formal_results, formal) = (self.formal(&function.results)?, self.formal(&function.parameters)?);
        if formal.len() != arguments.len() || formal_results.len() != results.len() {
            return Err(format!("'{name}' has {} arguments, not {}", formal.len(), arguments.len()));
        }
        // The guard and helpers of the call come first; the call itself is the next step that is written.
        self.calls.push((self.steps.len(), function.name));
        Ok(Action::Call(Box::new(Call {
            target: 0,
            arguments: arguments.into_iter().zip(formal).collect(),
            results: formal_results.into_iter().zip(results).collect(),
        })))
    }

    fn barrier(&mut self, at: &InFunction<'_, 'm, 'a>, instruction: &Instruction<'a>) -> Result<Action, String> {
        let mut aligned = instruction.base() == "bar";
        let mut action = None;
        let mut warp = false;
        for word in instruction.modifiers() {
            match word {
                "cta" | "pred" | "u32" => {}
                "aligned" => aligned = true,
                "warp" => warp = true,
                "sync" => action = Some(BarrierAction::Synchronise),
                "arrive" => action = Some(BarrierAction::Arrive),
                "red" => {}
                "popc" => action = Some(BarrierAction::Count),
                "and" => action = Some(BarrierAction::All),
                "or" => action = Some(BarrierAction::Any),
                _ => return Err(format!("`{}` is not a form that the machine knows", instruction.opcode)),
            }
        }
        let action = action.ok_or_else(|| format!("`{}` is not a form that the machine knows", instruction.opcode))?;
        let operands = instruction.operands.as_slice();
        if warp {
            let mask = operands.first().ok_or("the mask of lanes is missing")?;
            return Ok(Action::WarpBarrier(self.operand_of_width(at, mask, ScalarType::B32)?));
        }
        let reduces = matches!(action, BarrierAction::Count | BarrierAction::All | BarrierAction::Any);
        let (result, operands) = match (reduces, operands) {
            (true, [result, rest @ ..]) => (Some(result), rest),
            (true, []) => return Err("the result is missing".to_string()),
            (false, operands) => (None, operands),
        };
        let (source, operands) = match (reduces, operands) {
            (true, [rest @ .., source]) => (Some(source), rest),
            (true, []) => return Err("the predicate is missing".to_string()),
            (false, operands) => (None, operands),
        };
        let (number, threads) = match operands {
            [number] => (number, None),
            [number, threads] => (number, Some(threads)),
            _ => return Err("the number of the barrier is missing".to_string()),
        };
        let number = self.operand_of_width(at, number, ScalarType::U32)?;
        let threads = threads.map(|threads| self.operand_of_width(at, threads, ScalarType::U32)).transpose()?;
        let reduction = match (result, source) {
            (Some(result), Some(source)) => {
                let scalar = if action == BarrierAction::Count { ScalarType::U32 } else { ScalarType::Pred };
                let result = self.operand_of_width(at, result, scalar)?;
                let (source, width) = self.operand(at, source, ScalarType::Pred)?;
                if width != RegisterWidth::Predicate {
                    return Err("a reduction needs a predicate".to_string());
                }
                Some((source, result))
            }
            _ => None,
        };
        Ok(Action::Barrier(Box::new(Barrier { number, threads, action, aligned, reduction })))
    }
}
