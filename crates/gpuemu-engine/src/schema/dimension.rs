//! Named dims, their sizes, and expressions over them.

use std::fmt;

pub use gpuemu_model::case::Sizes;
use serde::Serialize;

/// A named dim and how its sizes are sampled.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct DimensionSpec {
    /// The name used in the signature.
    pub name: String,
    pub minimum: usize,
    pub maximum: usize,
    /// If not empty, the only sizes there are.
    pub choices: Vec<usize>,
    /// Sizes taken half of the time.
    pub preferred: Vec<usize>,
    /// Whether the op sums, compares or normalises along it.
    pub reduced: bool,
}

impl DimensionSpec {
    /// Largest size sampled when nothing else is said.
    pub const DEFAULT_MAXIMUM: usize = 4096;

    /// A dim of any size.
    pub fn named(name: &str) -> Self {
        Self {
            name: name.to_string(),
            minimum: 0,
            maximum: Self::DEFAULT_MAXIMUM,
            choices: Vec::new(),
            preferred: Vec::new(),
            reduced: false,
        }
    }

    pub fn allows(&self, size: usize) -> bool {
        (self.minimum..=self.maximum).contains(&size) && (self.choices.is_empty() || self.choices.contains(&size))
    }
}

/// An integer expression over dims, such as `2*P` or `H*G`.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
#[serde(into = "String")]
pub enum Expression {
    Constant(usize),
    Name(String),
    Add(Box<Expression>, Box<Expression>),
    /// A difference; below zero is an error.
    Subtract(Box<Expression>, Box<Expression>),
    Multiply(Box<Expression>, Box<Expression>),
    /// A quotient rounded down; division by zero is an error.
    Divide(Box<Expression>, Box<Expression>),
}

impl Expression {
    /// The value for given sizes; `None` if a name is unknown or the arithmetic leaves `usize`.
    pub fn evaluate(&self, sizes: &Sizes) -> Option<usize> {
        match self {
            Expression::Constant(value) => Some(*value),
            Expression::Name(name) => sizes.get(name),
            Expression::Add(left, right) => left.evaluate(sizes)?.checked_add(right.evaluate(sizes)?),
            Expression::Subtract(left, right) => left.evaluate(sizes)?.checked_sub(right.evaluate(sizes)?),
            Expression::Multiply(left, right) => left.evaluate(sizes)?.checked_mul(right.evaluate(sizes)?),
            Expression::Divide(left, right) => left.evaluate(sizes)?.checked_div(right.evaluate(sizes)?),
        }
    }

    /// Every name in it, each once.
    pub fn names(&self) -> Vec<&str> {
        let mut names = Vec::new();
        self.collect(&mut names);
        names
    }

    fn collect<'a>(&'a self, names: &mut Vec<&'a str>) {
        match self {
            Expression::Constant(_) => {}
            Expression::Name(name) => {
                if !names.contains(&name.as_str()) {
                    names.push(name);
                }
            }
            Expression::Add(left, right)
            | Expression::Subtract(left, right)
            | Expression::Multiply(left, right)
            | Expression::Divide(left, right) => {
                left.collect(names);
                right.collect(names);
            }
        }
    }

    /// The size of the one unknown dim for which this equals `value`, if there is one.
    pub fn solve(&self, value: usize, sizes: &Sizes) -> Option<(String, usize)> {
        match self {
            Expression::Name(name) => Some((name.clone(), value)),
            Expression::Add(left, right) => match (left.evaluate(sizes), right.evaluate(sizes)) {
                (Some(known), None) => right.solve(value.checked_sub(known)?, sizes),
                (None, Some(known)) => left.solve(value.checked_sub(known)?, sizes),
                _ => None,
            },
            Expression::Subtract(left, right) => {
                let known = right.evaluate(sizes)?;
                left.solve(value.checked_add(known)?, sizes)
            }
            Expression::Multiply(left, right) => {
                let (known, unknown) = match (left.evaluate(sizes), right.evaluate(sizes)) {
                    (Some(known), None) => (known, right),
                    (None, Some(known)) => (known, left),
                    _ => return None,
                };
                if known == 0 || !value.is_multiple_of(known) {
                    return None;
                }
                unknown.solve(value / known, sizes)
            }
            // A quotient rounded down has no single solution.
            Expression::Divide(..) | Expression::Constant(_) => None,
        }
    }
}

impl fmt::Display for Expression {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        let grouped = |side: &Expression| match side {
            Expression::Add(..) | Expression::Subtract(..) => format!("({side})"),
            _ => side.to_string(),
        };
        match self {
            Expression::Constant(value) => write!(formatter, "{value}"),
            Expression::Name(name) => formatter.write_str(name),
            Expression::Add(left, right) => write!(formatter, "{left}+{right}"),
            Expression::Subtract(left, right) => write!(formatter, "{left}-{}", grouped(right)),
            Expression::Multiply(left, right) => write!(formatter, "{}*{}", grouped(left), grouped(right)),
            Expression::Divide(left, right) => write!(formatter, "{}/{}", grouped(left), grouped(right)),
        }
    }
}

impl From<Expression> for String {
    fn from(expression: Expression) -> String {
        expression.to_string()
    }
}
