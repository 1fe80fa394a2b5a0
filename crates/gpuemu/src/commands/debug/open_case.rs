//! A case that was run again, with its tensors by name.

use gpuemu_model::CaseDescriptor;
use gpuemu_model::nearest::nearest;
use gpuemu_model::report::ValidationResult;
use gpuemu_model::settings::FuzzConfig;
use gpuemu_model::tensor_data::{NamedTensorData, TensorData};
use gpuemu_tensor::{DType, Tensor};
use gpuemu_wire::protocol::{Inspection, InspectionStep};
use serde_json::{Map, Value};

use super::slice::select;
use super::tensor_view;
use crate::expected_error::ExpectedError;

pub type NamedTensors = Vec<(String, Tensor)>;

/// The case at hand.
pub struct OpenCase {
    pub result: ValidationResult,
    /// The checks it went through.
    pub steps: Vec<InspectionStep>,
    /// The next check that `step` shows.
    pub next_step: usize,
    /// What it was drawn from, where no stored result has its seed.
    pub config: FuzzConfig,
    /// Everything that decides the case whose tensors these are.
    pub shown: CaseDescriptor,
    /// Inputs, as the op got them.
    pub inputs: NamedTensors,
    /// Arguments that are not tensors, as the op got them.
    pub parameters: Map<String, Value>,
    /// What the op returned.
    pub outputs: NamedTensors,
    /// What the reference says, in float64.
    pub expected: NamedTensors,
    /// How far each element may be from that.
    pub allowed: NamedTensors,
    /// Dtypes that outputs must have.
    pub output_dtypes: Vec<(String, DType)>,
    /// Whether two runs may differ in bits.
    pub atomics: bool,
    /// Inputs of the smallest failing case, once it was looked for.
    pub minimized: NamedTensors,
}

impl OpenCase {
    /// Takes the tensors out of an answer.
    pub fn read(inspection: Inspection, config: FuzzConfig) -> Result<Self, ExpectedError> {
        Ok(Self {
            inputs: read_tensors(&inspection.inputs)?,
            outputs: read_tensors(&inspection.outputs)?,
            expected: read_tensors(&inspection.expected)?,
            allowed: read_tensors(&inspection.allowed)?,
            output_dtypes: inspection.output_dtypes,
            atomics: inspection.atomics,
            shown: inspection.shown,
            parameters: inspection.parameters,
            minimized: Vec::new(),
            result: inspection.result,
            steps: inspection.steps,
            next_step: 0,
            config,
        })
    }

    /// The groups of tensors: what they are called, and what a name of one starts with.
    fn groups(&self) -> [(&'static str, &'static str, &NamedTensors); 4] {
        [
            ("inputs", "input", &self.inputs),
            ("outputs", "output", &self.outputs),
            ("expected", "expected", &self.expected),
            ("minimized inputs", "minimized", &self.minimized),
        ]
    }

    /// All tensors with dtype, shape and, where it is unusual, layout.
    pub fn list(&self) -> String {
        let mut text = String::new();
        let names = self.groups().into_iter().flat_map(|(_, _, tensors)| tensors.iter().map(|(name, _)| name.len()));
        let width = names.max().unwrap_or(0);
        for (title, _, tensors) in self.groups().into_iter().filter(|(_, _, tensors)| !tensors.is_empty()) {
            text.push_str(&format!("{title}\n"));
            for (name, tensor) in tensors {
                let layout = (title == "inputs").then(|| self.shown.layout_of(name));
                let layout = layout.map(|layout| layout.for_shape(tensor.shape()).to_string());
                let layout = layout.filter(|layout| layout != "contiguous").unwrap_or_default();
                let line = format!("  {name:width$}  {} {:?}  {layout}", tensor.dtype(), tensor.shape());
                text.push_str(&format!("{}\n", line.trim_end()));
            }
        }
        if self.outputs.is_empty() {
            text.push_str("the op returned nothing that could be read: `checks` says why\n");
        }
        text
    }

    /// A tensor by its name, `input.NAME` where an output has the same one.
    fn tensor(&self, name: &str) -> Result<&Tensor, ExpectedError> {
        if let Some((prefix, rest)) = name.split_once('.')
            && let Some((_, _, tensors)) = self.groups().into_iter().find(|(_, known, _)| *known == prefix)
        {
            return named("tensor", tensors, rest);
        }
        match (find(&self.inputs, name), find(&self.outputs, name)) {
            (Some(_), Some(_)) => Err(ExpectedError::new(
                format!("both an input and an output are called '{name}'"),
                format!("print input.{name} or output.{name}"),
            )),
            (Some(tensor), None) | (None, Some(tensor)) => Ok(tensor),
            (None, None) => {
                let both = self.inputs.iter().chain(&self.outputs).map(|(known, _)| known.as_str());
                Err(unknown("tensor", name, both.collect()))
            }
        }
    }

    /// A tensor, or a slice of it.
    pub fn print(&self, name: &str, slice: &str) -> Result<String, ExpectedError> {
        Ok(shown(name, slice, &part(self.tensor(name)?, slice)?))
    }

    /// What is expected of an output.
    pub fn print_expected(&self, name: &str, slice: &str) -> Result<String, ExpectedError> {
        Ok(shown(&format!("expected.{name}"), slice, &part(named("output", &self.expected, name)?, slice)?))
    }

    /// An output minus what is expected of it, and where that is largest.
    pub fn print_difference(&self, name: &str, slice: &str) -> Result<String, ExpectedError> {
        let expected = named("output", &self.expected, name)?;
        let Some(actual) = find(&self.outputs, name) else {
            return Err(ExpectedError::new(format!("the op returned no '{name}'"), "`checks` says why"));
        };
        if actual.shape() != expected.shape() {
            let (found, wanted) = (actual.shape(), expected.shape());
            return Err(ExpectedError::plain(format!("'{name}' has shape {found:?}, expected {wanted:?}")));
        }
        let (actual, expected) = (part(actual, slice)?, part(expected, slice)?);
        let bits = positions(&actual).into_iter().map(|position| tensor_view::bits_at(&actual, position));
        let values: Vec<f64> =
            bits.zip(expected.to_f64()).map(|(bits, expected)| difference(actual.dtype(), bits, expected)).collect();
        // Of several the first: the last of equals is what `max_by` returns.
        let largest =
            (0..values.len()).rev().max_by(|left, right| size(values[*left]).total_cmp(&size(values[*right])));
        let tensor = Tensor::from_f64(DType::F64, actual.shape().to_vec(), &values)
            .map_err(|error| ExpectedError::plain(error.to_string()))?;
        let mut text = shown(&format!("{name} - expected.{name}"), slice, &tensor);
        if let Some(largest) = largest.filter(|place| values[*place] != 0.0) {
            let index = gpuemu_engine::oracle::structure::coordinates(largest, tensor.shape());
            let value = tensor_view::element(DType::F64, values[largest].to_bits());
            text.push_str(&format!("largest at {index:?}: {value}\n"));
        }
        Ok(text)
    }
}

/// NaN is further away than any number.
fn size(difference: f64) -> f64 {
    if difference.is_nan() { f64::INFINITY } else { difference.abs() }
}

/// An element minus what is expected; 0 where both are NaN, or the same infinity.
fn difference(dtype: DType, bits: u64, expected: f64) -> f64 {
    let actual = dtype.decode(bits);
    if actual == expected && dtype.is_float() || actual.is_nan() && expected.is_nan() {
        return 0.0;
    }
    let exact = !dtype.is_float() && expected.fract() == 0.0 && expected.abs() < 1e30;
    match tensor_view::element(dtype, bits).parse::<i128>() {
        // As float64 numbers, neighbours beyond 2^53 would look the same.
        Ok(actual) if exact => (actual - expected as i128) as f64,
        _ => actual - expected,
    }
}

fn positions(tensor: &Tensor) -> Vec<usize> {
    let mut positions = Vec::with_capacity(tensor.len());
    let (shape, strides) = (tensor.shape(), tensor.strides());
    gpuemu_tensor::tensor::for_each_position(shape, strides, tensor.offset(), |position| positions.push(position));
    positions
}

fn shown(name: &str, slice: &str, tensor: &Tensor) -> String {
    let slice = if slice.is_empty() || slice.starts_with('[') { slice.to_string() } else { format!("[{slice}]") };
    format!("{name}{slice} {} {:?}\n{}", tensor.dtype(), tensor.shape(), tensor_view::text(tensor))
}

fn part(tensor: &Tensor, slice: &str) -> Result<Tensor, ExpectedError> {
    select(tensor, slice).map_err(|error| ExpectedError::plain(error.to_string()))
}

fn find<'a>(tensors: &'a NamedTensors, name: &str) -> Option<&'a Tensor> {
    tensors.iter().find(|(known, _)| known == name).map(|(_, tensor)| tensor)
}

fn named<'a>(kind: &str, tensors: &'a NamedTensors, name: &str) -> Result<&'a Tensor, ExpectedError> {
    let known = || tensors.iter().map(|(known, _)| known.as_str()).collect();
    find(tensors, name).ok_or_else(|| unknown(kind, name, known()))
}

fn unknown(kind: &str, name: &str, known: Vec<&str>) -> ExpectedError {
    let hint = match nearest(name, known.iter().copied()) {
        Some(meant) => format!("did you mean '{meant}'?"),
        None if known.is_empty() => "there is none at all".to_string(),
        None => format!("known: {}", known.join(", ")),
    };
    ExpectedError::new(format!("there is no {kind} '{name}'"), hint)
}

/// Tensors of an answer.
pub fn read_tensors(named: &NamedTensorData) -> Result<NamedTensors, ExpectedError> {
    named.0.iter().map(|(name, data)| Ok((name.clone(), read_tensor(name, data)?))).collect()
}

fn read_tensor(name: &str, data: &TensorData) -> Result<Tensor, ExpectedError> {
    let no_shared_memory = |_: &_| Err("it is not used in answers".to_string());
    data.tensor(&[], no_shared_memory)
        .map_err(|error| ExpectedError::plain(format!("the tensor '{name}' cannot be read: {error}")))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn differences_are_exact_beyond_what_float64_can_tell_apart() {
        let large = (1u64 << 60) + 1;
        assert_eq!(difference(DType::I64, large, (1u64 << 60) as f64), 1.0);
        assert_eq!(difference(DType::F32, DType::F32.encode(f64::NAN), f64::NAN), 0.0);
        assert_eq!(difference(DType::F32, DType::F32.encode(f64::INFINITY), f64::INFINITY), 0.0);
        assert!(difference(DType::F32, DType::F32.encode(1.0), f64::NAN).is_nan());
        assert_eq!(difference(DType::Bool, 1, 0.0), 1.0);
    }
}
