//! What an expression comes to for one case.

use std::cmp::Ordering;

use gpuemu_tensor::DType;
use thiserror::Error;

use super::{Binary, Expression, Function, Node, TensorFunction, Unary, Value};

/// What is known of a tensor.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct TensorFacts<'a> {
    /// Sizes of its dims.
    pub shape: &'a [usize],
    /// Elements from one index of a dim to the next.
    pub strides: &'a [isize],
    /// The type of its elements.
    pub dtype: DType,
}

/// What is known of a case.
pub trait LaunchContext {
    /// A dim or a parameter by its name.
    fn value(&self, name: &str) -> Option<Value>;
    fn tensor(&self, name: &str) -> Option<TensorFacts<'_>>;
    /// The dtype that the case is of.
    fn dtype(&self) -> DType;
}

/// Why an expression comes to nothing.
#[derive(Debug, Clone, PartialEq, Eq, Error)]
#[error("\"{text}\" cannot be evaluated: {message}")]
pub struct EvaluationError {
    pub text: String,
    pub message: String,
}

impl Expression {
    pub fn evaluate(&self, context: &dyn LaunchContext) -> Result<Value, EvaluationError> {
        value_of(&self.root, context).map_err(|message| self.error(message))
    }

    /// Its value, which has to be a whole number.
    pub fn integer(&self, context: &dyn LaunchContext) -> Result<i64, EvaluationError> {
        match self.evaluate(context)? {
            Value::Integer(number) => Ok(number),
            other => Err(self.error(format!("it is {other}, and should be a whole number"))),
        }
    }

    /// Its value, which has to be true or false.
    pub fn holds(&self, context: &dyn LaunchContext) -> Result<bool, EvaluationError> {
        match self.evaluate(context)? {
            Value::Boolean(truth) => Ok(truth),
            other => Err(self.error(format!("it is {other}, and should be true or false"))),
        }
    }

    /// An error about it.
    pub(crate) fn error(&self, message: String) -> EvaluationError {
        EvaluationError { text: self.text.clone(), message }
    }
}

fn value_of(node: &Node, context: &dyn LaunchContext) -> Result<Value, String> {
    match node {
        Node::Constant(value) => Ok(value.clone()),
        Node::Name(name) => match context.value(name) {
            Some(value) => Ok(value),
            None if name == "dtype" => Ok(Value::DType(context.dtype())),
            None if context.tensor(name).is_some() => {
                Err(format!("'{name}' is a tensor; take a number of it, as in size({name}, 0)"))
            }
            None => Err(format!("there is no dim and no parameter '{name}'")),
        },
        Node::Tensor(function, tensor, argument) => {
            let facts = context.tensor(tensor).ok_or_else(|| format!("there is no tensor '{tensor}'"))?;
            let dim = argument.as_deref().map(|dim| value_of(dim, context)).transpose()?;
            tensor_value(*function, tensor, facts, dim.as_ref())
        }
        Node::Call(function, arguments) => {
            let values = arguments.iter().map(|argument| value_of(argument, context));
            call(*function, &values.collect::<Result<Vec<_>, _>>()?)
        }
        Node::Unary(Unary::Not, operand) => Ok(Value::Boolean(!truth("!", &value_of(operand, context)?)?)),
        Node::Unary(Unary::Negate, operand) => match value_of(operand, context)? {
            Value::Integer(number) => number.checked_neg().map(Value::Integer).ok_or_else(overflow),
            Value::Float(number) => Ok(Value::Float(-number)),
            other => Err(format!("'-' takes a number, but {other} is none")),
        },
        // The right side may make sense only where the left one says so.
        Node::Binary(operator @ (Binary::And | Binary::Or), left, right) => {
            let left = truth(operator.name(), &value_of(left, context)?)?;
            if left == (*operator == Binary::Or) {
                return Ok(Value::Boolean(left));
            }
            truth(operator.name(), &value_of(right, context)?).map(Value::Boolean)
        }
        Node::Binary(operator, left, right) => binary(*operator, &value_of(left, context)?, &value_of(right, context)?),
    }
}

fn overflow() -> String {
    "a number leaves 64 bits".to_string()
}

fn truth(operator: &str, value: &Value) -> Result<bool, String> {
    match value {
        Value::Boolean(truth) => Ok(*truth),
        other => Err(format!("'{operator}' takes true or false, but {other} is neither")),
    }
}

fn product(sizes: &[usize]) -> Result<Value, String> {
    let product = sizes.iter().try_fold(1i64, |product, size| product.checked_mul(i64::try_from(*size).ok()?));
    product.map(Value::Integer).ok_or_else(overflow)
}

fn tensor_value(
    function: TensorFunction,
    tensor: &str,
    facts: TensorFacts<'_>,
    dim: Option<&Value>,
) -> Result<Value, String> {
    let rank = facts.shape.len();
    let index = || match dim {
        // A negative dim counts from the last one.
        Some(Value::Integer(dim)) => {
            let index = if *dim < 0 { dim.checked_add_unsigned(rank as u64) } else { Some(*dim) };
            let index = index.and_then(|index| usize::try_from(index).ok()).filter(|index| *index < rank);
            index.ok_or_else(|| format!("{} of dim {dim}: {tensor} has {rank} dims", function.name()))
        }
        other => Err(format!("a dim is a whole number, not {}", other.map_or(String::new(), Value::to_string))),
    };
    match function {
        TensorFunction::Count => product(facts.shape),
        TensorFunction::Rows => product(facts.shape.get(..rank.saturating_sub(1)).unwrap_or_default()),
        TensorFunction::DType => Ok(Value::DType(facts.dtype)),
        TensorFunction::Size => product(facts.shape.get(index()?..).and_then(|rest| rest.get(..1)).unwrap_or_default()),
        TensorFunction::Stride => {
            let stride = facts.strides.get(index()?).copied().unwrap_or_default();
            i64::try_from(stride).map(Value::Integer).map_err(|_| overflow())
        }
    }
}

fn call(function: Function, arguments: &[Value]) -> Result<Value, String> {
    match (function, arguments) {
        (Function::CeilDiv, [Value::Integer(number), Value::Integer(by)]) => {
            let quotient = divided(*number, *by)?;
            // The quotient was rounded towards zero: up already, if it is negative.
            let up = number % by != 0 && (*number < 0) == (*by < 0);
            Ok(Value::Integer(quotient + i64::from(up)))
        }
        (Function::NextPowerOfTwo, [Value::Integer(number)]) => {
            let power = u64::try_from((*number).max(1)).ok().and_then(u64::checked_next_power_of_two);
            power.and_then(|power| i64::try_from(power).ok()).map(Value::Integer).ok_or_else(overflow)
        }
        (Function::Least | Function::Greatest, [first, rest @ ..]) => {
            let wanted = if function == Function::Least { Ordering::Less } else { Ordering::Greater };
            let mut best = first;
            for value in rest {
                if ordered(function.name(), value, best)? == wanted {
                    best = value;
                }
            }
            ordered(function.name(), best, best)?;
            Ok(best.clone())
        }
        (_, arguments) => {
            let shown: Vec<String> = arguments.iter().map(Value::to_string).collect();
            Err(format!("{} takes whole numbers, not {}", function.name(), shown.join(", ")))
        }
    }
}

fn divided(number: i64, by: i64) -> Result<i64, String> {
    if by == 0 {
        return Err(format!("{number} is divided by zero"));
    }
    number.checked_div(by).ok_or_else(overflow)
}

fn number(value: &Value) -> Option<f64> {
    match value {
        Value::Integer(number) => Some(*number as f64),
        Value::Float(number) => Some(*number),
        _ => None,
    }
}

fn ordered(operator: &str, left: &Value, right: &Value) -> Result<Ordering, String> {
    if let (Value::Integer(left), Value::Integer(right)) = (left, right) {
        return Ok(left.cmp(right));
    }
    let order = number(left).zip(number(right)).and_then(|(left, right)| left.partial_cmp(&right));
    order.ok_or_else(|| format!("'{operator}' cannot compare {left} with {right}"))
}

fn equal(left: &Value, right: &Value) -> Result<bool, String> {
    match (left, right) {
        (Value::Text(left), Value::Text(right)) => Ok(left == right),
        (Value::Boolean(left), Value::Boolean(right)) => Ok(left == right),
        (Value::DType(left), Value::DType(right)) => Ok(left == right),
        (Value::DType(dtype), Value::Text(text)) | (Value::Text(text), Value::DType(dtype)) => {
            text.parse::<DType>().map(|named| named == *dtype).map_err(|error| error.to_string())
        }
        _ => ordered("==", left, right).map(Ordering::is_eq),
    }
}

fn binary(operator: Binary, left: &Value, right: &Value) -> Result<Value, String> {
    use Binary::*;
    match operator {
        Equal => return equal(left, right).map(Value::Boolean),
        Unequal => return equal(left, right).map(|same| Value::Boolean(!same)),
        AtMost | AtLeast | Below | Above => {
            let order = ordered(operator.name(), left, right)?;
            return Ok(Value::Boolean(match operator {
                AtMost => order.is_le(),
                AtLeast => order.is_ge(),
                Below => order.is_lt(),
                _ => order.is_gt(),
            }));
        }
        _ => {}
    }
    if let (Value::Integer(left), Value::Integer(right)) = (left, right) {
        let result = match operator {
            Add => left.checked_add(*right),
            Subtract => left.checked_sub(*right),
            Multiply => left.checked_mul(*right),
            Divide => Some(divided(*left, *right)?),
            _ => divided(*left, *right)?.checked_mul(*right).and_then(|whole| left.checked_sub(whole)),
        };
        return result.map(Value::Integer).ok_or_else(overflow);
    }
    let Some((first, second)) = number(left).zip(number(right)) else {
        return Err(format!("'{}' takes numbers, not {left} and {right}", operator.name()));
    };
    let result = match operator {
        Add => first + second,
        Subtract => first - second,
        Multiply => first * second,
        Divide => first / second,
        _ => first % second,
    };
    if result.is_finite() {
        Ok(Value::Float(result))
    } else {
        Err(format!("{left} {} {right} is {result}", operator.name()))
    }
}
