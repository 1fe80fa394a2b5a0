//! Decoys: outputs that are plainly wrong. A case that would accept all of them proves nothing.

pub use gpuemu_model::finding::Decoy;
use gpuemu_tensor::tensor::encode_slice;

use super::compare::Rule;
use crate::ops::{ExcuseKind, Expectation};
use crate::verdict::Discrimination;

/// Elements that decoys are judged on: the last ones, where the last tile is.
const WINDOW: usize = 4096;

/// Elements of the tile that [`Decoy::TailZeroed`] drops.
const TAIL: usize = 16;

/// Judges every decoy that differs from the right output as the kernel's output would be.
/// `input` holds the values of an input of the same shape and dtype, if there is one.
pub fn discriminate(rule: &Rule, expectation: &Expectation, input: Option<&[f64]>) -> Discrimination {
    let count = expectation.values.len();
    let start = count.saturating_sub(WINDOW);
    let window = window_of(expectation, start);
    let mut discrimination = Discrimination::default();
    let mut bytes = vec![0; window.values.len() * rule.dtype.size()];
    let mut values = vec![0.0; window.values.len()];
    for decoy in [Decoy::Zeros, Decoy::InputCopy, Decoy::Mean, Decoy::Scaled, Decoy::TailZeroed] {
        if !fill(decoy, rule, &window, input.map(|input| &input[start.min(input.len())..]), &mut values) {
            continue;
        }
        // Where the right output is NaN or infinite the decoy is right: those give every fake away.
        for (value, y) in values.iter_mut().zip(&window.values) {
            if !y.is_finite() {
                *value = *y;
            }
        }
        if !differs(rule, &window, &values) {
            continue;
        }
        encode_slice(rule.dtype, &values, &mut bytes);
        let rejected = rule.rejects(&bytes, &window);
        if rejected { &mut discrimination.rejected } else { &mut discrimination.accepted }.push(decoy);
    }
    discrimination
}

fn window_of(expectation: &Expectation, start: usize) -> std::borrow::Cow<'_, Expectation> {
    if start == 0 {
        return std::borrow::Cow::Borrowed(expectation);
    }
    let skip = expectation.excuses.partition_point(|excuse| excuse.index < start);
    let mut excuses = expectation.excuses[skip..].to_vec();
    excuses.iter_mut().for_each(|excuse| excuse.index -= start);
    std::borrow::Cow::Owned(Expectation {
        values: expectation.values[start..].to_vec(),
        delta: expectation.delta[start..].to_vec(),
        excuses,
    })
}

/// Writes a decoy's values; false where it cannot be made.
fn fill(decoy: Decoy, rule: &Rule, window: &Expectation, input: Option<&[f64]>, values: &mut [f64]) -> bool {
    match decoy {
        Decoy::Zeros => values.fill(0.0),
        Decoy::InputCopy => {
            let Some(input) = input.filter(|input| input.len() == values.len()) else { return false };
            values.copy_from_slice(input);
        }
        Decoy::Mean => {
            let finite = window.values.iter().filter(|value| value.is_finite());
            let (sum, count) = finite.fold((0.0, 0usize), |(sum, count), value| (sum + value, count + 1));
            values.fill(sum / count.max(1) as f64);
        }
        Decoy::Scaled => {
            let ulp = |y: f64| rule.dtype.float_format().map_or(1.0, |format| format.ulp(y));
            for ((value, y), delta) in values.iter_mut().zip(&window.values).zip(&window.delta) {
                let allowed = rule.tolerance.allowed(*y, *delta);
                let step = (0.01 * y.abs()).max(4.0 * ulp(*y)).max(2.0 * allowed);
                *value = y + step.copysign(*y);
            }
        }
        Decoy::TailZeroed => {
            values.copy_from_slice(&window.values);
            let tail = values.len().saturating_sub(TAIL);
            if tail == 0 {
                return false;
            }
            values[tail..].fill(0.0);
        }
    }
    true
}

/// Whether a decoy is wrong by more than an ulp at an element that can be judged.
fn differs(rule: &Rule, window: &Expectation, values: &[f64]) -> bool {
    let ulp = |y: f64| rule.dtype.float_format().map_or(0.5, |format| format.ulp(y));
    let mut excuses = window.excuses.iter().peekable();
    window.values.iter().zip(values).enumerate().any(|(index, (y, value))| {
        let excused = excuses.next_if(|excuse| excuse.index == index);
        let judged =
            excused.is_none_or(|excuse| !matches!(excuse.kind, ExcuseKind::Undetermined | ExcuseKind::Overflow { .. }));
        judged && y.is_finite() && (y - value).abs() > ulp(*y)
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::oracle::Tolerance;
    use gpuemu_tensor::DType;

    #[test]
    fn a_tight_rule_rejects_every_decoy_and_a_loose_one_none() {
        let values: Vec<f64> = (0..64).map(|index| 0.01 * f64::from(index) - 0.2).collect();
        let expectation = Expectation { delta: vec![1e-9; 64], values, excuses: Vec::new() };
        let rule = |tolerance| Rule::new(DType::F32, tolerance);
        let input = vec![0.3; 64];
        let tight = discriminate(&rule(Tolerance::Bound), &expectation, Some(&input));
        assert_eq!((tight.rejected.len(), tight.accepted.len()), (5, 0));
        let loose = discriminate(&rule(Tolerance::Fixed { atol: 1.0, rtol: 0.0 }), &expectation, Some(&input));
        assert_eq!(loose.accepted, [Decoy::Zeros, Decoy::InputCopy, Decoy::Mean, Decoy::TailZeroed]);
    }

    #[test]
    fn decoys_that_equal_the_right_output_do_not_count() {
        let expectation = Expectation { values: vec![0.0; 64], delta: vec![0.0; 64], excuses: Vec::new() };
        let rule = Rule::new(DType::F32, Tolerance::Bound);
        let found = discriminate(&rule, &expectation, None);
        assert!(found.accepted.is_empty() && !found.is_weak());
    }
}
