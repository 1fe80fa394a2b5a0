//! What runs an op of a project: Python, or the PTX machine.

use gpuemu_engine::case::CaseDescriptor;
use gpuemu_engine::runner::{Invocation, Runner, RunnerDescription, RunnerError};
use gpuemu_engine::schema::{Parameters, Schema};
use gpuemu_process::fault;
use serde_json::{Map, Value};

use crate::executor::ExecutorError;
use crate::kernels::KernelRunner;
use crate::python_runner::{PythonRunner, parameters_json};

pub enum OpRunner {
    /// A module or script.
    Python(Box<PythonRunner>),
    Kernel(Box<KernelRunner>),
}

impl OpRunner {
    /// Why the program could not even be started, if that happened: no verdict on the kernel.
    pub fn error(&self) -> Option<&ExecutorError> {
        match self {
            OpRunner::Python(runner) => runner.error(),
            OpRunner::Kernel(_) => None,
        }
    }

    /// The arguments that are not tensors, as the op gets them.
    pub fn arguments(&self, parameters: &Parameters) -> Map<String, Value> {
        match self {
            OpRunner::Python(runner) => runner.arguments(parameters),
            OpRunner::Kernel(_) => parameters_json(parameters),
        }
    }

    fn inner(&self) -> &dyn Runner {
        match self {
            OpRunner::Python(runner) => runner.as_ref(),
            OpRunner::Kernel(runner) => runner.as_ref(),
        }
    }
}

impl Runner for OpRunner {
    fn description(&self) -> &RunnerDescription {
        self.inner().description()
    }

    fn covers(&self, schema: &Schema, descriptor: &CaseDescriptor) -> bool {
        self.inner().covers(schema, descriptor)
    }

    fn broken(&self) -> Option<String> {
        self.inner().broken()
    }

    fn run(&mut self, invocation: &mut Invocation<'_>) -> Result<(), RunnerError> {
        match self {
            OpRunner::Python(runner) => runner.run(invocation),
            OpRunner::Kernel(runner) => {
                let injected = || RunnerError::Crashed("injected".to_string());
                fault!("kernel.launch", injected(), Ok(()))?;
                let ran = runner.run(invocation);
                fault!("kernel.read_back", injected(), ran)
            }
        }
    }
}
