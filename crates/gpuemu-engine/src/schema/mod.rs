//! What an op is: its tensors, dims, parameters, precision and properties, described once.

pub mod dimension;
pub mod parameter;
pub mod property;
pub mod signature;
pub mod tensor_spec;

use serde::Serialize;

use gpuemu_common::DType;

pub use dimension::{DimensionSpec, Expression, Sizes};
pub use gpuemu_common::precision::{FinalRounding, Precision, SummationOrder, Units, VarianceForm};
pub use parameter::{ParameterSpec, Parameters, Scalar};
pub use property::Property;
pub use signature::SignatureError;
pub use tensor_spec::{Domain, TensorSpec};

use crate::case::values::Strategy;

/// How NaN in an input reaches the output.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum NanPolicy {
    /// A NaN makes every output that depends on it NaN.
    Propagate,
    /// NaNs are skipped, as `fmax` does.
    Ignore,
}

/// The description of an op.
#[derive(Debug, Clone, Serialize)]
pub struct Schema {
    /// The op's name.
    pub name: String,
    /// Other names it goes by.
    pub aliases: Vec<String>,
    /// One sentence.
    pub summary: String,
    /// What it computes, as a formula.
    pub formula: String,
    /// The signature as written.
    pub signature: String,
    /// Input tensors, in order.
    pub inputs: Vec<TensorSpec>,
    /// Output tensors, in order.
    pub outputs: Vec<TensorSpec>,
    /// Non-tensor parameters.
    pub parameters: Vec<ParameterSpec>,
    /// Named dims and how to sample them.
    pub dimensions: Vec<DimensionSpec>,
    /// Dtypes of the tensors whose dtype the signature leaves open.
    pub dtypes: Vec<DType>,
    /// What a correct kernel may do, unless it declares otherwise.
    pub precision: Precision,
    /// How NaN travels.
    pub nan_policy: NanPolicy,
    /// Structural properties that hold, used by the metamorphic pass.
    pub properties: Vec<Property>,
    /// Value strategies that amplify this op's usual bugs, used by escalation.
    pub amplifiers: Vec<Strategy>,
    /// Bugs that kernels of this op usually have.
    pub usual_bugs: Vec<String>,
}

impl Schema {
    /// A schema with the tensors, dims and parameters of a signature and defaults for the rest.
    pub fn from_signature(name: &str, signature: &str) -> Result<Self, SignatureError> {
        let parsed = signature::parse(signature)?;
        Ok(Self {
            name: name.to_string(),
            aliases: Vec::new(),
            summary: String::new(),
            formula: String::new(),
            signature: signature.to_string(),
            inputs: parsed.inputs,
            outputs: parsed.outputs,
            parameters: parsed.parameters,
            dimensions: parsed.dimensions,
            dtypes: vec![DType::F32, DType::F16, DType::BF16, DType::F64],
            precision: Precision::default(),
            nan_policy: NanPolicy::Propagate,
            properties: Vec::new(),
            amplifiers: Vec::new(),
            usual_bugs: Vec::new(),
        })
    }

    /// The schema of a built-in op, whose signature the registry's test has parsed.
    #[allow(clippy::expect_used, reason = "a constant of this crate; `every_builtin_signature_parses` checks each")]
    pub(crate) fn builtin(name: &str, signature: &str) -> Self {
        Self::from_signature(name, signature).expect("the signature of a built-in op parses")
    }

    /// Adds names the op also goes by.
    pub fn alias(mut self, names: &[&str]) -> Self {
        self.aliases.extend(names.iter().map(ToString::to_string));
        self
    }

    /// Sets the sentence and the formula.
    pub fn describe(mut self, summary: &str, formula: &str) -> Self {
        self.summary = summary.to_string();
        self.formula = formula.to_string();
        self
    }

    /// Marks dims as reduced: they get long sizes, and their order of summation matters.
    pub fn reduces(mut self, names: &[&str]) -> Self {
        for dimension in &mut self.dimensions {
            if names.contains(&dimension.name.as_str()) {
                dimension.reduced = true;
            }
        }
        self
    }

    /// Sets the smallest size of a dim.
    pub fn at_least(mut self, name: &str, minimum: usize) -> Self {
        for dimension in &mut self.dimensions {
            if dimension.name == name {
                dimension.minimum = minimum;
            }
        }
        self
    }

    /// Sets the largest size of a dim.
    pub fn at_most(mut self, name: &str, maximum: usize) -> Self {
        for dimension in &mut self.dimensions {
            if dimension.name == name {
                dimension.maximum = maximum;
            }
        }
        self
    }

    /// Gives the values that a parameter is tested with, its default among them.
    pub fn choices(mut self, name: &str, choices: &[Scalar]) -> Self {
        for parameter in &mut self.parameters {
            if parameter.name == name {
                parameter.choices = choices.to_vec();
            }
        }
        self
    }

    /// Names properties that hold.
    pub fn holds(mut self, properties: &[Property]) -> Self {
        self.properties.extend_from_slice(properties);
        self
    }

    /// Names strategies that amplify this op's usual bugs.
    pub fn amplified_by(mut self, strategies: &[Strategy]) -> Self {
        self.amplifiers.extend_from_slice(strategies);
        self
    }

    /// Names bugs that kernels of this op usually have.
    pub fn usual_bugs(mut self, bugs: &[&str]) -> Self {
        self.usual_bugs.extend(bugs.iter().map(ToString::to_string));
        self
    }

    /// The description of a dim.
    pub fn dimension(&self, name: &str) -> Option<&DimensionSpec> {
        self.dimensions.iter().find(|dimension| dimension.name == name)
    }

    /// Whether some tensor has `...`, that is any number of leading dims.
    pub fn has_batch(&self) -> bool {
        self.inputs.iter().chain(&self.outputs).any(|tensor| tensor.batch)
    }

    /// A fingerprint of everything that decides which case a seed gives.
    pub fn fingerprint(&self) -> String {
        let identity = serde_json::json!({
            "name": self.name, "inputs": self.inputs, "outputs": self.outputs,
            "parameters": self.parameters, "dimensions": self.dimensions,
        });
        gpuemu_common::rng::blake2b(8).hash(identity.to_string().as_bytes()).to_hex().to_string()
    }
}
