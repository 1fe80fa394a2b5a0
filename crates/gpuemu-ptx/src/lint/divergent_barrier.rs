//! Barriers that not all threads of a block may reach.

use std::collections::{BTreeMap, HashSet};

use super::calls::called_of;
use super::function::Analysed;
use super::report::{Place, Report};
use super::rule::DIVERGENT_BARRIER;
use crate::flow::Divergence;
use crate::syntax::Instruction;

/// Whether an instruction waits for all threads of the block: it names no number of threads.
pub(super) fn waits_for_all(instruction: &Instruction<'_>) -> bool {
    let own = matches!(instruction.base(), "bar" | "barrier");
    if !own || instruction.has("warp") || instruction.has("cluster") {
        return false;
    }
    let operands = instruction.operands.len();
    if instruction.has("red") {
        // The result, the barrier, the predicate; a number of threads would stand before the predicate.
        operands <= 3
    } else {
        instruction.has("sync") && operands <= 1
    }
}

/// Reports barriers under a guard, or behind a branch, that may differ between threads; once for each branch.
///
/// A call of one of the functions that wait is a barrier too.
pub(super) fn check<'a>(function: &Analysed<'_, 'a>, waiting: &HashSet<&'a str>, report: &mut Report<'_, 'a>) {
    let code = &function.code;
    let waits = |instruction: &Instruction<'a>| waits_for_all(instruction) || called_of(instruction, waiting).is_some();
    let steps = code.steps.iter().enumerate().filter(|(_, step)| waits(step.instruction));
    let barriers: Vec<usize> = steps.map(|(number, _)| number).collect();
    if barriers.is_empty() {
        return;
    }
    let divergence = Divergence::of(code, &function.graph, &function.uses);
    let mut behind: BTreeMap<usize, Vec<usize>> = BTreeMap::new();
    for barrier in barriers {
        let Some(step) = code.steps.get(barrier) else { continue };
        let guard = step.instruction.guard.and_then(|guard| {
            let register = code.register(barrier, guard.predicate)?;
            Some((guard, function.uses.read(code, barrier, register)?))
        });
        if let Some((guard, _)) = guard.filter(|(_, version)| divergence.differs(*version)) {
            let message = format!(
                "{} stands under {}, which may differ between threads of a block: those where it does not hold \
                 never reach it",
                in_words(step.instruction, waiting),
                guard.predicate,
            );
            report.found(&DIVERGENT_BARRIER, Place::of(step), message);
        } else if let Some(cause) = function.graph.block_of(barrier).and_then(|block| divergence.cause(block)) {
            behind.entry(cause).or_default().push(barrier);
        }
    }
    for (branch, barriers) in behind {
        report_branch(function, branch, &barriers, waiting, report);
    }
}

/// A barrier, or the call of a function that has one.
fn in_words<'a>(instruction: &Instruction<'a>, waiting: &HashSet<&'a str>) -> String {
    match called_of(instruction, waiting) {
        Some(name) => format!("the call of '{name}', which has a barrier,"),
        None => format!("`{}`", instruction.opcode),
    }
}

fn report_branch<'a>(
    function: &Analysed<'_, 'a>,
    branch: usize,
    barriers: &[usize],
    waiting: &HashSet<&'a str>,
    report: &mut Report<'_, 'a>,
) {
    let (code, graph) = (&function.code, &function.graph);
    let last = graph.steps(branch).end.saturating_sub(1);
    let first = barriers.first().and_then(|barrier| code.steps.get(*barrier));
    let (Some(barrier), Some(branching)) = (first, code.steps.get(last)) else { return };
    let others = match barriers.len() {
        0 | 1 => String::new(),
        2 => " (and another barrier)".to_string(),
        count => format!(" (and {} other barriers)", count - 1),
    };
    let ends = |block: &u32| graph.leaves(*block as usize) && graph.successors(*block as usize).is_empty();
    let leaving = graph.leaves(branch) || graph.successors(branch).iter().any(ends);
    let loops = &function.loops;
    let around = barriers.first().and_then(|barrier| loops.outermost(graph.block_of(*barrier)?));
    let repeated = around.is_some() && loops.outermost(branch) == around;
    let effect = if leaving && !repeated {
        "threads that leave the kernel there never reach it"
    } else {
        "threads that go another way do not reach it, or not as often"
    };
    let message = format!(
        "{}{others} depends on the `{}` at {}, which may differ between threads of a block: {effect}",
        in_words(barrier.instruction, waiting),
        branching.instruction.opcode,
        report.words(Place::of(branching)),
    );
    report.found(&DIVERGENT_BARRIER, Place::of(barrier), message);
}
