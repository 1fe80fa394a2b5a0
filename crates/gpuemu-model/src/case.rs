//! What a case is: everything that decides its inputs, on any machine.

use std::fmt;

use gpuemu_tensor::{DType, Layout};
use serde::{Deserialize, Serialize};

use crate::schema::JsonSchema;
use crate::{Strategy, number_text, seed_text};

/// In place of a generator's version: the inputs were given, and nothing makes them again.
pub const GIVEN: u32 = 0;

/// Everything that decides a case's inputs.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(default)]
pub struct CaseDescriptor {
    /// Version of the generator; 0 where the inputs were given and nothing makes them again.
    pub generator: u32,
    /// The op whose schema it is drawn from.
    pub op: String,
    /// Fingerprint of the op's schema.
    pub schema: String,
    /// The case's seed.
    #[serde(with = "seed_text")]
    #[schemars(with = "seed_text::SeedText")]
    pub seed: u64,
    /// Dtype of the tensors whose dtype the signature leaves open.
    pub dtype: DType,
    /// Sizes of its dims.
    pub sizes: Sizes,
    /// Layout of each input, by name; contiguous where not named.
    pub layouts: Vec<(String, Layout)>,
    /// The value strategy, resolved.
    #[serde(alias = "strategy")]
    pub values: Strategy,
    /// Arguments that are not tensors.
    pub parameters: Parameters,
    /// Optional inputs and outputs that take part.
    pub present: Vec<String>,
}

impl Default for CaseDescriptor {
    fn default() -> Self {
        Self::of("", DType::F32, 0)
    }
}

impl CaseDescriptor {
    /// A case of which no more is known, and whose inputs nothing makes again.
    pub fn of(op: &str, dtype: DType, seed: u64) -> Self {
        Self {
            generator: GIVEN,
            op: op.to_string(),
            schema: String::new(),
            seed,
            dtype,
            sizes: Sizes::default(),
            layouts: Vec::new(),
            values: Strategy::Regular,
            parameters: Parameters::default(),
            present: Vec::new(),
        }
    }

    pub fn layout_of(&self, input: &str) -> Layout {
        self.layouts.iter().find(|(name, _)| name == input).map_or(Layout::Contiguous, |(_, layout)| *layout)
    }
}

/// The sizes of a case's dims: the named ones, and those that `...` stands for.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct Sizes {
    /// Leading sizes that `...` stands for.
    pub batch: Vec<usize>,
    /// Sizes of named dims, in order of first appearance.
    pub named: Vec<(String, usize)>,
}

impl Sizes {
    /// The size of a named dim.
    pub fn get(&self, name: &str) -> Option<usize> {
        self.named.iter().find(|(known, _)| known == name).map(|(_, size)| *size)
    }

    /// Sets the size of a named dim.
    pub fn set(&mut self, name: &str, size: usize) {
        match self.named.iter_mut().find(|(known, _)| known == name) {
            Some((_, old)) => *old = size,
            None => self.named.push((name.to_string(), size)),
        }
    }

    /// The product of the leading sizes.
    pub fn batch_count(&self) -> usize {
        self.batch.iter().product()
    }
}

impl fmt::Display for Sizes {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        let mut separator = "";
        if !self.batch.is_empty() {
            let batch: Vec<String> = self.batch.iter().map(ToString::to_string).collect();
            write!(formatter, "...={}", batch.join("x"))?;
            separator = " ";
        }
        for (name, size) in &self.named {
            write!(formatter, "{separator}{name}={size}")?;
            separator = " ";
        }
        Ok(())
    }
}

/// The value of a parameter.
#[derive(Debug, Clone, Copy, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(untagged)]
pub enum Scalar {
    Bool(bool),
    Int(i64),
    Float(
        #[serde(with = "number_text")]
        #[schemars(with = "number_text::NumberText")]
        f64,
    ),
}

impl fmt::Display for Scalar {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Scalar::Bool(value) => write!(formatter, "{value}"),
            Scalar::Int(value) => write!(formatter, "{value}"),
            Scalar::Float(value) => write!(formatter, "{value:?}"),
        }
    }
}

/// The values of a case's parameters.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct Parameters(pub Vec<(String, Scalar)>);

impl Parameters {
    /// The value of a parameter.
    pub fn get(&self, name: &str) -> Option<Scalar> {
        self.0.iter().find(|(known, _)| known == name).map(|(_, value)| *value)
    }

    pub fn set(&mut self, name: &str, value: Scalar) {
        match self.0.iter_mut().find(|(known, _)| known == name) {
            Some((_, old)) => *old = value,
            None => self.0.push((name.to_string(), value)),
        }
    }

    /// A number; whole numbers count.
    pub fn float(&self, name: &str) -> Option<f64> {
        match self.get(name)? {
            Scalar::Float(value) => Some(value),
            Scalar::Int(value) => Some(value as f64),
            Scalar::Bool(_) => None,
        }
    }

    pub fn int(&self, name: &str) -> Option<i64> {
        match self.get(name)? {
            Scalar::Int(value) => Some(value),
            _ => None,
        }
    }

    /// A flag; absent is false.
    pub fn flag(&self, name: &str) -> bool {
        matches!(self.get(name), Some(Scalar::Bool(true)))
    }
}

impl fmt::Display for Parameters {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        let shown: Vec<String> = self.0.iter().map(|(name, value)| format!("{name}={value}")).collect();
        formatter.write_str(&shown.join(" "))
    }
}
