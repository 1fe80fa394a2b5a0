//! Reads PTX. Written by hand: no crate reads what today's compilers write, and the PTX machine needs every detail.
//!
//! One pass over the bytes, no list of tokens; the parsed form borrows its names from the text.

mod cursor;
mod declaration;
mod expression;
mod function;
mod module;
mod number;
mod operand;
mod section;
mod statement;

use cursor::Cursor;

use super::module::Module;

/// What is wrong, and the part of the text that it is about.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct SyntaxError<'a> {
    /// The part of the text; empty at its end.
    pub at: &'a str,
    pub message: String,
}

impl<'a> SyntaxError<'a> {
    /// An error about a part of the text.
    pub fn new(at: &'a str, message: impl Into<String>) -> Self {
        Self { at, message: message.into() }
    }
}

type Parsed<'a, T> = Result<T, SyntaxError<'a>>;

pub fn parse(text: &str) -> Result<Module<'_>, SyntaxError<'_>> {
    Cursor::new(text).module()
}
