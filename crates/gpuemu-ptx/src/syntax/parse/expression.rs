//! Expressions of constants: computed where they are read.

use super::super::module::{Float, Integer};
use super::cursor::Cursor;
use super::number::Number;
use super::{Parsed, SyntaxError};

/// The operators between two values, weakest first; longer signs before those that they begin with.
const BINARY: &[&[&str]] = &[
    &["||"],
    &["&&"],
    &["|"],
    &["^"],
    &["&"],
    &["==", "!="],
    &["<=", ">=", "<", ">"],
    &["<<", ">>"],
    &["+", "-"],
    &["*", "/", "%"],
];

impl<'a> Cursor<'a> {
    pub(super) fn expression(&mut self) -> Parsed<'a, Number> {
        self.nested(|cursor| {
            let condition = cursor.binary(0)?;
            if !cursor.take(b'?')? {
                return Ok(condition);
            }
            let chosen = cursor.expression()?;
            cursor.expect(b':', "between the two values of a condition")?;
            let other = cursor.expression()?;
            Ok(if is_true(condition) { chosen } else { other })
        })
    }

    /// Takes an expression whose value is a whole number.
    pub(super) fn whole(&mut self, what: &str) -> Parsed<'a, Integer> {
        self.peek()?;
        let start = self.place();
        match self.expression()? {
            Number::Integer(integer) => Ok(integer),
            Number::Float(_) => {
                let text = self.since(start);
                Err(SyntaxError::new(text, format!("expected {what}, found `{text}`")))
            }
        }
    }

    fn binary(&mut self, level: usize) -> Parsed<'a, Number> {
        let Some(operators) = BINARY.get(level) else { return self.unary() };
        let mut left = self.binary(level + 1)?;
        while let Some(operator) = self.operator(operators)? {
            let start = self.place() - operator.len();
            let right = self.binary(level + 1)?;
            left = apply(operator, left, right)
                .ok_or_else(|| SyntaxError::new(self.since(start), format!("`{operator}` cannot be computed here")))?;
        }
        Ok(left)
    }

    fn operator(&mut self, operators: &[&'static str]) -> Parsed<'a, Option<&'static str>> {
        let Some(first) = self.peek()? else { return Ok(None) };
        let second = self.ahead(1);
        for operator in operators {
            let signs = operator.as_bytes();
            let matches = signs.first() == Some(&first) && (signs.len() == 1 || signs.get(1) == second.as_ref());
            // `|`, `&`, `<` and `>` are also how longer operators of other levels begin.
            let longer = signs.len() == 1
                && matches!(
                    (first, second),
                    (b'|', Some(b'|')) | (b'&', Some(b'&')) | (b'<', Some(b'<')) | (b'>', Some(b'>'))
                );
            if matches && !longer {
                self.step(signs.len());
                return Ok(Some(operator));
            }
        }
        Ok(None)
    }

    fn unary(&mut self) -> Parsed<'a, Number> {
        match self.peek()? {
            Some(sign @ (b'-' | b'+' | b'~' | b'!')) => {
                let start = self.place();
                self.step(1);
                let value = self.nested(Self::unary)?;
                let result = match (sign, value) {
                    (b'+', value) => Some(value),
                    (b'-', Number::Float(Float::Single(bits))) => Some(Number::Float(Float::Single(bits ^ (1 << 31)))),
                    (b'-', Number::Float(Float::Double(bits))) => Some(Number::Float(Float::Double(bits ^ (1 << 63)))),
                    (b'-', Number::Integer(value)) => {
                        // -0x8000000000000000 is the least signed number.
                        let unsigned = value.unsigned && value.bits != 1 << 63;
                        Some(Number::Integer(Integer { bits: value.bits.wrapping_neg(), unsigned }))
                    }
                    (b'~', Number::Integer(value)) => Some(Number::Integer(Integer { bits: !value.bits, ..value })),
                    (b'!', value) => Some(Number::Integer(Integer::signed(i64::from(!is_true(value))))),
                    _ => None,
                };
                result.ok_or_else(|| SyntaxError::new(self.since(start), "`~` takes a whole number"))
            }
            Some(b'(') => {
                self.step(1);
                if let Some(cast) = self.dotted()? {
                    self.expect(b')', "after the type of a cast")?;
                    let value = self.nested(Self::unary)?;
                    return match (cast, value) {
                        ("s64", Number::Integer(value)) => Ok(Number::Integer(Integer { unsigned: false, ..value })),
                        ("u64", Number::Integer(value)) => Ok(Number::Integer(Integer { unsigned: true, ..value })),
                        _ => Err(SyntaxError::new(
                            cast,
                            format!("`.{cast}` is no cast of a whole number: .s64 and .u64 are"),
                        )),
                    };
                }
                let value = self.expression()?;
                self.expect(b')', "after an expression")?;
                Ok(value)
            }
            Some(byte)
                if byte.is_ascii_digit() || byte == b'.' && self.ahead(1).is_some_and(|next| next.is_ascii_digit()) =>
            {
                self.number()
            }
            // The width of a warp is the one name that is a constant.
            Some(b'W') => {
                let before = self.place();
                match self.name()? {
                    Some("WARP_SZ") => Ok(Number::Integer(Integer::signed(32))),
                    other => Err(SyntaxError::new(other.unwrap_or(self.since(before)), "expected a number")),
                }
            }
            _ => Err(self.unexpected("a number")),
        }
    }
}

fn is_true(value: Number) -> bool {
    match value {
        Number::Integer(value) => value.bits != 0,
        Number::Float(value) => value.value() != 0.0,
    }
}

fn apply(operator: &str, left: Number, right: Number) -> Option<Number> {
    match (left, right) {
        (Number::Integer(left), Number::Integer(right)) => apply_integers(operator, left, right).map(Number::Integer),
        (left, right) => apply_floats(operator, as_float(left), as_float(right)),
    }
}

fn as_float(value: Number) -> f64 {
    match value {
        Number::Integer(value) if value.unsigned => value.bits as f64,
        Number::Integer(value) => value.value() as f64,
        Number::Float(value) => value.value(),
    }
}

fn apply_floats(operator: &str, left: f64, right: f64) -> Option<Number> {
    let float = |value: f64| Some(Number::Float(Float::Double(value.to_bits())));
    let truth = |value: bool| Some(Number::Integer(Integer::signed(i64::from(value))));
    match operator {
        "+" => float(left + right),
        "-" => float(left - right),
        "*" => float(left * right),
        "/" => float(left / right),
        "<" => truth(left < right),
        ">" => truth(left > right),
        "<=" => truth(left <= right),
        ">=" => truth(left >= right),
        "==" => truth(left == right),
        "!=" => truth(left != right),
        _ => None,
    }
}

fn apply_integers(operator: &str, left: Integer, right: Integer) -> Option<Integer> {
    // As in C, one unsigned side makes both unsigned, except that a shift is as its left side.
    let unsigned = left.unsigned || right.unsigned;
    let (a, b) = (left.bits, right.bits);
    let (signed_a, signed_b) = (left.value(), right.value());
    let integer = |bits: u64| Some(Integer { bits, unsigned });
    let truth = |value: bool| Some(Integer::signed(i64::from(value)));
    match operator {
        "+" => integer(a.wrapping_add(b)),
        "-" => integer(a.wrapping_sub(b)),
        "*" => integer(a.wrapping_mul(b)),
        "/" if unsigned => integer(a.checked_div(b)?),
        "/" => integer(signed_a.checked_div(signed_b)? as u64),
        "%" if unsigned => integer(a.checked_rem(b)?),
        "%" => integer(signed_a.checked_rem(signed_b)? as u64),
        "&" => integer(a & b),
        "|" => integer(a | b),
        "^" => integer(a ^ b),
        "<<" => Some(Integer { bits: a.checked_shl(b.min(64) as u32).unwrap_or(0), unsigned: left.unsigned }),
        ">>" if left.unsigned => Some(Integer { bits: a.checked_shr(b.min(64) as u32).unwrap_or(0), unsigned: true }),
        ">>" => Some(Integer::signed(signed_a >> b.min(63))),
        "&&" => truth(a != 0 && b != 0),
        "||" => truth(a != 0 || b != 0),
        "==" => truth(a == b),
        "!=" => truth(a != b),
        "<" => truth(if unsigned { a < b } else { signed_a < signed_b }),
        ">" => truth(if unsigned { a > b } else { signed_a > signed_b }),
        "<=" => truth(if unsigned { a <= b } else { signed_a <= signed_b }),
        ">=" => truth(if unsigned { a >= b } else { signed_a >= signed_b }),
        _ => None,
    }
}
