//! A case: one concrete call of an op, rebuilt from its descriptor on any machine.

mod avx512;
pub mod fill;
pub mod given;
pub mod sampler;
pub mod shapes;
pub mod values;

use gpuemu_model::json::ToJson;
use gpuemu_model::seed_text;
use gpuemu_tensor::{DType, Tensor, TensorError};
use serde::{Deserialize, Serialize};
use serde_json::Value;
use thiserror::Error;

use crate::schema::{Domain, Parameters, Schema, Sizes, TensorSpec};

pub use gpuemu_tensor::Layout;
pub use sampler::{Coverage, Sampler};
pub use values::Strategy;

/// The version of everything that turns a seed into bytes; a change of any of it changes this.
pub const GENERATOR_VERSION: u32 = 1;

/// In place of a version: the inputs were given, and nothing makes them again.
pub const GIVEN: u32 = 0;

/// Everything that decides a case's inputs.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct CaseDescriptor {
    /// Version of the generator.
    pub generator: u32,
    pub op: String,
    /// Fingerprint of the op's schema.
    pub schema: String,
    /// The case seed; a string in JSON, where numbers lose their upper bits.
    #[serde(with = "seed_text")]
    pub seed: u64,
    /// Dtype of the tensors whose dtype the signature leaves open.
    pub dtype: DType,
    pub sizes: Sizes,
    /// Layout of each input, by name; contiguous where not named.
    pub layouts: Vec<(String, Layout)>,
    /// The value strategy, resolved.
    pub strategy: Strategy,
    pub parameters: Parameters,
    /// Optional inputs and outputs that take part.
    pub present: Vec<String>,
}

impl ToJson for CaseDescriptor {
    fn to_json(&self) -> Result<String, serde_json::Error> {
        serde_json::to_string(self)
    }

    /// Every result carries one: not by way of a text.
    fn to_json_value(&self) -> Result<Value, serde_json::Error> {
        serde_json::to_value(self)
    }
}

gpuemu_model::read_json!(CaseDescriptor);

/// Elements that all tensors of a case may have together.
pub const MOST_ELEMENTS: usize = 1 << 31;

/// Entries that an empty tensor may have in its other dims: loops over them compute nothing and still take time.
pub const MOST_ROWS: usize = 1 << 26;

impl CaseDescriptor {
    /// Refuses sizes that nobody can compute, wherever they come from, before anything is allocated.
    pub fn check_size(&self, schema: &Schema) -> Result<(), CaseError> {
        let too_large = || CaseError::TooLarge { sizes: self.sizes.to_string() };
        let mut elements = 0usize;
        for spec in schema.inputs.iter().chain(&schema.outputs).filter(|spec| self.has(spec)) {
            let impossible = || CaseError::Shape { tensor: spec.name.clone(), sizes: self.sizes.to_string() };
            let shape = spec.shape(&self.sizes).ok_or_else(impossible)?;
            let occupied = shape.iter().filter(|size| **size > 0).fold(1usize, |all, size| all.saturating_mul(*size));
            if !shape.contains(&0) {
                elements = elements.saturating_add(occupied);
            } else if occupied > MOST_ROWS {
                return Err(too_large());
            }
        }
        if elements > MOST_ELEMENTS { Err(too_large()) } else { Ok(()) }
    }

    pub fn layout_of(&self, input: &str) -> Layout {
        self.layouts.iter().find(|(name, _)| name == input).map_or(Layout::Contiguous, |(_, layout)| *layout)
    }

    /// Whether a tensor of the schema takes part.
    pub fn has(&self, tensor: &TensorSpec) -> bool {
        !tensor.optional || self.present.contains(&tensor.name)
    }

    /// Layouts that are not contiguous, for reports: those that the inputs really have.
    pub fn layout_summary(&self, schema: &Schema) -> String {
        let mut unusual = Vec::new();
        for spec in schema.inputs.iter().filter(|spec| self.has(spec)) {
            let shape = spec.shape(&self.sizes).unwrap_or_default();
            let layout = self.layout_of(&spec.name).for_shape(&shape);
            if layout != Layout::Contiguous {
                unusual.push(format!("{}:{layout}", spec.name));
            }
        }
        if unusual.is_empty() { "contiguous".to_string() } else { unusual.join(",") }
    }
}

/// A case with its inputs.
#[derive(Debug, Clone, PartialEq)]
pub struct Case {
    pub descriptor: CaseDescriptor,
    /// Inputs in the order of the schema; `None` where an optional one is absent.
    pub inputs: Vec<Option<Tensor>>,
}

impl Case {
    /// The inputs that take part, by name.
    pub fn named_inputs(&self, schema: &Schema) -> Vec<(String, Tensor)> {
        let pairs = schema.inputs.iter().zip(&self.inputs);
        pairs.filter_map(|(spec, tensor)| Some((spec.name.clone(), tensor.clone()?))).collect()
    }
}

/// Why a descriptor cannot be turned into a case.
#[derive(Debug, Clone, PartialEq, Eq, Error)]
pub enum CaseError {
    /// The shape of a tensor cannot be computed from the sizes.
    #[error("the shape of '{tensor}' cannot be computed from the sizes {sizes}")]
    Shape { tensor: String, sizes: String },
    /// A tensor could not be made.
    #[error("input '{tensor}': {source}")]
    Tensor { tensor: String, source: Box<TensorError> },
    /// More than one machine computes in reasonable time and memory.
    #[error("a case with {sizes} is too large: at most {MOST_ELEMENTS} elements, and {MOST_ROWS} rows of nothing")]
    TooLarge { sizes: String },
    /// The inputs were given by a client: no seed makes them.
    #[error("the inputs of this case were given by a client and not kept: they cannot be made again")]
    Given,
    /// The descriptor was made by another generator.
    #[error("the case was generated by version {found} of the generator, this is version {GENERATOR_VERSION}")]
    Generator { found: u32 },
}

/// Builds a case's inputs.
pub fn materialise(schema: &Schema, descriptor: &CaseDescriptor) -> Result<Case, CaseError> {
    build(schema, descriptor, None)
}

/// Builds a case whose real-valued inputs follow one given recipe rather than a strategy.
pub fn materialise_with(
    schema: &Schema,
    descriptor: &CaseDescriptor,
    recipe: &values::Recipe,
) -> Result<Case, CaseError> {
    build(schema, descriptor, Some(recipe))
}

fn build(schema: &Schema, descriptor: &CaseDescriptor, recipe: Option<&values::Recipe>) -> Result<Case, CaseError> {
    if descriptor.generator == GIVEN {
        return Err(CaseError::Given);
    }
    if descriptor.generator != GENERATOR_VERSION {
        return Err(CaseError::Generator { found: descriptor.generator });
    }
    descriptor.check_size(schema)?;
    let mut inputs = Vec::with_capacity(schema.inputs.len());
    for spec in &schema.inputs {
        inputs.push(if descriptor.has(spec) { Some(input(spec, descriptor, recipe)?) } else { None });
    }
    Ok(Case { descriptor: descriptor.clone(), inputs })
}

fn input(spec: &TensorSpec, descriptor: &CaseDescriptor, given: Option<&values::Recipe>) -> Result<Tensor, CaseError> {
    let impossible = || CaseError::Shape { tensor: spec.name.clone(), sizes: descriptor.sizes.to_string() };
    let shape = spec.shape(&descriptor.sizes).ok_or_else(impossible)?;
    let dtype = spec.dtype_in(descriptor.dtype);
    let layout = descriptor.layout_of(&spec.name).for_shape(&shape);
    let named = |source| CaseError::Tensor { tensor: spec.name.clone(), source: Box::new(source) };
    let stored = layout.stored_shape(&shape);
    let count = gpuemu_tensor::tensor::element_count(dtype, &stored).map_err(named)?;
    let (seed, strategy) = (descriptor.seed, descriptor.strategy);
    let recipe = match &spec.domain {
        _ if dtype == DType::Bool => values::flag_recipe(seed, &spec.name),
        Domain::Range { low, high, other } => {
            let low = low.evaluate(&descriptor.sizes).ok_or_else(impossible)?;
            let high = high.evaluate(&descriptor.sizes).ok_or_else(impossible)?;
            let other = other.as_ref().and_then(|name| descriptor.parameters.int(name));
            values::range_recipe(strategy, low, high).or(other)
        }
        Domain::Whole => values::whole_recipe(strategy, dtype),
        Domain::Offsets { end } => {
            let end = end.evaluate(&descriptor.sizes).ok_or_else(impossible)?;
            values::range_recipe(strategy, 0, end + 1)
        }
        // Ranks are taken of these below.
        Domain::Permutation { .. } => values::range_recipe(Strategy::Regular, 0, 1 << 31),
        Domain::Probability => values::Recipe::Uniform { low: 0.0, width: 1.0 },
        Domain::Real
        | Domain::Positive
        | Domain::NonNegative
        | Domain::NonNegativeUnless { .. }
        | Domain::NonPositive => match given {
            Some(recipe) => recipe.clone(),
            None => values::recipe(strategy, dtype, seed, &spec.name),
        },
    };
    let mut elements = fill::fill(dtype, &recipe, seed, &spec.name, count);
    arrange(spec, dtype, descriptor, stored.last().copied().unwrap_or(1), &mut elements);
    layout.place(dtype, &shape, &elements).map_err(named)
}

/// Moves elements into a domain that is not drawn element by element. One-sided ones get the absolute value or its
/// negative, and one in place of a zero or NaN where only positive numbers are allowed.
fn arrange(spec: &TensorSpec, dtype: DType, descriptor: &CaseDescriptor, width: usize, elements: &mut [u8]) {
    let mut values = Vec::new();
    match &spec.domain {
        Domain::NonNegativeUnless { flag } if descriptor.parameters.flag(flag) => return,
        Domain::NonPositive => {
            gpuemu_tensor::tensor::decode_slice(dtype, elements, &mut values);
            values.iter_mut().for_each(|value| *value = -value.abs());
        }
        Domain::Positive | Domain::NonNegative | Domain::NonNegativeUnless { .. } => {
            gpuemu_tensor::tensor::decode_slice(dtype, elements, &mut values);
            for value in &mut values {
                *value = value.abs();
                if spec.domain == Domain::Positive && (value.is_nan() || *value == 0.0) {
                    *value = 1.0;
                }
            }
        }
        Domain::Offsets { end } => {
            gpuemu_tensor::tensor::decode_slice(dtype, elements, &mut values);
            values.sort_by(f64::total_cmp);
            if let (Some(end), [first, .., last]) = (end.evaluate(&descriptor.sizes), &mut values[..]) {
                (*first, *last) = (0.0, end as f64);
            }
        }
        Domain::Permutation { count } => {
            gpuemu_tensor::tensor::decode_slice(dtype, elements, &mut values);
            let count = count.evaluate(&descriptor.sizes).unwrap_or(0);
            for row in values.chunks_exact_mut(width.max(1)) {
                let length = row.len();
                let mut order: Vec<usize> = (0..length).collect();
                order.sort_by(|left, right| row[*left].total_cmp(&row[*right]).then(left.cmp(right)));
                // Fewer than there are numbers spread over all of them, none twice.
                let spread = |place: usize| if count > length { place * count / length } else { place };
                row.iter_mut().zip(order).for_each(|(value, place)| *value = spread(place) as f64);
            }
        }
        Domain::Real | Domain::Probability | Domain::Range { .. } | Domain::Whole => return,
    }
    gpuemu_tensor::tensor::encode_slice(dtype, &values, elements);
}
