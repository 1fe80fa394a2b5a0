//! `gpuemu corpus`: run the kernels with known verdicts.

mod grown;
mod published;

use std::path::PathBuf;

use gpuemu_corpus::grown::Pair;
use gpuemu_corpus::published::Entry;
use serde_json::{Map, Value, json};

use crate::exit_code;
use crate::expected_error::ExpectedError;
use crate::format::{Format, write_json, write_text};
use crate::options::runner::RunnerArgument;
use crate::session::{GlobalOptions, note};

/// Cases of a published kernel, if nothing else is said.
const PUBLISHED_CASES: u64 = 500;
/// Cases of each twin of a pair, if nothing else is said.
const GROWN_CASES: u64 = 100;

/// Arguments of `gpuemu corpus`.
#[derive(Debug, clap::Args)]
pub struct Arguments {
    /// Which kernels: the 26 published ones, the pairs of right and wrong twins that gpuemu adds, or both. Some twins are
    /// Python functions and need a Python with NumPy.
    #[arg(long, value_enum, default_value_t = Set::Published)]
    set: Set,
    /// Base seed: with the same one every case is the same, byte for byte.
    #[arg(long, default_value_t = 0)]
    seed: u64,
    /// Cases for each kernel [default: 500; of each twin of a pair 100].
    #[arg(long, value_parser = clap::value_parser!(u64).range(1..))]
    cases: Option<u64>,
    /// Only this kernel, by name or number, or this pair, by name; may be given several times.
    #[arg(long, value_name = "NAME")]
    kernel: Vec<String>,
    /// Only the correct kernels.
    #[arg(long)]
    controls: bool,
    /// What runs the published Triton kernels: the PTX machine, or stand-ins in Rust. Those of NumPy are always stand-ins.
    #[arg(long, value_enum, default_value_t = RunnerArgument::Ptx)]
    runner: RunnerArgument,
    /// Replay the one case with this seed and show its verdict; needs one --kernel. Of a pair it is the wrong twin's.
    #[arg(long, value_name = "SEED")]
    replay: Option<u64>,
    /// Write the pairs into this folder as a project, and run nothing.
    #[arg(long, value_name = "FOLDER", conflicts_with_all = ["replay", "controls"])]
    write: Option<PathBuf>,
    /// Format of the result.
    #[arg(long, value_enum, default_value_t = Format::Text)]
    format: Format,
}

/// Which kernels are run.
#[derive(Debug, Clone, Copy, PartialEq, Eq, clap::ValueEnum)]
enum Set {
    /// The 26 published kernels.
    Published,
    /// Pairs of right and wrong twins.
    Grown,
    /// Both.
    All,
}

/// A kernel of the corpus that cannot be run is an error of ours.
fn at_fault(message: String) -> ExpectedError {
    ExpectedError::new(message, "this is an internal error of gpuemu")
}

/// What came of a set.
struct Ran {
    /// Its part of the result.
    json: Map<String, Value>,
    text: String,
    exit: u8,
}

pub fn run(arguments: &Arguments, options: &GlobalOptions) -> Result<u8, ExpectedError> {
    let pairs = grown::chosen(arguments)?;
    let entries = published::chosen(arguments, &pairs)?;
    if let Some(folder) = &arguments.write {
        return grown::write(&pairs, folder);
    }
    if let Some(seed) = arguments.replay {
        return match (entries.as_slice(), pairs.as_slice()) {
            ([entry], []) => published::replay(entry, seed, arguments),
            ([], [pair]) => grown::replay(pair, seed, arguments),
            _ => Err(ExpectedError::new(
                "--replay needs exactly one --kernel",
                "name the kernel that the seed belongs to",
            )),
        };
    }
    if !options.quiet {
        note(&plan(&entries, &pairs, arguments));
    }
    let mut sets = Vec::new();
    if !entries.is_empty() {
        sets.push(published::run(&entries, arguments)?);
    }
    if !pairs.is_empty() {
        sets.push(grown::run(&pairs, arguments, options)?);
    }
    let exit = sets.iter().map(|set| set.exit).max_by_key(|exit| gravity(*exit)).unwrap_or(exit_code::PASSED);
    match arguments.format {
        Format::Json => {
            let mut whole = Map::new();
            whole.insert("seed".to_string(), json!(arguments.seed.to_string()));
            sets.into_iter().for_each(|set| whole.extend(set.json));
            write_json(&Value::Object(whole))?;
        }
        Format::Text => write_text(&sets.into_iter().map(|set| set.text).collect::<Vec<_>>().join("\n"))?,
    }
    if !options.quiet && exit == exit_code::PASSED {
        note("next: run `gpuemu init --with-examples` in an empty folder to start your own project");
    }
    Ok(exit)
}

/// What is about to be done, for whoever waits for it.
fn plan(entries: &[&Entry], pairs: &[Pair], arguments: &Arguments) -> String {
    let mut parts = Vec::new();
    if !entries.is_empty() {
        let cases = arguments.cases.unwrap_or(PUBLISHED_CASES);
        parts.push(format!("{} kernels with known verdicts, {cases} cases each", entries.len()));
    }
    if !pairs.is_empty() {
        let cases = arguments.cases.unwrap_or(GROWN_CASES);
        parts.push(format!("{} pairs of a right and a wrong kernel, {cases} cases each", pairs.len()));
    }
    format!("judging {}", parts.join(", and "))
}

/// What is worse: a wrong verdict, then one that there is not.
fn gravity(exit: u8) -> u8 {
    match exit {
        exit_code::PASSED => 0,
        exit_code::FAILED => 2,
        _ => 1,
    }
}
