//! The steps of `cargo xtask test`, in the order in which they run.

use std::env;
use std::fmt::Write as _;
use std::time::Duration;

use crate::failure::Failure;
use crate::python_environment::PythonEnvironment;
use crate::summary::Outcome;
use crate::{corpus_check, process, system_packages};

/// What a step does.
enum Work {
    /// Runs cargo with these arguments.
    Cargo(&'static [&'static str]),
    /// Runs cargo with these arguments, and names the Python that tests may start.
    CargoBesidePython(&'static [&'static str]),
    /// Runs the Python of the environment with these arguments.
    Python(&'static [&'static str]),
    /// Judges the corpus with the command line and reads its report.
    CorpusCheck,
}

/// One suite of checks.
pub struct Step {
    /// The name on the command line and in the summary.
    pub name: &'static str,
    /// How long the step may take, compiling included, before that is worth a warning.
    pub budget: Duration,
    /// Whether the step only reads the source.
    lint: bool,
    work: Work,
}

impl Step {
    const fn new(name: &'static str, budget_seconds: u64, work: Work) -> Self {
        Self { name, budget: Duration::from_secs(budget_seconds), lint: false, work }
    }

    const fn lint(self) -> Self {
        Self { lint: true, ..self }
    }
}

/// The script that writes and checks the shared test vectors.
pub const VECTORS_SCRIPT: &str = "python/tests/write_vectors.py";

/// Every step. The budgets leave room for a first build on two cores.
pub const STEPS: &[Step] = &[
    Step::new("format", 15, Work::Cargo(&["fmt", "--all", "--check"])).lint(),
    Step::new("clippy", 120, Work::Cargo(&["clippy", "--workspace", "--all-targets", "--", "-D", "warnings"])).lint(),
    Step::new("rust-tests", 600, Work::CargoBesidePython(&["test", "--workspace"])),
    Step::new("ruff", 15, Work::Python(&["-m", "ruff", "check"])).lint(),
    Step::new("ruff-format", 15, Work::Python(&["-m", "ruff", "format", "--check"])).lint(),
    Step::new("mypy", 60, Work::Python(&["-m", "mypy", "--strict"])).lint(),
    Step::new("pytest", 120, Work::Python(&["-m", "pytest"])),
    Step::new("vectors", 60, Work::Python(&[VECTORS_SCRIPT, "--check"])),
    Step::new("two-commands", 300, Work::CorpusCheck),
];

impl Step {
    /// Whether the step needs the Python environment.
    pub fn needs_python(&self) -> bool {
        matches!(self.work, Work::Python(_) | Work::CargoBesidePython(_))
    }

    /// Runs the step. `python` is the environment, or why there is none.
    pub fn perform(&self, python: Option<&Result<PythonEnvironment, Failure>>) -> Outcome {
        let result = match (&self.work, python) {
            (Work::Cargo(arguments), _) => {
                process::cargo().and_then(|mut command| process::run(command.args(*arguments)))
            }
            (Work::CargoBesidePython(arguments), python) => cargo_beside_python(arguments, python),
            (Work::Python(arguments), Some(Ok(environment))) => {
                environment.python().and_then(|mut command| process::run(command.args(*arguments)))
            }
            (Work::Python(_), Some(Err(failure))) => return without_python(&failure.to_string(), in_ci()),
            (Work::Python(_), None) => return without_python("no Python environment was prepared", in_ci()),
            (Work::CorpusCheck, _) => corpus_check::run(),
        };
        match result {
            Ok(()) => Outcome::Passed,
            Err(failure) => Outcome::Failed(failure.to_string()),
        }
    }

    fn command_line(&self) -> String {
        match self.work {
            Work::Cargo(arguments) | Work::CargoBesidePython(arguments) => format!("cargo {}", arguments.join(" ")),
            Work::Python(arguments) => format!("python {}", arguments.join(" ")),
            Work::CorpusCheck => format!("cargo {}", corpus_check::ARGUMENTS.join(" ")),
        }
    }
}

/// Without Python the tests that start one say so and pass over it, except in CI, where they fail.
fn cargo_beside_python(arguments: &[&str], python: Option<&Result<PythonEnvironment, Failure>>) -> Result<(), Failure> {
    if in_ci() {
        system_packages::install()?;
    }
    let mut command = process::cargo()?;
    if let Some(Ok(environment)) = python {
        command.env("GPUEMU_TEST_PYTHON", environment.python()?.get_program());
    }
    process::run(command.args(arguments))
}

/// A contributor may lack Python; where a merge is decided, nothing may go unchecked.
fn without_python(reason: &str, in_ci: bool) -> Outcome {
    if in_ci { Outcome::Failed(reason.into()) } else { Outcome::Skipped(reason.into()) }
}

fn in_ci() -> bool {
    env::var_os("CI").is_some_and(|value| value == "true")
}

/// The steps with these names, or all if no name is given, each once and in the usual order.
pub fn chosen(names: &[String]) -> Vec<&'static Step> {
    STEPS.iter().filter(|step| names.is_empty() || names.iter().any(|name| name == step.name)).collect()
}

/// The steps that only read the source.
pub fn lint_steps() -> Vec<&'static Step> {
    STEPS.iter().filter(|step| step.lint).collect()
}

/// One line for each step: its name, its budget and the command it runs.
pub fn listing() -> String {
    let width = STEPS.iter().map(|step| step.name.len()).max().unwrap_or(0);
    let mut text = String::new();
    for step in STEPS {
        // Writing to a string cannot fail.
        let _ = writeln!(text, "{:width$}  {:>4} s  {}", step.name, step.budget.as_secs(), step.command_line());
    }
    text
}

#[cfg(test)]
mod tests {
    use super::*;

    fn names(steps: &[&Step]) -> Vec<&'static str> {
        steps.iter().map(|step| step.name).collect()
    }

    #[test]
    fn names_are_unique() {
        let mut all = names(&chosen(&[]));
        assert_eq!(all.len(), STEPS.len());
        all.sort_unstable();
        all.dedup();
        assert_eq!(all.len(), STEPS.len());
    }

    #[test]
    fn chosen_steps_run_once_and_in_the_usual_order() {
        let asked = ["pytest", "format", "pytest"].map(String::from);
        assert_eq!(names(&chosen(&asked)), ["format", "pytest"]);
    }

    #[test]
    fn lint_runs_nothing_that_was_built() {
        assert_eq!(names(&lint_steps()), ["format", "clippy", "ruff", "ruff-format", "mypy"]);
    }

    #[test]
    fn a_missing_python_skips_at_home_and_fails_in_ci() {
        assert_eq!(without_python("no Python", false), Outcome::Skipped("no Python".into()));
        assert_eq!(without_python("no Python", true), Outcome::Failed("no Python".into()));
    }

    #[test]
    fn the_listing_has_a_line_for_each_step() {
        let text = listing();
        assert_eq!(text.lines().count(), STEPS.len());
        assert!(text.contains("python -m mypy --strict"), "{text}");
    }
}
