//! One tensor of an op: name, dtype, dims and the domain of its values.

use std::fmt;

use serde::Serialize;

use gpuemu_tensor::DType;

use super::dimension::{Expression, Sizes};
use crate::case::CaseDescriptor;

/// Which values a tensor may hold.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum Domain {
    /// Any number, NaN and infinities included.
    Real,
    Positive,
    NonNegative,
    /// Zero or above, but any number where a flag among the parameters is set: what a kernel then maps to such numbers.
    NonNegativeUnless {
        flag: String,
    },
    NonPositive,
    /// Between 0 and 1.
    Probability,
    /// Whole numbers in a half-open range, such as indices into a dim.
    Range {
        low: Expression,
        /// One above the largest value.
        high: Expression,
        /// The parameter whose value is allowed too, as that of `ignore_index` is among classes.
        #[serde(skip_serializing_if = "Option::is_none")]
        other: Option<String>,
    },
    /// Every whole number that the dtype has.
    Whole,
    /// Whole numbers that never decrease, the first 0 and the last this: where packed sequences begin and end.
    Offsets {
        end: Expression,
    },
    /// Whole numbers below this, none twice, in any order; along the last dim where there are several.
    Permutation {
        count: Expression,
    },
}

/// A tensor in a signature.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct TensorSpec {
    pub name: String,
    /// Its dtype; `None` takes the dtype of the case.
    pub dtype: Option<DType>,
    /// Whether the leading dims of `...` come before the named ones.
    pub batch: bool,
    /// Sizes after those of `...`.
    pub dimensions: Vec<Expression>,
    /// The domain of its values.
    pub domain: Domain,
    /// Whether it may be absent.
    pub optional: bool,
}

impl Domain {
    pub fn expressions(&self) -> Vec<&Expression> {
        match self {
            Domain::Range { low, high, .. } => vec![low, high],
            Domain::Offsets { end: only } | Domain::Permutation { count: only } => vec![only],
            Domain::Real
            | Domain::Positive
            | Domain::NonNegative
            | Domain::NonNegativeUnless { .. }
            | Domain::NonPositive
            | Domain::Probability
            | Domain::Whole => Vec::new(),
        }
    }
}

impl fmt::Display for Domain {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Domain::Real => formatter.write_str("real"),
            Domain::Positive => formatter.write_str("positive"),
            Domain::NonNegative => formatter.write_str("non_negative"),
            Domain::NonNegativeUnless { flag } => write!(formatter, "non_negative unless {flag}"),
            Domain::NonPositive => formatter.write_str("non_positive"),
            Domain::Probability => formatter.write_str("probability"),
            Domain::Range { low, high, other: None } => write!(formatter, "{low}..{high}"),
            Domain::Range { low, high, other: Some(other) } => write!(formatter, "{low}..{high} or {other}"),
            Domain::Whole => formatter.write_str("whole"),
            Domain::Offsets { end } => write!(formatter, "offsets({end})"),
            Domain::Permutation { count } => write!(formatter, "permutation({count})"),
        }
    }
}

impl TensorSpec {
    /// Its shape for given sizes.
    pub fn shape(&self, sizes: &Sizes) -> Option<Vec<usize>> {
        let mut shape = if self.batch { sizes.batch.clone() } else { Vec::new() };
        for expression in &self.dimensions {
            shape.push(expression.evaluate(sizes)?);
        }
        Some(shape)
    }

    /// Whether it takes part in a case.
    pub fn is_in(&self, case: &CaseDescriptor) -> bool {
        !self.optional || case.present.contains(&self.name)
    }

    /// Its dtype in a case of the given dtype.
    pub fn dtype_in(&self, case_dtype: DType) -> DType {
        self.dtype.unwrap_or(case_dtype)
    }

    /// Its dims as a signature has them, such as `[...,H]`.
    pub fn dimensions_in_words(&self) -> String {
        let leading = self.batch.then(|| "...".to_string());
        let named = self.dimensions.iter().map(ToString::to_string);
        format!("[{}]", leading.into_iter().chain(named).collect::<Vec<_>>().join(","))
    }

    /// The tensor as a signature has it, without its dtype and domain.
    pub fn form(&self) -> String {
        format!("{}{}{}", self.name, if self.optional { "?" } else { "" }, self.dimensions_in_words())
    }

    /// The domain of its values in words.
    pub fn domain_in_words(&self) -> String {
        match &self.domain {
            Domain::Real if self.dtype == Some(DType::Bool) => "true or false".to_string(),
            Domain::Real => "any number, NaN and infinities included".to_string(),
            Domain::Positive => "above 0".to_string(),
            Domain::NonNegative => "0 and above".to_string(),
            Domain::NonNegativeUnless { flag } => format!("0 and above, or any number where {flag} is true"),
            Domain::NonPositive => "0 and below".to_string(),
            Domain::Probability => "0 to 1".to_string(),
            Domain::Range { low, high, other: None } => format!("whole numbers from {low} below {high}"),
            Domain::Range { low, high, other: Some(other) } => {
                format!("whole numbers from {low} below {high}, or {other}")
            }
            Domain::Whole => "every whole number of its dtype".to_string(),
            Domain::Offsets { end } => format!("offsets: 0 first, {end} last, never decreasing"),
            Domain::Permutation { count } => format!("whole numbers below {count}, none twice in a row"),
        }
    }

    /// Whether its values are ordinary numbers that a value strategy may choose.
    pub fn is_real(&self) -> bool {
        self.domain == Domain::Real && self.dtype.is_none_or(DType::is_float)
    }
}
