//! The development commands of gpuemu: `cargo xtask test`, `lint`, `bench`, `torture`, `twins`, `docs`, `graph`, `messages`,
//! `release` and `vectors`.
#![allow(clippy::print_stdout, clippy::print_stderr, reason = "a terminal program: what it prints is its purpose")]

mod bench;
mod cache;
mod corpus_check;
mod documentation;
mod environment_key;
mod environments;
mod extension;
mod failure;
mod framework_tests;
mod graph;
mod messages;
mod native_module;
mod node_environment;
mod one_feature_set;
mod package;
mod process;
mod python_environment;
mod release;
mod repository;
mod runner;
mod steps;
mod summary;
mod supply_chain;
mod system_packages;
mod torture;
mod twins;
mod vectors;
mod wheels;
mod work;

use std::path::{Path, PathBuf};
use std::process::ExitCode;

use clap::builder::PossibleValuesParser;
use clap::{Parser, Subcommand};
use environments::Environments;
use failure::Failure;
use gpuemu_process::instruction_cap;
use steps::{STEPS, Step};

/// The development commands of gpuemu.
#[derive(Parser)]
#[command(name = "cargo xtask", bin_name = "cargo xtask")]
struct Arguments {
    #[command(subcommand)]
    command: Command,
}

#[derive(Subcommand)]
enum Command {
    /// Run every check that a change has to pass.
    ///
    /// A failing step does not stop the ones after it. Exit code 1: a step failed; 2: the command
    /// could not be carried out.
    Test {
        /// Run this step alone; may be given several times.
        #[arg(long, value_name = "NAME", value_parser = PossibleValuesParser::new(STEPS.iter().map(|step| step.name)))]
        only: Vec<String>,
        /// List the steps with their time budgets, and run none.
        #[arg(long, conflicts_with = "only")]
        list: bool,
        /// Write how the one step ended to a file, for the process that waits for it.
        #[arg(long, value_name = "FILE", requires = "only", hide = true)]
        outcome: Option<PathBuf>,
    },
    /// Run the steps that read the source without running it: formatting, lints and types.
    Lint,
    /// Run the benchmarks.
    Bench {
        /// Passed on to the benchmark program.
        #[arg(trailing_var_arg = true, allow_hyphen_values = true, value_name = "ARGUMENT")]
        arguments: Vec<String>,
    },
    /// Put gpuemu under crashes, power cuts, hostile input, load and faults, and print the results.
    Torture {
        /// Passed on to the program; `--list` says what it knows.
        #[arg(trailing_var_arg = true, allow_hyphen_values = true, value_name = "ARGUMENT")]
        arguments: Vec<String>,
    },
    /// Judge pairs of a right and a wrong kernel in every language, through every way in which users have a kernel judged.
    Twins(twins::Arguments),
    /// Build the documentation as a site; a broken link is a failure.
    Docs,
    /// Print which of gpuemu's crates stands on which.
    Graph,
    /// Print every error, warning, hint, help text and finding of the project with its place.
    Messages {
        /// Choose what is printed: lines or JSON.
        #[arg(long, value_enum, default_value = "text")]
        format: messages::Format,
    },
    /// Build everything that users install into one folder, with checksums: the wheel, the programs, the extension.
    Release,
    /// Write the test vectors that the Rust and the Python suites share.
    Vectors {
        /// Write nothing; fail if the files on disk differ from what would be written.
        #[arg(long)]
        check: bool,
    },
}

fn main() -> ExitCode {
    match dispatch(Arguments::parse().command) {
        Ok(()) => ExitCode::SUCCESS,
        Err(failure) => {
            if let Some(message) = failure.message() {
                eprintln!("error: {message}");
            }
            failure.exit_code()
        }
    }
}

fn dispatch(command: Command) -> Result<(), Failure> {
    match command {
        Command::Test { list: true, .. } => {
            print!("{}", steps::listing());
            Ok(())
        }
        Command::Test { only, list: false, outcome: Some(file) } => run_step(&steps::chosen(&only), &file),
        Command::Test { only, list: false, outcome: None } => run_steps(&steps::chosen(&only)),
        Command::Lint => run_steps(&steps::lint_steps()),
        Command::Bench { arguments } => bench::run(&arguments),
        Command::Torture { arguments } => torture::run(&arguments),
        Command::Twins(arguments) => twins::run(&arguments),
        Command::Docs => documentation::run(),
        Command::Graph => graph::run(),
        Command::Messages { format } => messages::run(format),
        Command::Release => release::run(),
        Command::Vectors { check } => vectors::run(check),
    }
}

/// Runs a step beside others. It is no failure of this process that the step fails.
fn run_step(chosen: &[&'static Step], outcome: &Path) -> Result<(), Failure> {
    let environments = Environments::prepare(chosen);
    chosen.iter().try_for_each(|step| runner::write_outcome(&step.perform(&environments), outcome))
}

fn run_steps(chosen: &[&'static Step]) -> Result<(), Failure> {
    // Outside the repository no step can say anything about the source.
    repository::root()?;
    // Made before the first step, so that a download counts against no step's budget.
    if let Some(cap) = instruction_cap::needed() {
        println!("{}", instruction_cap::explanation(cap));
    }
    let environments = Environments::prepare(chosen);
    let summary = runner::run_in_rounds(chosen, |step| step.perform(&environments))?;
    print!("\n{summary}");
    if summary.any_failed() { Err(Failure::StepsFailed) } else { Ok(()) }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn arguments_are_consistent() {
        use clap::CommandFactory;
        Arguments::command().debug_assert();
    }

    #[test]
    fn an_unknown_step_is_a_usage_error_that_names_the_known_ones() {
        let error = Arguments::try_parse_from(["xtask", "test", "--only", "pytests"]).err().unwrap();
        assert_eq!(error.exit_code(), 2);
        let text = error.to_string();
        assert!(text.contains("a similar value exists: 'pytest'"), "{text}");
        for step in STEPS {
            assert!(text.contains(step.name), "{} is missing in: {text}", step.name);
        }
    }

    #[test]
    fn only_may_be_repeated() {
        let parsed = Arguments::try_parse_from(["xtask", "test", "--only", "mypy", "--only", "ruff"]).unwrap();
        assert!(
            matches!(parsed.command, Command::Test { only, list: false, outcome: None } if only == ["mypy", "ruff"])
        );
    }

    #[test]
    fn bench_passes_options_on() {
        let parsed = Arguments::try_parse_from(["xtask", "bench", "--cases", "9"]).unwrap();
        assert!(matches!(parsed.command, Command::Bench { arguments } if arguments == ["--cases", "9"]));
    }
}
