//! Non-tensor parameters: `eps`, `causal`, `scale` and the like.

use std::fmt;

use serde::{Deserialize, Serialize};

/// The value of a parameter.
#[derive(Debug, Clone, Copy, PartialEq, Serialize, Deserialize)]
#[serde(untagged)]
pub enum Scalar {
    Bool(bool),
    Int(i64),
    Float(f64),
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

/// A parameter of an op.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct ParameterSpec {
    /// Its name, as the frameworks spell it.
    pub name: String,
    pub default: Scalar,
    /// Values that cases are generated with; only the default if empty.
    pub choices: Vec<Scalar>,
}

/// The values of a case's parameters.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
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
