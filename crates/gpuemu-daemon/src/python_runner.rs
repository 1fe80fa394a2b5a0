//! A kernel in Python, as the engine runs it: a script by the stdin/stdout protocol, or a callable.

use std::time::Duration;

use gpuemu_engine::runner::{Invocation, Runner, RunnerDescription, RunnerError, RunnerKind};
use gpuemu_engine::schema::{Parameters, Scalar};
use serde_json::{Map, Value};

use crate::executor::{Arguments, ExecutorError, NamedTensors, Program, is_ending};
use crate::python_program::match_outputs;

/// A kernel in Python.
pub struct PythonRunner {
    description: RunnerDescription,
    program: Box<dyn Program>,
    extra: Map<String, Value>,
    withheld: Vec<String>,
    timeout: Duration,
    broken: Option<ExecutorError>,
}

impl PythonRunner {
    /// A runner over a program. `extra` goes to every call beside the op's parameters; parameters in
    /// `withheld` are never passed, because the callable does not take them.
    pub fn new(
        name: String,
        program: Box<dyn Program>,
        layouts: bool,
        extra: Map<String, Value>,
        withheld: Vec<String>,
        timeout: Duration,
    ) -> Self {
        let description = RunnerDescription {
            name,
            kind: RunnerKind::Script,
            layouts,
            writes_into_buffers: false,
            inputs_watched: false,
            refills: false,
        };
        Self { description, program, extra, withheld, timeout, broken: None }
    }

    /// The arguments that are not tensors, as the program gets them.
    pub fn arguments(&self, parameters: &Parameters) -> Map<String, Value> {
        let mut arguments = parameters_json(parameters);
        arguments.retain(|name, _| !self.withheld.contains(name));
        arguments.extend(self.extra.clone());
        arguments
    }

    /// Why the program could not even be started, if that happened: no verdict on the kernel.
    pub fn broken(&self) -> Option<&ExecutorError> {
        self.broken.as_ref()
    }
}

impl Runner for PythonRunner {
    fn description(&self) -> &RunnerDescription {
        &self.description
    }

    fn run(&mut self, invocation: &mut Invocation<'_>) -> Result<(), RunnerError> {
        let mut inputs: NamedTensors = Vec::new();
        for (spec, buffer) in invocation.schema.inputs.iter().zip(&invocation.inputs) {
            if let Some(buffer) = buffer {
                let tensor = buffer.to_tensor().map_err(|error| RunnerError::Raised(error.to_string()))?;
                inputs.push((spec.name.clone(), tensor));
            }
        }
        let parameters = self.arguments(invocation.parameters);
        let arguments = Arguments { inputs: &inputs, parameters: &parameters, timeout: self.timeout };
        let outputs = self.program.call(&arguments).map_err(|error| {
            if could_not_start(&error) || is_ending() {
                self.broken = Some(error.clone());
            }
            runner_error(error, self.timeout)
        })?;
        let names: Vec<String> = invocation.output_names().map(ToString::to_string).collect();
        let matched = match_outputs(&names, invocation.schema.outputs.len(), &outputs).map_err(RunnerError::Raised)?;
        for (place, tensor) in matched.into_iter().enumerate() {
            invocation.replace_output(place, tensor);
        }
        Ok(())
    }
}

/// Whether an error says nothing about the kernel.
fn could_not_start(error: &ExecutorError) -> bool {
    matches!(
        error,
        ExecutorError::NotFound { .. }
            | ExecutorError::Spawn { .. }
            | ExecutorError::Import { .. }
            | ExecutorError::Protocol { .. }
    )
}

fn runner_error(error: ExecutorError, timeout: Duration) -> RunnerError {
    match error {
        ExecutorError::TimedOut { .. } => RunnerError::TimedOut(timeout),
        ExecutorError::Failed { .. } => RunnerError::Crashed(error.to_string()),
        _ => RunnerError::Raised(error.to_string()),
    }
}

/// Parameters as JSON.
pub fn parameters_json(parameters: &Parameters) -> Map<String, Value> {
    let value = |scalar: &Scalar| match scalar {
        Scalar::Bool(value) => Value::from(*value),
        Scalar::Int(value) => Value::from(*value),
        Scalar::Float(value) => Value::from(*value),
    };
    parameters.0.iter().map(|(name, scalar)| (name.clone(), value(scalar))).collect()
}
