//! Where something is in a text, as people and editors count.

use std::ops::Range;

use serde::Serialize;

/// A place in a text: both numbers from 1, columns counted in characters.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
pub struct TextPlace {
    pub line: usize,
    pub column: usize,
}

impl TextPlace {
    /// The place of a byte. What is not the first byte of a character, or lies behind the text, is the text's end.
    pub fn of(text: &str, byte: usize) -> Self {
        let before = text.get(..byte).unwrap_or(text);
        let line = before.matches('\n').count() + 1;
        let column = before.rsplit('\n').next().unwrap_or_default().chars().count() + 1;
        Self { line, column }
    }
}

/// A part of a text, from its first character to the one behind its last.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
pub struct TextRange {
    pub start: TextPlace,
    /// The character behind its last one.
    pub end: TextPlace,
}

impl TextRange {
    /// The part of a text that bytes are.
    pub fn of(text: &str, bytes: &Range<usize>) -> Self {
        Self { start: TextPlace::of(text, bytes.start), end: TextPlace::of(text, bytes.end) }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn columns_are_characters_and_not_bytes() {
        let text = "a = \"αβ\"\nwrong = 1\n";
        let wrong = text.find("wrong").unwrap();
        let range = TextRange::of(text, &(wrong..wrong + 5));
        assert_eq!((range.start, range.end), (TextPlace { line: 2, column: 1 }, TextPlace { line: 2, column: 6 }));
        let beta = text.find('β').unwrap();
        assert_eq!(TextPlace::of(text, beta), TextPlace { line: 1, column: 7 });
        assert_eq!(TextPlace::of(text, text.len() + 9), TextPlace { line: 3, column: 1 });
    }
}
