//! What an op is: its tensors, dims, parameters, precision and properties, described once.

pub mod dimension;
pub mod parameter;
pub mod property;
pub mod signature;
pub mod tensor_spec;

use serde::Serialize;

use gpuemu_tensor::DType;

pub use dimension::{DimensionSpec, Expression, Sizes};
pub use gpuemu_model::precision::{FinalRounding, Precision, SummationOrder, Units, VarianceForm};
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
    pub name: String,
    /// Other names it goes by.
    pub aliases: Vec<String>,
    pub summary: String,
    /// What it computes, as a formula.
    pub formula: String,
    /// The group of ops it belongs to; empty for ops that are not built in.
    pub family: String,
    /// Words by which it is found beside its names and summary.
    pub keywords: Vec<String>,
    /// What a tensor or parameter means, by its name.
    pub help: Vec<(String, String)>,
    /// δ in words: how far a correct kernel may be from the reference before its final rounding.
    pub bound: String,
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
            family: String::new(),
            keywords: Vec::new(),
            help: Vec::new(),
            bound: String::new(),
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

    /// Adds words by which the op is found.
    pub fn keywords(mut self, words: &[&str]) -> Self {
        self.keywords.extend(words.iter().map(ToString::to_string));
        self
    }

    /// Says what a tensor or parameter means.
    pub fn help(mut self, name: &str, meaning: &str) -> Self {
        self.help.push((name.to_string(), meaning.to_string()));
        self
    }

    /// Writes δ down.
    pub fn bounded_by(mut self, bound: &str) -> Self {
        self.bound = bound.to_string();
        self
    }

    /// Sets the dtypes that cases are drawn from.
    pub fn dtypes(mut self, dtypes: &[DType]) -> Self {
        self.dtypes = dtypes.to_vec();
        self
    }

    /// Sets the only sizes of a dim.
    pub fn sizes(mut self, name: &str, sizes: &[usize]) -> Self {
        for dimension in &mut self.dimensions {
            if dimension.name == name {
                dimension.choices = sizes.to_vec();
            }
        }
        assert!(self.dimension(name).is_some(), "{} has no dim '{name}'", self.name);
        self
    }

    /// Marks dims as reduced: they get long sizes, and their order of summation matters.
    pub fn reduces(mut self, names: &[&str]) -> Self {
        assert!(names.iter().all(|name| self.dimension(name).is_some()), "{}: a dim of {names:?}", self.name);
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
        assert!(self.dimension(name).is_some(), "{} has no dim '{name}'", self.name);
        self
    }

    /// Sets the largest size of a dim.
    pub fn at_most(mut self, name: &str, maximum: usize) -> Self {
        for dimension in &mut self.dimensions {
            if dimension.name == name {
                dimension.maximum = maximum;
            }
        }
        assert!(self.dimension(name).is_some(), "{} has no dim '{name}'", self.name);
        self
    }

    /// Gives the values that a parameter is tested with, its default among them.
    pub fn choices(mut self, name: &str, choices: &[Scalar]) -> Self {
        for parameter in &mut self.parameters {
            if parameter.name == name {
                parameter.choices = choices.to_vec();
            }
        }
        assert!(self.parameters.iter().any(|spec| spec.name == name), "{} has no '{name}'", self.name);
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

    /// The tensors of the signature, without dtypes, domains and parameters.
    pub fn tensors(&self) -> String {
        let join = |tensors: &[TensorSpec]| tensors.iter().map(TensorSpec::form).collect::<Vec<_>>().join(" ");
        format!("{} -> {}", join(&self.inputs), join(&self.outputs))
    }

    /// The description of a dim.
    pub fn dimension(&self, name: &str) -> Option<&DimensionSpec> {
        self.dimensions.iter().find(|dimension| dimension.name == name)
    }

    /// Parameters that stand in a dim or a domain: their values are sizes too.
    pub fn size_parameters(&self) -> impl Iterator<Item = &ParameterSpec> {
        let tensors = || self.inputs.iter().chain(&self.outputs);
        let used = move |name: &str| {
            let expressions = |tensor: &TensorSpec| {
                let mut all: Vec<Expression> = tensor.dimensions.clone();
                all.extend(tensor.domain.expressions().into_iter().cloned());
                all
            };
            tensors().flat_map(expressions).any(|expression| expression.names().contains(&name))
        };
        let whole = |spec: &&ParameterSpec| matches!(spec.default, Scalar::Int(_));
        self.parameters.iter().filter(whole).filter(move |spec| used(&spec.name))
    }

    /// Adds the parameters that are sizes to the sizes of a case.
    pub fn set_size_parameters(&self, parameters: &Parameters, sizes: &mut Sizes) {
        for spec in self.size_parameters() {
            if let Some(size) = parameters.int(&spec.name).and_then(|value| usize::try_from(value).ok()) {
                sizes.set(&spec.name, size);
            }
        }
    }

    /// The input that an output overwrites, if it is written in place.
    pub fn overwritten_by(&self, output: &TensorSpec) -> Option<usize> {
        self.inputs.iter().position(|input| input.name == output.name)
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
        gpuemu_tensor::rng::blake2b(8).hash(identity.to_string().as_bytes()).to_hex().to_string()
    }
}
