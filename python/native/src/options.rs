//! What a caller in Python says about the judging of an op, beside what cases are drawn from.

use std::collections::BTreeMap;

use gpuemu_config::Invariant;
use gpuemu_config::failure::Failure;
use gpuemu_engine::Tolerance;
use gpuemu_engine::schema::{Precision, Schema};
use gpuemu_model::nearest::nearest;
use gpuemu_model::settings::{FuzzConfig, ProjectReference};
use gpuemu_run::configured_op::ConfiguredOp;
use gpuemu_tensor::DType;
use serde::Deserialize;
use serde_json::{Map, Value};

/// An absolute and a relative tolerance.
#[derive(Debug, Clone, Copy, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Pair {
    atol: f64,
    rtol: f64,
}

/// Sizes of a dim: one, some, or a range.
#[derive(Debug, Clone, Deserialize)]
#[serde(untagged)]
pub enum Size {
    One(usize),
    Some(Vec<usize>),
    /// From the smallest to the largest.
    Range {
        minimum: usize,
        maximum: usize,
    },
}

/// How an op is judged and what its cases are drawn from.
#[derive(Debug, Clone, Default, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct Options {
    pub project: ProjectReference,
    /// What cases are drawn from.
    pub settings: FuzzConfig,
    /// The declared precision class.
    pub precision: Option<Precision>,
    /// Tolerances by dtype in place of the bound.
    pub tolerances: BTreeMap<DType, Pair>,
    /// Structural properties that are demanded.
    pub invariants: Vec<Invariant>,
    /// Sizes of dims by name.
    pub sizes: BTreeMap<String, Size>,
    /// Elements, and work beyond them, that a case may take.
    pub budget: Option<usize>,
    /// The line that runs a case again, `{seed}` standing for its seed.
    pub replay: Option<String>,
    /// Parameters that are fixed.
    pub parameters: Map<String, Value>,
}

impl Options {
    /// Applies everything but the settings, which decided how the op was opened.
    pub fn apply(&self, op: &mut ConfiguredOp) -> Result<(), Failure> {
        if let Some(precision) = &self.precision {
            op.subject.precision = precision.clone();
        }
        for (dtype, pair) in &self.tolerances {
            let sound = |part: f64| part.is_finite() && part >= 0.0;
            if !sound(pair.atol) || !sound(pair.rtol) {
                let message = format!("the tolerance of {dtype} is atol {}, rtol {}", pair.atol, pair.rtol);
                return Err(Failure::invalid(message).hint("both must be numbers of 0 or more"));
            }
            op.subject.tolerances.insert(*dtype, Tolerance::Fixed { atol: pair.atol, rtol: pair.rtol });
        }
        op.subject.invariants.extend(self.invariants.iter().copied());
        if let Some(budget) = self.budget {
            op.sampler.budget = budget;
        }
        op.sampler.parameters = gpuemu_run::submitted::parameters_of(op, &self.parameters)?;
        if !self.sizes.is_empty() {
            for name in self.sizes.keys() {
                check_dimension(op.subject.schema(), name)?;
            }
            op.subject = op.subject.clone().reshaped(|schema| self.narrow(schema));
        }
        Ok(())
    }

    fn narrow(&self, schema: &mut Schema) {
        for (name, size) in &self.sizes {
            for dimension in schema.dimensions.iter_mut().filter(|dimension| dimension.name == *name) {
                let (choices, minimum, maximum) = match size {
                    Size::One(size) => (vec![*size], *size, *size),
                    Size::Some(sizes) => {
                        let smallest = sizes.iter().copied().min().unwrap_or(0);
                        (sizes.clone(), smallest, sizes.iter().copied().max().unwrap_or(0))
                    }
                    Size::Range { minimum, maximum } => (Vec::new(), *minimum, *maximum),
                };
                (dimension.choices, dimension.minimum, dimension.maximum) = (choices, minimum, maximum);
                dimension.preferred.retain(|size| (minimum..=maximum).contains(size));
            }
        }
    }
}

fn check_dimension(schema: &Schema, name: &str) -> Result<(), Failure> {
    let known = || schema.dimensions.iter().map(|dimension| dimension.name.as_str());
    if known().any(|dimension| dimension == name) {
        return Ok(());
    }
    let failure = Failure::invalid(format!("op '{}' has no dim '{name}'", schema.name));
    Err(match nearest(name, known()) {
        Some(meant) => failure.hint(format!("did you mean '{meant}'?")),
        None => failure.hint(format!("its dims are {}", known().collect::<Vec<_>>().join(", "))),
    })
}
