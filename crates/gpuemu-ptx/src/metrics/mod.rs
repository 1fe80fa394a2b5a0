//! What is measured of each entry of a module, without any tool.

mod accesses;
mod closure;
mod constants;
mod instructions;
mod memory;

use gpuemu_model::artifact::{BlockSize, EntryMetrics};

use crate::code::{Code, ModuleNames};
use crate::flow;
use crate::source::{PtxError, Source};
use crate::syntax::{Function, Module};

pub use instructions::{Group, group_of};

/// Measures every entry, in order. A function that an entry calls is part of it, once, however often it is called.
pub fn measure(source: &Source, module: &Module<'_>) -> Result<Vec<EntryMetrics>, PtxError> {
    let names = ModuleNames::of(module);
    let mut measured = Vec::new();
    let mut looked_at = 0;
    for entry in module.entries() {
        let codes = closure::codes(entry, &names).map_err(|error| source.error(&error))?;
        looked_at += codes.iter().map(|code| code.steps.len() + 1).sum::<usize>();
        if looked_at > MOST_STEPS {
            let message = format!("its entries and what they call have more than {MOST_STEPS} instructions together");
            return Err(source.error_at(entry.span, message));
        }
        measured.push(measure_entry(source, entry, &names, &codes)?);
    }
    Ok(measured)
}

/// Instructions of all entries together, those of functions counted for each entry that calls them. Real files have
/// a hundred times less; a file that is made to have more would be measured for hours.
const MOST_STEPS: usize = 50_000_000;

fn measure_entry<'m, 'a>(
    source: &Source,
    entry: &'m Function<'a>,
    names: &'m ModuleNames<'m, 'a>,
    codes: &[Code<'m, 'a>],
) -> Result<EntryMetrics, PtxError> {
    let mentioned = memory::mentioned(codes, names);
    let mut metrics = EntryMetrics {
        entry: entry.name.to_string(),
        line: source.position(entry.span).line,
        block: block_size(entry),
        registers: memory::registers(codes),
        shared: memory::shared(codes, &mentioned),
        local: memory::local(codes),
        module_variables: memory::module_variables(&mentioned),
        instructions: instructions::count(codes),
        global_accesses: accesses::global(codes),
        constants: constants::fingerprint(codes, &mentioned),
        ..EntryMetrics::default()
    };
    (metrics.local_loads, metrics.local_stores) = accesses::local(codes);
    metrics.calls = codes.iter().skip(1).map(|code| code.function.name.to_string()).collect();
    metrics.calls.extend(closure::declared_only(codes, names));
    metrics.calls.sort();
    for code in codes {
        let flow = flow::summary(code);
        if flow.incomplete {
            return Err(source.error_at(code.function.span, "has too many jumps by table to be followed"));
        }
        metrics.blocks += flow.blocks;
        metrics.loops += flow.loops;
        metrics.loop_depth = metrics.loop_depth.max(flow.loop_depth);
    }
    Ok(metrics)
}

fn block_size(entry: &Function<'_>) -> Option<BlockSize> {
    let (numbers, exact) = match (entry.directive("reqntid"), entry.directive("maxntid")) {
        (Some(numbers), _) => (numbers, true),
        (None, numbers) => (numbers?, false),
    };
    let size = |place: usize| numbers.get(place).copied().unwrap_or(1);
    Some(BlockSize { threads: [size(0), size(1), size(2)], exact })
}

/// All steps of all functions.
fn steps<'c, 'm, 'a>(codes: &'c [Code<'m, 'a>]) -> impl Iterator<Item = &'c crate::code::Step<'m, 'a>> {
    codes.iter().flat_map(|code| &code.steps)
}
