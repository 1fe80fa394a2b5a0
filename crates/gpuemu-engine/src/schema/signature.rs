//! The one-line signature of an op.
//!
//! ```text
//! signature = item* "->" tensor+              items may be separated by commas
//! item      = tensor | parameter
//! tensor    = name ["?"] [":" dtype] "[" [dim ("," dim)*] "]" ["in" domain]
//! dim       = "..." | expression over names and numbers with + - * / ( )
//! domain    = "real" | "positive" | "non_negative" ["unless" name] | "non_positive" | "probability" | "whole"
//!           | expression ".." expression ["or" name] | "offsets" "(" expression ")" | "permutation" "(" expression ")"
//! parameter = name ":" ("float" | "int" | "bool") "=" literal
//! ```
//!
//! `?` marks a tensor that may be absent, `...` any number of leading dims (the same for every
//! tensor that has it). An output with the name of an input is that input, written in place. An `int` parameter may
//! stand in a dim of an output or in a domain, as `k` does in `values[...,k]`. After `or` stands an `int` parameter whose
//! value a range has too, as in `0..V or ignore_index`; after `unless` a `bool` one, with which any number is allowed.

use thiserror::Error;

use gpuemu_tensor::DType;

use super::dimension::{DimensionSpec, Expression};
use super::parameter::{ParameterSpec, Scalar};
use super::tensor_spec::{Domain, TensorSpec};

/// A signature that could not be read.
#[derive(Debug, Clone, PartialEq, Eq, Error)]
#[error("signature, column {}: {message}\n  {signature}\n  {:>column$}", column + 1, "^", column = column + 1)]
pub struct SignatureError {
    pub signature: String,
    /// Where it went wrong, counted in characters from 0.
    pub column: usize,
    /// What is wrong, and what would be right.
    pub message: String,
}

/// The parts of a signature.
#[derive(Debug, Clone, PartialEq)]
pub struct Signature {
    pub inputs: Vec<TensorSpec>,
    pub outputs: Vec<TensorSpec>,
    pub parameters: Vec<ParameterSpec>,
    /// Named dims in order of first appearance.
    pub dimensions: Vec<DimensionSpec>,
}

#[derive(Debug, Clone, PartialEq)]
enum Token {
    Name(String),
    Number(String),
    Symbol(&'static str),
}

struct Parser<'a> {
    text: &'a str,
    tokens: Vec<(usize, Token)>,
    next: usize,
}

/// Bytes that a signature may have.
const LONGEST: usize = 2000;

pub fn parse(text: &str) -> Result<Signature, SignatureError> {
    let mut parser = Parser { text, tokens: Vec::new(), next: 0 };
    // Expressions are read and evaluated by recursion: what nobody would write must not reach the end of the stack.
    if text.len() > LONGEST {
        return parser.error(0, format!("a signature has at most {LONGEST} characters"));
    }
    parser.tokenize()?;
    parser.signature()
}

const SYMBOLS: [&str; 16] = ["...", "->", "..", "[", "]", "(", ")", ",", ":", "=", "?", "+", "-", "*", "/", "%"];

impl Parser<'_> {
    fn error<T>(&self, column: usize, message: impl Into<String>) -> Result<T, SignatureError> {
        Err(SignatureError { signature: self.text.to_string(), column, message: message.into() })
    }

    fn tokenize(&mut self) -> Result<(), SignatureError> {
        let characters: Vec<char> = self.text.chars().collect();
        let mut at = 0;
        while at < characters.len() {
            let character = characters[at];
            if character.is_whitespace() {
                at += 1;
                continue;
            }
            let start = at;
            if character.is_ascii_alphabetic() || character == '_' {
                while at < characters.len() && (characters[at].is_ascii_alphanumeric() || characters[at] == '_') {
                    at += 1;
                }
                self.tokens.push((start, Token::Name(characters[start..at].iter().collect())));
                continue;
            }
            if character.is_ascii_digit() {
                while at < characters.len() {
                    let here = characters[at];
                    let fraction = here == '.' && characters.get(at + 1) != Some(&'.');
                    let exponent_sign = (here == '-' || here == '+') && matches!(characters[at - 1], 'e' | 'E');
                    if !(here.is_ascii_alphanumeric() || fraction || exponent_sign) {
                        break;
                    }
                    at += 1;
                }
                self.tokens.push((start, Token::Number(characters[start..at].iter().collect())));
                continue;
            }
            let rest: String = characters[at..characters.len().min(at + 3)].iter().collect();
            match SYMBOLS.iter().find(|symbol| rest.starts_with(**symbol)) {
                Some(symbol) => {
                    self.tokens.push((start, Token::Symbol(symbol)));
                    at += symbol.len();
                }
                None => return self.error(start, format!("'{character}' has no meaning here")),
            }
        }
        Ok(())
    }

    fn column(&self) -> usize {
        self.tokens.get(self.next).map_or(self.text.chars().count(), |(column, _)| *column)
    }

    fn peek(&self) -> Option<&Token> {
        self.tokens.get(self.next).map(|(_, token)| token)
    }

    fn accept(&mut self, symbol: &str) -> bool {
        let found = matches!(self.peek(), Some(Token::Symbol(known)) if *known == symbol);
        if found {
            self.next += 1;
        }
        found
    }

    fn require(&mut self, symbol: &str, why: &str) -> Result<(), SignatureError> {
        if self.accept(symbol) { Ok(()) } else { self.error(self.column(), format!("expected '{symbol}' {why}")) }
    }

    fn name(&mut self, what: &str) -> Result<String, SignatureError> {
        match self.peek() {
            Some(Token::Name(name)) => {
                let name = name.clone();
                self.next += 1;
                Ok(name)
            }
            _ => self.error(self.column(), format!("expected {what}")),
        }
    }

    fn signature(&mut self) -> Result<Signature, SignatureError> {
        let (mut inputs, mut outputs, mut parameters) = (Vec::<TensorSpec>::new(), Vec::new(), Vec::new());
        let mut arrow = false;
        while self.next < self.tokens.len() {
            if self.accept(",") {
                continue;
            }
            if self.accept("->") {
                if arrow {
                    return self.error(self.column(), "there is a second '->'");
                }
                arrow = true;
                continue;
            }
            let column = self.column();
            let name = self.name("a tensor such as a[M,K] or a parameter such as eps:float=1e-5")?;
            let optional = self.accept("?");
            let (mut dtype, mut parameter) = (None, None);
            if self.accept(":") {
                let type_column = self.column();
                let type_name = self.name("a dtype")?;
                if self.accept("=") {
                    parameter = Some(self.literal(&type_name, type_column)?);
                } else {
                    dtype = match type_name.parse::<DType>() {
                        Ok(dtype) => Some(dtype),
                        Err(unknown) => return self.error(type_column, unknown.to_string()),
                    };
                }
            }
            if let Some(default) = parameter {
                if arrow {
                    return self.error(column, "parameters stand before '->'");
                }
                parameters.push(ParameterSpec { name, default, choices: Vec::new() });
                continue;
            }
            let tensor = self.tensor(name, optional, dtype)?;
            let side = if arrow { &mut outputs } else { &mut inputs };
            if side.iter().any(|known: &TensorSpec| known.name == tensor.name) {
                return self.error(column, format!("there is a second tensor '{}'", tensor.name));
            }
            side.push(tensor);
        }
        if outputs.is_empty() {
            return self.error(self.column(), "expected '->' and at least one output, as in a[M,K] b[K,N] -> out[M,N]");
        }
        let dimensions = self.dimensions(&inputs, &outputs, &parameters)?;
        self.conditions(&inputs, &parameters)?;
        Ok(Signature { inputs, outputs, parameters, dimensions })
    }

    fn literal(&mut self, type_name: &str, column: usize) -> Result<Scalar, SignatureError> {
        let at = self.column();
        let negative = self.accept("-");
        let text = match self.peek() {
            Some(Token::Number(text) | Token::Name(text)) => text.clone(),
            _ => return self.error(at, "expected a value after '='"),
        };
        self.next += 1;
        let signed = if negative { format!("-{text}") } else { text };
        let value = match type_name {
            // JSON, by which parameters reach a kernel, has no infinity.
            "float" => signed.parse().ok().filter(|value: &f64| value.is_finite()).map(Scalar::Float),
            "int" => signed.parse().ok().map(Scalar::Int),
            "bool" => signed.parse().ok().map(Scalar::Bool),
            _ => return self.error(column, format!("a parameter is float, int or bool, not '{type_name}'")),
        };
        match value {
            Some(value) => Ok(value),
            None => self.error(at, format!("'{signed}' is not of type {type_name}")),
        }
    }

    fn tensor(&mut self, name: String, optional: bool, dtype: Option<DType>) -> Result<TensorSpec, SignatureError> {
        self.require("[", &format!("and the dims of '{name}', as in {name}[M,K]"))?;
        let (mut batch, mut dimensions) = (false, Vec::new());
        while !self.accept("]") {
            let column = self.column();
            if self.accept("...") {
                if batch || !dimensions.is_empty() {
                    return self.error(column, "'...' stands first, once");
                }
                batch = true;
            } else {
                dimensions.push(self.expression()?);
            }
            if !self.accept(",") && !matches!(self.peek(), Some(Token::Symbol("]"))) {
                return self.error(self.column(), "expected ',' or ']'");
            }
        }
        let mut domain = Domain::Real;
        if matches!(self.peek(), Some(Token::Name(word)) if word == "in") {
            self.next += 1;
            domain = self.domain()?;
        }
        Ok(TensorSpec { name, dtype, batch, dimensions, domain, optional })
    }

    fn domain(&mut self) -> Result<Domain, SignatureError> {
        let named = match self.peek() {
            Some(Token::Name(word)) => match word.as_str() {
                "real" => Some(Domain::Real),
                "positive" => Some(Domain::Positive),
                "non_negative" => Some(Domain::NonNegative),
                "non_positive" => Some(Domain::NonPositive),
                "probability" => Some(Domain::Probability),
                "whole" => Some(Domain::Whole),
                _ => None,
            },
            _ => None,
        };
        if let Some(domain) = named {
            self.next += 1;
            return Ok(match (&domain, self.condition("unless")) {
                (Domain::NonNegative, Some(flag)) => Domain::NonNegativeUnless { flag },
                _ => domain,
            });
        }
        if let Some((_, Token::Name(word))) = self.tokens.get(self.next)
            && matches!(self.tokens.get(self.next + 1), Some((_, Token::Symbol("("))))
        {
            let (word, column) = (word.clone(), self.column());
            self.next += 2;
            let inner = self.expression()?;
            self.require(")", "to close the '('")?;
            return match word.as_str() {
                "offsets" => Ok(Domain::Offsets { end: inner }),
                "permutation" => Ok(Domain::Permutation { count: inner }),
                _ => self.error(column, format!("'{word}' is no domain: offsets(N) and permutation(N) are")),
            };
        }
        let low = self.expression()?;
        self.require("..", "between the ends of a range, as in 0..N")?;
        let high = self.expression()?;
        Ok(Domain::Range { low, high, other: self.condition("or") })
    }

    /// The name after a word that adds to a domain. The word alone is the name of the next tensor.
    fn condition(&mut self, word: &str) -> Option<String> {
        let [(_, Token::Name(first)), (_, Token::Name(name)), ..] = self.tokens.get(self.next..)? else { return None };
        let found = (first == word).then(|| name.clone());
        self.next += if found.is_some() { 2 } else { 0 };
        found
    }

    /// What stands after `or` and `unless` is a parameter of its type.
    fn conditions(&self, inputs: &[TensorSpec], parameters: &[ParameterSpec]) -> Result<(), SignatureError> {
        let default = |name: &String| parameters.iter().find(|spec| spec.name == *name).map(|spec| spec.default);
        for spec in inputs {
            let problem =
                match &spec.domain {
                    Domain::Range { other: Some(name), .. } => (!matches!(default(name), Some(Scalar::Int(_))))
                        .then(|| format!("'{name}' is no int parameter")),
                    Domain::NonNegativeUnless { flag } => (!matches!(default(flag), Some(Scalar::Bool(_))))
                        .then(|| format!("'{flag}' is no bool parameter")),
                    _ => None,
                };
            if let Some(problem) = problem {
                return self
                    .error(self.text.chars().count(), format!("{problem}, as the domain of '{}' needs", spec.name));
            }
        }
        Ok(())
    }

    fn expression(&mut self) -> Result<Expression, SignatureError> {
        let mut left = self.term()?;
        loop {
            if self.accept("+") {
                left = Expression::Add(Box::new(left), Box::new(self.term()?));
            } else if self.accept("-") {
                left = Expression::Subtract(Box::new(left), Box::new(self.term()?));
            } else {
                return Ok(left);
            }
        }
    }

    fn term(&mut self) -> Result<Expression, SignatureError> {
        let mut left = self.factor()?;
        loop {
            if self.accept("*") {
                left = Expression::Multiply(Box::new(left), Box::new(self.factor()?));
            } else if self.accept("/") {
                left = Expression::Divide(Box::new(left), Box::new(self.factor()?));
            } else {
                return Ok(left);
            }
        }
    }

    fn factor(&mut self) -> Result<Expression, SignatureError> {
        let column = self.column();
        if self.accept("(") {
            let inner = self.expression()?;
            self.require(")", "to close the '('")?;
            return Ok(inner);
        }
        match self.peek().cloned() {
            Some(Token::Name(name)) => {
                self.next += 1;
                Ok(Expression::Name(name))
            }
            Some(Token::Number(text)) => {
                self.next += 1;
                match text.parse() {
                    Ok(value) => Ok(Expression::Constant(value)),
                    Err(_) => self.error(column, format!("'{text}' is not a size")),
                }
            }
            _ => self.error(column, "expected a dim: a name, a number or an expression"),
        }
    }

    fn dimensions(
        &self,
        inputs: &[TensorSpec],
        outputs: &[TensorSpec],
        parameters: &[ParameterSpec],
    ) -> Result<Vec<DimensionSpec>, SignatureError> {
        let mut dimensions: Vec<DimensionSpec> = Vec::new();
        let whole = |name: &str| {
            let of_type = |spec: &ParameterSpec| matches!(spec.default, Scalar::Int(_));
            parameters.iter().any(|spec| spec.name == name && of_type(spec))
        };
        for expression in inputs.iter().flat_map(|tensor| &tensor.dimensions) {
            for name in expression.names().into_iter().filter(|name| !whole(name)) {
                if !dimensions.iter().any(|known| known.name == name) {
                    dimensions.push(DimensionSpec::named(name));
                }
            }
        }
        let domains = inputs.iter().flat_map(|tensor| tensor.domain.expressions());
        let used = outputs.iter().flat_map(|tensor| &tensor.dimensions).chain(domains);
        for name in used.flat_map(Expression::names).filter(|name| !whole(name)) {
            if !dimensions.iter().any(|known| known.name == name) {
                let known: Vec<&str> = dimensions.iter().map(|known| known.name.as_str()).collect();
                let message = format!("dim '{name}' is in no input (known: {})", known.join(", "));
                return self.error(self.text.chars().count(), message);
            }
        }
        if outputs.iter().any(|tensor| tensor.batch) && !inputs.iter().any(|tensor| tensor.batch) {
            return self.error(self.text.chars().count(), "an output has '...', but no input has");
        }
        Ok(dimensions)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_matmul_is_one_line() {
        let signature = parse("a[M,K] b[K,N] -> out[M,N]").unwrap();
        assert_eq!(signature.inputs.len(), 2);
        let names: Vec<&str> = signature.dimensions.iter().map(|dim| dim.name.as_str()).collect();
        assert_eq!(names, ["M", "K", "N"]);
    }

    #[test]
    fn every_part_of_the_grammar_is_read() {
        let text = "q[B,H*G,M,2*P], mask?:bool[M] t:int64[M] in 0..2*P w[...,M] in positive eps:float=1e-5 n:int=-1 c:bool=false -> q[B,H*G,M,2*P] o:float32[...,M/2+(M-1)]";
        let signature = parse(text).unwrap();
        assert_eq!(signature.inputs.len(), 4);
        assert!(signature.inputs[1].optional && signature.inputs[1].dtype == Some(DType::Bool));
        assert!(matches!(signature.inputs[2].domain, Domain::Range { .. }));
        assert_eq!(signature.inputs[3].domain, Domain::Positive);
        assert_eq!(signature.parameters.len(), 3);
        assert_eq!(signature.parameters[1].default, Scalar::Int(-1));
        assert_eq!(signature.outputs[0].name, signature.inputs[0].name);
        let mut sizes = super::super::Sizes::default();
        sizes.set("M", 7);
        assert_eq!(signature.outputs[1].dimensions[0].evaluate(&sizes), Some(9));
        assert_eq!(signature.outputs[1].dimensions[0].to_string(), "M/2+M-1");
    }

    #[test]
    fn a_parameter_may_add_to_a_domain() {
        let text = "t:int64[N] in 0..V or skip x[N,V] in non_negative unless logs or[N] in 0..V skip:int=-1 logs:bool=false -> o[N]";
        let signature = parse(text).unwrap();
        let domains: Vec<String> = signature.inputs.iter().map(|spec| spec.domain.to_string()).collect();
        assert_eq!(domains, ["0..V or skip", "non_negative unless logs", "0..V"]);
        for (text, part) in [
            ("t[N] in 0..N or skip -> o[N]", "'skip' is no int parameter"),
            ("t[N] in 0..N or skip skip:bool=true -> o[N]", "'skip' is no int parameter"),
            ("t[N] in non_negative unless skip skip:int=1 -> o[N]", "'skip' is no bool parameter"),
        ] {
            let error = parse(text).unwrap_err();
            assert!(error.message.contains(part), "{error}");
        }
    }

    #[test]
    fn sizes_are_solved_from_products() {
        let signature = parse("q[H*G,2*P] k[H,2*P] -> out[H*G,2*P]").unwrap();
        let mut sizes = super::super::Sizes::default();
        sizes.set("H", 4);
        assert_eq!(signature.inputs[0].dimensions[0].solve(12, &sizes), Some(("G".to_string(), 3)));
        assert_eq!(signature.inputs[0].dimensions[0].solve(13, &sizes), None);
        assert_eq!(signature.inputs[0].dimensions[1].solve(64, &sizes), Some(("P".to_string(), 32)));
    }

    #[test]
    fn errors_point_at_the_character() {
        for (text, column, part) in [
            ("a[M,K] b[K,N]", 13, "'->'"),
            ("a[M;K] -> o[M]", 3, "';'"),
            ("a[M -> o[M]", 4, "',' or ']'"),
            ("a[M] -> o[N]", 12, "'N' is in no input"),
            ("a:float99[M] -> o[M]", 2, "float99"),
            ("a[M] eps:float=x -> o[M]", 15, "float"),
            ("a[M] a[M] -> o[M]", 5, "second tensor 'a'"),
            ("a[M,...] -> o[M]", 4, "'...'"),
            ("a[M] in 0 -> o[M]", 10, "'..'"),
            ("", 0, "'->'"),
        ] {
            let error = parse(text).unwrap_err();
            assert_eq!(error.column, column, "{error}");
            assert!(error.message.contains(part), "{error}");
        }
    }

    proptest::proptest! {
        #[test]
        fn any_text_is_read_or_refused_without_panic(text in "[a-zMK\\[\\]:,.?=*/+ >0-9é-]{0,40}") {
            let _ = parse(&text).map_err(|error| error.to_string());
        }
    }
}
