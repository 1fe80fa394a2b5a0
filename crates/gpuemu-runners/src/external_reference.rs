//! A reference that the user wrote: the engine asks it what to expect.

use std::sync::{Mutex, PoisonError};
use std::time::Duration;

use gpuemu_engine::Op;
use gpuemu_engine::ops::{Call, Expectation, OpError};
use gpuemu_engine::schema::Schema;
use gpuemu_process::fault;
use gpuemu_tensor::{DType, Tensor};
use serde_json::{Map, Value};

use crate::executor::{Accepted, Arguments, ExecutorError, NamedTensors, Program, with_stderr};
use crate::python_program::{PythonProgram, match_outputs};
use crate::python_runner::parameters_json;

/// A reference in Python.
pub struct ExternalReference {
    schema: Schema,
    program: PythonProgram,
    extra: Map<String, Value>,
    native: bool,
    timeout: Duration,
    started: Mutex<Option<Started>>,
}

struct Started {
    program: Box<dyn Program>,
    accepted: Option<Accepted>,
}

impl ExternalReference {
    /// A reference that is started when it is first asked. With `native` it gets its inputs in the dtype of
    /// the case, otherwise floats reach it as float64.
    pub fn new(
        schema: Schema,
        program: PythonProgram,
        extra: Map<String, Value>,
        native: bool,
        timeout: Duration,
    ) -> Self {
        Self { schema, program, extra, native, timeout, started: Mutex::new(None) }
    }

    fn call(&self, call: &Call<'_>) -> Result<NamedTensors, ExecutorError> {
        let mut started = self.started.lock().unwrap_or_else(PoisonError::into_inner);
        if started.is_none() {
            let (program, accepted) = self.program.start(&self.schema.name)?;
            *started = Some(Started { program, accepted });
        }
        let Some(Started { program, accepted }) = started.as_mut() else { return Ok(Vec::new()) };
        let case = call.case();
        let pairs = self.schema.inputs.iter().zip(&case.inputs);
        let inputs: NamedTensors =
            pairs.filter_map(|(spec, tensor)| Some((spec.name.clone(), self.widened(tensor.as_ref()?)))).collect();
        let mut parameters = parameters_json(&case.descriptor.parameters);
        parameters.extend(self.extra.clone());
        if let Some(accepted) = accepted {
            parameters.retain(|name, _| accepted.any || accepted.names.contains(name));
        }
        let called = program.call(&Arguments { inputs: &inputs, parameters: &parameters, timeout: self.timeout });
        let injected = || ExecutorError::NoOutput { what: "injected".to_string(), stderr: String::new() };
        fault!("reference.call", injected(), called)
    }

    /// Every float format is a subset of float64: nothing is rounded here.
    fn widened(&self, tensor: &Tensor) -> Tensor {
        if self.native || !tensor.dtype().is_float() || tensor.dtype() == DType::F64 {
            return tensor.to_contiguous();
        }
        let wide = Tensor::from_f64(DType::F64, tensor.shape().to_vec(), &tensor.to_f64());
        wide.unwrap_or_else(|_| tensor.to_contiguous())
    }
}

impl Op for ExternalReference {
    fn schema(&self) -> &Schema {
        &self.schema
    }

    fn expect(&self, call: &Call<'_>) -> Result<Vec<Expectation>, OpError> {
        let failed = |message: String| OpError::ReferenceFailed { op: self.schema.name.clone(), message };
        let outputs = self.call(call).map_err(|error| failed(error.to_string()))?;
        self.expected(call, &outputs).map_err(|problem| failed(with_stderr(problem, &self.stderr())))
    }
}

impl ExternalReference {
    /// What the last call wrote to stderr.
    fn stderr(&self) -> String {
        let mut started = self.started.lock().unwrap_or_else(PoisonError::into_inner);
        started.as_mut().map(|started| started.program.stderr()).unwrap_or_default()
    }

    /// What the signature makes of what was returned.
    fn expected(&self, call: &Call<'_>, outputs: &NamedTensors) -> Result<Vec<Expectation>, String> {
        let descriptor = &call.case().descriptor;
        let specs: Vec<_> = self.schema.outputs.iter().filter(|spec| spec.is_in(descriptor)).collect();
        let names: Vec<String> = specs.iter().map(|spec| spec.name.clone()).collect();
        let matched = match_outputs(&names, self.schema.outputs.len(), outputs);
        let matched = fault!("reference.match_outputs", "injected".to_string(), matched)?;
        let mut expectations = Vec::with_capacity(specs.len());
        for (spec, tensor) in specs.iter().zip(matched) {
            let shape = spec.shape(&descriptor.sizes).unwrap_or_default();
            if tensor.shape() != shape {
                let (name, found) = (&spec.name, tensor.shape());
                return Err(format!("output '{name}' has shape {found:?}, the signature makes it {shape:?}"));
            }
            let (found, wanted) = (tensor.dtype(), spec.dtype_in(descriptor.dtype));
            if found.is_float() != wanted.is_float() {
                let name = &spec.name;
                return Err(format!("output '{name}' is {found}, the signature makes it {wanted}"));
            }
            let mut expectation = Expectation::with_capacity(tensor.len());
            tensor.to_f64().into_iter().for_each(|value| expectation.push(value, 0.0));
            expectations.push(expectation);
        }
        Ok(expectations)
    }
}
