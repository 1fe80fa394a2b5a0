//! Words in which `*` stands for any characters.

/// Whether a word is one that a glob stands for.
pub(crate) fn matches(glob: &str, word: &str) -> bool {
    let (glob, word) = (glob.as_bytes(), word.as_bytes());
    let (mut at, mut here) = (0, 0);
    // Where the last `*` was, and how much it stands for so far: only that one ever needs to give way.
    let mut star: Option<(usize, usize)> = None;
    while here < word.len() {
        match (glob.get(at), star) {
            (Some(b'*'), _) => {
                star = Some((at, here));
                at += 1;
            }
            (Some(letter), _) if Some(letter) == word.get(here) => {
                at += 1;
                here += 1;
            }
            (_, Some((place, taken))) => {
                star = Some((place, taken + 1));
                at = place + 1;
                here = taken + 1;
            }
            (_, None) => return false,
        }
    }
    glob.iter().skip(at).all(|letter| *letter == b'*')
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_star_stands_for_anything() {
        for (glob, word) in [("", ""), ("*", ""), ("*", "abc"), ("a*c", "abbc"), ("*b*", "abc"), ("a*b*c", "aXbYbc")] {
            assert!(matches(glob, word), "{glob} {word}");
        }
        for (glob, word) in [("", "a"), ("a", ""), ("a*c", "abd"), ("ab", "abc"), ("*b", "abc")] {
            assert!(!matches(glob, word), "{glob} {word}");
        }
    }

    #[test]
    fn many_stars_are_no_trap() {
        let glob = "a*".repeat(1000) + "b";
        assert!(!matches(&glob, &"a".repeat(10_000)));
    }
}
