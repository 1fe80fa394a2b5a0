//! How large the errors of an output are, whether or not they are allowed: what baselines are
//! compared by and warnings are given for.

use rayon::prelude::*;

use super::compare::{Rule, read_bits};
use super::structure::error_of;
use crate::ops::Expectation;
use crate::verdict::LargestErrors;

/// Elements that one task measures.
const CHUNK: usize = 1 << 16;

/// The largest errors of contiguous output bytes. Elements that are excused or not numbers are left out:
/// they have no size of error.
pub fn measure(rule: &Rule, bytes: &[u8], expectation: &Expectation) -> LargestErrors {
    let count = expectation.values.len();
    let chunk = |index: usize| measure_range(rule, bytes, expectation, index * CHUNK..((index + 1) * CHUNK).min(count));
    let chunks = count.div_ceil(CHUNK);
    if chunks > 2 {
        (0..chunks).into_par_iter().map(chunk).reduce(LargestErrors::default, LargestErrors::join)
    } else {
        (0..chunks).map(chunk).fold(LargestErrors::default(), LargestErrors::join)
    }
}

fn measure_range(rule: &Rule, bytes: &[u8], expectation: &Expectation, range: std::ops::Range<usize>) -> LargestErrors {
    let size = rule.dtype.size();
    let skip = expectation.excuses.partition_point(|excuse| excuse.index < range.start);
    let mut excuses = expectation.excuses[skip..].iter().map(|excuse| excuse.index).peekable();
    let mut largest = LargestErrors::default();
    for index in range {
        if excuses.next_if_eq(&index).is_some() {
            continue;
        }
        let bits = read_bits(bytes, size, index);
        let (out, y) = (rule.dtype.decode(bits), expectation.values[index]);
        let absolute = (out - y).abs();
        if absolute == 0.0 || !absolute.is_finite() {
            continue;
        }
        let ulp = rule.dtype.float_format().map_or(1.0, |format| format.ulp(y));
        let (error, allowed) = (error_of(rule, bits, y), rule.tolerance.allowed(y, expectation.delta[index]));
        let share = if error == 0.0 { 0.0 } else { error / allowed };
        let relative = if y == 0.0 { 0.0 } else { absolute / y.abs() };
        largest = largest.join(LargestErrors { absolute, relative, ulps: absolute / ulp, share });
    }
    largest
}

#[cfg(test)]
mod tests {
    use gpuemu_common::{DType, Tensor};

    use super::*;
    use crate::oracle::tolerance::Tolerance;

    #[test]
    fn the_largest_error_of_each_kind_is_found() {
        let rule = Rule::new(DType::F32, Tolerance::Fixed { atol: 0.5, rtol: 0.0 });
        let mut expectation = Expectation::default();
        for y in [1.0, 100.0, 0.0, f64::NAN, 5.0] {
            expectation.push(y, 0.0);
        }
        expectation.push_undetermined(7.0, "no finite bound");
        let out = Tensor::from_f64(DType::F32, vec![6], &[1.25, 100.5, 0.125, f64::NAN, f64::INFINITY, 900.0]).unwrap();
        let largest = measure(&rule, &out.to_contiguous_bytes(), &expectation);
        assert_eq!((largest.absolute, largest.relative, largest.share), (0.5, 0.25, 1.0));
        // 0 has the smallest ulp there is.
        assert_eq!(largest.ulps, 0.125 / f64::from(f32::from_bits(1)));
    }
}
