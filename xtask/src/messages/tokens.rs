//! Words, texts and marks of Python and TypeScript: as much of either language as it takes to find what is passed to what.

use std::iter::Peekable;
use std::str::Chars;

/// The languages that are cut into tokens here.
#[derive(Clone, Copy, PartialEq, Eq)]
pub enum Language {
    Python,
    TypeScript,
}

#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Token {
    /// A name, a keyword or a number.
    Word(String),
    /// A text without its quotes; placeholders stay in it.
    Text {
        text: String,
        line: usize,
    },
    /// One mark of punctuation.
    Mark(char),
    LineEnd,
}

/// The tokens of a file. What is never closed ends with the file.
pub fn tokens(language: Language, source: &str) -> Vec<Token> {
    let mut reader = Reader { letters: source.chars().peekable(), line: 1, language, tokens: Vec::new() };
    while let Some(letter) = reader.letters.peek().copied() {
        reader.one(letter);
    }
    reader.tokens
}

struct Reader<'source> {
    letters: Peekable<Chars<'source>>,
    line: usize,
    language: Language,
    tokens: Vec<Token>,
}

impl Reader<'_> {
    fn next(&mut self) -> Option<char> {
        let letter = self.letters.next();
        self.line += usize::from(letter == Some('\n'));
        letter
    }

    fn take(&mut self, wanted: char) -> bool {
        let found = self.letters.peek() == Some(&wanted);
        if found {
            self.next();
        }
        found
    }

    fn one(&mut self, letter: char) {
        let python = self.language == Language::Python;
        if letter.is_alphanumeric() || matches!(letter, '_' | '$') {
            return self.word();
        }
        self.next();
        match letter {
            '\n' => self.tokens.push(Token::LineEnd),
            '#' if python => self.skip_line(),
            '\\' if python && self.take('\n') => {}
            '/' if !python && self.take('/') => self.skip_line(),
            '/' if !python && self.take('*') => self.skip_comment(),
            '/' if !python && self.starts_pattern() => self.skip_pattern(),
            '\'' | '"' => self.text(letter, false),
            '`' if !python => self.text(letter, false),
            _ if letter.is_whitespace() => {}
            _ => self.tokens.push(Token::Mark(letter)),
        }
    }

    fn word(&mut self) {
        let mut word = String::new();
        while let Some(letter) = self.letters.next_if(|letter| letter.is_alphanumeric() || matches!(letter, '_' | '$'))
        {
            word.push(letter);
        }
        let prefix = word.to_lowercase();
        let is_prefix =
            self.language == Language::Python && matches!(&*prefix, "f" | "r" | "b" | "u" | "fr" | "rf" | "br" | "rb");
        match self.letters.peek().copied() {
            Some(quote @ ('"' | '\'')) if is_prefix => {
                self.next();
                self.text(quote, prefix.contains('r'));
                // Bytes are for machines.
                if prefix.contains('b') {
                    self.tokens.pop();
                }
            }
            _ => self.tokens.push(Token::Word(word)),
        }
    }

    /// What follows an opening quote, up to its end.
    fn text(&mut self, quote: char, raw: bool) {
        let line = self.line;
        let mut text = String::new();
        if self.language == Language::Python && self.take(quote) {
            if !self.take(quote) {
                return self.tokens.push(Token::Text { text, line });
            }
            self.long_text(quote, &mut text);
        } else {
            self.short_text(quote, raw, &mut text);
        }
        self.tokens.push(Token::Text { text, line });
    }

    fn short_text(&mut self, quote: char, raw: bool, text: &mut String) {
        while let Some(letter) = self.next() {
            match letter {
                _ if letter == quote => return,
                // A quote that is not closed: no text of these goes on behind its line.
                '\n' if quote != '`' => return,
                '\\' if !raw => self.escape(text),
                '$' if quote == '`' && self.letters.peek() == Some(&'{') => self.placeholder(text),
                _ => text.push(letter),
            }
        }
    }

    /// What stands between three quotes, the opening ones behind.
    fn long_text(&mut self, quote: char, text: &mut String) {
        let mut quotes = 0;
        while let Some(letter) = self.next() {
            // An escaped quote closes nothing.
            quotes = if letter == quote { quotes + 1 } else { 0 };
            match letter {
                '\\' => self.escape(text),
                _ => text.push(letter),
            }
            if quotes == 3 {
                text.truncate(text.len() - 3);
                return;
            }
        }
    }

    fn escape(&mut self, text: &mut String) {
        match self.next() {
            Some('n' | 't' | 'r' | '\n') => text.push(' '),
            Some(letter) => text.push(letter),
            None => {}
        }
    }

    /// `${…}` as it is written, which may hold texts and templates of its own.
    fn placeholder(&mut self, text: &mut String) {
        let mut depth = 0_usize;
        text.push('$');
        while let Some(letter) = self.next() {
            text.push(letter);
            match letter {
                '{' => depth += 1,
                '}' if depth <= 1 => return,
                '}' => depth -= 1,
                '\'' | '"' | '`' => {
                    let mut inner = String::new();
                    self.short_text(letter, false, &mut inner);
                    text.extend([inner.as_str(), letter.encode_utf8(&mut [0; 4])]);
                }
                _ => {}
            }
        }
    }

    fn skip_line(&mut self) {
        while self.letters.next_if(|letter| *letter != '\n').is_some() {}
    }

    fn skip_comment(&mut self) {
        let mut before = ' ';
        while let Some(letter) = self.next() {
            if before == '*' && letter == '/' {
                return;
            }
            before = letter;
        }
    }

    /// A slash divides behind a value, and starts a regular expression elsewhere.
    fn starts_pattern(&self) -> bool {
        match self.tokens.iter().rev().find(|token| **token != Token::LineEnd) {
            Some(Token::Word(word)) => word == "return",
            Some(Token::Mark(mark)) => !matches!(mark, ')' | ']' | '}'),
            Some(_) => false,
            None => true,
        }
    }

    fn skip_pattern(&mut self) {
        let mut within_class = false;
        while let Some(letter) = self.letters.next_if(|letter| *letter != '\n') {
            match letter {
                '\\' => drop(self.letters.next_if(|letter| *letter != '\n')),
                '[' => within_class = true,
                ']' => within_class = false,
                '/' if !within_class => return,
                _ => {}
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn texts(language: Language, source: &str) -> Vec<(usize, String)> {
        let of_token = |token| if let Token::Text { text, line } = token { Some((line, text)) } else { None };
        tokens(language, source).into_iter().filter_map(of_token).collect()
    }

    #[test]
    fn every_form_of_a_python_text_is_read() {
        let source =
            "a = 'it\\'s'  # 'no text'\nb = f\"{a} is\" + rb'\\' + r'\\d' + \"\"\"long\n\"text\\\"\\\"\"\"\"\nc = ''";
        let expected = [(1, "it's"), (2, "{a} is"), (2, "\\d"), (2, "long\n\"text\"\""), (4, "")];
        assert_eq!(texts(Language::Python, source), expected.map(|(line, text)| (line, text.to_string())));
    }

    #[test]
    fn templates_patterns_and_comments_of_typescript_are_told_apart() {
        let source = "// 'no'\nconst a = /['\"`/]/.test(b) ? `one ${c ? `two ${'}'}` : ''} end` : 'three'; /* 'no' */\nd = 4 / 2 / 'x';";
        let found = texts(Language::TypeScript, source);
        let starts: Vec<(usize, &str)> = found.iter().map(|(line, text)| (*line, &text[..text.len().min(5)])).collect();
        assert_eq!(starts, [(2, "one $"), (2, "three"), (3, "x")]);
        assert!(found[0].1.ends_with("} end"), "{}", found[0].1);
    }

    #[test]
    fn what_is_never_closed_ends_with_the_file() {
        for source in ["'", "\"\"\"", "f'", "`${", "`${`", "/*", "a = /[", "'\\", "\\", "\u{fffd}\"é"] {
            for language in [Language::Python, Language::TypeScript] {
                assert!(tokens(language, source).len() <= 5, "{source}");
            }
        }
    }
}
