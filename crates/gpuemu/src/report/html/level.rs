//! Errors in a few levels, each with a colour of its own: what a picture of thousands of numbers can show.

use gpuemu_common::picture::ElementError;

/// A level of error.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Level(usize);

/// The levels in order: the class of its colour, and what it stands for in terms of what is allowed.
const LEVELS: [(&str, &str); 10] = [
    ("l0", "no error beyond rounding"),
    ("l1", "up to ¼ of what is allowed"),
    ("l2", "up to all of what is allowed"),
    ("l3", "1 to 4 times what is allowed"),
    ("l4", "4 to 32 times"),
    ("l5", "32 to 1024 times"),
    ("l6", "2¹⁰ to 2²⁰ times"),
    ("l7", "more, or nothing is allowed"),
    ("l8", "NaN or infinity: wrong or missing"),
    ("l9", "not judged"),
];

/// The largest share of each level that has one.
const LIMITS: [f64; 7] = [0.0, 0.25, 1.0, 4.0, 32.0, 1024.0, 1048576.0];

impl Level {
    /// Every level.
    pub fn all() -> impl DoubleEndedIterator<Item = Self> {
        (0..LEVELS.len()).map(Self)
    }

    /// The level of an error.
    pub fn of(error: ElementError) -> Self {
        Self(match error {
            ElementError::Share(share) => LIMITS.iter().position(|limit| share <= *limit).unwrap_or(LIMITS.len()),
            ElementError::Special => 8,
            ElementError::NotJudged => 9,
        })
    }

    /// The class of its colour.
    pub fn class(self) -> &'static str {
        LEVELS[self.0].0
    }

    /// What it stands for.
    pub fn words(self) -> &'static str {
        LEVELS[self.0].1
    }

    /// Its number, a digit.
    pub fn number(self) -> usize {
        self.0
    }
}

/// A share of what is allowed, in words.
pub fn share_words(error: ElementError) -> String {
    match error {
        ElementError::NotJudged => "not judged".to_string(),
        ElementError::Special => "NaN or infinity where it does not belong, or missing".to_string(),
        ElementError::Share(share) if share.is_infinite() => {
            "wrong where nothing but the right answer is allowed".into()
        }
        ElementError::Share(share) => format!("{} × what is allowed", crate::report::text::number(share)),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_allowed_and_what_is_not_never_share_a_colour() {
        let level = |share: f64| Level::of(ElementError::Share(share)).number();
        let shares = [0.0, 1e-9, 0.25, 1.0, 1.0 + f64::EPSILON, 4.1, 33.0, 2000.0, 1e7, f64::INFINITY];
        assert_eq!(shares.map(level), [0, 1, 1, 2, 3, 4, 5, 6, 7, 7]);
        assert_eq!(Level::of(ElementError::Special).number(), 8);
        assert_eq!(Level::of(ElementError::NotJudged).number(), 9);
        for level in Level::all() {
            assert_eq!(level.class(), format!("l{}", level.number()));
        }
    }
}
