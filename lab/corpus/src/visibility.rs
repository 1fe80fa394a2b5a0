//! Whether a case can show a bug at all: the wrong formula against the right one, in float64.

use gpuemu_engine::case::Case;
use gpuemu_engine::ops::Expectation;
use gpuemu_engine::oracle::Subject;
use gpuemu_engine::oracle::tolerance::BOUND_FACTOR;

use crate::stand_in::StandIn;

/// How visible a bug is in a case, in ascending order.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub enum Visibility {
    /// The wrong formula gives what the right one gives.
    Untouched,
    Triggered,
    /// They differ by more than one ulp of the output dtype somewhere.
    BeyondUlp,
    /// They differ by more than one ulp and twice the bound: every sound check must see it.
    Observable,
}

/// How visible the bug of a stand-in is in a case. A wrong kernel that crashes is observable.
pub fn visibility(subject: &Subject, stand_in: &StandIn, case: &Case, expectations: &[Expectation]) -> Visibility {
    let (Ok(wrong), Ok(right)) = (stand_in.evaluate(subject, case), stand_in.corrected().evaluate(subject, case))
    else {
        return Visibility::Observable;
    };
    let descriptor = &case.descriptor;
    let specs = subject.schema().outputs.iter().filter(|spec| spec.is_in(descriptor));
    let mut most = Visibility::Untouched;
    for (((spec, expectation), wrong), right) in specs.zip(expectations).zip(&wrong).zip(&right) {
        let dtype = spec.dtype_in(descriptor.dtype);
        let mut excuses = expectation.excuses.iter().peekable();
        for (index, (wrong, right)) in wrong.iter().zip(right).enumerate() {
            let excused = excuses.next_if(|excuse| excuse.index == index).is_some();
            if wrong.to_bits() == right.to_bits() || (wrong.is_nan() && right.is_nan()) {
                continue;
            }
            most = most.max(Visibility::Triggered);
            if excused || !right.is_finite() && !wrong.is_finite() {
                continue;
            }
            let Some(format) = dtype.float_format() else {
                // Whole numbers have no ulp: the answers are the same or they are not.
                let stored = |value: f64| dtype.decode(dtype.encode(value));
                let difference = (stored(*wrong) - stored(*right)).abs();
                if difference > 2.0 * BOUND_FACTOR * expectation.delta[index] {
                    return Visibility::Observable;
                }
                continue;
            };
            // Everything beyond the range rounds to the same infinity: no output can tell it apart.
            let edge = format.max_value() + 0.5 * format.ulp(format.max_value());
            // Without an infinity it becomes NaN, which is no number that saturates.
            let beyond = |value: f64| value.abs() > edge + 2.0 * BOUND_FACTOR * expectation.delta[index];
            if !format.has_infinity && beyond(*wrong) && right.abs() <= format.max_value() {
                return Visibility::Observable;
            }
            let (wrong, right) = (wrong.clamp(-edge, edge), right.clamp(-edge, edge));
            let difference = (wrong - right).abs();
            let ulp = format.ulp(wrong.abs().max(right.abs()));
            // NaN differs from every number.
            if difference <= ulp {
                continue;
            }
            most = most.max(Visibility::BeyondUlp);
            if difference.is_nan() || difference > ulp + 2.0 * BOUND_FACTOR * expectation.delta[index] {
                return Visibility::Observable;
            }
        }
    }
    most
}
