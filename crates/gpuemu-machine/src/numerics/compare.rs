//! Comparisons.

/// For which outcomes a comparison holds: a set of bits.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub struct Comparison(pub u32);

impl Comparison {
    /// The first is less.
    pub const LESS: u32 = 1;
    pub const EQUAL: u32 = 2;
    /// The first is greater.
    pub const GREATER: u32 = 4;
    /// One is no number.
    pub const UNORDERED: u32 = 8;

    /// What a word says of floating-point numbers.
    pub fn of_floats(word: &str) -> Option<Self> {
        Some(Self(match word {
            "eq" => 2,
            "ne" => 5,
            "lt" => 1,
            "le" => 3,
            "gt" => 4,
            "ge" => 6,
            "equ" => 10,
            "neu" => 13,
            "ltu" => 9,
            "leu" => 11,
            "gtu" => 12,
            "geu" => 14,
            "num" => 7,
            "nan" => 8,
            _ => return None,
        }))
    }

    /// What a word says of whole numbers; `lo`, `ls`, `hi`, `hs` are for those without a sign.
    pub fn of_integers(word: &str, signed: bool) -> Option<Self> {
        Some(Self(match word {
            "eq" => 2,
            "ne" => 5,
            "lt" => 1,
            "le" => 3,
            "gt" => 4,
            "ge" => 6,
            "lo" if !signed => 1,
            "ls" if !signed => 3,
            "hi" if !signed => 4,
            "hs" if !signed => 6,
            _ => return None,
        }))
    }

    /// Whether it holds for two values.
    #[inline(always)]
    pub fn holds<T: PartialOrd>(self, a: T, b: T) -> bool {
        let (less, equal, greater) = (a < b, a == b, a > b);
        self.0 & Self::LESS != 0 && less
            || self.0 & Self::EQUAL != 0 && equal
            || self.0 & Self::GREATER != 0 && greater
            || self.0 & Self::UNORDERED != 0 && !(less || equal || greater)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn unordered_comparisons_hold_for_nan() {
        let nan = f32::NAN;
        for (word, ordered, unordered) in [("lt", true, false), ("ltu", true, true), ("ne", true, false)] {
            let comparison = Comparison::of_floats(word).unwrap();
            assert_eq!((comparison.holds(1.0, 2.0), comparison.holds(1.0, nan)), (ordered, unordered), "{word}");
        }
        assert!(Comparison::of_floats("nan").unwrap().holds(nan, 0.0));
        assert!(Comparison::of_floats("num").unwrap().holds(-0.0, 0.0));
        assert!(Comparison::of_integers("lo", true).is_none() && Comparison::of_integers("equ", false).is_none());
    }
}
