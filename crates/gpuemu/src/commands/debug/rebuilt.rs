//! The case that really failed, with its inputs as they lay in memory and the error allowed at every element.

use gpuemu_common::config::{Op, OpSource, ToleranceMode};
use gpuemu_common::{DType, Layout, Tensor};
use gpuemu_engine::case::materialise;
use gpuemu_engine::ops::{self, Expectation};
use gpuemu_engine::schema::{FinalRounding, Precision, Scalar, Schema};
use gpuemu_engine::{Case, CaseDescriptor, Subject, Tolerance};
use serde_json::{Map, Value};

use super::open_case::{NamedTensors, OpenCase};
use crate::expected_error::ExpectedError;

/// A case that can be run without gpuemu.
pub struct Rebuilt {
    /// Its inputs, strides and gaps included where the op sees them.
    pub inputs: NamedTensors,
    /// What is expected.
    pub outputs: Vec<ExpectedOutput>,
    /// Arguments that are not tensors.
    pub parameters: Map<String, Value>,
    /// Whether two runs may differ in bits.
    pub atomics: bool,
}

/// One output.
pub struct ExpectedOutput {
    /// Its name.
    pub name: String,
    /// Its dtype.
    pub dtype: DType,
    /// Its shape.
    pub shape: Vec<usize>,
    /// What is expected.
    pub values: Vec<f64>,
    /// How far from that a right output may be, its final rounding included.
    pub allowed: Vec<f64>,
}

/// Rebuilds the case of a verdict: the extra case, where that is the one that failed.
pub fn rebuild(op: &Op, open: &OpenCase) -> Result<Rebuilt, ExpectedError> {
    let schema = schema_of(op)?;
    let described = open.result.failing_case.as_ref().unwrap_or(&open.result.case);
    let descriptor: CaseDescriptor = serde_json::from_value(described.clone())
        .map_err(|error| ExpectedError::plain(format!("the case cannot be read: {error}")))?;
    let case = if open.result.failing_case.is_some() {
        materialise(&schema, &descriptor).map_err(|error| ExpectedError::plain(error.to_string()))?
    } else {
        let inputs = schema.inputs.iter().map(|spec| {
            let (_, tensor) = open.inputs.iter().find(|(name, _)| *name == spec.name)?;
            Some(laid_out(tensor, descriptor.layout_of(&spec.name)))
        });
        Case { inputs: inputs.collect(), descriptor }
    };
    let precision = op.precision.clone().unwrap_or_else(|| schema.precision.clone());
    let expectations = expectations(op, open, &schema, &case, &precision)?;
    let specs = schema.outputs.iter().filter(|spec| case.descriptor.has(spec));
    let mut outputs = Vec::new();
    for (spec, expectation) in specs.zip(expectations) {
        let dtype = spec.dtype_in(case.descriptor.dtype);
        outputs.push(ExpectedOutput {
            name: spec.name.clone(),
            dtype,
            shape: spec.shape(&case.descriptor.sizes).unwrap_or_default(),
            allowed: allowed(&expectation, tolerance_of(op, dtype), dtype, precision.rounding),
            values: expectation.values,
        });
    }
    let contiguous = matches!(op.source, OpSource::Script(_));
    let inputs = schema.inputs.iter().zip(case.inputs).filter_map(|(spec, tensor)| Some((spec.name.clone(), tensor?)));
    let inputs = inputs.map(|(name, tensor)| (name, if contiguous { tensor.to_contiguous() } else { tensor }));
    let parameters = parameters(op, &schema, &case.descriptor);
    Ok(Rebuilt { inputs: inputs.collect(), outputs, parameters, atomics: precision.atomics })
}

fn schema_of(op: &Op) -> Result<Schema, ExpectedError> {
    if let (Some(known), true) = (ops::find(&op.name), op.signature.is_none() || op.reference.is_none()) {
        return Ok(known.schema().clone());
    }
    let signature = op.signature.as_ref().map(|signature| signature.value.as_str()).unwrap_or_default();
    Schema::from_signature(&op.name, signature)
        .map_err(|error| ExpectedError::plain(format!("signature of op '{}': {}", op.name, error.message)))
}

/// A contiguous tensor as it lay in memory when the op was called.
fn laid_out(tensor: &Tensor, layout: Layout) -> Tensor {
    let shape = tensor.shape();
    let layout = layout.for_shape(shape);
    let elements = tensor.to_contiguous_bytes();
    let stored: usize = layout.stored_shape(shape).iter().product::<usize>() * tensor.dtype().size();
    let placed = elements.get(..stored).and_then(|stored| layout.place(tensor.dtype(), shape, stored).ok());
    // Values that were simplified one by one may no longer be the same along an expanded dim.
    placed.filter(|placed| placed.to_contiguous_bytes() == elements).unwrap_or_else(|| tensor.clone())
}

/// What the built-in reference expects, with its bound, or what the project's own gave.
fn expectations(
    op: &Op,
    open: &OpenCase,
    schema: &Schema,
    case: &Case,
    precision: &Precision,
) -> Result<Vec<Expectation>, ExpectedError> {
    if let (Some(known), None) = (ops::find(&op.name), &op.reference) {
        let subject = Subject::with_schema(known, schema.clone()).precision(precision.clone());
        return subject.expect(case).map_err(|error| ExpectedError::plain(error.to_string()));
    }
    let specs = schema.outputs.iter().filter(|spec| case.descriptor.has(spec));
    let found = specs.map(|spec| {
        let Some((_, tensor)) = open.expected.iter().find(|(name, _)| *name == spec.name) else {
            let message = format!("the reference gave no '{}', so there is nothing to compare with", spec.name);
            return Err(ExpectedError::new(message, "`checks` says what went wrong"));
        };
        let mut expectation = Expectation::with_capacity(tensor.len());
        tensor.to_f64().into_iter().for_each(|value| expectation.push(value, 0.0));
        Ok(expectation)
    });
    found.collect()
}

/// Which error is allowed, as the daemon decides it.
fn tolerance_of(op: &Op, dtype: DType) -> Tolerance {
    let given = !op.tolerances.is_empty() || op.reference.is_some();
    match op.tolerance.unwrap_or(if given { ToleranceMode::Fixed } else { ToleranceMode::Bound }) {
        ToleranceMode::Bound => Tolerance::Bound,
        ToleranceMode::Fixed | ToleranceMode::Calibrated => {
            let pair = op.tolerances.get(&dtype);
            pair.map_or_else(
                || Tolerance::fixed_default(dtype),
                |pair| Tolerance::Fixed { atol: pair.atol, rtol: pair.rtol },
            )
        }
    }
}

/// How far each element may be from what is expected.
fn allowed(expectation: &Expectation, tolerance: Tolerance, dtype: DType, rounding: FinalRounding) -> Vec<f64> {
    let mut excuses = expectation.excuses.iter().peekable();
    let elements = expectation.values.iter().zip(&expectation.delta).enumerate();
    let one = |(index, (value, delta)): (usize, (&f64, &f64))| {
        if excuses.next_if(|excuse| excuse.index == index).is_some() {
            return f64::INFINITY;
        }
        let allowed = tolerance.allowed(*value, *delta);
        if !tolerance.is_bound() || !value.is_finite() {
            return allowed;
        }
        with_rounding(dtype, *value, allowed, rounding)
    };
    elements.map(one).collect()
}

/// The furthest that a number within `allowed` of the expected one can be after its final rounding.
fn with_rounding(dtype: DType, value: f64, allowed: f64, rounding: FinalRounding) -> f64 {
    let Some(format) = dtype.float_format() else { return allowed };
    let rounded = |number: f64| dtype.decode(dtype.encode(number));
    let (low, high) = (rounded(value - allowed), rounded(value + allowed));
    let distance = (high - value).max(value - low).max(allowed);
    let whole_ulp = if rounding == FinalRounding::Nearest { 0.0 } else { format.ulp(value) };
    if distance.is_nan() { f64::INFINITY } else { distance + whole_ulp }
}

/// The parameters of the case, and the arguments that its signature does not know.
fn parameters(op: &Op, schema: &Schema, descriptor: &CaseDescriptor) -> Map<String, Value> {
    let value = |scalar: &Scalar| match scalar {
        Scalar::Bool(value) => Value::from(*value),
        Scalar::Int(value) => Value::from(*value),
        Scalar::Float(value) if value.is_finite() => Value::from(*value),
        // As the daemon hands it over.
        Scalar::Float(value) => Value::from(value.to_string()),
    };
    let drawn = descriptor.parameters.0.iter().map(|(name, scalar)| (name.clone(), value(scalar)));
    let extra = op.kwargs.iter().filter(|(name, _)| !schema.parameters.iter().any(|spec| spec.name == **name));
    drawn.chain(extra.map(|(name, value)| (name.clone(), value.clone()))).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_layout_is_put_back_and_holds_the_same_elements() {
        let values: Vec<f64> = (0..12).map(f64::from).collect();
        let tensor = Tensor::from_f64(DType::F16, vec![3, 4], &values).unwrap();
        for layout in Layout::ALL {
            assert_eq!(laid_out(&tensor, layout).to_f64(), values, "{layout}");
        }
        assert_eq!(laid_out(&tensor, Layout::Transposed).strides(), [1, 3]);
        let same = Tensor::from_f64(DType::F16, vec![3, 1], &[2.0; 3]).unwrap();
        assert_eq!(laid_out(&same, Layout::Expanded).strides(), [0, 1]);
        let empty = Tensor::from_f64(DType::F16, vec![3, 0], &[]).unwrap();
        assert_eq!(laid_out(&empty, Layout::RowGap).shape(), [3, 0]);
    }

    #[test]
    fn the_final_rounding_is_allowed_for() {
        let nearest = |value: f64, allowed: f64| with_rounding(DType::F16, value, allowed, FinalRounding::Nearest);
        // 2049 lies halfway between two float16 numbers.
        assert_eq!(nearest(2049.0, 0.0), 1.0);
        assert_eq!(nearest(2048.0, 0.0), 0.0);
        assert_eq!(nearest(65519.0, 10.0), f64::INFINITY);
        assert_eq!(with_rounding(DType::F16, 1.0, 0.0, FinalRounding::TowardZero), 2f64.powi(-10));
    }
}
