//! The words of an expression.

#[derive(Debug, Clone, PartialEq)]
pub(super) enum Token<'a> {
    Integer(i64),
    Float(f64),
    Name(&'a str),
    Text(&'a str),
    /// An operator, a bracket or a comma.
    Symbol(&'static str),
}

impl Token<'_> {
    /// As it is shown in errors.
    pub fn shown(&self) -> String {
        match self {
            Token::Integer(number) => format!("'{number}'"),
            Token::Float(number) => format!("'{number}'"),
            Token::Name(name) => format!("'{name}'"),
            Token::Text(text) => format!("the text '{text}'"),
            Token::Symbol(symbol) => format!("'{symbol}'"),
        }
    }
}

/// Longer ones before those that they begin with.
const SYMBOLS: [&str; 18] =
    ["||", "&&", "==", "!=", "<=", ">=", "//", "<", ">", "+", "-", "*", "/", "%", "!", "(", ")", ","];

/// The words of a text.
pub(super) fn tokens(text: &str) -> Result<Vec<Token<'_>>, String> {
    let mut tokens = Vec::new();
    let mut rest = text.trim_start();
    while let Some(first) = rest.chars().next() {
        let length = if first.is_ascii_digit() {
            let length = number_length(rest);
            tokens.push(number(&rest[..length])?);
            length
        } else if first.is_alphabetic() || first == '_' {
            let length = rest.find(|next: char| !(next.is_alphanumeric() || next == '_')).unwrap_or(rest.len());
            tokens.push(Token::Name(&rest[..length]));
            length
        } else if first == '\'' || first == '"' {
            let length = rest[1..].find(first).ok_or_else(|| "a text is not closed".to_string())?;
            tokens.push(Token::Text(&rest[1..=length]));
            length + 2
        } else {
            let symbol = SYMBOLS.into_iter().find(|symbol| rest.starts_with(symbol));
            let symbol = symbol.ok_or_else(|| unknown(first))?;
            if symbol == "//" {
                return Err("'//' is no operator; '/' of whole numbers rounds towards zero".to_string());
            }
            tokens.push(Token::Symbol(symbol));
            symbol.len()
        };
        rest = rest[length..].trim_start();
    }
    Ok(tokens)
}

fn unknown(character: char) -> String {
    let meant = match character {
        '=' => "; equality is written '=='",
        '&' => "; 'and' is written '&&'",
        '|' => "; 'or' is written '||'",
        _ => "",
    };
    format!("'{character}' means nothing{meant}")
}

/// Digits, and a point and an exponent if there are any.
fn number_length(text: &str) -> usize {
    let bytes = text.as_bytes();
    let at = |index: usize| bytes.get(index).copied().unwrap_or_default();
    let mut length = 0;
    while at(length).is_ascii_digit() || at(length) == b'.' {
        length += 1;
    }
    if matches!(at(length), b'e' | b'E') {
        let sign = usize::from(matches!(at(length + 1), b'+' | b'-'));
        if at(length + 1 + sign).is_ascii_digit() {
            length += 1 + sign;
            while at(length).is_ascii_digit() {
                length += 1;
            }
        }
    }
    length
}

fn number(text: &str) -> Result<Token<'static>, String> {
    if text.bytes().all(|byte| byte.is_ascii_digit()) {
        return text.parse().map(Token::Integer).map_err(|_| format!("{text} is too large"));
    }
    let value = text.parse::<f64>().ok().filter(|value| value.is_finite());
    value.map(Token::Float).ok_or_else(|| format!("{text} is not a number"))
}
