//! Which texts of the source are sentences that somebody reads.

use super::kind::Kind;

/// The text with every run of white space as one space: a row is a line.
pub fn on_one_line(text: &str) -> String {
    text.split_whitespace().collect::<Vec<_>>().join(" ")
}

/// The kind of a text that begins with its name, such as `warning: …`.
pub fn kind_told_by(text: &str) -> Option<Kind> {
    let (start, _) = text.split_once(": ")?;
    Kind::ALL.into_iter().find(|kind| *kind != Kind::Help && kind.name() == start)
}

/// Whether a text is one that somebody reads, and not a name, a separator or a piece of code.
pub fn is_message(kind: Kind, text: &str) -> bool {
    let plain = without_placeholders(text);
    let words = plain.split_whitespace().filter(|word| is_word(word)).count();
    match kind {
        // "crashed: {0}" is a message of one word.
        Kind::Error | Kind::Help => words >= 2 || words == 1 && plain.contains(' '),
        Kind::Warning | Kind::Hint | Kind::Finding => words >= 2,
        Kind::Note => words >= 3 && !is_code(text),
    }
}

/// Whether there is anything to read in it.
pub fn has_word(text: &str) -> bool {
    without_placeholders(text).split_whitespace().any(is_word)
}

/// A page, a style sheet, PTX, or the lines of a file that is written as they are.
fn is_code(text: &str) -> bool {
    let start = text.trim_start();
    let assigns =
        |line: &str| line.contains(" = ") || line.trim_end().ends_with([';', '{']) || line.starts_with("import ");
    let is_file = text.trim().contains('\n') && text.lines().any(assigns);
    is_file || start.starts_with(['<', '@', '#']) || start.starts_with("//") || text.contains("</")
}

/// A word has letters alone, but for the marks around it.
fn is_word(word: &str) -> bool {
    let letters = word.trim_matches(|mark: char| mark.is_ascii_punctuation());
    letters.len() >= 2 && letters.chars().all(|letter| letter.is_alphabetic() || matches!(letter, '\'' | '-' | '’'))
}

/// Removes `{name}` and `${name}`; what is never closed stays.
fn without_placeholders(text: &str) -> String {
    let mut kept = String::new();
    let mut depth = 0_usize;
    for letter in text.chars() {
        match letter {
            '{' => depth += 1,
            '}' => depth = depth.saturating_sub(1),
            _ if depth == 0 => kept.push(letter),
            _ => {}
        }
    }
    kept
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn sentences_are_told_from_names_and_code() {
        for text in ["no baseline given", "{} of {} cases were not judged", "'{name}' isn't an op\nof this project"] {
            assert!(is_message(Kind::Note, text), "{text}");
        }
        for text in [
            "layer_norm",
            ", ",
            "<p>one two three</p>",
            "import a\nfrom b import c",
            "{one two three four}",
            "a = 1\nb = of all things\n",
        ] {
            assert!(!is_message(Kind::Note, text), "{text}");
        }
        assert!(has_word("cancelled") && is_message(Kind::Error, "crashed: {0}"));
        assert!(!has_word("{0}: {1}") && !is_message(Kind::Error, ", "));
    }

    #[test]
    fn a_text_that_begins_with_its_kind_says_it() {
        assert_eq!(kind_told_by("warning: {} is slow"), Some(Kind::Warning));
        assert_eq!(kind_told_by("the warning: none"), None);
    }

    #[test]
    fn a_row_is_one_line() {
        assert_eq!(on_one_line("  one\n   two\tthree "), "one two three");
    }
}
