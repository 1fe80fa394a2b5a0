//! The arithmetic of calibrated tolerances: from the errors of a trusted control to a pair of numbers.
//!
//! The error of a case is the largest |out − y|/(1 + |y|) of its elements. With t as both atol and rtol a case
//! passes exactly if its error is at most t, so one number a case is all that is needed.

use gpuemu_tensor::DType;

use super::tolerance::Tolerance;

/// The envelope is this many times the 95th percentile.
pub const MARGIN: f64 = 1.5;

/// Fewest cases that make an envelope: with fewer the 95th percentile is the largest error.
pub const LEAST_CASES: usize = 20;

/// What a tolerance that is kept allows at least, in units in the last place. A control that is exact would
/// otherwise make every other rounding an error.
pub const LEAST_ULPS: f64 = 2.0;

/// What the errors of a control's cases say.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Envelope {
    /// The smallest error that at least 95 % of the cases do not exceed.
    pub p95: f64,
    pub largest: f64,
    pub cases: usize,
}

impl Envelope {
    /// The envelope of errors in ascending order; `None` where there are none.
    pub fn of_sorted(errors: &[f64]) -> Option<Self> {
        let rank = (errors.len() * 95).div_ceil(100).checked_sub(1)?;
        Some(Self { p95: *errors.get(rank)?, largest: *errors.last()?, cases: errors.len() })
    }

    /// p95 × 1.5.
    pub fn size(&self) -> f64 {
        MARGIN * self.p95
    }

    /// p95 × 1.5 as both atol and rtol.
    pub fn tolerance(&self) -> Tolerance {
        Tolerance::Calibrated { atol: self.size(), rtol: self.size() }
    }

    /// The tightest pair with which every case passes.
    pub fn tightest(&self) -> Tolerance {
        Tolerance::Calibrated { atol: self.largest, rtol: self.largest }
    }

    /// atol and rtol as they are kept for outputs of a float dtype: p95 × 1.5, and never below `LEAST_ULPS` of an
    /// element, be it normal (rtol) or subnormal (atol).
    pub fn kept(&self, dtype: DType) -> (f64, f64) {
        let least = dtype.float_format().map_or((0.0, 0.0), |format| {
            (LEAST_ULPS * format.min_subnormal(), LEAST_ULPS * 2.0 * format.unit_roundoff())
        });
        (self.size().max(least.0), self.size().max(least.1))
    }
}

/// The middle of some numbers, the lower one of two; `None` where there are none.
pub fn median(mut numbers: Vec<f64>) -> Option<f64> {
    numbers.sort_by(f64::total_cmp);
    numbers.get(numbers.len().checked_sub(1)? / 2).copied()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_envelope_is_one_and_a_half_times_the_95th_percentile() {
        let errors: Vec<f64> = (1..=100).map(f64::from).collect();
        let envelope = Envelope::of_sorted(&errors).unwrap();
        assert_eq!((envelope.p95, envelope.largest, envelope.cases), (95.0, 100.0, 100));
        assert_eq!(envelope.tolerance(), Tolerance::Calibrated { atol: 142.5, rtol: 142.5 });
        assert_eq!(envelope.tightest(), Tolerance::Calibrated { atol: 100.0, rtol: 100.0 });
        assert_eq!(Envelope::of_sorted(&[]), None);
    }

    #[test]
    fn the_fewest_cases_are_those_whose_largest_error_is_not_the_percentile() {
        let mut errors = vec![1.0; LEAST_CASES];
        errors[LEAST_CASES - 1] = 7.0;
        assert_eq!(Envelope::of_sorted(&errors).unwrap().p95, 1.0);
        assert_eq!(Envelope::of_sorted(&errors[1..]).unwrap().p95, 7.0);
        assert_eq!(Envelope::of_sorted(&[7.0]).unwrap().p95, 7.0);
    }

    #[test]
    fn what_is_kept_never_asks_for_less_than_two_ulps() {
        let exact = Envelope { p95: 0.0, largest: 0.0, cases: 20 };
        for dtype in DType::ALL.into_iter().filter(|dtype| dtype.is_float()) {
            let (atol, rtol) = exact.kept(dtype);
            let format = dtype.float_format().unwrap();
            for y in [1.0, 1.75, format.min_normal(), format.min_subnormal(), 0.0] {
                let allowed = atol + rtol * y;
                assert!(allowed >= 2.0 * format.ulp(y), "{dtype} at {y}: {allowed}");
                assert!(allowed <= 7.0 * format.ulp(y), "{dtype} at {y}: {allowed}");
            }
        }
        assert_eq!(exact.kept(DType::I32), (0.0, 0.0));
        // Small errors of small outputs stay what they are: only the relative part is raised.
        let small = Envelope { p95: 1e-9, largest: 1e-9, cases: 20 };
        assert_eq!(small.kept(DType::F32), (1.5 * 1e-9, 2f64.powi(-22)));
        let large = Envelope { p95: 1e-3, largest: 1e-3, cases: 20 };
        assert_eq!(large.kept(DType::F32), (1.5 * 1e-3, 1.5 * 1e-3));
    }

    #[test]
    fn the_median_is_one_of_the_numbers() {
        assert_eq!(median(vec![3.0, 1.0, 2.0]), Some(2.0));
        assert_eq!(median(vec![4.0, 1.0]), Some(1.0));
        assert_eq!(median(Vec::new()), None);
    }
}
