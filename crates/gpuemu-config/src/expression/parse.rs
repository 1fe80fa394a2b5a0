//! From words to a tree.

use gpuemu_model::nearest::nearest;
use gpuemu_tensor::DType;

use super::tokens::{Token, tokens};
use super::{Binary, Function, Node, TensorFunction, Unary, Value};

/// The longest expression. It also bounds how deep a tree can be.
const MOST_BYTES: usize = 1000;

/// How deep brackets may be nested.
const DEEPEST: usize = 40;

pub(super) fn parse(text: &str) -> Result<Node, String> {
    if text.len() > MOST_BYTES {
        return Err(format!("more than {MOST_BYTES} bytes"));
    }
    let tokens = tokens(text)?;
    let mut parser = Parser { tokens: &tokens, depth: 0 };
    let node = parser.expression(0)?;
    match parser.tokens.first() {
        None => Ok(node),
        Some(token) => Err(format!("{} was not expected", token.shown())),
    }
}

/// How tightly an operator binds.
fn strength(operator: Binary) -> u8 {
    use Binary::*;
    match operator {
        Or => 1,
        And => 2,
        Equal | Unequal | AtMost | AtLeast | Below | Above => 3,
        Add | Subtract => 4,
        Multiply | Divide | Remainder => 5,
    }
}

struct Parser<'t, 'a> {
    tokens: &'t [Token<'a>],
    depth: usize,
}

impl<'a> Parser<'_, 'a> {
    fn next(&mut self) -> Option<Token<'a>> {
        let (first, rest) = self.tokens.split_first()?;
        self.tokens = rest;
        Some(first.clone())
    }

    fn take(&mut self, symbol: &str) -> bool {
        let found = matches!(self.tokens.first(), Some(Token::Symbol(found)) if *found == symbol);
        if found {
            self.next();
        }
        found
    }

    fn expect(&mut self, symbol: &str) -> Result<(), String> {
        if self.take(symbol) {
            return Ok(());
        }
        let found = self.tokens.first().map_or("the end".to_string(), Token::shown);
        Err(format!("'{symbol}' was expected before {found}"))
    }

    /// Operators that bind at least as tightly as `least`.
    fn expression(&mut self, least: u8) -> Result<Node, String> {
        self.depth += 1;
        if self.depth > DEEPEST {
            return Err(format!("brackets nested more than {DEEPEST} deep"));
        }
        let mut left = self.operand()?;
        while let Some(Token::Symbol(symbol)) = self.tokens.first()
            && let Some(operator) = Binary::of(symbol)
            && strength(operator) >= least.max(1)
        {
            self.next();
            let right = self.expression(strength(operator) + 1)?;
            check_dtype(operator, &left, &right)?;
            left = Node::Binary(operator, Box::new(left), Box::new(right));
            // `a < b < c` means something else in every language.
            let next = self.tokens.first();
            let chained =
                matches!(next, Some(Token::Symbol(next)) if Binary::of(next).is_some_and(|next| strength(next) == 3));
            if strength(operator) == 3 && chained {
                return Err("comparisons cannot be chained; join them by '&&'".to_string());
            }
        }
        self.depth -= 1;
        Ok(left)
    }

    fn operand(&mut self) -> Result<Node, String> {
        match self.next() {
            None => Err("a value is missing at the end".to_string()),
            Some(Token::Integer(number)) => Ok(Node::Constant(Value::Integer(number))),
            Some(Token::Float(number)) => Ok(Node::Constant(Value::Float(number))),
            Some(Token::Text(text)) => Ok(Node::Constant(Value::Text(text.to_string()))),
            Some(Token::Symbol("(")) => {
                let node = self.expression(0)?;
                self.expect(")")?;
                Ok(node)
            }
            Some(Token::Symbol("-")) => match self.expression(6)? {
                Node::Constant(Value::Integer(number)) => Ok(Node::Constant(Value::Integer(-number))),
                Node::Constant(Value::Float(number)) => Ok(Node::Constant(Value::Float(-number))),
                operand => Ok(Node::Unary(Unary::Negate, Box::new(operand))),
            },
            Some(Token::Symbol("!")) => Ok(Node::Unary(Unary::Not, Box::new(self.expression(6)?))),
            Some(Token::Name(name)) if self.take("(") => self.call(name),
            Some(Token::Name("true")) => Ok(Node::Constant(Value::Boolean(true))),
            Some(Token::Name("false")) => Ok(Node::Constant(Value::Boolean(false))),
            Some(Token::Name(name)) => Ok(Node::Name(name.to_string())),
            Some(token) => Err(format!("a value was expected before {}", token.shown())),
        }
    }

    /// What follows the bracket of a function.
    fn call(&mut self, name: &str) -> Result<Node, String> {
        let mut arguments = Vec::new();
        while !self.take(")") {
            arguments.push(self.expression(0)?);
            if !self.take(",") {
                self.expect(")")?;
                break;
            }
        }
        let count = arguments.len();
        let takes = |what: &str| Err(format!("{name} takes {what}, but was given {count}"));
        if let Some(function) = TensorFunction::of(name) {
            let of_dim = matches!(function, TensorFunction::Stride | TensorFunction::Size);
            let mut arguments = arguments.into_iter();
            return match (arguments.next(), arguments.next(), count) {
                (Some(Node::Name(tensor)), Some(dim), 2) if of_dim => {
                    Ok(Node::Tensor(function, tensor, Some(Box::new(dim))))
                }
                (Some(Node::Name(tensor)), None, 1) if !of_dim => Ok(Node::Tensor(function, tensor, None)),
                (Some(first), ..) if !matches!(first, Node::Name(_)) => {
                    Err(format!("{name} takes the name of a tensor first"))
                }
                _ if of_dim => takes("a tensor and a dim"),
                _ => takes("a tensor"),
            };
        }
        let Some(function) = Function::of(name) else {
            let known = TensorFunction::NAMES.iter().map(|(name, _)| *name);
            let known = known.chain(Function::NAMES.iter().map(|(name, _)| *name));
            let all: Vec<&str> = known.clone().collect();
            let meant = nearest(name, known).map(|meant| format!("did you mean '{meant}'?"));
            let meant = meant.unwrap_or_else(|| format!("there are {}", all.join(", ")));
            return Err(format!("there is no function '{name}' ({meant})"));
        };
        match (function, count) {
            (Function::CeilDiv, 2) | (Function::NextPowerOfTwo, 1) => {}
            (Function::Least | Function::Greatest, 2..) => {}
            (Function::CeilDiv, _) => return takes("two numbers"),
            (Function::NextPowerOfTwo, _) => return takes("one number"),
            _ => return takes("two numbers or more"),
        }
        Ok(Node::Call(function, arguments))
    }
}

/// A misspelt dtype would never be equal to any.
fn check_dtype(operator: Binary, left: &Node, right: &Node) -> Result<(), String> {
    let is_dtype = |node: &Node| match node {
        Node::Name(name) => name == "dtype",
        Node::Tensor(function, ..) => *function == TensorFunction::DType,
        _ => false,
    };
    if !matches!(operator, Binary::Equal | Binary::Unequal) {
        return Ok(());
    }
    for (one, other) in [(left, right), (right, left)] {
        if let (true, Node::Constant(Value::Text(text))) = (is_dtype(one), other) {
            text.parse::<DType>().map_err(|error| error.to_string())?;
        }
    }
    Ok(())
}
