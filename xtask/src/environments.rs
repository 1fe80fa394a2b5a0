//! The environments that the chosen steps share: of Python, and of Node.js with a real VS Code.

use std::path::{Path, PathBuf};
use std::sync::{Mutex, OnceLock};
use std::thread::{self, JoinHandle};

use crate::failure::Failure;
use crate::node_environment::{self, NodeEnvironment};
use crate::python_environment::{self, DEVELOPMENT, DOCUMENTATION, FRAMEWORKS, KERNELS, PythonEnvironment};
use crate::steps::Step;

/// Each environment, or why there is none.
pub struct Environments {
    development: Option<Result<PythonEnvironment, Failure>>,
    frameworks: Option<Pending<Result<PythonEnvironment, Failure>>>,
    kernels: Option<Pending<Result<PythonEnvironment, Failure>>>,
    documentation: Option<Pending<Result<PythonEnvironment, Failure>>>,
    node: Option<Pending<Node>>,
}

/// Node.js, and code-server if that was asked for.
struct Node {
    node: Result<NodeEnvironment, Failure>,
    code_server: Option<Result<PathBuf, Failure>>,
}

impl Environments {
    /// Finds or makes what these steps need, and nothing else: some of it is a large download. What later steps need is
    /// made while the first ones compile.
    pub fn prepare(steps: &[&Step]) -> Self {
        let needed = |needs: fn(&Step) -> bool| steps.iter().any(|step| needs(step));
        let development = needed(Step::needs_python).then(|| python_environment::prepare(&DEVELOPMENT));
        let with_code_server = needed(Step::needs_code_server);
        Self {
            development,
            frameworks: needed(Step::needs_frameworks)
                .then(|| Pending::start(|| python_environment::prepare(&FRAMEWORKS))),
            kernels: needed(Step::needs_kernels).then(|| Pending::start(|| python_environment::prepare(&KERNELS))),
            documentation: needed(Step::needs_documentation)
                .then(|| Pending::start(|| python_environment::prepare(&DOCUMENTATION))),
            node: needed(Step::needs_node).then(|| Pending::start(move || Node::prepare(with_code_server))),
        }
    }

    /// The environment that the package itself is checked in.
    pub fn development(&self) -> Result<&PythonEnvironment, String> {
        found(self.development.as_ref(), "Python environment")
    }

    pub fn frameworks(&self) -> Result<&PythonEnvironment, String> {
        waited_for(self.frameworks.as_ref(), "environment with the frameworks")
    }

    /// The environment with the tools and compilers of kernels.
    pub fn kernels(&self) -> Result<&PythonEnvironment, String> {
        waited_for(self.kernels.as_ref(), "environment with the compilers of kernels")
    }

    /// The environment that the documentation is built in.
    pub fn documentation(&self) -> Result<&PythonEnvironment, String> {
        waited_for(self.documentation.as_ref(), "environment for the documentation")
    }

    pub fn node(&self) -> Result<&NodeEnvironment, String> {
        let made = self.node.as_ref().map(Pending::wait).transpose()?;
        found(made.map(|made| &made.node), "Node.js")
    }

    /// The folder of code-server.
    pub fn code_server(&self) -> Result<&Path, String> {
        let made = self.node.as_ref().map(Pending::wait).transpose()?;
        found(made.and_then(|made| made.code_server.as_ref()), "code-server").map(PathBuf::as_path)
    }
}

impl Node {
    fn prepare(with_code_server: bool) -> Self {
        let node = node_environment::prepare();
        let code_server = match &node {
            Ok(node) if with_code_server => Some(node_environment::prepare_code_server(node)),
            _ => None,
        };
        Self { node, code_server }
    }
}

/// What a thread makes, once.
struct Pending<T> {
    thread: Mutex<Option<JoinHandle<T>>>,
    made: OnceLock<Option<T>>,
}

impl<T: Send + 'static> Pending<T> {
    fn start(make: impl FnOnce() -> T + Send + 'static) -> Self {
        Self { thread: Mutex::new(Some(thread::spawn(make))), made: OnceLock::new() }
    }

    /// Waits until it is made.
    fn wait(&self) -> Result<&T, String> {
        let join = || self.thread.lock().ok()?.take()?.join().ok();
        self.made
            .get_or_init(join)
            .as_ref()
            .ok_or_else(|| "what makes the environment ended before its time".to_string())
    }
}

fn waited_for<'environment, Environment: Send + 'static>(
    environment: Option<&'environment Pending<Result<Environment, Failure>>>,
    what: &str,
) -> Result<&'environment Environment, String> {
    found(environment.map(Pending::wait).transpose()?, what)
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

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_made_beside_the_steps_is_waited_for_and_made_once() {
        let pending = Pending::start(|| Ok::<u32, Failure>(7));
        assert_eq!(waited_for(Some(&pending), "number"), Ok(&7));
        assert_eq!(waited_for(Some(&pending), "number"), Ok(&7));
        let failed: Pending<Result<u32, Failure>> = Pending::start(|| Err(Failure::Environment("no network".into())));
        assert!(waited_for(Some(&failed), "number").is_err_and(|error| error.contains("no network")));
        let broken: Pending<u32> = Pending::start(|| std::panic::resume_unwind(Box::new(())));
        assert!(broken.wait().is_err() && broken.wait().is_err());
        assert_eq!(waited_for::<u32>(None, "number"), Err("no number was prepared".to_string()));
    }
}
