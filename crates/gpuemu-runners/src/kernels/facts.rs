//! What a launch table can ask of a case.

use gpuemu_config::expression::{LaunchContext, TensorFacts, Value};
use gpuemu_engine::case::CaseDescriptor;
use gpuemu_engine::runner::Invocation;
use gpuemu_engine::schema::{Parameters, Scalar, Schema, Sizes};
use gpuemu_tensor::DType;

/// A tensor that takes part.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct TensorForm {
    pub(crate) name: String,
    pub(crate) shape: Vec<usize>,
    pub(crate) strides: Vec<isize>,
    pub(crate) dtype: DType,
}

/// A case as a launch table sees it.
#[derive(Debug, Clone, PartialEq)]
pub(crate) struct CaseFacts {
    sizes: Sizes,
    parameters: Parameters,
    dtype: DType,
    tensors: Vec<TensorForm>,
}

impl CaseFacts {
    /// Of a case that is about to run.
    pub(crate) fn of_invocation(invocation: &Invocation<'_>) -> Self {
        let inputs = invocation.schema.inputs.iter().zip(&invocation.inputs);
        let inputs = inputs.filter_map(|(spec, buffer)| Some((spec.name.as_str(), buffer.as_ref()?)));
        let outputs = invocation.output_names().zip(&invocation.outputs);
        let tensors = inputs.chain(outputs).map(|(name, buffer)| TensorForm {
            name: name.to_string(),
            shape: buffer.shape().to_vec(),
            strides: buffer.strides().to_vec(),
            dtype: buffer.dtype(),
        });
        Self {
            sizes: invocation.sizes.clone(),
            parameters: invocation.parameters.clone(),
            dtype: invocation.dtype,
            tensors: tensors.collect(),
        }
    }

    /// Of a case that is only described; none if its sizes are none of the op's.
    pub(crate) fn of_descriptor(schema: &Schema, descriptor: &CaseDescriptor) -> Option<Self> {
        let mut tensors = Vec::new();
        let inputs = schema.inputs.iter().map(|spec| (spec, descriptor.layout_of(&spec.name)));
        let outputs = schema.outputs.iter().map(|spec| (spec, gpuemu_tensor::Layout::Contiguous));
        for (spec, layout) in inputs.chain(outputs).filter(|(spec, _)| spec.is_in(descriptor)) {
            let shape = spec.shape(&descriptor.sizes)?;
            let layout = layout.for_shape(&shape);
            // Where elements would lie is what a layout makes of as many bytes.
            let bytes = vec![0; layout.stored_shape(&shape).iter().product()];
            let placed = layout.place(DType::U8, &shape, &bytes).ok()?;
            tensors.push(TensorForm {
                name: spec.name.clone(),
                strides: placed.strides().to_vec(),
                dtype: spec.dtype_in(descriptor.dtype),
                shape,
            });
        }
        Some(Self {
            sizes: descriptor.sizes.clone(),
            parameters: descriptor.parameters.clone(),
            dtype: descriptor.dtype,
            tensors,
        })
    }
}

impl LaunchContext for CaseFacts {
    fn value(&self, name: &str) -> Option<Value> {
        if let Some(size) = self.sizes.get(name) {
            return i64::try_from(size).ok().map(Value::Integer);
        }
        self.parameters.get(name).map(|scalar| match scalar {
            Scalar::Bool(truth) => Value::Boolean(truth),
            Scalar::Int(number) => Value::Integer(number),
            Scalar::Float(number) => Value::Float(number),
        })
    }

    fn tensor(&self, name: &str) -> Option<TensorFacts<'_>> {
        let found = self.tensors.iter().find(|tensor| tensor.name == name)?;
        Some(TensorFacts { shape: &found.shape, strides: &found.strides, dtype: found.dtype })
    }

    fn dtype(&self) -> DType {
        self.dtype
    }
}
