//! A reference that is a callable of the user, asked in this process.

use std::sync::{Mutex, PoisonError};

use gpuemu_engine::Op;
use gpuemu_engine::case::Case;
use gpuemu_engine::ops::{Call, Expectation, OpError};
use gpuemu_engine::runner::{Buffer, Invocation, Placement, Runner, RunnerDescription, RunnerKind};
use gpuemu_engine::schema::Schema;
use gpuemu_tensor::{DType, Tensor};
use pyo3::prelude::*;

use crate::callable::{CallableRunner, Calling};

/// A reference in Python. It is given float64 and returns values, without bounds.
pub struct PythonReference {
    schema: Schema,
    runner: Mutex<CallableRunner>,
}

impl PythonReference {
    /// A reference over a bridge.
    pub fn new(schema: Schema, calling: Calling) -> Self {
        let description = RunnerDescription {
            name: "reference".to_string(),
            kind: RunnerKind::Callable,
            layouts: false,
            writes_into_buffers: false,
            inputs_watched: false,
            refills: false,
            remembers: false,
        };
        Self { schema, runner: Mutex::new(CallableRunner::new(description, calling)) }
    }

    /// The exception that no case is to blame for, such as an interrupt.
    pub fn take_broken(&self) -> Option<PyErr> {
        self.runner.lock().unwrap_or_else(PoisonError::into_inner).take_broken()
    }
}

/// Every float format is a subset of float64: nothing is rounded here.
fn widened(tensor: &Tensor) -> Tensor {
    if !tensor.dtype().is_float() || tensor.dtype() == DType::F64 {
        return tensor.to_contiguous();
    }
    let wide = Tensor::from_f64(DType::F64, tensor.shape().to_vec(), &tensor.to_f64());
    wide.unwrap_or_else(|_| tensor.to_contiguous())
}

impl Op for PythonReference {
    fn schema(&self) -> &Schema {
        &self.schema
    }

    fn expect(&self, call: &Call<'_>) -> Result<Vec<Expectation>, OpError> {
        let failed = |message: String| OpError::ReferenceFailed { op: self.schema.name.clone(), message };
        let case: &Case = call.case();
        let descriptor = &case.descriptor;
        let inputs = case.inputs.iter().map(|tensor| tensor.as_ref().map(|tensor| Buffer::holding(&widened(tensor))));
        let specs: Vec<_> = self.schema.outputs.iter().filter(|spec| spec.is_in(descriptor)).collect();
        let outputs = specs.iter().map(|_| Buffer::poisoned(DType::F64, vec![0], 0xff)).collect();
        let mut invocation = Invocation {
            schema: &self.schema,
            sizes: &descriptor.sizes,
            parameters: &descriptor.parameters,
            present: &descriptor.present,
            dtype: DType::F64,
            inputs: inputs.collect(),
            outputs,
            poison: 0xff,
            placement: Placement::Fresh,
            findings: Vec::new(),
            surplus: false,
            looked_at: Default::default(),
        };
        let mut runner = self.runner.lock().unwrap_or_else(PoisonError::into_inner);
        runner.run(&mut invocation).map_err(|error| failed(error.to_string()))?;
        let mut expectations = Vec::with_capacity(specs.len());
        for (spec, buffer) in specs.iter().zip(&invocation.outputs) {
            let shape = spec.shape(&descriptor.sizes).unwrap_or_default();
            if buffer.shape() != shape {
                let (name, found) = (&spec.name, buffer.shape());
                return Err(failed(format!("output '{name}' has shape {found:?}, the signature makes it {shape:?}")));
            }
            let values = buffer.to_tensor().map_err(|error| failed(error.to_string()))?.to_f64();
            let mut expectation = Expectation::with_capacity(values.len());
            values.into_iter().for_each(|value| expectation.push(value, 0.0));
            expectations.push(expectation);
        }
        Ok(expectations)
    }
}
