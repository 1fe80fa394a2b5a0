//! The nearest valid name to a misspelt one.

use strsim::levenshtein;

/// The candidate closest to `name`, if it is close enough to be what was meant.
pub fn nearest<'a>(name: &str, candidates: impl IntoIterator<Item = &'a str>) -> Option<&'a str> {
    let lower = name.to_ascii_lowercase();
    let measured = candidates.into_iter().map(|known| (levenshtein(&lower, &known.to_ascii_lowercase()), known));
    let (distance, known) = measured.min()?;
    (distance <= 1 + name.chars().count() / 3).then_some(known)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_slip_is_corrected_and_another_word_is_not() {
        let names = ["tolerances", "tolerance", "signature"];
        assert_eq!(nearest("tolerence", names), Some("tolerance"));
        assert_eq!(nearest("Signatur", names), Some("signature"));
        assert_eq!(nearest("banana", names), None);
        assert_eq!(nearest("x", []), None);
    }
}
