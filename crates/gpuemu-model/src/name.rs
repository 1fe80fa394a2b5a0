//! What ops, kernels and projects may be called.

/// Why nothing may be called so: a name stands in lines of reports, which it must not end, reorder or hide.
pub fn problem(name: &str) -> Option<String> {
    if name.trim().is_empty() {
        return Some("is empty".to_string());
    }
    let hides = |letter: &char| {
        letter.is_control()
            || matches!(letter, '\u{200b}'..='\u{200f}' | '\u{2028}'..='\u{202e}' | '\u{2060}'..='\u{206f}' | '\u{feff}')
    };
    let letter = name.chars().find(hides)?;
    Some(format!("has the character {}, which is not printed", letter.escape_unicode()))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_are_lines_of_printed_characters() {
        for name in ["softmax", "my op", "Größe", "softmax/v2", "ソフトマックス"] {
            assert_eq!(problem(name), None, "{name}");
        }
        for name in ["", " \t", "relu\nPASS   softmax", "relu\r", "a\u{1b}[2K", "a\u{2028}b", "a\u{202e}b", "a\u{200b}"]
        {
            assert!(problem(name).is_some(), "{name:?}");
        }
        assert_eq!(problem("a\nb").unwrap(), "has the character \\u{a}, which is not printed");
    }
}
