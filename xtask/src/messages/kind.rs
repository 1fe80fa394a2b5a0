//! What a text is to its reader, told by the names around it in the source.

use std::fmt;

/// What a text is to its reader.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Kind {
    /// Says what went wrong.
    Error,
    /// Says what may be wrong although the work goes on.
    Warning,
    /// Says what to do about an error.
    Hint,
    /// Says what a command, an option or a setting does.
    Help,
    /// Says what a check found in a kernel.
    Finding,
    /// Any other sentence that somebody reads.
    Note,
}

impl Kind {
    /// Every kind, in the order in which they are counted.
    pub const ALL: [Self; 6] = [Self::Error, Self::Warning, Self::Hint, Self::Help, Self::Finding, Self::Note];

    /// The name that rows carry.
    pub const fn name(self) -> &'static str {
        match self {
            Self::Error => "error",
            Self::Warning => "warning",
            Self::Hint => "hint",
            Self::Help => "help",
            Self::Finding => "finding",
            Self::Note => "note",
        }
    }

    /// The kind that the names around a text tell, the outermost first: the nearest name that says anything decides.
    pub fn of<'a>(names: impl DoubleEndedIterator<Item = &'a str>) -> Self {
        names.rev().find_map(Self::of_name).unwrap_or(Self::Note)
    }

    fn of_name(name: &str) -> Option<Self> {
        // Combinators that build an error from nothing or from another error.
        if matches!(name, "ok_or" | "ok_or_else" | "map_err") {
            return Some(Self::Error);
        }
        let words = words_of(name);
        let any = |known: &[&str]| words.iter().any(|word| known.contains(&word.as_str()));
        if any(&["hint", "hints", "advice", "remedy"]) {
            Some(Self::Hint)
        } else if any(&["warn", "warning", "warnings"]) {
            Some(Self::Warning)
        } else if any(&["help", "about", "prompt", "placeholder", "tooltip", "title", "description"]) {
            Some(Self::Help)
        } else if any(&["finding", "findings", "explanation"]) {
            Some(Self::Finding)
        } else if any(&[
            "bail", "broken", "err", "error", "errors", "fail", "failure", "invalid", "nonsense", "problem", "raise",
            "refuse", "refused", "throw", "wrong",
        ]) {
            Some(Self::Error)
        } else if any(&["note", "notes", "print", "println", "eprint", "eprintln"]) {
            Some(Self::Note)
        } else {
            None
        }
    }
}

impl fmt::Display for Kind {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter.pad(self.name())
    }
}

/// The words of `snake_case` and `camelCase` names, in lower case.
fn words_of(name: &str) -> Vec<String> {
    let mut words = vec![String::new()];
    let mut after_lower = false;
    for letter in name.chars() {
        if !letter.is_alphanumeric() || (letter.is_uppercase() && after_lower) {
            words.push(String::new());
        }
        if letter.is_alphanumeric() {
            words.iter_mut().last().into_iter().for_each(|word| word.extend(letter.to_lowercase()));
        }
        after_lower = letter.is_lowercase();
    }
    words.retain(|word| !word.is_empty());
    words
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_nearest_name_that_says_anything_decides() {
        assert_eq!(Kind::of(["ExpectedError::new", "hint", "format"].into_iter()), Kind::Hint);
        assert_eq!(Kind::of(["read_hint", "ok_or_else"].into_iter()), Kind::Error);
        assert_eq!(Kind::of(["listing", "writeln"].into_iter()), Kind::Note);
    }

    #[test]
    fn names_are_told_apart_by_their_words() {
        assert_eq!(words_of("showWarningMessage"), ["show", "warning", "message"]);
        assert_eq!(words_of("StoreError::Damaged"), ["store", "error", "damaged"]);
        assert_eq!(words_of("LINT_HELP"), ["lint", "help"]);
        // A word inside another one says nothing.
        assert_eq!(Kind::of(["terrain", "printer"].into_iter()), Kind::Note);
    }
}
