//! The verdict on outputs that were computed elsewhere: a client ran the kernel and submits what it got.

use std::borrow::Cow;

use gpuemu_tensor::{FloatEnvironment, Tensor};

use super::judge::{Prepared, Runs, blank, check_form, judge_outputs, runner_failed, settle, settle_expected};
use super::subject::Subject;
use crate::case::{Case, CaseDescriptor};
use crate::runner::{RunnerDescription, RunnerKind};
use crate::verdict::{Outcome, Verdict};

/// What is known of a kernel whose outputs are given.
pub fn submitted() -> RunnerDescription {
    RunnerDescription {
        name: "submitted output".to_string(),
        kind: RunnerKind::Callable,
        layouts: true,
        writes_into_buffers: false,
        inputs_watched: false,
        refills: false,
        remembers: false,
    }
}

/// A verdict on given outputs before anything is known.
pub(super) fn submitted_verdict(subject: &Subject, case: &CaseDescriptor) -> Verdict {
    let mut verdict = blank(subject, case, &submitted());
    verdict.not_checked.extend(["determinism", "transformed cases"].map(String::from));
    verdict
}

/// Judges given outputs, in the order of the schema. There was one run, seen from outside: what would need
/// a second one, or the memory of the first, is listed as not checked.
pub fn judge_given(subject: &Subject, case: &Case, outputs: &[Tensor]) -> Verdict {
    let _standard = FloatEnvironment::enter_standard();
    let runner = submitted();
    let mut verdict = submitted_verdict(subject, &case.descriptor);
    let prepared = Prepared::new(subject, case, &runner);
    let count = prepared.outputs().count();
    // Outputs of the right form have the elements that the reference is about to be asked for.
    if outputs.len() == count {
        let wrong_form = |(spec, output): (_, &Tensor)| check_form(&prepared, spec, output.shape(), output.dtype());
        verdict.failures.extend(prepared.outputs().zip(outputs).filter_map(wrong_form));
    } else {
        verdict.failures.push(runner_failed(format!("{} outputs were given, the op has {count}", outputs.len())));
    }
    if verdict.failures.is_empty() {
        let Some(expectations) = settle_expected(subject.expect(case), &mut verdict) else { return verdict };
        let runs = Runs {
            first: outputs.iter().map(contiguous).collect(),
            second: None,
            surplus: false,
            looked_at: Default::default(),
        };
        judge_outputs(&prepared, &expectations, &runs, &mut verdict);
    }
    settle(&mut verdict);
    if verdict.outcome == Outcome::Passed && verdict.elements.compared == 0 {
        // Alone, a case without an element is no evidence.
        verdict.outcome = Outcome::Undetermined;
        verdict.message = Some("there is no element to compare".to_string());
    }
    verdict
}

/// The bytes of a tensor in row-major order, without a copy where they already lie so.
pub(super) fn contiguous(tensor: &Tensor) -> Cow<'_, [u8]> {
    let size = tensor.dtype().size();
    let start = tensor.offset() * size;
    match tensor.storage().as_bytes().get(start..start + tensor.len() * size) {
        Some(bytes) if tensor.is_contiguous() => Cow::Borrowed(bytes),
        _ => Cow::Owned(tensor.to_contiguous_bytes()),
    }
}
