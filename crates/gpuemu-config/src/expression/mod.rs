//! Expressions of the launch table, such as `ceil_div(numel(input), 1024)` or `dtype == 'float16' && H <= 256`.
//!
//! They are read once, with the configuration, and evaluated for every case.

mod evaluate;
mod parse;
#[cfg(test)]
mod tests;
mod tokens;

use std::fmt;
use std::str::FromStr;

use gpuemu_tensor::DType;
use serde::de::{Error, Visitor};
use serde::{Deserialize, Deserializer};

pub use evaluate::{EvaluationError, LaunchContext, TensorFacts};

/// What an expression comes to.
#[derive(Debug, Clone, PartialEq)]
pub enum Value {
    Integer(i64),
    /// A number with a point.
    Float(f64),
    Boolean(bool),
    /// A text, of a parameter that is one.
    Text(String),
    DType(DType),
}

impl fmt::Display for Value {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Value::Integer(number) => write!(formatter, "{number}"),
            Value::Float(number) => write!(formatter, "{number}"),
            Value::Boolean(truth) => write!(formatter, "{truth}"),
            Value::Text(text) => write!(formatter, "'{text}'"),
            Value::DType(dtype) => write!(formatter, "'{dtype}'"),
        }
    }
}

/// Why a text is no expression.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("{message} in the expression \"{text}\"")]
pub struct ExpressionError {
    pub text: String,
    /// What is wrong with it.
    pub message: String,
}

#[derive(Debug, Clone, PartialEq)]
pub struct Expression {
    /// As it was written.
    text: String,
    root: Node,
}

/// A part of an expression.
#[derive(Debug, Clone, PartialEq)]
enum Node {
    Constant(Value),
    /// A dim, a parameter, or `dtype`.
    Name(String),
    /// A fact of a tensor; those about one of its dims have an argument.
    Tensor(TensorFunction, String, Option<Box<Node>>),
    Call(Function, Vec<Node>),
    Unary(Unary, Box<Node>),
    Binary(Binary, Box<Node>, Box<Node>),
}

macro_rules! functions {
    ($name:ident { $($variant:ident = $text:literal),+ $(,)? }) => {
        #[derive(Debug, Clone, Copy, PartialEq, Eq)]
        enum $name { $($variant),+ }

        impl $name {
            const NAMES: &'static [(&'static str, Self)] = &[$(($text, Self::$variant)),+];

            fn of(name: &str) -> Option<Self> {
                Self::NAMES.iter().find(|(known, _)| *known == name).map(|(_, function)| *function)
            }

            fn name(self) -> &'static str {
                match self { $(Self::$variant => $text),+ }
            }
        }
    };
}

functions!(TensorFunction { Stride = "stride", Size = "size", Rows = "rows", Count = "numel", DType = "dtype" });
functions!(Function { CeilDiv = "ceil_div", NextPowerOfTwo = "next_pow2", Least = "min", Greatest = "max" });
functions!(Binary {
    Or = "||", And = "&&", Equal = "==", Unequal = "!=", AtMost = "<=", AtLeast = ">=", Below = "<", Above = ">",
    Add = "+", Subtract = "-", Multiply = "*", Divide = "/", Remainder = "%",
});

/// What stands before its operand.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Unary {
    Not,
    Negate,
}

impl Expression {
    /// As it was written.
    pub fn text(&self) -> &str {
        &self.text
    }

    /// The number, where it is nothing but one.
    pub fn constant(&self) -> Option<&Value> {
        match &self.root {
            Node::Constant(value) => Some(value),
            _ => None,
        }
    }

    /// The name, where it is nothing but one.
    pub fn name(&self) -> Option<&str> {
        match &self.root {
            Node::Name(name) => Some(name),
            _ => None,
        }
    }

    /// The names that have to be known to evaluate it: dims and parameters, and tensors.
    pub fn names(&self) -> Names<'_> {
        let mut names = Names::default();
        let mut rest = vec![&self.root];
        while let Some(node) = rest.pop() {
            match node {
                Node::Constant(_) => {}
                Node::Name(name) if name == "dtype" => {}
                Node::Name(name) => names.values.push(name),
                Node::Tensor(_, tensor, argument) => {
                    names.tensors.push(tensor);
                    rest.extend(argument.as_deref());
                }
                Node::Call(_, arguments) => rest.extend(arguments),
                Node::Unary(_, operand) => rest.push(operand),
                Node::Binary(_, left, right) => rest.extend([left.as_ref(), right.as_ref()]),
            }
        }
        names
    }
}

/// Names that an expression uses, in no order.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Names<'a> {
    /// Dims and parameters; a tensor too, where the expression is nothing but its name.
    pub values: Vec<&'a str>,
    pub tensors: Vec<&'a str>,
}

impl fmt::Display for Expression {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter.write_str(&self.text)
    }
}

impl From<i64> for Expression {
    fn from(number: i64) -> Self {
        Self { text: number.to_string(), root: Node::Constant(Value::Integer(number)) }
    }
}

impl FromStr for Expression {
    type Err = ExpressionError;

    fn from_str(text: &str) -> Result<Self, ExpressionError> {
        let root = parse::parse(text).map_err(|message| ExpressionError { text: text.to_string(), message })?;
        Ok(Self { text: text.to_string(), root })
    }
}

impl<'de> Deserialize<'de> for Expression {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        struct Written;
        impl Visitor<'_> for Written {
            type Value = Expression;
            fn expecting(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
                formatter.write_str("a number or an expression as text")
            }
            fn visit_i64<E: Error>(self, number: i64) -> Result<Expression, E> {
                Ok(number.into())
            }
            fn visit_u64<E: Error>(self, number: u64) -> Result<Expression, E> {
                i64::try_from(number).map(Expression::from).map_err(|_| E::custom(format!("{number} is too large")))
            }
            fn visit_f64<E: Error>(self, number: f64) -> Result<Expression, E> {
                Ok(Expression { text: number.to_string(), root: Node::Constant(Value::Float(number)) })
            }
            fn visit_bool<E: Error>(self, truth: bool) -> Result<Expression, E> {
                Ok(Expression { text: truth.to_string(), root: Node::Constant(Value::Boolean(truth)) })
            }
            fn visit_str<E: Error>(self, text: &str) -> Result<Expression, E> {
                text.parse().map_err(E::custom)
            }
        }
        deserializer.deserialize_any(Written)
    }
}
