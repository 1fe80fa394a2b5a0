//! The nearest valid name to a misspelt one.

/// The candidate closest to `name`, if it is close enough to be what was meant.
pub fn nearest<'a>(name: &str, candidates: impl IntoIterator<Item = &'a str>) -> Option<&'a str> {
    let lower = name.to_ascii_lowercase();
    let measured = candidates.into_iter().map(|known| (edit_distance(&lower, &known.to_ascii_lowercase()), known));
    let (distance, known) = measured.min()?;
    (distance <= 1 + name.chars().count() / 3).then_some(known)
}

/// Insertions, deletions and replacements that make one text of the other.
fn edit_distance(left: &str, right: &str) -> usize {
    let right: Vec<char> = right.chars().collect();
    let mut row: Vec<usize> = (0..=right.len()).collect();
    for (index, from) in left.chars().enumerate() {
        let mut diagonal = row[0];
        row[0] = index + 1;
        for (column, to) in right.iter().enumerate() {
            let replaced = diagonal + usize::from(from != *to);
            diagonal = row[column + 1];
            row[column + 1] = replaced.min(diagonal + 1).min(row[column] + 1);
        }
    }
    row[right.len()]
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
