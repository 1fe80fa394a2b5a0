//! The environments that the chosen steps share: of Python, and of Node.js with a real VS Code.

use std::path::{Path, PathBuf};

use crate::failure::Failure;
use crate::node_environment::{self, NodeEnvironment};
use crate::python_environment::{self, DEVELOPMENT, FRAMEWORKS, KERNELS, PythonEnvironment};
use crate::steps::Step;

/// Each environment, or why there is none.
pub struct Environments {
    development: Option<Result<PythonEnvironment, Failure>>,
    frameworks: Option<Result<PythonEnvironment, Failure>>,
    kernels: Option<Result<PythonEnvironment, Failure>>,
    node: Option<Result<NodeEnvironment, Failure>>,
    code_server: Option<Result<PathBuf, Failure>>,
}

impl Environments {
    /// Finds or makes what these steps need, and nothing else: some of it is a large download.
    pub fn prepare(steps: &[&Step]) -> Self {
        let needed = |needs: fn(&Step) -> bool| steps.iter().any(|step| needs(step));
        let node = needed(Step::needs_node).then(node_environment::prepare);
        let code_server = match &node {
            Some(Ok(node)) if needed(Step::needs_code_server) => Some(node_environment::prepare_code_server(node)),
            _ => None,
        };
        Self {
            node,
            code_server,
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

    /// Node.js.
    pub fn node(&self) -> Result<&NodeEnvironment, String> {
        found(self.node.as_ref(), "Node.js")
    }

    /// The folder of code-server.
    pub fn code_server(&self) -> Result<&Path, String> {
        found(self.code_server.as_ref(), "code-server").map(PathBuf::as_path)
    }
}

fn found<'environment, Environment>(
    environment: Option<&'environment Result<Environment, Failure>>,
    what: &str,
) -> Result<&'environment Environment, String> {
    match environment {
        Some(Ok(environment)) => Ok(environment),
        Some(Err(failure)) => Err(failure.to_string()),
        None => Err(format!("no {what} was prepared")),
    }
}
