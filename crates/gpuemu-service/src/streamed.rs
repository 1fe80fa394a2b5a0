//! Judging large outputs that lie in shared memory: read part by part, never held as a whole.

use std::ops::Range;

use gpuemu_config::failure::Failure;
use gpuemu_engine::case::given::{Form, describe};
use gpuemu_engine::oracle::parts::{Side, divisible, judge_parts};
use gpuemu_engine::schema::{Parameters, TensorSpec};
use gpuemu_engine::{Case, Verdict};
use gpuemu_model::tensor_data::TensorData;
use gpuemu_process::fault;
use gpuemu_run::configured_op::ConfiguredOp;
use gpuemu_tensor::Tensor;
use gpuemu_tensor::tensor::{contiguous_strides, element_count};
use gpuemu_wire::protocol::ValidateOp;
use gpuemu_wire::shared_memory::SharedBytes;

use gpuemu_run::submitted::{IDENTITY_BYTES, identity};

/// A contiguous tensor in shared memory.
struct SharedTensor {
    form: Form,
    bytes: SharedBytes,
}

impl SharedTensor {
    /// The tensor of a message, if it is one of these; anything unusual about it is left to the usual way.
    fn open(name: &str, data: &TensorData) -> Option<Self> {
        let place = data.shared.as_ref().filter(|_| data.strides.is_none() && data.offset == 0)?;
        let count = element_count(data.dtype, &data.shape).ok()?;
        let bytes = SharedBytes::open(place).ok()?;
        let form = Form { name: name.to_string(), dtype: data.dtype, shape: data.shape.clone() };
        (bytes.length() == (count * data.dtype.size()) as u64).then_some(Self { form, bytes })
    }

    /// Rows of it, as many as the batch of a part has.
    fn rows(&self, spec: &TensorSpec, rows: Range<usize>) -> Result<Tensor, String> {
        let leading = self.form.shape.len() - spec.dimensions.len();
        let inner = &self.form.shape[leading..];
        let (mut shape, mut start) = (self.form.shape.clone(), 0);
        if spec.batch {
            shape = [&[rows.len()], inner].concat();
            start = rows.start * inner.iter().product::<usize>();
        }
        let size = self.form.dtype.size();
        let storage = self.bytes.read((start * size) as u64, shape.iter().product::<usize>() * size);
        // Read by the threads that judge: a panic here is one of theirs.
        let storage = fault!("validate.read_part", "injected".to_string(), storage)?;
        let strides = contiguous_strides(&shape);
        Tensor::new(self.form.dtype, shape, strides, 0, storage).map_err(|error| error.to_string())
    }
}

/// Judges a request part by part. `None` where that is not possible or something was found: then the
/// whole is judged.
pub(super) fn judge(
    op: &ConfiguredOp,
    request: &ValidateOp,
    parameters: &Parameters,
) -> Result<Option<(Case, Verdict)>, Failure> {
    let schema = op.subject.schema();
    let ([output_spec], Some(output)) = (schema.outputs.as_slice(), &request.output) else { return Ok(None) };
    let opened: Option<Vec<SharedTensor>> =
        request.inputs.0.iter().map(|(name, data)| SharedTensor::open(name, data)).collect();
    let (Some(inputs), Some(output)) = (opened, SharedTensor::open(&output_spec.name, output)) else { return Ok(None) };
    let forms: Vec<Form> = inputs.iter().map(|input| input.form.clone()).collect();
    let mut starts = Vec::new();
    for input in &inputs {
        let length = IDENTITY_BYTES.min(input.bytes.length() as usize);
        starts.push(input.bytes.read(0, length).map_err(Failure::invalid)?);
    }
    let seed = identity(forms.iter().cloned().zip(starts.iter().map(|start| start.as_bytes())), parameters);
    let wanted = [output_spec.name.clone()];
    let Ok(descriptor) = describe(schema, op.subject.fingerprint(), seed, &forms, parameters, &wanted) else {
        return Ok(None);
    };
    let right_form = output_spec.shape(&descriptor.sizes) == Some(output.form.shape.clone())
        && output.form.dtype == output_spec.dtype_in(descriptor.dtype);
    if !right_form || !divisible(&op.subject, &descriptor) {
        return Ok(None);
    }
    let read = |side: Side, rows: Range<usize>| match side {
        Side::Output(_) => output.rows(output_spec, rows),
        Side::Input(index) => {
            let spec = schema.inputs.get(index).ok_or("there is no such input")?;
            let input = inputs.iter().find(|input| input.form.name == spec.name);
            input.ok_or_else(|| format!("input '{}' is missing", spec.name))?.rows(spec, rows)
        }
    };
    let verdict = judge_parts(&op.subject, &descriptor, &read).map_err(Failure::invalid)?;
    // The inputs themselves are not needed any more: what passed is not kept with them.
    let absent = vec![None; schema.inputs.len()];
    Ok(verdict.map(|verdict| (Case { descriptor, inputs: absent }, verdict)))
}
