//! Errors in a few levels, each with a colour of its own: what a picture of thousands of numbers can show.

use gpuemu_model::picture::ElementError;

/// A level of error.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Level(usize);

/// The levels in order: the class of its colour, and what it stands for in terms of what is allowed.
const LEVELS: [(&str, &str); 10] = [
    ("l0", "no error beyond rounding"),
    ("l1", "up to ¼ of what is allowed"),
    ("l2", "up to all of what is allowed"),
    ("l3", "1 to 4 times what is allowed"),
    ("l4", "4 to 64 times"),
    ("l5", "64 to 2¹² times"),
    ("l6", "2¹² to 2²² times"),
    ("l7", "more, or nothing is allowed"),
    ("l8", "NaN or infinity: wrong or missing"),
    ("l9", "not judged"),
];

/// The largest share of each level that has one.
const LIMITS: [f64; 7] = [0.0, 0.25, 1.0, 4.0, 64.0, 4096.0, 4194304.0];

impl Level {
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

/// What was returned as a multiple of what was expected, in a few classes.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct RatioClass(usize);

/// The classes in order: the class of its colour, and what it stands for.
const RATIOS: [(&str, &str); 8] = [
    ("l0", "right"),
    ("r1", "of the other sign"),
    ("r2", "next to nothing"),
    ("r3", "less than half"),
    ("r4", "half to 1 times"),
    ("r5", "1 to 2 times"),
    ("r6", "more than 2 times"),
    ("l8", "not a multiple"),
];

/// Below this share of the expected value, nothing was returned.
const NOTHING: f64 = 1.0 / 256.0;

impl RatioClass {
    pub fn all() -> impl Iterator<Item = Self> {
        (0..RATIOS.len()).map(Self)
    }

    /// The class of a cell.
    pub fn of(error: ElementError, ratio: f64) -> Self {
        Self(match ratio {
            _ if error == ElementError::NotJudged || !error.is_wrong() => 0,
            ratio if !ratio.is_finite() => 7,
            ratio if ratio.abs() < NOTHING => 2,
            ratio if ratio < 0.0 => 1,
            ratio if ratio < 0.5 => 3,
            ratio if ratio <= 1.0 => 4,
            ratio if ratio <= 2.0 => 5,
            _ => 6,
        })
    }

    /// The class of its colour.
    pub fn class(self) -> &'static str {
        RATIOS[self.0].0
    }

    /// What it stands for.
    pub fn words(self) -> &'static str {
        RATIOS[self.0].1
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
        let shares = [0.0, 1e-9, 0.25, 1.0, 1.0 + f64::EPSILON, 4.1, 65.0, 5000.0, 1e7, f64::INFINITY];
        assert_eq!(shares.map(level), [0, 1, 1, 2, 3, 4, 5, 6, 7, 7]);
        assert_eq!(Level::of(ElementError::Special).number(), 8);
        assert_eq!(Level::of(ElementError::NotJudged).number(), 9);
        for level in Level::all() {
            assert_eq!(level.class(), format!("l{}", level.number()));
        }
    }

    #[test]
    fn multiples_of_what_was_expected_tell_bugs_apart() {
        let words = |ratio: f64| RatioClass::of(ElementError::Share(9.0), ratio).words();
        assert_eq!([0.0, -1e-9, -0.5].map(words), ["next to nothing", "next to nothing", "of the other sign"]);
        assert_eq!(
            [0.3, 0.9, 1.25, 8.0].map(words),
            ["less than half", "half to 1 times", "1 to 2 times", "more than 2 times"]
        );
        assert_eq!([f64::NAN, f64::INFINITY].map(words), ["not a multiple"; 2]);
        assert_eq!(RatioClass::of(ElementError::Share(0.5), f64::NAN).words(), "right");
    }
}
