//! The text of a PTX file, and places in it.

use std::fmt;
use std::path::Path;

use crate::syntax::{Module, Span, SyntaxError, parse};

/// The most bytes that a file may have: positions are kept in 32 bits.
const MOST_BYTES: usize = 1 << 30;

/// A PTX file as it was read.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Source {
    /// Its name in messages.
    pub name: String,
    pub text: String,
}

/// A line and a column, both from 1. Columns count characters.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub struct Position {
    pub line: usize,
    pub column: usize,
}

/// Why a file is not PTX, and where.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct PtxError {
    pub file: String,
    /// Where in it; nothing where the file could not be read at all.
    pub position: Option<Position>,
    pub message: String,
    /// The line that it is in, if that is short enough to show.
    pub excerpt: Option<String>,
}

impl std::error::Error for PtxError {}

impl fmt::Display for PtxError {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self.position {
            Some(Position { line, column }) => write!(formatter, "{}:{line}:{column}: {}", self.file, self.message)?,
            None => write!(formatter, "{}: {}", self.file, self.message)?,
        }
        if let (Some(excerpt), Some(position)) = (&self.excerpt, self.position) {
            // Tabs are kept before the caret, so that it stands below its character.
            let before = excerpt.chars().take(position.column - 1);
            let indent: String = before.map(|character| if character == '\t' { '\t' } else { ' ' }).collect();
            write!(formatter, "\n  {excerpt}\n  {indent}^")?;
        }
        Ok(())
    }
}

/// The longest line that is shown below an error.
const LONGEST_EXCERPT: usize = 200;

impl Source {
    /// A text that is in memory.
    pub fn new(name: impl Into<String>, text: impl Into<String>) -> Self {
        Self { name: name.into(), text: text.into() }
    }

    pub fn read(path: &Path) -> Result<Self, PtxError> {
        let name = path.display().to_string();
        let unreadable = |message: String| PtxError { file: name.clone(), position: None, message, excerpt: None };
        let bytes = std::fs::read(path).map_err(|error| unreadable(format!("cannot be read: {error}")))?;
        Self::from_bytes(name, bytes)
    }

    /// Takes the bytes of a file, which have to be text.
    pub fn from_bytes(name: impl Into<String>, bytes: Vec<u8>) -> Result<Self, PtxError> {
        let name = name.into();
        if bytes.len() > MOST_BYTES {
            let message = format!("has {} bytes, at most {MOST_BYTES} can be read", bytes.len());
            return Err(PtxError { file: name, position: None, message, excerpt: None });
        }
        match String::from_utf8(bytes) {
            Ok(text) => Ok(Self { name, text }),
            Err(error) => {
                let valid = error.utf8_error().valid_up_to();
                let byte = error.as_bytes().get(valid).copied().unwrap_or_default();
                let before = String::from_utf8_lossy(&error.as_bytes()[..valid]).into_owned();
                let position = position_at(&before, valid);
                let message = format!("not text: byte 0x{byte:02X} is not UTF-8");
                Err(PtxError { file: name, position: Some(position), message, excerpt: None })
            }
        }
    }

    /// Reads what it says.
    pub fn parse(&self) -> Result<Module<'_>, PtxError> {
        parse(&self.text).map_err(|error| self.error(&error))
    }

    /// The place of a span's first character.
    pub fn position(&self, span: Span) -> Position {
        position_at(&self.text, span.start as usize)
    }

    /// The span of a part of this text. Names in a parsed module are parts of the text that was parsed.
    pub fn span_of(&self, part: &str) -> Option<Span> {
        let start = (part.as_ptr() as usize).checked_sub(self.text.as_ptr() as usize)?;
        let end = start.checked_add(part.len())?;
        (end <= self.text.len()).then_some(Span { start: start as u32, end: end as u32 })
    }

    /// An error at a place of this text.
    pub fn error_at(&self, span: Span, message: impl Into<String>) -> PtxError {
        let position = self.position(span);
        let line = self.text.lines().nth(position.line - 1).unwrap_or_default();
        let excerpt = (line.chars().count() <= LONGEST_EXCERPT).then(|| line.to_string());
        PtxError { file: self.name.clone(), position: Some(position), message: message.into(), excerpt }
    }

    /// An error about a part of this text.
    pub fn error(&self, error: &SyntaxError<'_>) -> PtxError {
        self.error_at(self.span_of(error.at).unwrap_or_default(), error.message.clone())
    }
}

fn position_at(text: &str, offset: usize) -> Position {
    let mut offset = offset.min(text.len());
    while !text.is_char_boundary(offset) {
        offset -= 1;
    }
    let before = &text[..offset];
    let line_start = before.rfind('\n').map_or(0, |newline| newline + 1);
    let newlines = before.bytes().filter(|byte| *byte == b'\n').count();
    Position { line: newlines + 1, column: before[line_start..].chars().count() + 1 }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn bytes_that_are_not_text_are_refused_with_their_place() {
        let error = Source::from_bytes("k.ptx", b".version 8.0\n// caf\xe9\n".to_vec()).unwrap_err();
        assert_eq!(error.to_string(), "k.ptx:2:7: not text: byte 0xE9 is not UTF-8");
    }

    #[test]
    fn the_caret_stands_below_the_error() {
        let source = Source::new("k.ptx", "a\n\tbc\n");
        let error = source.error_at(Span { start: 4, end: 5 }, "wrong");
        assert_eq!(error.to_string(), "k.ptx:2:3: wrong\n  \tbc\n  \t ^");
    }

    #[test]
    fn a_name_knows_its_place() {
        let source = Source::new("k.ptx", "first second");
        let span = source.span_of(&source.text[6..12]).unwrap();
        assert_eq!(source.position(span), Position { line: 1, column: 7 });
        assert_eq!(source.span_of("elsewhere"), None);
    }
}
