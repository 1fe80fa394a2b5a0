//! The verdict on a case, from running the kernel to naming the bug.
//!
//! A verdict is a function of the case alone: extra cases that it needs are derived from the
//! case's seed and run inline, so the order of cases, shards and clusters changes nothing.

use std::borrow::Cow;
use std::collections::BTreeSet;

use gpuemu_model::report::ValidationResult;
use gpuemu_tensor::rng::escalation_seed;
use gpuemu_tensor::{DType, FloatEnvironment, Stream, Tensor};

use super::compare::{Comparison, Rule};
use super::measure::measure;
use super::memory::{FIRST_POISON, SECOND_POISON, check_buffers, never_written};
use super::subject::Subject;
use super::{decoy, invariant, metamorphic, state, structure};
use crate::case::{Case, CaseDescriptor, materialise};
use crate::ops::{Expectation, OpError};
use crate::runner::{Buffer, Invocation, Placement, Runner, RunnerDescription, RunnerError, run_guarded};
use crate::schema::TensorSpec;
use crate::verdict::{BugClass, Check, Discrimination, ElementCounts, Finding, Outcome, Verdict};

/// One case in this many has a call with other shapes between its two runs.
const SEQUENCE_EVERY: u64 = 4;

/// A case made ready to be run by a particular runner.
pub struct Prepared<'a> {
    pub subject: &'a Subject,
    pub case: &'a Case,
    layouts: bool,
}

impl<'a> Prepared<'a> {
    pub(super) fn new(subject: &'a Subject, case: &'a Case, runner: &RunnerDescription) -> Self {
        Self { subject, case, layouts: runner.layouts }
    }

    /// The outputs that take part.
    pub fn outputs(&self) -> impl Iterator<Item = &'a TensorSpec> {
        let descriptor = &self.case.descriptor;
        self.subject.schema().outputs.iter().filter(|spec| spec.is_in(descriptor))
    }

    /// What an input's buffer held before the run: runners without strides get contiguous copies.
    pub fn pristine<'t>(&self, tensor: &'t Tensor) -> std::borrow::Cow<'t, Tensor> {
        if self.layouts { std::borrow::Cow::Borrowed(tensor) } else { std::borrow::Cow::Owned(tensor.to_contiguous()) }
    }

    /// The input that an output is written over, if it is.
    pub fn overwritten(&self, output: &TensorSpec) -> Option<&'a Tensor> {
        self.case.inputs.get(self.subject.schema().overwritten_by(output)?)?.as_ref()
    }

    fn invocation(&self, poison: u8, placement: Placement) -> Option<Invocation<'a>> {
        let descriptor = &self.case.descriptor;
        let inputs = self.case.inputs.iter();
        let inputs = inputs.map(|tensor| tensor.as_ref().map(|tensor| Buffer::holding(&self.pristine(tensor))));
        let mut outputs = Vec::new();
        for spec in self.outputs() {
            let dtype = spec.dtype_in(descriptor.dtype);
            outputs.push(match self.overwritten(spec) {
                // Written in place: the kernel finds its input there, in the input's own layout.
                Some(input) => Buffer::holding(&self.pristine(input)),
                None => Buffer::poisoned(dtype, spec.shape(&descriptor.sizes)?, poison),
            });
        }
        Some(Invocation {
            schema: self.subject.schema(),
            sizes: &descriptor.sizes,
            parameters: &descriptor.parameters,
            present: &descriptor.present,
            dtype: descriptor.dtype,
            inputs: inputs.collect(),
            outputs,
            poison,
            placement,
            findings: Vec::new(),
            surplus: false,
            looked_at: Default::default(),
        })
    }
}

pub fn judge(subject: &Subject, case: &Case, runner: &mut dyn Runner) -> Verdict {
    let _standard = FloatEnvironment::enter_standard();
    judge_expected(subject, case, subject.expect(case), runner)
}

/// Judges one case of which it is already known what is expected: the reference may have been asked
/// beforehand, while the kernel was at another case.
pub fn judge_expected(
    subject: &Subject,
    case: &Case,
    expected: Result<Vec<Expectation>, OpError>,
    runner: &mut dyn Runner,
) -> Verdict {
    let _standard = FloatEnvironment::enter_standard();
    let mut verdict = judge_once(subject, case, expected, runner, true);
    if verdict.failed() {
        blame_layout(subject, case, runner, &mut verdict);
        state::explain(subject, case, runner, &mut verdict);
    } else if verdict.outcome != Outcome::Error && (verdict.near || verdict.discrimination.is_weak()) {
        escalate(subject, case, runner, &mut verdict);
    }
    verdict
}

/// A kernel that is right on a contiguous copy of the same inputs has a bug in its strides.
fn blame_layout(subject: &Subject, case: &Case, runner: &mut dyn Runner, verdict: &mut Verdict) {
    // What a call did to memory is not a matter of strides.
    let told = |finding: &Finding| matches!(finding.bug_class, BugClass::Constant | BugClass::InputReturned);
    let open = verdict.finding().is_some_and(|finding| finding.check.is_about_values() && !told(finding));
    if !open || !runner.description().layouts || case.inputs.iter().flatten().all(Tensor::is_contiguous) {
        return;
    }
    let mut plain = case.clone();
    plain.inputs = case.inputs.iter().map(|tensor| tensor.as_ref().map(Tensor::to_contiguous)).collect();
    // Once more as it was: a failure that does not come again has to do with what the kernel remembers. Cases that are
    // derived from this one have its layout: both are judged without.
    if judge_once(subject, &plain, subject.expect(&plain), runner, false).outcome == Outcome::Passed
        && judge_once(subject, case, subject.expect(case), runner, false).failed()
        && let Some(finding) = verdict.failures.first_mut()
    {
        finding.bug_class = BugClass::Stride;
        finding.explanation.push_str("; right on a contiguous copy of the same inputs");
    }
}

/// Looks for more evidence with the values that amplify this op's bugs.
fn escalate(subject: &Subject, case: &Case, runner: &mut dyn Runner, verdict: &mut Verdict) {
    for (step, strategy) in subject.schema().amplifiers.iter().enumerate() {
        let mut descriptor = case.descriptor.clone();
        descriptor.seed = escalation_seed(case.descriptor.seed, step as u64);
        descriptor.values = *strategy;
        if !runner.covers(subject.schema(), &descriptor) {
            continue;
        }
        let Ok(extra) = materialise(subject.schema(), &descriptor) else { continue };
        let found = judge_once(subject, &extra, subject.expect(&extra), runner, false);
        if found.outcome == Outcome::Error {
            (verdict.outcome, verdict.message) = (found.outcome, found.result.message);
            return;
        }
        verdict.escalated += 1;
        verdict.discrimination.rejected.extend(found.discrimination.rejected.iter().copied());
        if found.failed() {
            verdict.outcome = Outcome::Failed;
            verdict.failures = found.result.failures;
            verdict.failing_case = Some(Box::new(extra.descriptor));
            return;
        }
    }
}

/// A verdict before anything is known.
pub(super) fn blank(subject: &Subject, descriptor: &CaseDescriptor, runner: &RunnerDescription) -> Verdict {
    let schema = subject.schema();
    let inputs = schema.inputs.iter().filter(|spec| spec.is_in(descriptor));
    let shapes = inputs.filter_map(|spec| Some((spec.name.clone(), spec.shape(&descriptor.sizes)?)));
    let result = ValidationResult {
        shapes: shapes.collect(),
        layout: schema.layout_summary(descriptor),
        tolerance: subject.tolerance_of(descriptor.dtype).describe(),
        runner: runner.name.clone(),
        not_checked: not_checked(runner),
        ..ValidationResult::of(descriptor.clone())
    };
    Verdict { result, near: false, discrimination: Discrimination::default(), escalated: 0 }
}

/// What is expected of a case; where nothing is, the verdict says why.
pub(super) fn settle_expected(
    expected: Result<Vec<Expectation>, OpError>,
    verdict: &mut Verdict,
) -> Option<Vec<Expectation>> {
    match expected {
        Ok(expectations) => Some(expectations),
        Err(error) => {
            let failed = matches!(error, OpError::ReferenceFailed { .. });
            verdict.outcome = if failed { Outcome::Error } else { Outcome::Undetermined };
            verdict.message = Some(error.to_string());
            None
        }
    }
}

/// The outcome that the findings and counts of a verdict make.
pub(super) fn settle(verdict: &mut Verdict) {
    if !verdict.failures.is_empty() {
        verdict.outcome = Outcome::Failed;
    } else if verdict.outcome != Outcome::Error && verdict.elements.compared == 0 && verdict.elements.undetermined > 0 {
        verdict.outcome = Outcome::Undetermined;
        verdict.message = Some("no element could be judged".to_string());
    }
}

fn judge_once(
    subject: &Subject,
    case: &Case,
    expected: Result<Vec<Expectation>, OpError>,
    runner: &mut dyn Runner,
    twins: bool,
) -> Verdict {
    let mut verdict = blank(subject, &case.descriptor, runner.description());
    let Some(expectations) = settle_expected(expected, &mut verdict) else { return verdict };
    let prepared = Prepared::new(subject, case, runner.description());
    match run_twice(&prepared, runner, &mut verdict.failures) {
        Some(runs) => {
            if runs.surplus {
                verdict.not_checked.push("optional outputs".to_string());
            }
            verdict.not_checked.retain(|missing| !runs.looked_at.contains(missing.as_str()));
            judge_outputs(&prepared, &expectations, &runs, &mut verdict);
            if let Some(last) = runs.second.filter(|_| verdict.failures.is_empty() && twins) {
                state::judge_refilled(subject, case, &last, runner, &mut verdict);
            }
        }
        None => verdict.outcome = Outcome::Failed,
    }
    // What a check found, somebody looked at.
    let found = |check| verdict.failures.iter().any(|finding| finding.check == check);
    let named = [("unwritten outputs", found(Check::NotWritten)), ("stores out of bounds", found(Check::OutOfBounds))];
    verdict.not_checked.retain(|missing| !named.contains(&(missing.as_str(), true)));
    if verdict.failures.is_empty() && twins {
        judge_twin(subject, case, runner, &mut verdict);
    }
    settle(&mut verdict);
    verdict
}

fn not_checked(description: &RunnerDescription) -> Vec<String> {
    let mut missing = Vec::new();
    if !description.layouts {
        missing.push("layouts");
    }
    if !description.writes_into_buffers {
        missing.extend(["unwritten outputs", "stores out of bounds"]);
    }
    if !description.inputs_watched {
        missing.push("modified inputs");
    }
    missing.into_iter().map(String::from).collect()
}

/// The outputs of a case as contiguous bytes: of two runs, or of the one that was given.
pub(super) struct Runs<'a> {
    pub first: Vec<Cow<'a, [u8]>>,
    pub second: Option<Vec<Vec<u8>>>,
    /// Whether more outputs came back than are judged.
    pub surplus: bool,
    /// What was looked at beside what the runner allows.
    pub looked_at: BTreeSet<&'static str>,
}

/// Runs a case twice at different addresses over different poison. `None` where a run gave nothing to judge.
fn run_twice<'a>(prepared: &Prepared<'_>, runner: &mut dyn Runner, findings: &mut Vec<Finding>) -> Option<Runs<'a>> {
    let first = run(prepared, runner, FIRST_POISON, Placement::Fresh, findings)?;
    interleave(prepared, runner, findings)?;
    // The first run's buffers are still alive here, so the second run's lie elsewhere.
    let second = run(prepared, runner, SECOND_POISON, Placement::Fresh, findings)?;
    let second_bytes = second.outputs.iter().map(Buffer::contiguous_bytes).collect();
    let surplus = first.surplus || second.surplus;
    let mut looked_at = first.looked_at;
    if first.outputs.iter().all(|output| output.data().is_empty()) {
        // Nothing is to be written, and nothing lies beyond it.
        looked_at.extend(["unwritten outputs", "stores out of bounds"]);
    }
    let first = first.outputs.iter().map(|output| Cow::Owned(output.contiguous_bytes())).collect();
    Some(Runs { first, second: Some(second_bytes), surplus, looked_at })
}

/// Now and then, a call with other shapes between the two runs: state kept by shape shows.
fn interleave(prepared: &Prepared<'_>, runner: &mut dyn Runner, findings: &mut Vec<Finding>) -> Option<()> {
    let mut stream = Stream::new(prepared.case.descriptor.seed, "sequence");
    if !stream.chance(1, SEQUENCE_EVERY) {
        return Some(());
    }
    let Some(neighbour) = neighbour(prepared.subject, prepared.case, &mut stream) else { return Some(()) };
    if !runner.covers(prepared.subject.schema(), &neighbour.descriptor) {
        return Some(());
    }
    if let Err(error) = run_case(prepared.subject, &neighbour, runner) {
        findings.push(runner_failed(format!("a call with {} failed: {error}", neighbour.descriptor.sizes)));
        return None;
    }
    Some(())
}

/// Runs a case once and returns its outputs, unjudged.
pub fn run_case(subject: &Subject, case: &Case, runner: &mut dyn Runner) -> Result<Vec<Buffer>, RunnerError> {
    let prepared = Prepared::new(subject, case, runner.description());
    let impossible = || RunnerError::Raised("the shape of an output cannot be computed".to_string());
    let mut invocation = prepared.invocation(FIRST_POISON, Placement::Fresh).ok_or_else(impossible)?;
    run_guarded(runner, &mut invocation)?;
    Ok(invocation.outputs)
}

pub(super) fn run<'a>(
    prepared: &Prepared<'a>,
    runner: &mut dyn Runner,
    poison: u8,
    placement: Placement,
    findings: &mut Vec<Finding>,
) -> Option<Invocation<'a>> {
    let Some(mut invocation) = prepared.invocation(poison, placement) else {
        findings.push(runner_failed("the shape of an output cannot be computed".to_string()));
        return None;
    };
    let ran = run_guarded(runner, &mut invocation);
    // A second run that finds the same says nothing new.
    let new = findings.is_empty();
    if new {
        findings.append(&mut invocation.findings);
    }
    if let Err(error) = ran {
        findings.push(runner_failed(error.to_string()));
        return None;
    }
    for (spec, buffer) in prepared.outputs().zip(&invocation.outputs) {
        if let Some(finding) = check_form(prepared, spec, buffer.shape(), buffer.dtype()) {
            findings.push(finding);
            return None;
        }
    }
    if new {
        check_buffers(prepared, &invocation, runner.description(), findings);
    }
    Some(invocation)
}

/// Whether an output has the shape and dtype that it must have.
pub(super) fn check_form(
    prepared: &Prepared<'_>,
    spec: &TensorSpec,
    found_shape: &[usize],
    found_dtype: DType,
) -> Option<Finding> {
    let descriptor = &prepared.case.descriptor;
    let (dtype, shape) = (spec.dtype_in(descriptor.dtype), spec.shape(&descriptor.sizes).unwrap_or_default());
    let (check, explanation) = if found_shape != shape {
        (Check::Shape, format!("output '{}' has shape {found_shape:?}, expected {shape:?}", spec.name))
    } else if found_dtype != dtype {
        (Check::Dtype, format!("output '{}' is {found_dtype}, expected {dtype}", spec.name))
    } else {
        return None;
    };
    Some(Finding { check, tensor: spec.name.clone(), explanation, ..runner_failed(String::new()) })
}

pub(super) fn runner_failed(explanation: String) -> Finding {
    Finding {
        check: Check::Runner,
        tensor: String::new(),
        mismatched: 0,
        elements: 0,
        worst: None,
        bug_class: BugClass::Crash,
        explanation,
        places: Vec::new(),
    }
}

/// A smaller case of another shape, for a call in between.
fn neighbour(subject: &Subject, case: &Case, stream: &mut Stream) -> Option<Case> {
    let mut descriptor = case.descriptor.clone();
    for size in &mut descriptor.sizes.batch {
        *size = (*size).min(1 + stream.below(3) as usize);
    }
    for (name, size) in &mut descriptor.sizes.named {
        let smaller = (*size).min(1 + stream.below(9) as usize);
        if subject.schema().dimension(name).is_some_and(|dimension| dimension.allows(smaller)) {
            *size = smaller;
        }
    }
    if descriptor.sizes == case.descriptor.sizes {
        return None;
    }
    materialise(subject.schema(), &descriptor).ok()
}

/// Judges the outputs of a case.
pub(super) fn judge_outputs(
    prepared: &Prepared<'_>,
    expectations: &[Expectation],
    runs: &Runs<'_>,
    verdict: &mut Verdict,
) {
    let subject = prepared.subject;
    let descriptor = &prepared.case.descriptor;
    for (index, (spec, expectation)) in prepared.outputs().zip(expectations).enumerate() {
        let rule = subject.rule(spec.dtype_in(descriptor.dtype));
        let first = &runs.first[index];
        let second = runs.second.as_ref().map(|second| &second[index]).filter(|second| second[..] != first[..]);
        // Poison of both runs in one place is no accident, whoever made the memory.
        if let Some(second) = second {
            let unwritten = never_written(first, second, rule.dtype.size());
            if !unwritten.is_empty() {
                verdict.failures.push(structure::not_written(spec, expectation.values.len(), &unwritten));
            }
        }
        let comparison = rule.compare(first, expectation);
        count(&mut verdict.elements, &comparison);
        verdict.near |= comparison.near;
        if subject.measured {
            verdict.largest = verdict.largest.join(measure(&rule, first, expectation));
        }
        if comparison.mismatched > 0 {
            let finding = structure::describe(prepared, spec, &rule, first, expectation, &comparison);
            verdict.failures.push(finding);
        } else if let Some(second) = second.filter(|_| verdict.failures.is_empty()) {
            judge_second_run(prepared, spec, &rule, first, second, expectation, &mut verdict.failures);
        }
        let shape = spec.shape(&descriptor.sizes).unwrap_or_default();
        let broken = subject.invariants.iter();
        let broken = broken.filter_map(|one| invariant::check(*one, spec, &rule, &shape, first, expectation));
        verdict.failures.extend(broken);
        if verdict.failures.is_empty() && index == 0 {
            let input = same_shape_input(prepared, spec);
            verdict.discrimination = decoy::discriminate(&rule, expectation, input.as_deref());
        }
    }
}

/// A second run that gave other bits: fine where atomics are declared and they are right too.
fn judge_second_run(
    prepared: &Prepared<'_>,
    spec: &TensorSpec,
    rule: &Rule,
    first: &[u8],
    second: &[u8],
    expectation: &Expectation,
    findings: &mut Vec<Finding>,
) {
    if !prepared.subject.precision.atomics {
        findings.push(structure::nondeterministic(spec, first, second, rule.dtype.size()));
        return;
    }
    let again = rule.compare(second, expectation);
    if again.mismatched > 0 {
        findings.push(structure::describe(prepared, spec, rule, second, expectation, &again));
    }
}

/// Adds up what comparisons counted.
pub(super) fn count(elements: &mut ElementCounts, comparison: &Comparison) {
    elements.compared += comparison.compared;
    elements.mismatched += comparison.mismatched;
    elements.undetermined += comparison.undetermined;
    elements.excused += comparison.excused;
}

fn same_shape_input(prepared: &Prepared<'_>, spec: &TensorSpec) -> Option<Vec<f64>> {
    let descriptor = &prepared.case.descriptor;
    let shape = spec.shape(&descriptor.sizes)?;
    let tensors = prepared.case.inputs.iter().flatten();
    let mut alike =
        tensors.filter(|tensor| tensor.shape() == shape && tensor.dtype() == spec.dtype_in(descriptor.dtype));
    alike.next().map(Tensor::to_f64)
}

fn judge_twin(subject: &Subject, case: &Case, runner: &mut dyn Runner, verdict: &mut Verdict) {
    let Some(twin) = metamorphic::twin(subject.schema(), case) else { return };
    // A compiled kernel that is not made for the transformed shape has not failed.
    if !runner.covers(subject.schema(), &twin.case.descriptor) {
        return;
    }
    let expectations = match subject.expect(&twin.case) {
        Ok(expectations) => expectations,
        Err(error @ OpError::ReferenceFailed { .. }) => {
            (verdict.outcome, verdict.message) = (Outcome::Error, Some(error.to_string()));
            return;
        }
        Err(_) => return,
    };
    let prepared = Prepared::new(subject, &twin.case, runner.description());
    let mut findings = Vec::new();
    if let Some(invocation) = run(&prepared, runner, FIRST_POISON, Placement::Fresh, &mut findings) {
        for (index, (spec, expectation)) in prepared.outputs().zip(&expectations).enumerate() {
            let rule = subject.rule(spec.dtype_in(case.descriptor.dtype));
            let bytes = invocation.outputs[index].contiguous_bytes();
            let comparison = rule.compare(&bytes, expectation);
            if comparison.mismatched > 0 {
                findings.push(structure::describe(&prepared, spec, &rule, &bytes, expectation, &comparison));
            }
        }
    }
    for mut finding in findings {
        if !finding.check.is_about_values() {
            // What a call did to memory has nothing to do with the property.
            verdict.failures.push(finding);
            continue;
        }
        finding.explanation = format!("{} ({}): {}", twin.property.name(), twin.transformation, finding.explanation);
        finding.check = Check::Metamorphic;
        verdict.failures.push(finding);
    }
}
