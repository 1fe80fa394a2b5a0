//! Measures ops of the catalogue: `measure OP… [--cases N] [--mutant-cases N] [--seed S]` prints the largest error over
//! tolerance of correct kernels, false alarms, and how often each mutant is caught, by dtype.
#![allow(clippy::print_stdout, reason = "an example prints")]

use gpuemu_corpus::detection::{DTYPES, TIGHT, measure};
use gpuemu_corpus::implementations::families;
use gpuemu_engine::oracle::tolerance::BOUND_FACTOR;

fn main() -> Result<(), String> {
    let (mut names, mut cases, mut mutant_cases, mut seed) = (Vec::new(), 2_000, 200, 1);
    let mut arguments = std::env::args().skip(1);
    while let Some(argument) = arguments.next() {
        let mut number = || arguments.next().and_then(|text| text.parse().ok()).ok_or(format!("{argument} N"));
        match argument.as_str() {
            "--cases" => cases = number()?,
            "--mutant-cases" => mutant_cases = number()?,
            "--seed" => seed = number()?,
            _ => names.push(argument),
        }
    }
    for family in families().iter().filter(|family| names.is_empty() || names.iter().any(|name| name == family.op)) {
        let found = measure(family, seed, cases, mutant_cases);
        let shares = found.headroom.map(|ratio| format!("{:.3}", ratio / BOUND_FACTOR));
        let alarms = found.rules[TIGHT].alarms;
        println!("{}: {} checks, {alarms} alarms, error/tolerance {shares:?} for {DTYPES:?}", family.op, found.checks);
        found.alarms.iter().take(3).for_each(|alarm| println!("  ALARM {alarm}"));
        for mutant in &found.by_mutant {
            let mark = if mutant.is_caught() { "" } else { "  NOT CAUGHT" };
            println!("  {}: caught {:?} of {:?} observable{mark}", mutant.name, mutant.caught, mutant.observable);
        }
    }
    Ok(())
}
