//! How large the errors of an output are, whether or not they are allowed: what baselines are
//! compared by and warnings are given for.

use gpuemu_tensor::tensor::decode_slice;
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

/// Elements that are looked at together: where all of them are exact there is nothing to measure.
const PIECE: usize = 1024;

fn measure_range(rule: &Rule, bytes: &[u8], expectation: &Expectation, range: std::ops::Range<usize>) -> LargestErrors {
    let size = rule.dtype.size();
    let skip = expectation.excuses.partition_point(|excuse| excuse.index < range.start);
    let mut excuses = expectation.excuses[skip..].iter().map(|excuse| excuse.index).peekable();
    let mut largest = LargestErrors::default();
    let mut outputs = Vec::with_capacity(PIECE);
    for start in range.clone().step_by(PIECE) {
        let end = (start + PIECE).min(range.end);
        decode_slice(rule.dtype, &bytes[start * size..end * size], &mut outputs);
        let values = &expectation.values[start..end];
        let exact = outputs.iter().zip(values).fold(true, |exact, (out, y)| exact & (out == y));
        if exact {
            continue;
        }
        for (index, (out, y)) in (start..end).zip(outputs.iter().zip(values)) {
            while excuses.next_if(|excused| *excused < index).is_some() {}
            let absolute = (out - y).abs();
            if absolute == 0.0 || !absolute.is_finite() || excuses.peek() == Some(&index) {
                continue;
            }
            largest = largest.join(errors_of(rule, bytes, expectation, index, absolute, largest.tolerance_share));
        }
    }
    largest
}

/// The errors of one element that is a number on both sides.
fn errors_of(
    rule: &Rule,
    bytes: &[u8],
    expectation: &Expectation,
    index: usize,
    absolute: f64,
    largest_share: f64,
) -> LargestErrors {
    let (y, delta) = (expectation.values[index], expectation.delta[index]);
    let ulp = rule.dtype.float_format().map_or(1.0, |format| format.ulp(y));
    let allowed = rule.tolerance.allowed(y, delta);
    // The distance to the cell is never more than the difference: most elements need no closer look.
    let share = if absolute <= largest_share * allowed {
        0.0
    } else {
        let error = error_of(rule, read_bits(bytes, rule.dtype.size(), index), y);
        if error == 0.0 { 0.0 } else { error / allowed }
    };
    let relative = if y == 0.0 { 0.0 } else { absolute / y.abs() };
    LargestErrors {
        max_abs_diff: absolute,
        max_rel_diff: relative,
        max_ulp_diff: absolute / ulp,
        tolerance_share: share,
    }
}

#[cfg(test)]
mod tests {
    use gpuemu_tensor::{DType, Tensor};

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
        assert_eq!((largest.max_abs_diff, largest.max_rel_diff, largest.tolerance_share), (0.5, 0.25, 1.0));
        // 0 has the smallest ulp there is.
        assert_eq!(largest.max_ulp_diff, 0.125 / f64::from(f32::from_bits(1)));
    }
}
