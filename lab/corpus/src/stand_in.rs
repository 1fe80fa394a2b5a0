//! The runner behind a stand-in.

use gpuemu_engine::case::Case;
use gpuemu_engine::oracle::Subject;
use gpuemu_engine::runner::{Buffer, Invocation, Placement, Runner, RunnerDescription, RunnerError, RunnerKind};
use gpuemu_tensor::{DType, Tensor};

use crate::kernels::{Kernel, Plan};
use crate::mutation::Mutation;
use crate::style::Style;

/// A kernel in one style, right or wrong in one way.
#[derive(Debug, Clone)]
pub struct StandIn {
    kernel: Kernel,
    plan: Plan,
    description: RunnerDescription,
}

impl StandIn {
    /// A stand-in.
    pub fn new(name: &str, kernel: Kernel, style: Style, mutation: Option<Mutation>) -> Self {
        let description = RunnerDescription {
            name: name.to_string(),
            kind: RunnerKind::StandIn,
            layouts: true,
            writes_into_buffers: true,
            inputs_watched: true,
            refills: false,
            remembers: false,
        };
        Self { kernel, plan: Plan { style, mutation }, description }
    }

    /// The same kernel without its bug.
    pub fn corrected(&self) -> Self {
        Self { plan: Plan { mutation: None, ..self.plan }, ..self.clone() }
    }

    /// The kernel's formula in float64, unrounded, for each output.
    pub fn evaluate(&self, subject: &Subject, case: &Case) -> Result<Vec<Vec<f64>>, RunnerError> {
        let descriptor = &case.descriptor;
        let mut outputs = Vec::new();
        for spec in subject.schema().outputs.iter().filter(|spec| spec.is_in(descriptor)) {
            let shape = spec.shape(&descriptor.sizes).unwrap_or_default();
            let overwritten = subject.schema().overwritten_by(spec).and_then(|input| case.inputs.get(input)?.as_ref());
            outputs.push(match overwritten {
                None => Buffer::poisoned(DType::F64, shape, 0xff),
                Some(input) => {
                    let wide = Tensor::from_f64(DType::F64, shape, &input.to_f64());
                    Buffer::holding(&wide.map_err(|error| RunnerError::Raised(error.to_string()))?)
                }
            });
        }
        let mut invocation = Invocation {
            schema: subject.schema(),
            sizes: &descriptor.sizes,
            parameters: &descriptor.parameters,
            present: &descriptor.present,
            dtype: descriptor.dtype,
            inputs: case.inputs.iter().map(|tensor| tensor.as_ref().map(Buffer::holding)).collect(),
            outputs,
            poison: 0xff,
            placement: Placement::Fresh,
            findings: Vec::new(),
            surplus: false,
            looked_at: Default::default(),
        };
        (self.kernel.double)(&mut invocation, &self.plan)?;
        let decode = |buffer: &Buffer| {
            let mut values = Vec::new();
            gpuemu_tensor::tensor::decode_slice(DType::F64, &buffer.contiguous_bytes(), &mut values);
            values
        };
        Ok(invocation.outputs.iter().map(decode).collect())
    }
}

impl Runner for StandIn {
    fn description(&self) -> &RunnerDescription {
        &self.description
    }

    fn run(&mut self, invocation: &mut Invocation<'_>) -> Result<(), RunnerError> {
        let body = if invocation.dtype == DType::F64 { self.kernel.double } else { self.kernel.single };
        body(invocation, &self.plan)
    }
}
