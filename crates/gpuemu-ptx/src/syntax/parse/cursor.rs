//! Where the parser is in the text, and how it takes the next word or sign.

use super::super::module::Span;
use super::{Parsed, SyntaxError};

/// How deep blocks, vectors and expressions may nest. Compilers need three.
const DEEPEST: usize = 64;

const NAME: u8 = 1;
const NAME_START: u8 = 2;
const MODIFIER: u8 = 4;
const BLANK: u8 = 8;
/// Blanks, and what comments and line markers begin with.
const SKIPPED: u8 = 16;

const CLASSES: [u8; 256] = classes();

const fn classes() -> [u8; 256] {
    let mut table = [0; 256];
    let mut index = 0;
    while index < 256 {
        let byte = index as u8;
        if byte.is_ascii_alphabetic() || byte == b'_' || byte == b'$' || byte == b'%' {
            table[index] |= NAME_START;
        }
        if byte.is_ascii_alphanumeric() || byte == b'_' || byte == b'$' || byte == b'%' {
            table[index] |= NAME;
        }
        if byte.is_ascii_alphanumeric() || byte == b'_' {
            table[index] |= MODIFIER;
        }
        if matches!(byte, b' ' | b'\t' | b'\n' | b'\r' | 0x0b | 0x0c) {
            table[index] |= BLANK | SKIPPED;
        }
        if matches!(byte, b'/' | b'#') {
            table[index] |= SKIPPED;
        }
        index += 1;
    }
    table
}

const fn is(byte: u8, class: u8) -> bool {
    CLASSES[byte as usize] & class != 0
}

/// A place in the text.
pub(super) struct Cursor<'a> {
    text: &'a str,
    bytes: &'a [u8],
    place: usize,
    depth: usize,
}

impl<'a> Cursor<'a> {
    pub(super) fn new(text: &'a str) -> Self {
        Self { text, bytes: text.as_bytes(), place: 0, depth: 0 }
    }

    /// The byte at the place, without looking behind blanks.
    pub(super) fn here(&self) -> Option<u8> {
        self.bytes.get(self.place).copied()
    }

    /// The byte so many after the place.
    pub(super) fn ahead(&self, distance: usize) -> Option<u8> {
        self.bytes.get(self.place + distance).copied()
    }

    /// The place, as a number of bytes.
    pub(super) fn place(&self) -> usize {
        self.place
    }

    /// Steps over bytes that were looked at.
    pub(super) fn step(&mut self, bytes: usize) {
        self.place = (self.place + bytes).min(self.bytes.len());
    }

    /// Goes back to a place where the parser was.
    pub(super) fn rewind(&mut self, place: usize) {
        self.place = place;
    }

    /// The text from a place to here. Both are at boundaries of characters: only ASCII is stepped over byte by byte.
    pub(super) fn since(&self, start: usize) -> &'a str {
        self.text.get(start..self.place).unwrap_or_default()
    }

    /// The span from a place to here.
    pub(super) fn span_since(&self, start: usize) -> Span {
        Span { start: start as u32, end: self.place as u32 }
    }

    /// The next byte that is neither blank nor in a comment, without taking it.
    #[inline]
    pub(super) fn peek(&mut self) -> Parsed<'a, Option<u8>> {
        match self.here() {
            // Mostly nothing has to be skipped.
            Some(byte) if !is(byte, SKIPPED) => Ok(Some(byte)),
            _ => {
                self.skip_blanks()?;
                Ok(self.here())
            }
        }
    }

    fn skip_blanks(&mut self) -> Parsed<'a, ()> {
        loop {
            let Some(byte) = self.here() else { return Ok(()) };
            if is(byte, BLANK) {
                self.place += 1;
            } else if byte == b'/' && self.ahead(1) == Some(b'/') {
                let rest = &self.bytes[self.place..];
                self.place += memchr::memchr(b'\n', rest).unwrap_or(rest.len());
            } else if byte == b'/' && self.ahead(1) == Some(b'*') {
                let rest = self.text.get(self.place + 2..).unwrap_or_default();
                match rest.find("*/") {
                    Some(length) => self.place += length + 4,
                    None => return Err(self.error_of(2, "the comment that begins here has no end")),
                }
            } else if byte == b'#' && self.at_line_marker() {
                let rest = &self.bytes[self.place..];
                self.place += memchr::memchr(b'\n', rest).unwrap_or(rest.len());
            } else {
                return Ok(());
            }
        }
    }

    /// Whether a line of a C preprocessor comes next, as `# 1 "k.cu"` or `#line 1`. They say nothing here.
    fn at_line_marker(&self) -> bool {
        let begins = self.place == 0 || self.bytes.get(self.place - 1) == Some(&b'\n');
        let rest = self.bytes.get(self.place + 1..).unwrap_or_default().trim_ascii_start();
        begins && (rest.starts_with(b"line ") || rest.first().is_some_and(u8::is_ascii_digit))
    }

    /// Takes a sign if it comes next.
    pub(super) fn take(&mut self, sign: u8) -> Parsed<'a, bool> {
        let there = self.peek()? == Some(sign);
        self.place += usize::from(there);
        Ok(there)
    }

    /// Takes a sign that has to come next. `after` says what it belongs to.
    pub(super) fn expect(&mut self, sign: u8, after: &str) -> Parsed<'a, ()> {
        if self.take(sign)? { Ok(()) } else { Err(self.unexpected(&format!("'{}' {after}", char::from(sign)))) }
    }

    /// Takes a name, if one comes next.
    pub(super) fn name(&mut self) -> Parsed<'a, Option<&'a str>> {
        match self.peek()? {
            Some(byte) if is(byte, NAME_START) => {
                let start = self.place;
                self.skip(NAME);
                Ok(Some(self.since(start)))
            }
            _ => Ok(None),
        }
    }

    /// Takes a name that has to come next.
    pub(super) fn expect_name(&mut self, what: &str) -> Parsed<'a, &'a str> {
        match self.name()? {
            Some(name) => Ok(name),
            None => Err(self.unexpected(what)),
        }
    }

    /// Takes a word after a dot, if one comes next; the dot is left out.
    pub(super) fn dotted(&mut self) -> Parsed<'a, Option<&'a str>> {
        if self.peek()? != Some(b'.') || !self.ahead(1).is_some_and(|byte| is(byte, MODIFIER)) {
            return Ok(None);
        }
        self.place += 1;
        let start = self.place;
        self.skip_modifier();
        Ok(Some(self.since(start)))
    }

    /// The word after a dot that comes next, without taking it.
    pub(super) fn peek_dotted(&mut self) -> Parsed<'a, Option<&'a str>> {
        let before = self.place;
        let word = self.dotted()?;
        self.place = before;
        Ok(word)
    }

    /// Steps over the modifiers of an opcode, each with its dot.
    pub(super) fn skip_modifiers(&mut self) {
        while self.here() == Some(b'.') && self.ahead(1).is_some_and(|byte| is(byte, MODIFIER)) {
            self.place += 1;
            self.skip_modifier();
        }
    }

    /// A word of a modifier, as `global` or `shared::cta`.
    fn skip_modifier(&mut self) {
        loop {
            self.skip(MODIFIER);
            let scoped = self.here() == Some(b':') && self.ahead(1) == Some(b':');
            if !scoped || !self.ahead(2).is_some_and(|byte| is(byte, MODIFIER)) {
                return;
            }
            self.place += 2;
        }
    }

    /// Steps over digits and letters of a number.
    pub(super) fn skip_alphanumeric(&mut self) {
        self.skip(MODIFIER);
    }

    fn skip(&mut self, class: u8) {
        while self.here().is_some_and(|byte| is(byte, class)) {
            self.place += 1;
        }
    }

    /// Takes a text in quotes that has to come next; without its quotes, escapes as written.
    pub(super) fn quoted(&mut self, what: &str) -> Parsed<'a, &'a str> {
        if self.peek()? != Some(b'"') {
            return Err(self.unexpected(what));
        }
        let start = self.place + 1;
        let mut end = start;
        loop {
            match self.bytes.get(end) {
                Some(b'\\') => end += 2,
                Some(b'"') => break,
                Some(b'\n') | None => return Err(self.error_of(1, "the text that begins here has no closing quote")),
                Some(_) => end += 1,
            }
        }
        self.place = end + 1;
        Ok(self.text.get(start..end).unwrap_or_default())
    }

    /// Whether the whole text was read.
    pub(super) fn at_end(&mut self) -> Parsed<'a, bool> {
        Ok(self.peek()?.is_none())
    }

    /// Reads something that may hold more of its kind.
    pub(super) fn nested<T>(&mut self, read: impl FnOnce(&mut Self) -> Parsed<'a, T>) -> Parsed<'a, T> {
        if self.depth == DEEPEST {
            return Err(self.error_of(1, format!("nested deeper than {DEEPEST} levels")));
        }
        self.depth += 1;
        let read = read(self);
        self.depth -= 1;
        read
    }

    /// The line, from 1, of a place.
    pub(super) fn line_of(&self, place: usize) -> usize {
        let before = self.bytes.get(..place).unwrap_or_default();
        before.iter().filter(|byte| **byte == b'\n').count() + 1
    }

    /// An error about the next bytes.
    pub(super) fn error_of(&self, bytes: usize, message: impl Into<String>) -> SyntaxError<'a> {
        SyntaxError::new(self.ahead_text(bytes), message)
    }

    /// An error about what comes next in place of what is wanted.
    pub(super) fn unexpected(&mut self, wanted: &str) -> SyntaxError<'a> {
        if let Err(error) = self.skip_blanks() {
            return error;
        }
        let start = self.place;
        let found = match self.here() {
            None => "the end of the file".to_string(),
            Some(byte) if is(byte, NAME) || byte == b'.' => {
                let rest = &self.bytes[start + 1..];
                let length = 1 + rest.iter().take_while(|byte| is(**byte, NAME) || **byte == b'.').take(60).count();
                format!("`{}`", self.ahead_text(length))
            }
            Some(_) => format!("`{}`", self.ahead_text(1)),
        };
        SyntaxError::new(self.ahead_text(1), format!("expected {wanted}, found {found}"))
    }

    /// So many bytes from here, made longer to end at a character's end.
    fn ahead_text(&self, bytes: usize) -> &'a str {
        let start = self.text.floor_char_boundary(self.place.min(self.text.len()));
        let end = self.text.ceil_char_boundary((self.place + bytes).min(self.text.len()));
        self.text.get(start..end).unwrap_or_default()
    }
}
