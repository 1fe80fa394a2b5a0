//! Local memory in loops.

use std::collections::BTreeMap;

use super::access::global_access;
use super::function::Analysed;
use super::report::{Place, Report};
use super::rule::LOCAL_MEMORY_IN_LOOP;
use super::spaces::pointers;
use crate::syntax::StateSpace;

/// Reports loads and stores of local memory in loops, once for each outermost loop.
pub(super) fn check<'a>(function: &Analysed<'_, 'a>, report: &mut Report<'_, 'a>) {
    struct Found {
        first: usize,
        loads: u64,
        stores: u64,
    }
    if function.loops.count == 0 {
        return;
    }
    let local = pointers(function, &[StateSpace::Local]);
    let mut loops: BTreeMap<usize, Found> = BTreeMap::new();
    for (number, step) in function.code.steps.iter().enumerate() {
        let instruction = step.instruction;
        let base = instruction.base();
        if !matches!(base, "ld" | "st") || !(instruction.has("local") || is_local(function, number, &local)) {
            continue;
        }
        let Some(head) = function.graph.block_of(number).and_then(|block| function.loops.outermost(block)) else {
            continue;
        };
        let found = loops.entry(head).or_insert(Found { first: number, loads: 0, stores: 0 });
        if base == "ld" {
            found.loads += 1;
        } else {
            found.stores += 1;
        }
    }
    for (head, found) in loops {
        let code = &function.code;
        let (Some(first), Some(begin)) =
            (code.steps.get(found.first), code.steps.get(function.graph.steps(head).start))
        else {
            continue;
        };
        let counts = [(found.loads, "load"), (found.stores, "store")];
        let words = counts.iter().filter(|(count, _)| *count > 0);
        let words = words.map(|(count, word)| format!("{count} {word}{}", if *count == 1 { "" } else { "s" }));
        let message = format!(
            "{} of local memory in the loop that begins at {}",
            words.collect::<Vec<_>>().join(" and "),
            report.words(Place::of(begin)),
        );
        report.found(&LOCAL_MEMORY_IN_LOOP, Place::of(first), message);
    }
}

/// Whether an access that names no space has an address in local memory.
fn is_local(function: &Analysed<'_, '_>, step: usize, local: &[bool]) -> bool {
    let Some(found) = function.code.steps.get(step) else { return false };
    let access = global_access(found.instruction).filter(|access| access.generic);
    let base = access.and_then(|access| access.base(&function.code, step));
    let version = base.and_then(|base| function.uses.read(&function.code, step, base));
    version.and_then(|version| local.get(version.index()).copied()).unwrap_or_default()
}
