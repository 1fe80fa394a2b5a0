//! `cargo xtask twins`: judges pairs of a right and a wrong kernel in every language, through every door.

mod baseline;
mod report;
mod row;

use std::fs;

use baseline::Baseline;
pub use row::Cell;
use row::Row;

use crate::failure::{Failure, cannot};
use crate::native_module::{self, Built};
use crate::python_environment::{self, PythonEnvironment};
use crate::{process, repository};

/// The program that puts pairs through the doors.
const RUNNER: &str = "lab/twins/runner";

/// The counts that a run is compared with.
const BASELINE: &str = "lab/twins/baseline.toml";

/// What it does in the tests, as one would type it.
pub const SHORT_COMMAND: &str = "cargo xtask twins --short";

/// What a language's pairs run in.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Environment {
    Development,
    Frameworks,
    Kernels,
}

impl Environment {
    const ALL: [Environment; 3] = [Self::Development, Self::Frameworks, Self::Kernels];
}

/// What kernels are written in.
const LANGUAGES: &[(&str, Environment)] = &[
    ("numpy", Environment::Development),
    ("pytorch", Environment::Frameworks),
    ("jax", Environment::Frameworks),
    ("tensorflow", Environment::Frameworks),
    ("triton", Environment::Kernels),
    ("cuda", Environment::Kernels),
];

/// The ways in which users have a kernel judged.
const DOORS: &[&str] = &["check", "test", "sanitize", "launch-table", "pytest"];

fn environment_of(language: &str) -> Option<Environment> {
    LANGUAGES.iter().find(|(name, _)| *name == language).map(|(_, environment)| *environment)
}

/// The form of what is printed.
#[derive(Clone, Copy, Debug, PartialEq, Eq, clap::ValueEnum)]
pub enum Format {
    /// For people.
    Text,
    /// For programs.
    Json,
}

/// Arguments of the command.
#[derive(clap::Args)]
pub struct Arguments {
    /// Only this cell, such as triton/check; may be given several times.
    #[arg(long, value_name = "LANGUAGE/DOOR")]
    only: Vec<Cell>,
    /// Few pairs of each cell, the same in every run: what `cargo xtask test` runs.
    #[arg(long, conflicts_with = "write")]
    short: bool,
    /// Write the counts of what was run to lab/twins/baseline.toml, in place of comparing with them.
    #[arg(long)]
    write: bool,
    /// Format of the result.
    #[arg(long, value_enum, default_value_t = Format::Text)]
    format: Format,
}

/// Fails if a cell does worse than its baseline says.
pub fn run(arguments: &Arguments) -> Result<(), Failure> {
    let asked = asked(&arguments.only);
    let built = native_module::install()?;
    let mut rows = Vec::new();
    for environment in Environment::ALL {
        let cells = cells_of(&asked, environment);
        if !cells.is_empty() {
            let python = python_environment::prepare(match environment {
                Environment::Development => &python_environment::DEVELOPMENT,
                Environment::Frameworks => &python_environment::FRAMEWORKS,
                Environment::Kernels => &python_environment::KERNELS,
            })?;
            rows.extend(judged(&python, &built, &cells, arguments.short)?);
        }
    }
    let path = repository::root()?.join(BASELINE);
    let mut baseline = read_baseline()?;
    if arguments.write {
        baseline.renew(&asked, &rows);
        fs::write(&path, baseline.text()).map_err(|error| cannot("write", &BASELINE, &error))?;
    }
    let worse = baseline.worse(&asked, &rows, !arguments.short);
    match arguments.format {
        Format::Text => print!("{}", report::text(&rows, &worse)),
        Format::Json => println!("{:#}", report::json(&rows, &worse)),
    }
    verdict(&rows, &worse)
}

/// The short form, in environments that are there.
pub fn run_short(
    development: &PythonEnvironment,
    frameworks: &PythonEnvironment,
    kernels: &PythonEnvironment,
) -> Result<(), Failure> {
    let asked = asked(&[]);
    let built = native_module::install()?;
    let mut rows = Vec::new();
    for (environment, python) in Environment::ALL.into_iter().zip([development, frameworks, kernels]) {
        rows.extend(judged(python, &built, &cells_of(&asked, environment), true)?);
    }
    let worse = read_baseline()?.worse(&asked, &rows, false);
    print!("{}", report::text(&rows, &worse));
    verdict(&rows, &worse)
}

fn read_baseline() -> Result<Baseline, Failure> {
    let path = repository::root()?.join(BASELINE);
    let text = fs::read_to_string(path).map_err(|error| cannot("read", &BASELINE, &error))?;
    Baseline::read(&text).map_err(|error| Failure::Check(format!("{BASELINE}: {error}")))
}

/// The cells that are named; all of them if none is.
fn asked(only: &[Cell]) -> Vec<Cell> {
    if !only.is_empty() {
        return only.to_vec();
    }
    let cell = |language: &str, door: &str| Cell { language: language.to_string(), door: door.to_string() };
    LANGUAGES.iter().flat_map(|(language, _)| DOORS.iter().map(move |door| cell(language, door))).collect()
}

fn cells_of(asked: &[Cell], environment: Environment) -> Vec<&Cell> {
    asked.iter().filter(|cell| environment_of(&cell.language) == Some(environment)).collect()
}

/// What the runner says of all pairs of these cells.
fn judged(python: &PythonEnvironment, built: &Built, cells: &[&Cell], is_short: bool) -> Result<Vec<Row>, Failure> {
    let mut command = python.python()?;
    built.name_to(&mut command);
    command.env("PYTHONPATH", repository::root()?.join("python")).env("PYTHONDONTWRITEBYTECODE", "1");
    command.arg(RUNNER).args(cells.iter().map(ToString::to_string));
    if is_short {
        command.arg("--short");
    }
    let (text, verdict) = process::run_keeping_output(&mut command)?;
    verdict?;
    Row::all(&text).map_err(Failure::Check)
}

fn verdict(rows: &[Row], worse: &[String]) -> Result<(), Failure> {
    // A run of nothing would find nothing wrong.
    if rows.is_empty() {
        return Err(Failure::Check("no pair was run".to_string()));
    }
    match worse.len() {
        0 => Ok(()),
        count => Err(Failure::Check(format!("{count} worse than {BASELINE} says"))),
    }
}

#[cfg(test)]
mod tests {
    use super::row::tests::row;
    use super::*;

    #[test]
    fn every_cell_runs_in_one_environment() {
        let all = asked(&[]);
        assert_eq!(all.len(), LANGUAGES.len() * DOORS.len());
        let cells: usize = Environment::ALL.iter().map(|environment| cells_of(&all, *environment).len()).sum();
        assert_eq!(cells, all.len());
        let one: Vec<Cell> = vec!["triton/check".parse().unwrap()];
        assert_eq!(cells_of(&asked(&one), Environment::Kernels), [&one[0]]);
    }

    #[test]
    fn the_runner_knows_the_same_languages_and_doors() {
        let text = fs::read_to_string(repository::root().unwrap().join(RUNNER).join("pair.py")).unwrap();
        let listed = |words: Vec<&str>| words.iter().map(|word| format!("\"{word}\"")).collect::<Vec<_>>().join(", ");
        let languages = listed(LANGUAGES.iter().map(|(name, _)| *name).collect());
        assert!(text.contains(&format!("LANGUAGES = ({languages})")), "{languages}");
        assert!(text.contains(&format!("DOORS = ({})", listed(DOORS.to_vec()))));
    }

    #[test]
    fn the_committed_baseline_can_be_read() {
        assert_ne!(read_baseline().unwrap(), Baseline::default());
    }

    #[test]
    fn a_run_without_pairs_and_a_worse_one_fail() {
        assert!(verdict(&[], &[]).is_err());
        let rows = [row("a", true, true, true)];
        assert!(verdict(&rows, &[]).is_ok());
        assert!(verdict(&rows, &["a is not caught".to_string()]).is_err());
    }
}
