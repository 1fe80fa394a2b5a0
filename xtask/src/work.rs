//! What a step does.

use crate::environments::Environments;
use crate::failure::Failure;
use crate::python_environment::PythonEnvironment;
use crate::summary::Outcome;
use crate::{
    corpus_check, documentation, extension, framework_tests, native_module, one_feature_set, package, process,
    supply_chain, system_packages, torture, twins,
};

/// The work of a step.
pub enum Work {
    /// Runs cargo with these arguments.
    Cargo(&'static [&'static str]),
    /// Runs cargo with these arguments, and names the Python that tests may start.
    CargoBesidePython(&'static [&'static str]),
    /// Runs cargo with these arguments, and names the Python that has the tools and compilers of kernels; then runs the
    /// Python tests that need them.
    CargoBesideKernels(&'static [&'static str]),
    /// Runs the Python of the environment with these arguments.
    Python(&'static [&'static str]),
    /// Builds what users run and what the tests run.
    Build,
    /// Like `Python`, with the native module in place and the programs named.
    PythonBesideNative(&'static [&'static str]),
    /// Runs the tests of a framework.
    Framework(&'static str),
    /// Opens pages of reports in the system's browser.
    Browser,
    /// Compiles, lints, tests and packages the VS Code extension.
    Extension,
    /// Uses the extension in a real VS Code.
    ExtensionSession,
    /// Builds the source archive and from it the wheel, installs that and uses it, also as CI systems do.
    Package,
    /// Judges the corpus with the command line and reads its report.
    CorpusCheck,
    /// Reads what the crates are that gpuemu is made of.
    SupplyChain,
    /// Compares the features that builds choose.
    OneFeatureSet,
    /// Builds the documentation as a site.
    Documentation,
    /// The short form of crashes, power cuts, hostile input, load and faults.
    Torture,
    /// Some pairs of a right and a wrong kernel, in every language and through every door.
    Twins,
}

impl Work {
    /// Whether the environment that the package is checked in is needed.
    pub fn needs_python(&self) -> bool {
        let without = matches!(self, Self::Cargo(_) | Self::CargoBesideKernels(_) | Self::Framework(_));
        !without
            && !matches!(
                self,
                Self::CorpusCheck
                    | Self::Extension
                    | Self::SupplyChain
                    | Self::OneFeatureSet
                    | Self::Build
                    | Self::Documentation
            )
    }

    /// Whether the environment with the frameworks is needed.
    pub fn needs_frameworks(&self) -> bool {
        matches!(self, Self::Framework(_) | Self::Twins)
    }

    /// Whether the environment with the tools and compilers of kernels is needed.
    pub fn needs_kernels(&self) -> bool {
        matches!(self, Self::CargoBesideKernels(_) | Self::Twins)
    }

    /// Whether the environment that the documentation is built in is needed.
    pub fn needs_documentation(&self) -> bool {
        matches!(self, Self::Documentation)
    }

    /// Whether Node.js is needed.
    pub fn needs_node(&self) -> bool {
        matches!(self, Self::Extension | Self::ExtensionSession)
    }

    /// Whether a real VS Code is needed.
    pub fn needs_code_server(&self) -> bool {
        matches!(self, Self::ExtensionSession)
    }

    pub fn perform(&self, environments: &Environments) -> Outcome {
        let environment = match self {
            Self::Framework(_) => environments.frameworks(),
            Self::CargoBesideKernels(_) => environments.kernels(),
            Self::Documentation => environments.documentation(),
            _ => environments.development(),
        };
        let result = match (self, environment) {
            (Self::Cargo(arguments), _) => {
                process::cargo().and_then(|mut command| process::run(command.args(*arguments)))
            }
            (Self::CargoBesidePython(arguments), python) => cargo_beside_python(arguments, python.ok()),
            (Self::CorpusCheck, _) => corpus_check::run(),
            (Self::SupplyChain, _) => supply_chain::run(),
            (Self::Build, _) => build(),
            (Self::OneFeatureSet, _) => one_feature_set::run(),
            (Self::Extension, _) => match environments.node() {
                Ok(node) => extension::check(node),
                Err(reason) => return without_environment(reason, process::is_ci()),
            },
            (_, Err(reason)) => return without_environment(reason, process::is_ci()),
            (Self::CargoBesideKernels(arguments), Ok(python)) => cargo_beside_kernels(arguments, python),
            (Self::Python(arguments), Ok(python)) => {
                python.python().and_then(|mut command| process::run(command.args(*arguments)))
            }
            (Self::PythonBesideNative(arguments), Ok(python)) => python_beside_native(arguments, python),
            (Self::Framework(name), Ok(python)) => framework_tests::run(name, python),
            (Self::Browser, Ok(python)) => match browser_tests(python, process::is_ci()) {
                Ok(None) => Ok(()),
                Ok(Some(missing)) => return Outcome::Skipped(missing),
                Err(failure) => Err(failure),
            },
            (Self::Documentation, Ok(python)) => documentation::build(python),
            (Self::Package, Ok(python)) => package::run(python),
            (Self::Torture, Ok(python)) => torture::perform(torture::SHORT, Some(python)),
            (Self::Twins, Ok(python)) => {
                let others = environments.frameworks().and_then(|frameworks| Ok((frameworks, environments.kernels()?)));
                match others {
                    Ok((frameworks, kernels)) => twins::run_short(python, frameworks, kernels),
                    Err(reason) => return without_environment(reason, process::is_ci()),
                }
            }
            (Self::ExtensionSession, Ok(python)) => {
                let found = environments.node().and_then(|node| Ok((node, environments.code_server()?)));
                let (node, code_server) = match found {
                    Ok(found) => found,
                    Err(reason) => return without_environment(reason, process::is_ci()),
                };
                match extension::session(node, code_server, python) {
                    Ok(None) => Ok(()),
                    Ok(Some(missing)) => return Outcome::Skipped(missing),
                    Err(failure) => Err(failure),
                }
            }
        };
        match result {
            Ok(()) => Outcome::Passed,
            Err(failure) => Outcome::Failed(failure.to_string()),
        }
    }

    /// What it runs, as one would type it.
    pub fn command_line(&self) -> String {
        match self {
            Self::Cargo(arguments) | Self::CargoBesidePython(arguments) => format!("cargo {}", arguments.join(" ")),
            Self::CargoBesideKernels(arguments) => {
                let files = framework_tests::pattern(framework_tests::KERNELS);
                format!("cargo {}, python -m pytest python/tests/{files}", arguments.join(" "))
            }
            Self::Python(arguments) | Self::PythonBesideNative(arguments) => format!("python {}", arguments.join(" ")),
            Self::Build => "cargo build and cargo test --no-run, in release mode".to_string(),
            Self::Framework(name) => format!("python -m pytest python/tests/{}", framework_tests::pattern(name)),
            Self::Browser => {
                format!("python -m pytest python/tests/{}", framework_tests::pattern(framework_tests::BROWSER))
            }
            Self::Extension => extension::CHECK_COMMANDS.to_string(),
            Self::ExtensionSession => extension::SESSION_COMMAND.to_string(),
            Self::Package => package::COMMANDS.to_string(),
            Self::Documentation => documentation::COMMAND.to_string(),
            Self::OneFeatureSet => one_feature_set::COMMAND.to_string(),
            Self::SupplyChain => "cargo metadata, with the licences of deny.toml".to_string(),
            Self::Torture => format!("cargo xtask torture {}", torture::SHORT.join(" ")),
            Self::Twins => twins::SHORT_COMMAND.to_string(),
            Self::CorpusCheck => format!("cargo {}", corpus_check::ARGUMENTS.join(" ")),
        }
    }
}

/// Everything that is compiled, before anything is measured or run beside something else.
fn build() -> Result<(), Failure> {
    native_module::install()?;
    process::run(process::cargo()?.args(["test", "--release", "--workspace", "--no-run"]))?;
    torture::build().map(|_| ())
}

/// Without Python the tests that start one say so and pass over it, except in CI, where they fail.
fn cargo_beside_python(arguments: &[&str], python: Option<&PythonEnvironment>) -> Result<(), Failure> {
    if process::is_ci() {
        system_packages::install(system_packages::OF_RUST_TESTS)?;
    }
    let mut command = process::cargo()?;
    if let Some(environment) = python {
        command.env("GPUEMU_TEST_PYTHON", environment.python()?.get_program());
    }
    process::run(command.args(arguments))
}

/// The tests that need a tool say that they are skipped where no Python is named. Here one is.
fn cargo_beside_kernels(arguments: &[&str], python: &PythonEnvironment) -> Result<(), Failure> {
    let mut command = process::cargo()?;
    command.env("GPUEMU_TEST_KERNELS_PYTHON", python.python()?.get_program());
    process::run(command.args(arguments))?;
    framework_tests::run(framework_tests::KERNELS, python)
}

/// Runs the tests that open pages; where there is no browser, the answer says so. In CI there is one.
fn browser_tests(python: &PythonEnvironment, in_ci: bool) -> Result<Option<String>, Failure> {
    if in_ci {
        system_packages::install(system_packages::BROWSER)?;
    } else if let Some(missing) = system_packages::missing(system_packages::BROWSER) {
        return Ok(Some(missing));
    }
    framework_tests::run(framework_tests::BROWSER, python).map(|()| None)
}

fn python_beside_native(arguments: &[&str], python: &PythonEnvironment) -> Result<(), Failure> {
    let mut command = python.python()?;
    native_module::install()?.name_to(&mut command);
    process::run(command.args(arguments))
}

/// A contributor may lack Python or room for the frameworks; where a merge is decided, nothing may go unchecked.
fn without_environment(reason: String, in_ci: bool) -> Outcome {
    if in_ci { Outcome::Failed(reason) } else { Outcome::Skipped(reason) }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_missing_python_skips_at_home_and_fails_in_ci() {
        assert_eq!(without_environment("no Python".into(), false), Outcome::Skipped("no Python".into()));
        assert_eq!(without_environment("no Python".into(), true), Outcome::Failed("no Python".into()));
    }

    #[test]
    fn the_extension_needs_node_and_its_session_a_real_vs_code_too() {
        assert!(Work::Extension.needs_node() && !Work::Extension.needs_code_server());
        assert!(!Work::Extension.needs_python());
        assert!(Work::ExtensionSession.needs_node() && Work::ExtensionSession.needs_code_server());
        assert!(Work::ExtensionSession.needs_python() && !Work::Package.needs_node());
    }

    #[test]
    fn only_the_tests_of_kernels_need_their_compilers() {
        let kernels = Work::CargoBesideKernels(&["test"]);
        assert!(kernels.needs_kernels() && !kernels.needs_python() && !kernels.needs_frameworks());
        assert!(!Work::CargoBesidePython(&["test"]).needs_kernels() && !Work::Framework("jax").needs_kernels());
    }

    #[test]
    fn only_the_tests_of_a_framework_need_the_large_environment() {
        assert!(Work::Framework("jax").needs_frameworks() && !Work::Framework("jax").needs_python());
        assert!(Work::Package.needs_python() && !Work::Package.needs_frameworks());
        assert!(Work::Twins.needs_python() && Work::Twins.needs_frameworks() && Work::Twins.needs_kernels());
        assert!(!Work::CorpusCheck.needs_python() && !Work::CorpusCheck.needs_frameworks());
    }
}
