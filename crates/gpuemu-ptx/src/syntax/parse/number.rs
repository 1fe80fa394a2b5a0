//! Numbers as they are written.

use super::super::module::{Float, Integer};
use super::cursor::Cursor;
use super::{Parsed, SyntaxError};

#[derive(Debug, Clone, Copy, PartialEq)]
pub(super) enum Number {
    Integer(Integer),
    Float(Float),
}

impl<'a> Cursor<'a> {
    /// Takes a number; a digit, or a point and a digit, comes next.
    pub(super) fn number(&mut self) -> Parsed<'a, Number> {
        let start = self.place();
        self.skip_alphanumeric();
        let word = self.since(start);
        if let Some(float) = bits_of_float(word) {
            return float.map(Number::Float).ok_or_else(|| {
                SyntaxError::new(word, format!("`{word}` is not a number: 0f takes 8 hexadecimal digits, 0d takes 16"))
            });
        }
        let decimal = word.bytes().all(|byte| byte.is_ascii_digit());
        let exponent = is_exponent_start(word);
        let point = self.here() == Some(b'.') && (decimal || word.is_empty());
        if point || exponent {
            if point {
                self.step(1);
                self.skip_alphanumeric();
            }
            // The sign of an exponent ends a word.
            let last = self.since(start).bytes().last();
            if matches!(last, Some(b'e' | b'E')) && matches!(self.here(), Some(b'+' | b'-')) {
                self.step(1);
                self.skip_alphanumeric();
            }
            let text = self.since(start);
            return match text.parse::<f64>() {
                Ok(value) => Ok(Number::Float(Float::Double(value.to_bits()))),
                Err(_) => Err(SyntaxError::new(text, format!("`{text}` is not a number"))),
            };
        }
        match integer(word) {
            Some(value) => Ok(Number::Integer(value)),
            None => Err(SyntaxError::new(word, format!("`{word}` is not a number of at most 64 bits"))),
        }
    }

    /// Takes a whole number that is not negative and has to come next.
    pub(super) fn natural(&mut self, what: &str) -> Parsed<'a, u64> {
        match self.peek()? {
            Some(byte) if byte.is_ascii_digit() => {
                let start = self.place();
                match self.number()? {
                    Number::Integer(integer) => Ok(integer.bits),
                    Number::Float(_) => {
                        let text = self.since(start);
                        Err(SyntaxError::new(text, format!("expected {what}, found `{text}`")))
                    }
                }
            }
            _ => Err(self.unexpected(what)),
        }
    }

    /// Like [`Cursor::natural`], in 32 bits.
    pub(super) fn natural32(&mut self, what: &str) -> Parsed<'a, u32> {
        self.peek()?;
        let start = self.place();
        let value = self.natural(what)?;
        u32::try_from(value).map_err(|_| {
            let text = self.since(start);
            SyntaxError::new(text, format!("{what} is {value}, more than 32 bits hold"))
        })
    }
}

/// The number that bits are given of, or nothing if the word is not of that form at all.
fn bits_of_float(word: &str) -> Option<Option<Float>> {
    let digits = word.get(2..)?;
    let bits = || u64::from_str_radix(digits, 16).ok().filter(|_| !digits.starts_with('+'));
    match word.get(..2)? {
        "0f" | "0F" => Some(bits().filter(|_| digits.len() == 8).map(|bits| Float::Single(bits as u32))),
        "0d" | "0D" => Some(bits().filter(|_| digits.len() == 16).map(Float::Double)),
        _ => None,
    }
}

/// Whether a word is the beginning of a number with an exponent, as in `1e3` or `2E`.
fn is_exponent_start(word: &str) -> bool {
    let digits = word.bytes().take_while(u8::is_ascii_digit).count();
    let rest = &word[digits..];
    digits > 0 && rest.starts_with(['e', 'E']) && rest[1..].bytes().all(|byte| byte.is_ascii_digit())
}

fn integer(word: &str) -> Option<Integer> {
    let (digits, suffixed) = match word.strip_suffix('U') {
        Some(digits) => (digits, true),
        None => (word, false),
    };
    let (digits, radix) = match digits.as_bytes() {
        [b'0', b'x' | b'X', ..] => (&digits[2..], 16),
        [b'0', b'b' | b'B', ..] => (&digits[2..], 2),
        [b'0', _, ..] => (&digits[1..], 8),
        _ => (digits, 10),
    };
    if digits.starts_with('+') {
        return None;
    }
    let bits = u64::from_str_radix(digits, radix).ok()?;
    Some(Integer { bits, unsigned: suffixed || bits > i64::MAX as u64 })
}
