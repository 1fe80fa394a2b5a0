//! The texts of a Python or TypeScript file, with the names of what they are passed and assigned to.

use super::kind::Kind;
use super::tokens::{Language, Token, tokens};
use super::{Message, text};

/// What is open around a token: a file, or a pair of brackets.
#[derive(Default)]
struct Frame {
    /// What the brackets belong to, such as `vscode.window.showErrorMessage`.
    callee: String,
    /// `raise` or `throw`, where the statement is one.
    statement: String,
    /// The argument, the property or the variable that a value is given to.
    key: String,
    /// Whether a statement may end in it.
    holds_statements: bool,
}

/// The texts of a file, in their order.
pub fn messages(language: Language, path: &str, source: &str) -> Vec<Message> {
    let tokens = joined(tokens(language, source));
    let mut frames = vec![Frame { holds_statements: true, ..Frame::default() }];
    let mut found = Vec::new();
    for (index, token) in tokens.iter().enumerate() {
        let before = index.checked_sub(1).and_then(|before| tokens.get(before));
        match token {
            Token::Text { text, line } => {
                let documents =
                    frames.len() == 1 && language == Language::Python && matches!(before, None | Some(Token::LineEnd));
                let kind = text::kind_told_by(text).unwrap_or_else(|| Kind::of(names(&frames)));
                if !documents && text::is_message(kind, text) {
                    let text = text::on_one_line(text);
                    found.push(Message { path: path.to_string(), line: *line, kind, text });
                }
            }
            Token::Mark(opening @ ('(' | '[' | '{')) => {
                let holds_statements = *opening == '{' && language == Language::TypeScript;
                frames.push(Frame { callee: name_before(&tokens, index), holds_statements, ..Frame::default() });
            }
            Token::Mark(')' | ']' | '}') if frames.len() > 1 => drop(frames.pop()),
            _ => {
                if let Some(frame) = frames.last_mut() {
                    frame.follow(language, token, &tokens, index);
                }
            }
        }
    }
    found
}

impl Frame {
    fn follow(&mut self, language: Language, token: &Token, tokens: &[Token], index: usize) {
        match token {
            Token::Word(word) if matches!(word.as_str(), "raise" | "throw") => self.statement.clone_from(word),
            Token::Mark(',') => self.key.clear(),
            Token::Mark(';') => self.end_statement(),
            Token::LineEnd if language == Language::Python && self.holds_statements => self.end_statement(),
            Token::Mark(':') => {
                let name = name_before(tokens, index);
                if !name.is_empty() {
                    self.key = name;
                }
            }
            Token::Mark('=') if is_assignment(tokens, index) => self.key = name_before(tokens, index),
            _ => {}
        }
    }

    fn end_statement(&mut self) {
        self.statement.clear();
        self.key.clear();
    }
}

/// The names around a place, the outermost first.
fn names(frames: &[Frame]) -> impl DoubleEndedIterator<Item = &str> {
    frames.iter().flat_map(|frame| [frame.callee.as_str(), frame.statement.as_str(), frame.key.as_str()])
}

/// A name with what it belongs to, such as `warnings.warn`; nothing where none stands before the token.
fn name_before(tokens: &[Token], index: usize) -> String {
    let mut parts: Vec<&str> = Vec::new();
    for token in tokens[..index].iter().rev() {
        match token {
            Token::Word(word) if parts.last().is_none_or(|part| *part == ".") => parts.push(word),
            Token::Mark('.') if !parts.is_empty() => parts.push("."),
            _ => break,
        }
    }
    parts.into_iter().rev().collect()
}

/// Not a comparison, not an arrow, and not behind a type, where the name stands before its colon.
fn is_assignment(tokens: &[Token], index: usize) -> bool {
    let mark_at = |at: Option<usize>| {
        at.and_then(|at| tokens.get(at))
            .and_then(|token| if let Token::Mark(mark) = token { Some(*mark) } else { None })
    };
    let before = mark_at(index.checked_sub(1));
    let after = mark_at(Some(index + 1));
    before.is_none() && !matches!(after, Some('=' | '>')) && mark_at(index.checked_sub(2)) != Some(':')
}

/// Texts that the language or a plus puts together, as one.
fn joined(tokens: Vec<Token>) -> Vec<Token> {
    let mut kept: Vec<Token> = Vec::with_capacity(tokens.len());
    let mut depth = 0_usize;
    for token in tokens {
        match &token {
            Token::Mark('(' | '[' | '{') => depth += 1,
            Token::Mark(')' | ']' | '}') => depth = depth.saturating_sub(1),
            Token::Text { text, .. } => {
                // A line that ends between brackets ends no statement.
                let gap = kept
                    .iter()
                    .rev()
                    .take_while(|kept| matches!(kept, Token::Mark('+')) || depth > 0 && **kept == Token::LineEnd);
                let start = kept.len() - gap.count();
                if let Some(Token::Text { text: first, .. }) = start.checked_sub(1).and_then(|at| kept.get_mut(at)) {
                    first.push_str(text);
                    kept.truncate(start);
                    continue;
                }
            }
            _ => {}
        }
        kept.push(token);
    }
    kept
}

#[cfg(test)]
mod tests {
    use super::*;

    fn rows(language: Language, source: &str) -> Vec<(usize, Kind, String)> {
        messages(language, "a", source).into_iter().map(|message| (message.line, message.kind, message.text)).collect()
    }

    #[test]
    fn python_texts_are_told_by_what_takes_them() {
        let source = r#"
def act(value):
    """Documentation is no message."""
    if value == "a name":
        raise ValueError(
            f"the value is {value}, "
            "which is odd",
            hint="pass an even one",
        )
    warnings.warn("this value is slow", stacklevel=2)
    print(f"{value} was judged twice", file=sys.stderr)
    group.addoption("--cases", help="cases of each check")
"#;
        let expected = [
            (6, Kind::Error, "the value is {value}, which is odd"),
            (7 + 1, Kind::Hint, "pass an even one"),
            (10, Kind::Warning, "this value is slow"),
            (11, Kind::Note, "{value} was judged twice"),
            (12, Kind::Help, "cases of each check"),
        ];
        assert_eq!(rows(Language::Python, source), expected.map(|(line, kind, text)| (line, kind, text.to_string())));
    }

    #[test]
    fn typescript_texts_are_told_by_what_takes_them() {
        let source = "\
void vscode.window.showWarningMessage('gpuemu: open a folder first.');
if (closed) {
  throw new Error(`a quote is not closed: ${line}`);
}
const options = { prompt: 'Name of the kernel', value };
const shown = first === 'no' ? 'one thing was ' + 'found here' : '';
";
        let expected = [
            (1, Kind::Warning, "gpuemu: open a folder first."),
            (3, Kind::Error, "a quote is not closed: ${line}"),
            (5, Kind::Help, "Name of the kernel"),
            (6, Kind::Note, "one thing was found here"),
        ];
        let found = rows(Language::TypeScript, source);
        assert_eq!(found, expected.map(|(line, kind, text)| (line, kind, text.to_string())));
    }

    #[test]
    fn brackets_that_do_not_match_are_no_problem() {
        assert_eq!(rows(Language::Python, ")]} raise E('this is still found')").len(), 1);
        assert_eq!(rows(Language::TypeScript, "((({[ throw 'this is still found'").len(), 1);
    }
}
