//! The steps of `cargo xtask test`, in the order in which they run.

use std::fmt::Write as _;
use std::time::Duration;

use crate::environments::Environments;
use crate::framework_tests::{INDEPENDENT, JAX, PYTORCH, RAY, TENSORFLOW, WITHOUT_FRAMEWORKS};
use crate::summary::Outcome;
use crate::work::Work;

/// When a step runs.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Side {
    /// One after the other, with steps of the other side beside it.
    Rust,
    Python,
    /// With nothing beside it: it needs all cores, or measures.
    Alone,
}

/// One suite of checks.
pub struct Step {
    /// The name on the command line and in the summary.
    pub name: &'static str,
    /// How long the step may take, compiling included, before that is worth a warning.
    pub budget: Duration,
    /// Whether the step only reads the source.
    lint: bool,
    side: Side,
    work: Work,
}

impl Step {
    const fn new(name: &'static str, budget_seconds: u64, work: Work) -> Self {
        Self { name, budget: Duration::from_secs(budget_seconds), lint: false, side: Side::Rust, work }
    }

    /// On the other side than the steps that run cargo: most of them keep one core busy.
    const fn beside(self) -> Self {
        Self { side: Side::Python, ..self }
    }

    const fn alone(self) -> Self {
        Self { side: Side::Alone, ..self }
    }

    const fn lint(self) -> Self {
        Self { lint: true, ..self }
    }
}

/// The script that writes and checks the shared test vectors.
pub const VECTORS_SCRIPT: &str = "python/tests/write_vectors.py";

/// The Rust tests that need NVIDIA's tools and compilers. Of the whole workspace, as the other Rust tests: cargo would
/// build everything anew for some of its packages.
const KERNEL_TESTS: &[&str] = &[
    "test",
    "--release",
    "--workspace",
    "--test",
    "toolchain",
    "--test",
    "kernel_compilers",
    "--test",
    "compiled_kernels",
    "--test",
    "cuda_kernels",
];

const CLIPPY: &[&str] =
    &["clippy", "--workspace", "--all-targets", "--features", "gpuemu-wire/schema", "--", "-D", "warnings"];

/// The tests of what only the documentation needs, and no program has compiled in.
const SCHEMA_TESTS: &[&str] =
    &["test", "--release", "--package", "gpuemu-wire", "--features", "schema", "--lib", "schema::published"];

/// Every step. The budgets leave room for a first build on two cores.
pub const STEPS: &[Step] = &[
    Step::new("format", 15, Work::Cargo(&["fmt", "--all", "--check"])).lint(),
    Step::new("clippy", 120, Work::Cargo(CLIPPY)).lint(),
    Step::new("supply-chain", 15, Work::SupplyChain).lint().beside(),
    Step::new("one-feature-set", 15, Work::OneFeatureSet).lint().beside(),
    Step::new("ruff", 15, Work::Python(&["-m", "ruff", "check"])).lint().beside(),
    Step::new("ruff-format", 15, Work::Python(&["-m", "ruff", "format", "--check"])).lint().beside(),
    Step::new("mypy", 60, Work::Python(&["-m", "mypy", "--strict"])).lint().beside(),
    Step::new("docs", 60, Work::Documentation).beside(),
    Step::new("extension", 180, Work::Extension).beside(),
    Step::new("schemas", 120, Work::Cargo(SCHEMA_TESTS)).beside(),
    Step::new("build", 600, Work::Build).alone(),
    Step::new("rust-tests", 480, Work::CargoBesidePython(&["test", "--release", "--workspace", "--no-fail-fast"])),
    Step::new("kernels", 240, Work::CargoBesideKernels(KERNEL_TESTS)),
    Step::new("two-commands", 120, Work::CorpusCheck),
    Step::new("pytest", 180, Work::PythonBesideNative(WITHOUT_FRAMEWORKS)).beside(),
    Step::new("pytorch", 180, Work::Framework(PYTORCH)).beside(),
    Step::new("independent", 180, Work::Framework(INDEPENDENT)).beside(),
    Step::new("jax", 120, Work::Framework(JAX)).beside(),
    Step::new("tensorflow", 120, Work::Framework(TENSORFLOW)).beside(),
    Step::new("ray", 180, Work::Framework(RAY)).beside(),
    Step::new("twins", 60, Work::Twins).beside(),
    Step::new("browser", 60, Work::Browser).beside(),
    Step::new("vectors", 60, Work::PythonBesideNative(&[VECTORS_SCRIPT, "--check"])).beside(),
    Step::new("package", 240, Work::Package).beside(),
    Step::new("extension-vscode", 240, Work::ExtensionSession).alone(),
    Step::new("torture", 120, Work::Torture).alone(),
];

impl Step {
    /// Whether the step needs the Python environment.
    pub fn needs_python(&self) -> bool {
        self.work.needs_python()
    }

    /// Whether the step needs the environment with the frameworks.
    pub fn needs_frameworks(&self) -> bool {
        self.work.needs_frameworks()
    }

    /// Whether the step needs the environment with the tools and compilers of kernels.
    pub fn needs_kernels(&self) -> bool {
        self.work.needs_kernels()
    }

    /// Whether the step needs the environment that the documentation is built in.
    pub fn needs_documentation(&self) -> bool {
        self.work.needs_documentation()
    }

    /// Whether the step needs Node.js.
    pub fn needs_node(&self) -> bool {
        self.work.needs_node()
    }

    /// Whether the step needs a real VS Code.
    pub fn needs_code_server(&self) -> bool {
        self.work.needs_code_server()
    }

    pub fn perform(&self, environments: &Environments) -> Outcome {
        self.work.perform(environments)
    }
}

/// The steps with these names, or all if no name is given, each once and in the usual order.
pub fn chosen(names: &[String]) -> Vec<&'static Step> {
    STEPS.iter().filter(|step| names.is_empty() || names.iter().any(|name| name == step.name)).collect()
}

/// The steps in rounds of two sides that run beside each other.
pub fn rounds(steps: &[&'static Step]) -> Vec<[Vec<&'static Step>; 2]> {
    let mut rounds: Vec<[Vec<&'static Step>; 2]> = Vec::new();
    let mut open = false;
    for step in steps {
        if !open || step.side == Side::Alone {
            rounds.push([Vec::new(), Vec::new()]);
        }
        open = step.side != Side::Alone;
        if let Some(round) = rounds.last_mut() {
            round[usize::from(step.side == Side::Python)].push(step);
        }
    }
    rounds
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
        let _ = writeln!(text, "{:width$}  {:>4} s  {}", step.name, step.budget.as_secs(), step.work.command_line());
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
        assert_eq!(
            names(&lint_steps()),
            ["format", "clippy", "supply-chain", "one-feature-set", "ruff", "ruff-format", "mypy"]
        );
    }

    #[test]
    fn what_is_run_was_built_before_and_what_measures_runs_alone() {
        let rounds: Vec<[Vec<&str>; 2]> =
            rounds(&chosen(&[])).iter().map(|round| round.each_ref().map(|side| names(side))).collect();
        let [first, build, suites, .., last] = &rounds[..] else { panic!("there are {} rounds", rounds.len()) };
        assert!(first[0].contains(&"clippy") && first[1].contains(&"mypy"));
        assert_eq!(*build, [vec!["build"], vec![]]);
        assert!(suites[0].contains(&"rust-tests") && suites[1].contains(&"package"));
        assert_eq!(*last, [vec!["torture"], vec![]]);
        assert_eq!(rounds.iter().flatten().map(Vec::len).sum::<usize>(), STEPS.len());
    }

    #[test]
    fn the_listing_has_a_line_for_each_step() {
        let text = listing();
        assert_eq!(text.lines().count(), STEPS.len());
        assert!(text.contains("python -m mypy --strict"), "{text}");
        assert!(text.contains("python -m pytest python/tests/test_*jax*.py"), "{text}");
    }
}
