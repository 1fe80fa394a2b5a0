//! Kernels that remember: results kept by address, outputs that do not depend on the data, calls that are
//! right only at first.

use std::time::{Duration, Instant};

use gpuemu_tensor::Stream;
use gpuemu_tensor::rng::escalation_seed;

use super::judge::{Prepared, run, runner_failed};
use super::memory::FIRST_POISON;
use super::structure;
use super::subject::Subject;
use crate::case::{Case, Strategy, materialise};
use crate::ops::{Expectation, OpError};
use crate::runner::{Placement, Runner};
use crate::verdict::{BugClass, Check, Finding, Outcome, Verdict};

/// One case in this many is followed by a call with other data at the same addresses.
const REFILLED_EVERY: u64 = 2;

/// The step of the escalation whose seed other data has: beyond any that looks for more evidence.
const OTHER_DATA: u64 = 1 << 32;

/// A case of the same form with other, ordinary data, and what is expected of it.
fn other_data(subject: &Subject, case: &Case) -> Option<(Case, Result<Vec<Expectation>, OpError>)> {
    let mut descriptor = case.descriptor.clone();
    descriptor.seed = escalation_seed(case.descriptor.seed, OTHER_DATA);
    descriptor.values = Strategy::Regular;
    let other = materialise(subject.schema(), &descriptor).ok()?;
    let expected = subject.expect(&other);
    Some((other, expected))
}

/// The outputs of one call, or nothing where it gave none of the right form.
fn outputs(subject: &Subject, case: &Case, runner: &mut dyn Runner, placement: Placement) -> Option<Vec<Vec<u8>>> {
    let prepared = Prepared::new(subject, case, runner.description());
    let invocation = run(&prepared, runner, FIRST_POISON, placement, &mut Vec::new())?;
    Some(invocation.outputs.iter().map(crate::runner::Buffer::contiguous_bytes).collect())
}

/// Now and then, other data at the addresses of the last call, whose outputs are given: a result that was kept by
/// address is stale now.
pub(super) fn judge_refilled(
    subject: &Subject,
    case: &Case,
    last: &[Vec<u8>],
    runner: &mut dyn Runner,
    verdict: &mut Verdict,
) {
    let chosen = Stream::new(case.descriptor.seed, "refill").chance(1, REFILLED_EVERY);
    if !chosen || !runner.description().refills || verdict.outcome == Outcome::Error {
        return;
    }
    let Some((other, expected)) = other_data(subject, case) else { return };
    let expectations = match expected {
        Ok(expectations) => expectations,
        Err(error @ OpError::ReferenceFailed { .. }) => {
            (verdict.outcome, verdict.message) = (Outcome::Error, Some(error.to_string()));
            return;
        }
        Err(_) => return,
    };
    let prepared = Prepared::new(subject, &other, runner.description());
    let mut findings = Vec::new();
    let invocation = run(&prepared, runner, FIRST_POISON, Placement::Refilled, &mut findings);
    for (index, (spec, expectation)) in prepared.outputs().zip(&expectations).enumerate() {
        let Some(invocation) = &invocation else { break };
        let rule = subject.rule(spec.dtype_in(other.descriptor.dtype));
        let bytes = invocation.outputs[index].contiguous_bytes();
        let comparison = rule.compare(&bytes, expectation);
        if comparison.mismatched == 0 {
            continue;
        }
        let mut finding = structure::describe(&prepared, spec, &rule, &bytes, expectation, &comparison);
        let words = format!("after new data was put where the inputs of the call before lay: {}", finding.explanation);
        finding.explanation = words;
        if let Some(input) = returned_input(subject, &other, &bytes) {
            finding.bug_class = BugClass::InputReturned;
            finding.explanation = format!("{}; it is the input '{input}', bit for bit", finding.explanation);
        }
        let same = last.get(index).is_some_and(|last| *last == bytes);
        let elsewhere = same.then(|| outputs(subject, &other, runner, Placement::Fresh)).flatten();
        if elsewhere.is_some_and(|elsewhere| elsewhere.get(index) == Some(&bytes)) {
            // No cache: the same output for other data wherever it lies.
            finding.bug_class = BugClass::Constant;
            finding.explanation.push_str("; it is the same, bit for bit, for other inputs of that shape");
        } else if same {
            finding.check = Check::StaleResult;
            finding.bug_class = BugClass::CachedByAddress;
            finding.explanation = format!(
                "'{}' is the result of the call before, although the inputs at the same addresses have changed: a \
                 result is cached by address ({} of {} elements are wrong)",
                spec.name, comparison.mismatched, finding.elements
            );
        }
        findings.push(finding);
    }
    verdict.failures.append(&mut findings);
}

/// The input whose elements an output has, bit for bit.
fn returned_input<'a>(subject: &'a Subject, case: &Case, output: &[u8]) -> Option<&'a str> {
    let pairs = subject.schema().inputs.iter().zip(&case.inputs);
    let mut tensors = pairs.filter_map(|(spec, tensor)| Some((spec, tensor.as_ref()?)));
    let (spec, _) = tensors.find(|(_, tensor)| !output.is_empty() && tensor.to_contiguous_bytes() == output)?;
    Some(&spec.name)
}

/// What a wrong output is, where it can be told by calling once more or by looking at the inputs.
pub(super) fn explain(subject: &Subject, case: &Case, runner: &mut dyn Runner, verdict: &mut Verdict) {
    let told = matches!(verdict.reason(), Some(Check::Value | Check::UnexpectedNan | Check::UnexpectedInfinity));
    if !told || !runner.description().refills || verdict.failing_case.is_some() {
        return;
    }
    let Some(first) = outputs(subject, case, runner, Placement::Fresh) else { return };
    let Some((other, Ok(expectations))) = other_data(subject, case) else { return };
    let prepared = Prepared::new(subject, case, runner.description());
    let tensor = verdict.finding().map(|finding| finding.tensor.clone()).unwrap_or_default();
    let Some(place) = prepared.outputs().position(|spec| spec.name == tensor) else { return };
    // A failure with other data, at the same addresses or transformed, is not explained by this output.
    let direct = subject.expect(case).ok().is_some_and(|expected| wrong(&prepared, &expected, &first).is_some());
    if !direct {
        return;
    }
    let Some(output) = first.get(place).filter(|output| !output.is_empty()) else { return };
    let explained = if let Some(input) = returned_input(subject, case, output) {
        Some((BugClass::InputReturned, format!("it is the input '{input}', bit for bit")))
    } else {
        let again = outputs(subject, &other, runner, Placement::Fresh);
        let same = again.as_ref().and_then(|again| again.get(place)).is_some_and(|again| again == output);
        // Where the reference, too, says the same for other data, the same output means nothing.
        let distinct = subject.expect(case).ok().is_some_and(|expected| {
            expected.get(place).map(|expected| &expected.values) != expectations.get(place).map(|other| &other.values)
        });
        (same && distinct)
            .then(|| (BugClass::Constant, "it is the same, bit for bit, for other inputs of that shape".to_string()))
    };
    if let (Some((bug_class, words)), Some(finding)) = (explained, verdict.failures.first_mut()) {
        finding.bug_class = bug_class;
        finding.explanation = format!("{}; {words}", finding.explanation);
    }
}

/// Calls a kernel again and again with a case that passed; the finding if it does not stay right.
///
/// Ends after so many calls, or when time is up. Returns the calls that were made as well.
pub fn repeat(
    subject: &Subject,
    case: &Case,
    runner: &mut dyn Runner,
    calls: usize,
    time: Duration,
) -> (usize, Option<Finding>) {
    let started = Instant::now();
    let Ok(expectations) = subject.expect(case) else { return (0, None) };
    let prepared = Prepared::new(subject, case, runner.description());
    let mut known: Option<Vec<Vec<u8>>> = None;
    for call in 0..calls {
        if call > 1 && started.elapsed() >= time {
            return (call, None);
        }
        let mut findings = Vec::new();
        let invocation = run(&prepared, runner, FIRST_POISON, Placement::Fresh, &mut findings);
        let found = match invocation {
            Some(invocation) => {
                let bytes: Vec<Vec<u8>> =
                    invocation.outputs.iter().map(crate::runner::Buffer::contiguous_bytes).collect();
                if known.as_ref() == Some(&bytes) {
                    findings.into_iter().next()
                } else {
                    let found = wrong(&prepared, &expectations, &bytes).or_else(|| findings.into_iter().next());
                    known = Some(bytes);
                    found
                }
            }
            None => findings.into_iter().next().or_else(|| Some(runner_failed("the call gave no output".to_string()))),
        };
        if let Some(finding) = found {
            return (call + 1, Some(later_calls(finding, call)));
        }
    }
    (calls, None)
}

fn wrong(prepared: &Prepared<'_>, expectations: &[Expectation], outputs: &[Vec<u8>]) -> Option<Finding> {
    for ((spec, expectation), bytes) in prepared.outputs().zip(expectations).zip(outputs) {
        let rule = prepared.subject.rule(spec.dtype_in(prepared.case.descriptor.dtype));
        let comparison = rule.compare(bytes, expectation);
        if comparison.mismatched > 0 {
            return Some(structure::describe(prepared, spec, &rule, bytes, expectation, &comparison));
        }
    }
    None
}

/// The finding on a case that passed before and fails after more calls.
pub fn later_calls(mut finding: Finding, repeated: usize) -> Finding {
    let when =
        if repeated == 0 { "is called again later".to_string() } else { format!("is repeated {repeated} times") };
    finding.explanation = format!(
        "the case passed at first and fails when it {when}: right in the first calls only; {}",
        finding.explanation
    );
    finding.check = Check::LaterCalls;
    finding.bug_class = BugClass::FirstCallsOnly;
    finding
}
