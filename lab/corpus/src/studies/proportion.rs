//! A share of cases, with how sure it is.

use serde::Serialize;

/// The quantile of the normal distribution for 95 %.
const QUANTILE: f64 = 1.959_963_984_540_054;

/// A part of a whole, with Wilson's interval at 95 %.
#[derive(Debug, Clone, Copy, PartialEq, Serialize)]
pub struct Proportion {
    pub part: usize,
    pub whole: usize,
    /// Their share; none of nothing.
    pub share: Option<f64>,
    /// The ends of the interval.
    pub interval: Option<[f64; 2]>,
}

impl Proportion {
    /// `part` of `whole`.
    pub fn of(part: usize, whole: usize) -> Self {
        if whole == 0 {
            return Self { part, whole, share: None, interval: None };
        }
        let (count, share) = (whole as f64, part as f64 / whole as f64);
        let square = QUANTILE * QUANTILE;
        let scale = 1.0 / (1.0 + square / count);
        let centre = scale * (share + square / (2.0 * count));
        let reach = scale * QUANTILE * (share * (1.0 - share) / count + square / (4.0 * count * count)).sqrt();
        // The ends are exact where nothing or everything was found: rounding must not move them.
        let low = if part == 0 { 0.0 } else { centre - reach };
        let high = if part == whole { 1.0 } else { centre + reach };
        Self { part, whole, share: Some(share), interval: Some([low, high]) }
    }

    /// Whether everything was found, of something.
    pub fn is_whole(&self) -> bool {
        self.whole > 0 && self.part == self.whole
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn close(found: Option<[f64; 2]>, low: f64, high: f64) -> bool {
        found.is_some_and(|[from, to]| (from - low).abs() < 5e-5 && (to - high).abs() < 5e-5)
    }

    #[test]
    fn intervals_are_those_of_the_tables() {
        // Worked by hand from the formula: 20 of 1,882, and the usual 5 of 10.
        assert!(close(Proportion::of(20, 1882).interval, 0.00689, 0.01635));
        assert!(close(Proportion::of(5, 10).interval, 0.23659, 0.76341));
        assert!(close(Proportion::of(0, 200_000).interval, 0.0, 0.00002));
        assert!(close(Proportion::of(10, 10).interval, 0.72246, 1.0));
    }

    #[test]
    fn nothing_of_nothing_has_no_share() {
        let none = Proportion::of(0, 0);
        assert_eq!((none.share, none.interval, none.is_whole()), (None, None, false));
        assert!(Proportion::of(3, 3).is_whole() && !Proportion::of(2, 3).is_whole());
    }
}
