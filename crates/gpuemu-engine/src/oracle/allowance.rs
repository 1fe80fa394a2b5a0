//! How far an output may be from what is expected, element by element, as a plain number: what somebody who
//! knows nothing of rounding cells can compare a difference with.

use gpuemu_tensor::DType;

use super::compare::Rule;
use crate::ops::Expectation;
use crate::schema::FinalRounding;

/// The largest difference from the expected value that may still be right, its final rounding included.
/// Where nothing can be said, or an intermediate may overflow, any difference may be.
pub fn allowance(rule: &Rule, expectation: &Expectation) -> Vec<f64> {
    let mut excuses = expectation.excuses.iter().peekable();
    let elements = expectation.values.iter().zip(&expectation.delta).enumerate();
    let one = |(index, (value, delta)): (usize, (&f64, &f64))| {
        if excuses.next_if(|excuse| excuse.index == index).is_some() {
            return f64::INFINITY;
        }
        let allowed = rule.tolerance.allowed(*value, *delta);
        if !rule.tolerance.is_bound() || !value.is_finite() {
            return allowed;
        }
        with_rounding(rule.dtype, *value, allowed, rule.rounding)
    };
    elements.map(one).collect()
}

/// The furthest that a number within `allowed` of the expected one can be after its final rounding.
fn with_rounding(dtype: DType, value: f64, allowed: f64, rounding: FinalRounding) -> f64 {
    let Some(format) = dtype.float_format() else { return allowed };
    let rounded = |number: f64| dtype.decode(dtype.encode(number));
    let (low, high) = (rounded(value - allowed), rounded(value + allowed));
    let distance = (high - value).max(value - low).max(allowed);
    let whole_ulp = if rounding == FinalRounding::Nearest { 0.0 } else { format.ulp(value) };
    if distance.is_nan() { f64::INFINITY } else { distance + whole_ulp }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_final_rounding_is_allowed_for() {
        let nearest = |value: f64, allowed: f64| with_rounding(DType::F16, value, allowed, FinalRounding::Nearest);
        // 2049 lies halfway between two float16 numbers.
        assert_eq!(nearest(2049.0, 0.0), 1.0);
        assert_eq!(nearest(2048.0, 0.0), 0.0);
        assert_eq!(nearest(65519.0, 10.0), f64::INFINITY);
        assert_eq!(with_rounding(DType::F16, 1.0, 0.0, FinalRounding::TowardZero), 2f64.powi(-10));
    }
}
