//! The steps of `cargo xtask test`, in the order in which they run.

use std::fmt::Write as _;
use std::time::Duration;

use crate::environments::Environments;
use crate::framework_tests::{INDEPENDENT, JAX, PYTORCH, RAY, TENSORFLOW, WITHOUT_FRAMEWORKS};
use crate::summary::Outcome;
use crate::work::Work;

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

/// The Rust tests that need NVIDIA's tools and compilers. Of the whole workspace, as the other Rust tests: cargo would
/// build everything anew for some of its packages.
const KERNEL_TESTS: &[&str] = &[
    "test",
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

/// Every step. The budgets leave room for a first build on two cores.
pub const STEPS: &[Step] = &[
    Step::new("format", 15, Work::Cargo(&["fmt", "--all", "--check"])).lint(),
    Step::new("clippy", 120, Work::Cargo(&["clippy", "--workspace", "--all-targets", "--", "-D", "warnings"])).lint(),
    Step::new("supply-chain", 15, Work::SupplyChain).lint(),
    Step::new("rust-tests", 1200, Work::CargoBesidePython(&["test", "--workspace"])),
    Step::new("ruff", 15, Work::Python(&["-m", "ruff", "check"])).lint(),
    Step::new("ruff-format", 15, Work::Python(&["-m", "ruff", "format", "--check"])).lint(),
    Step::new("mypy", 60, Work::Python(&["-m", "mypy", "--strict"])).lint(),
    Step::new("docs", 60, Work::Documentation),
    Step::new("native", 400, Work::Native),
    Step::new("pytest", 120, Work::PythonBesideNative(WITHOUT_FRAMEWORKS)),
    Step::new("pytorch", 180, Work::Framework(PYTORCH)),
    Step::new("independent", 300, Work::Framework(INDEPENDENT)),
    Step::new("jax", 180, Work::Framework(JAX)),
    Step::new("tensorflow", 180, Work::Framework(TENSORFLOW)),
    Step::new("ray", 240, Work::Framework(RAY)),
    Step::new("kernels", 300, Work::CargoBesideKernels(KERNEL_TESTS)),
    Step::new("browser", 60, Work::Browser),
    Step::new("vectors", 60, Work::PythonBesideNative(&[VECTORS_SCRIPT, "--check"])),
    Step::new("extension", 180, Work::Extension),
    Step::new("extension-vscode", 240, Work::ExtensionSession),
    Step::new("two-commands", 300, Work::CorpusCheck),
    Step::new("torture", 240, Work::Torture),
    Step::new("package", 120, Work::Package),
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

    /// Runs the step.
    pub fn perform(&self, environments: &Environments) -> Outcome {
        self.work.perform(environments)
    }
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
        assert_eq!(names(&lint_steps()), ["format", "clippy", "supply-chain", "ruff", "ruff-format", "mypy"]);
    }

    #[test]
    fn the_package_is_checked_with_what_the_steps_before_it_have_built() {
        let order = names(&chosen(&["package", "native", "pytest", "two-commands"].map(String::from)));
        assert_eq!(order, ["native", "pytest", "two-commands", "package"]);
    }

    #[test]
    fn the_listing_has_a_line_for_each_step() {
        let text = listing();
        assert_eq!(text.lines().count(), STEPS.len());
        assert!(text.contains("python -m mypy --strict"), "{text}");
        assert!(text.contains("python -m pytest python/tests/test_*jax*.py"), "{text}");
    }
}
