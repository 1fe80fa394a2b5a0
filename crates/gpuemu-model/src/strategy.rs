//! The names of value strategies: how the values of a case are chosen.

use std::fmt;
use std::str::FromStr;

use gpuemu_tensor::Stream;
use serde::{Deserialize, Deserializer, Serialize};
use thiserror::Error;

/// How the values of a case are chosen.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Serialize)]
#[serde(into = "String")]
pub enum Strategy {
    /// Moderate numbers: uniform or bell-shaped.
    Regular,
    /// Subnormals, ±0, ±max, one and its neighbours among moderate numbers.
    Boundary,
    /// Numbers in the upper part of the range.
    Large,
    /// Small numbers, subnormals included.
    Tiny,
    /// Many magnitudes side by side.
    Mixed,
    /// A mean far from zero, also all-negative.
    Shifted,
    /// Mostly zeros, or few distinct values repeated.
    Sparse,
    /// Several elements close to the row's maximum.
    Clustered,
    /// Small whole numbers, whose sums are exact in any order.
    Integers,
    /// NaN, infinities, whole tiles of −Inf.
    Special,
    /// A weighted mix of all of the above: the default.
    Adversarial,
    /// Uniform in [−10, 10): the published default.
    Default,
    /// The published default with NaN in one element of 64.
    NanInjected,
}

/// A strategy's name that is not known.
#[derive(Debug, Clone, PartialEq, Eq, Error)]
#[error("unknown value strategy '{name}'; known: {}", Strategy::ALL.map(Strategy::name).join(", "))]
pub struct UnknownStrategy {
    pub name: String,
}

impl Strategy {
    pub const ALL: [Strategy; 13] = [
        Strategy::Regular,
        Strategy::Boundary,
        Strategy::Large,
        Strategy::Tiny,
        Strategy::Mixed,
        Strategy::Shifted,
        Strategy::Sparse,
        Strategy::Clustered,
        Strategy::Integers,
        Strategy::Special,
        Strategy::Adversarial,
        Strategy::Default,
        Strategy::NanInjected,
    ];

    /// What `adversarial` chooses among, with weights.
    pub const ADVERSARIAL_MIX: [(Strategy, u64); 10] = [
        (Strategy::Regular, 6),
        (Strategy::Boundary, 2),
        (Strategy::Large, 2),
        (Strategy::Tiny, 3),
        (Strategy::Mixed, 3),
        (Strategy::Shifted, 3),
        (Strategy::Sparse, 2),
        (Strategy::Clustered, 2),
        (Strategy::Integers, 3),
        (Strategy::Special, 2),
    ];

    /// The name used on the command line and in reports.
    pub const fn name(self) -> &'static str {
        match self {
            Strategy::Regular => "regular",
            Strategy::Boundary => "boundary",
            Strategy::Large => "large",
            Strategy::Tiny => "tiny",
            Strategy::Mixed => "mixed",
            Strategy::Shifted => "shifted",
            Strategy::Sparse => "sparse",
            Strategy::Clustered => "clustered",
            Strategy::Integers => "integers",
            Strategy::Special => "special",
            Strategy::Adversarial => "adversarial",
            Strategy::Default => "default",
            Strategy::NanInjected => "nan_injected",
        }
    }

    /// The strategy that a case really uses: `adversarial` picks one of its mix.
    pub fn resolve(self, case_seed: u64) -> Strategy {
        if self != Strategy::Adversarial {
            return self;
        }
        let weights = Self::ADVERSARIAL_MIX.map(|(_, weight)| weight);
        Self::ADVERSARIAL_MIX[Stream::new(case_seed, "values").weighted(&weights)].0
    }
}

impl fmt::Display for Strategy {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter.pad(self.name())
    }
}

impl FromStr for Strategy {
    type Err = UnknownStrategy;
    /// `single_dtype_*` of the published ablation restricts the dtype, not the values.
    fn from_str(name: &str) -> Result<Self, UnknownStrategy> {
        if name.starts_with("single_dtype_") {
            return Ok(Strategy::Default);
        }
        Strategy::ALL
            .into_iter()
            .find(|strategy| strategy.name() == name)
            .ok_or_else(|| UnknownStrategy { name: name.to_string() })
    }
}

impl<'de> Deserialize<'de> for Strategy {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        gpuemu_tensor::named::deserialize(deserializer, "the name of a value strategy")
    }
}

impl From<Strategy> for String {
    fn from(strategy: Strategy) -> String {
        strategy.name().to_string()
    }
}
