//! `gpuemu study`: the four published studies, run again.

mod artifacts;
mod chart;
mod figure;
mod inputs;
mod oracle;
mod tolerance;
mod tolerance_figure;
mod words;

use std::io::IsTerminal;
use std::path::{Path, PathBuf};

use gpuemu_engine::case::GENERATOR_VERSION;
use indicatif::{ProgressBar, ProgressStyle};
use serde_json::{Map, Value, json};

use crate::exit_code;
use crate::expected_error::ExpectedError;
use crate::format::{Format, write_text};
use crate::options::runner::RunnerArgument;
use crate::session::{GlobalOptions, note};

/// Arguments of `gpuemu study`.
#[derive(Debug, clap::Args)]
pub struct Arguments {
    #[command(subcommand)]
    study: Study,
}

/// The studies.
#[derive(Debug, clap::Subcommand)]
enum Study {
    /// P1: which wrong kernels `allclose` on one shape accepts, as really run.
    Oracle(oracle::Arguments),
    /// P2: what a fixed, a calibrated and the rigorous tolerance find, and how often they cry wolf.
    Tolerance(tolerance::Arguments),
    /// P3: what each published kind of input finds.
    Inputs(inputs::Arguments),
    /// P4: what compiled code shows of a bug.
    Artifacts(artifacts::Arguments),
}

/// Where a study's result goes.
#[derive(Debug, Clone, clap::Args)]
struct Destination {
    /// Also write the result as JSON and as a figure (SVG) into this folder.
    #[arg(long, value_name = "FOLDER")]
    output: Option<PathBuf>,
    /// Format of the result.
    #[arg(long, value_enum, default_value_t = Format::Text)]
    format: Format,
}

/// A study that was run.
struct Finished {
    /// Its name, which is that of its files.
    name: &'static str,
    /// The result for people.
    text: String,
    /// The result for programs, what all studies have left aside.
    json: Map<String, Value>,
    figure: String,
    /// Whether what it demands holds.
    holds: bool,
}

pub fn run(arguments: &Arguments, options: &GlobalOptions) -> Result<u8, ExpectedError> {
    let (finished, destination) = match &arguments.study {
        Study::Oracle(arguments) => (oracle::run(arguments, options.quiet)?, &arguments.destination),
        Study::Tolerance(arguments) => (tolerance::run(arguments, options.quiet)?, &arguments.destination),
        Study::Inputs(arguments) => (inputs::run(arguments, options.quiet)?, &arguments.destination),
        Study::Artifacts(arguments) => (artifacts::run(arguments, options.quiet)?, &arguments.destination),
    };
    let json = document(&finished)?;
    if let Some(folder) = &destination.output {
        write_files(folder, &finished, &json, options.quiet)?;
    }
    match destination.format {
        Format::Json => write_text(&json)?,
        Format::Text => write_text(&finished.text)?,
    }
    Ok(if finished.holds { exit_code::PASSED } else { exit_code::FAILED })
}

/// The JSON of a study. It holds no times: the same seed gives the same bytes.
fn document(finished: &Finished) -> Result<String, ExpectedError> {
    let mut document = Map::new();
    document.insert("study".to_string(), json!(finished.name));
    document.insert("gpuemu_version".to_string(), json!(env!("CARGO_PKG_VERSION")));
    document.insert("generator_version".to_string(), json!(GENERATOR_VERSION));
    document.insert("holds".to_string(), json!(finished.holds));
    document.extend(finished.json.clone());
    Ok(format!("{}\n", serde_json::to_string_pretty(&document)?))
}

fn write_files(folder: &Path, finished: &Finished, json: &str, quiet: bool) -> Result<(), ExpectedError> {
    let failed = |path: &Path, error: std::io::Error| {
        let message = format!("the study cannot be written to {}: {error}", path.display());
        ExpectedError::new(message, "name a folder that can be written with --output")
    };
    std::fs::create_dir_all(folder).map_err(|error| failed(folder, error))?;
    for (extension, text) in [("json", json), ("svg", finished.figure.as_str())] {
        let path = folder.join(format!("{}.{extension}", finished.name));
        std::fs::write(&path, text).map_err(|error| failed(&path, error))?;
        if !quiet {
            note(&format!("wrote {}", path.display()));
        }
    }
    Ok(())
}

/// A bar on a terminal, nothing elsewhere.
fn progress_bar(total: u64, unit: &str, quiet: bool) -> ProgressBar {
    let shown = std::io::stderr().is_terminal() && !quiet;
    let bar = if shown { ProgressBar::new(total) } else { ProgressBar::hidden() };
    let template = format!("{{wide_bar}} {{human_pos}}/{{human_len}} {unit} {{eta}}");
    if let Ok(style) = ProgressStyle::with_template(&template) {
        bar.set_style(style);
    }
    bar
}

/// A kernel of the corpus that cannot be run is an error of ours.
fn at_fault(message: String) -> ExpectedError {
    ExpectedError::new(message, "this is an internal error of gpuemu")
}

/// What every study says of itself first in JSON.
fn header(seed: u64, cases: u64, runner: RunnerArgument) -> Map<String, Value> {
    let mut map = Map::new();
    // Seeds are strings: numbers lose their upper bits in other languages.
    map.insert("seed".to_string(), json!(seed.to_string()));
    map.insert("cases_per_kernel".to_string(), json!(cases));
    map.insert("runner".to_string(), json!(runner.choice()));
    map
}
