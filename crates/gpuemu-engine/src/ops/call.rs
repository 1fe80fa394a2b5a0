//! What a reference sees of a case.

use thiserror::Error;

use gpuemu_tensor::{DType, Tensor};

use super::expectation::Expectation;
use crate::case::Case;
use crate::schema::{Domain, Expression, Parameters, Precision, Schema, Sizes, TensorSpec, Units};

/// Why an op could not say what to expect.
#[derive(Debug, Clone, PartialEq, Error)]
pub enum OpError {
    /// An input that the op needs is not there.
    #[error("input '{0}' is missing")]
    MissingInput(String),
    /// A dim that the op needs has no size.
    #[error("dim '{0}' has no size")]
    MissingSize(String),
    /// A parameter that the op needs is not there, or not of its type.
    #[error("parameter '{0}' is missing or not of its type")]
    MissingParameter(String),
    /// An input has another shape than its sizes say.
    #[error("input '{input}' has shape {found:?}, but its sizes make {expected:?} of it")]
    InputShape { input: String, found: Vec<usize>, expected: Vec<usize> },
    /// An input has a value that its domain forbids.
    #[error("input '{input}' has {value} at {index:?}, outside of {domain}")]
    Domain {
        input: String,
        /// Index of the element, by dims.
        index: Vec<usize>,
        value: f64,
        domain: String,
    },
    /// The reference does not fit the signature.
    #[error("the reference of '{op}' returned {found} elements for output '{output}', which has {expected}")]
    Reference {
        op: String,
        output: String,
        found: usize,
        /// Elements of the output.
        expected: usize,
    },
    /// A reference outside of this library gave no answer.
    #[error("the reference of '{op}' failed: {message}")]
    ReferenceFailed {
        op: String,
        /// What went wrong, in the reference's own words.
        message: String,
    },
    /// The bound would say nothing.
    #[error(
        "no bound: summing {terms} terms with unit roundoff {unit_roundoff:e} may lose more than a tenth of the result; declare the order of summation or accumulate in a wider dtype"
    )]
    BoundRefused {
        terms: usize,
        /// Unit roundoff of the accumulator.
        unit_roundoff: f64,
    },
}

/// A case as a reference sees it: inputs as row-major `f64`, sizes, parameters, precision.
pub struct Call<'a> {
    schema: &'a Schema,
    case: &'a Case,
    sizes: &'a Sizes,
    parameters: &'a Parameters,
    inputs: Vec<Option<Vec<f64>>>,
    present: &'a [String],
    /// The precision class of the kernel.
    pub precision: &'a Precision,
    pub units: Units,
    /// Dtype of the case.
    pub dtype: DType,
}

impl<'a> Call<'a> {
    /// Decodes a case's inputs and checks them against their domains.
    pub fn new(schema: &'a Schema, case: &'a Case, precision: &'a Precision) -> Result<Self, OpError> {
        let descriptor = &case.descriptor;
        let mut inputs = Vec::with_capacity(case.inputs.len());
        if case.inputs.len() != schema.inputs.len() {
            let first_missing = schema.inputs.get(case.inputs.len()).map(|spec| spec.name.clone());
            return Err(OpError::MissingInput(first_missing.unwrap_or_default()));
        }
        for (spec, tensor) in schema.inputs.iter().zip(&case.inputs) {
            check_shape(spec, tensor.as_ref(), &descriptor.sizes)?;
            let values = tensor.as_ref().map(|tensor| tensor.to_f64());
            if let Some(values) = &values {
                let shape = tensor.as_ref().map_or(&[][..], |tensor| tensor.shape());
                check_domain(spec, &descriptor.sizes, &descriptor.parameters, shape, values)?;
            }
            inputs.push(values);
        }
        Ok(Self {
            schema,
            case,
            sizes: &descriptor.sizes,
            parameters: &descriptor.parameters,
            inputs,
            present: &descriptor.present,
            precision,
            units: precision.units(descriptor.dtype),
            dtype: descriptor.dtype,
        })
    }

    /// The case itself, for a reference that runs outside of this library.
    pub fn case(&self) -> &'a Case {
        self.case
    }

    pub fn input(&self, name: &str) -> Result<&[f64], OpError> {
        self.optional(name).ok_or_else(|| OpError::MissingInput(name.to_string()))
    }

    /// An optional input's values.
    pub fn optional(&self, name: &str) -> Option<&[f64]> {
        let index = self.schema.inputs.iter().position(|spec| spec.name == name)?;
        self.inputs.get(index)?.as_deref()
    }

    /// Whether an optional output is asked for.
    pub fn wants(&self, output: &str) -> bool {
        self.present.iter().any(|name| name == output)
    }

    /// The size of a dim.
    pub fn size(&self, name: &str) -> Result<usize, OpError> {
        self.sizes.get(name).ok_or_else(|| OpError::MissingSize(name.to_string()))
    }

    /// The product of the leading dims of `...`.
    pub fn batch_count(&self) -> usize {
        self.sizes.batch_count()
    }

    /// A parameter that is a number.
    pub fn float(&self, name: &str) -> Result<f64, OpError> {
        self.parameters.float(name).ok_or_else(|| OpError::MissingParameter(name.to_string()))
    }

    /// A parameter that is a whole number.
    pub fn int(&self, name: &str) -> Result<i64, OpError> {
        self.parameters.int(name).ok_or_else(|| OpError::MissingParameter(name.to_string()))
    }

    /// A parameter that is a flag.
    pub fn flag(&self, name: &str) -> bool {
        self.parameters.flag(name)
    }

    /// F: the error of summing `terms` addends in the declared order, in units of u.
    pub fn summation(&self, terms: usize) -> Result<f64, OpError> {
        let refused = OpError::BoundRefused { terms, unit_roundoff: self.units.u };
        self.precision.summation(terms, &self.units).ok_or(refused)
    }

    /// The expectation of an elementwise op: `formula` gives y and δ (in full, not in u).
    pub fn elementwise(&self, input: &str, formula: impl Fn(f64) -> (f64, f64)) -> Result<Vec<Expectation>, OpError> {
        let inputs = self.input(input)?;
        let mut expectation = Expectation { values: vec![0.0; inputs.len()], ..Expectation::default() };
        expectation.delta = vec![0.0; inputs.len()];
        let mut bounded = true;
        // Written in place, without a branch, so that the compiler can work on many elements at once.
        for ((x, value), delta) in inputs.iter().zip(&mut expectation.values).zip(&mut expectation.delta) {
            let (y, bound) = formula(*x);
            *value = y;
            *delta = if y.is_finite() { bound } else { 0.0 };
            bounded &= !y.is_finite() | bound.is_finite();
        }
        if !bounded {
            expectation = Expectation::with_capacity(inputs.len());
            for x in inputs {
                let (value, delta) = formula(*x);
                expectation.push(value, delta);
            }
        }
        Ok(vec![expectation])
    }
}

/// Refuses inputs with values that their domains forbid: of a case that somebody else made, before it is judged.
pub fn check_domains(schema: &Schema, case: &Case) -> Result<(), OpError> {
    for (spec, tensor) in schema.inputs.iter().zip(&case.inputs) {
        let Some(tensor) = tensor.as_ref().filter(|_| !matches!(spec.domain, Domain::Real | Domain::Whole)) else {
            continue;
        };
        check_shape(spec, Some(tensor), &case.descriptor.sizes)?;
        let descriptor = &case.descriptor;
        check_domain(spec, &descriptor.sizes, &descriptor.parameters, tensor.shape(), &tensor.to_f64())?;
    }
    Ok(())
}

/// Whether every value is a whole number small enough to be exact in every float format here.
pub(super) fn all_integers(values: &[f64]) -> bool {
    values.iter().all(|value| value.abs() <= 2048.0 && value.trunc() == *value)
}

/// References index inputs by their sizes: a shape that differs must be refused before.
fn check_shape(spec: &TensorSpec, tensor: Option<&Tensor>, sizes: &Sizes) -> Result<(), OpError> {
    let missing = || OpError::MissingInput(spec.name.clone());
    let Some(tensor) = tensor else { return if spec.optional { Ok(()) } else { Err(missing()) } };
    let expected = spec.shape(sizes).ok_or_else(|| OpError::MissingSize(spec.name.clone()))?;
    if tensor.shape() == expected {
        return Ok(());
    }
    Err(OpError::InputShape { input: spec.name.clone(), found: tensor.shape().to_vec(), expected })
}

fn check_domain(
    spec: &TensorSpec,
    sizes: &Sizes,
    parameters: &Parameters,
    shape: &[usize],
    values: &[f64],
) -> Result<(), OpError> {
    let describe;
    let size = |expression: &Expression| {
        expression.evaluate(sizes).ok_or_else(|| OpError::MissingSize(expression.to_string()))
    };
    let refused = |flat: usize, domain: String| {
        let index = position(shape, flat);
        Err(OpError::Domain { input: spec.name.clone(), index, value: values[flat], domain })
    };
    let allowed: Box<dyn Fn(f64) -> bool> = match &spec.domain {
        Domain::Real | Domain::Whole => return Ok(()),
        Domain::NonNegativeUnless { flag } if parameters.flag(flag) => return Ok(()),
        Domain::Offsets { end } => {
            let last = size(end)?;
            let described = format!("offsets: 0 first, {end} ({last}) last, never decreasing");
            let whole = |value: f64| value >= 0.0 && value.trunc() == value;
            let wrong = (0..values.len()).find(|flat| {
                let before = if *flat == 0 { 0.0 } else { values[flat - 1] };
                let first = *flat == 0 && values[0] != 0.0;
                let ending = *flat + 1 == values.len() && values[*flat] != last as f64;
                first || ending || values[*flat] < before || !whole(values[*flat])
            });
            return wrong.map_or(Ok(()), |flat| refused(flat, described));
        }
        Domain::Permutation { count } => {
            let count = size(count)?;
            let described = format!("a permutation of 0..{count}: each number once");
            for (row, numbers) in values.chunks(shape.last().copied().unwrap_or(1).max(1)).enumerate() {
                let mut seen = vec![false; count];
                for (column, value) in numbers.iter().enumerate() {
                    let place = (*value >= 0.0 && value.trunc() == *value).then_some(*value as usize);
                    let slot = place.and_then(|place| seen.get_mut(place));
                    match slot {
                        Some(slot) if !*slot => *slot = true,
                        _ => return refused(row * numbers.len() + column, described),
                    }
                }
            }
            return Ok(());
        }
        Domain::Positive => {
            describe = "the positive numbers".to_string();
            Box::new(|value| value > 0.0)
        }
        Domain::NonNegative | Domain::NonNegativeUnless { .. } => {
            describe = "the numbers from 0".to_string();
            Box::new(|value| value >= 0.0 || value.is_nan())
        }
        Domain::NonPositive => {
            describe = "the numbers up to 0".to_string();
            Box::new(|value| value <= 0.0 || value.is_nan())
        }
        Domain::Probability => {
            describe = "0 to 1".to_string();
            Box::new(|value| (0.0..=1.0).contains(&value))
        }
        Domain::Range { low, high, other } => {
            let (first, end) = (size(low)?, size(high)?);
            let inside = move |value: f64| value >= first as f64 && value < end as f64;
            match other.as_ref().and_then(|name| parameters.int(name).map(|value| (name, value))) {
                None => {
                    describe = format!("{low}..{high} ({first}..{end})");
                    Box::new(inside)
                }
                Some((name, other)) => {
                    describe = format!("{low}..{high} ({first}..{end}) or {name} ({other})");
                    Box::new(move |value| inside(value) || value == other as f64)
                }
            }
        }
    };
    match values.iter().position(|value| !allowed(*value)) {
        None => Ok(()),
        Some(flat) => refused(flat, describe),
    }
}

/// The index of an element, by dims.
fn position(shape: &[usize], flat: usize) -> Vec<usize> {
    let mut rest = flat;
    let mut index: Vec<usize> = shape
        .iter()
        .rev()
        .map(|size| {
            let here = rest % size.max(&1);
            rest /= size.max(&1);
            here
        })
        .collect();
    index.reverse();
    index
}
