//! The Python environments that the chosen steps share.

use crate::failure::Failure;
use crate::python_environment::{self, DEVELOPMENT, FRAMEWORKS, KERNELS, PythonEnvironment};
use crate::steps::Step;

/// Each environment, or why there is none.
pub struct Environments {
    development: Option<Result<PythonEnvironment, Failure>>,
    frameworks: Option<Result<PythonEnvironment, Failure>>,
    kernels: Option<Result<PythonEnvironment, Failure>>,
}

impl Environments {
    /// Finds or makes what these steps need, and nothing else: some of it is a large download.
    pub fn prepare(steps: &[&Step]) -> Self {
        let needed = |needs: fn(&Step) -> bool| steps.iter().any(|step| needs(step));
        Self {
            development: needed(Step::needs_python).then(|| python_environment::prepare(&DEVELOPMENT)),
            frameworks: needed(Step::needs_frameworks).then(|| python_environment::prepare(&FRAMEWORKS)),
            kernels: needed(Step::needs_kernels).then(|| python_environment::prepare(&KERNELS)),
        }
    }

    /// The environment that the package itself is checked in.
    pub fn development(&self) -> Result<&PythonEnvironment, String> {
        found(self.development.as_ref(), "Python environment")
    }

    /// The environment with the frameworks.
    pub fn frameworks(&self) -> Result<&PythonEnvironment, String> {
        found(self.frameworks.as_ref(), "environment with the frameworks")
    }

    /// The environment with the tools and compilers of kernels.
    pub fn kernels(&self) -> Result<&PythonEnvironment, String> {
        found(self.kernels.as_ref(), "environment with the compilers of kernels")
    }
}

fn found<'environment>(
    environment: Option<&'environment Result<PythonEnvironment, Failure>>,
    what: &str,
) -> Result<&'environment PythonEnvironment, String> {
    match environment {
        Some(Ok(environment)) => Ok(environment),
        Some(Err(failure)) => Err(failure.to_string()),
        None => Err(format!("no {what} was prepared")),
    }
}
