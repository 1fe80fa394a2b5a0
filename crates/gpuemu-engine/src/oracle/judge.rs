//! The verdict on a case, from running the kernel to naming the bug.
//!
//! A verdict is a function of the case alone: extra cases that it needs are derived from the
//! case's seed and run inline, so the order of cases, shards and clusters changes nothing.

use gpuemu_common::rng::escalation_seed;
use gpuemu_common::{Stream, Tensor};

use super::compare::Comparison;
use super::memory::{FIRST_POISON, SECOND_POISON, check_buffers, never_written};
use super::subject::Subject;
use super::{decoy, metamorphic, structure};
use crate::case::{Case, materialise};
use crate::ops::Expectation;
use crate::runner::{Buffer, Invocation, Runner, RunnerError, run_guarded};
use crate::schema::TensorSpec;
use crate::verdict::{BugClass, Check, Discrimination, ElementCounts, Finding, Outcome, Verdict};

/// One case in this many has a call with other shapes between its two runs.
const SEQUENCE_EVERY: u64 = 4;

/// A case made ready to be run by a particular runner.
pub struct Prepared<'a> {
    /// What is judged.
    pub subject: &'a Subject,
    /// The case.
    pub case: &'a Case,
    layouts: bool,
}

impl<'a> Prepared<'a> {
    fn new(subject: &'a Subject, case: &'a Case, runner: &dyn Runner) -> Self {
        Self { subject, case, layouts: runner.description().layouts }
    }

    /// The outputs that take part.
    pub fn outputs(&self) -> impl Iterator<Item = &'a TensorSpec> {
        let descriptor = &self.case.descriptor;
        self.subject.schema().outputs.iter().filter(|spec| descriptor.has(spec))
    }

    /// What an input's buffer held before the run: runners without strides get contiguous copies.
    pub fn pristine<'t>(&self, tensor: &'t Tensor) -> std::borrow::Cow<'t, Tensor> {
        if self.layouts { std::borrow::Cow::Borrowed(tensor) } else { std::borrow::Cow::Owned(tensor.to_contiguous()) }
    }

    fn invocation(&self, poison: u8) -> Option<Invocation<'a>> {
        let descriptor = &self.case.descriptor;
        let inputs = self.case.inputs.iter();
        let inputs = inputs.map(|tensor| tensor.as_ref().map(|tensor| Buffer::holding(&self.pristine(tensor))));
        let mut outputs = Vec::new();
        for spec in self.outputs() {
            let dtype = spec.dtype_in(descriptor.dtype);
            outputs.push(Buffer::poisoned(dtype, spec.shape(&descriptor.sizes)?, poison));
        }
        Some(Invocation {
            schema: self.subject.schema(),
            sizes: &descriptor.sizes,
            parameters: &descriptor.parameters,
            dtype: descriptor.dtype,
            inputs: inputs.collect(),
            outputs,
        })
    }
}

/// Judges one case.
pub fn judge(subject: &Subject, case: &Case, runner: &mut dyn Runner) -> Verdict {
    let mut verdict = judge_once(subject, case, runner, true);
    if verdict.failed() {
        blame_layout(subject, case, runner, &mut verdict);
        return verdict;
    }
    if verdict.near || verdict.discrimination.is_weak() {
        escalate(subject, case, runner, &mut verdict);
    }
    verdict
}

/// A kernel that is right on a contiguous copy of the same inputs has a bug in its strides.
fn blame_layout(subject: &Subject, case: &Case, runner: &mut dyn Runner, verdict: &mut Verdict) {
    if !runner.description().layouts || case.inputs.iter().flatten().all(Tensor::is_contiguous) {
        return;
    }
    let mut plain = case.clone();
    plain.inputs = case.inputs.iter().map(|tensor| tensor.as_ref().map(Tensor::to_contiguous)).collect();
    if !judge_once(subject, &plain, runner, false).failed()
        && let Some(finding) = verdict.findings.first_mut()
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
        descriptor.strategy = *strategy;
        let Ok(extra) = materialise(subject.schema(), &descriptor) else { continue };
        let found = judge_once(subject, &extra, runner, false);
        verdict.escalated += 1;
        verdict.discrimination.rejected.extend(found.discrimination.rejected.iter().copied());
        if found.failed() {
            verdict.outcome = Outcome::Failed;
            verdict.findings = found.findings;
            verdict.failing_case = Some(Box::new(extra.descriptor));
            return;
        }
    }
}

fn judge_once(subject: &Subject, case: &Case, runner: &mut dyn Runner, twins: bool) -> Verdict {
    let mut verdict = Verdict {
        case: case.descriptor.clone(),
        outcome: Outcome::Passed,
        findings: Vec::new(),
        undetermined: None,
        elements: ElementCounts::default(),
        tolerance: subject.tolerance,
        near: false,
        discrimination: Discrimination::default(),
        escalated: 0,
        failing_case: None,
        runner: runner.description().clone(),
        not_checked: not_checked(runner),
    };
    let expectations = match subject.expect(case) {
        Ok(expectations) => expectations,
        Err(error) => {
            verdict.outcome = Outcome::Undetermined;
            verdict.undetermined = Some(error.to_string());
            return verdict;
        }
    };
    let prepared = Prepared::new(subject, case, runner);
    match run_twice(&prepared, runner, &mut verdict.findings) {
        Some(runs) => judge_outputs(&prepared, &expectations, &runs, &mut verdict),
        None => verdict.outcome = Outcome::Failed,
    }
    if verdict.findings.is_empty() && twins {
        judge_twin(subject, case, runner, &mut verdict);
    }
    if !verdict.findings.is_empty() {
        verdict.outcome = Outcome::Failed;
    } else if verdict.elements.compared == 0 && verdict.elements.undetermined > 0 {
        verdict.outcome = Outcome::Undetermined;
        verdict.undetermined = Some("no element could be judged".to_string());
    }
    verdict
}

fn not_checked(runner: &dyn Runner) -> Vec<&'static str> {
    let description = runner.description();
    let mut missing = Vec::new();
    if !description.layouts {
        missing.push("layouts");
    }
    if !description.writes_into_buffers {
        missing.extend(["unwritten outputs", "stores out of bounds", "modified inputs"]);
    }
    missing
}

/// The outputs of two runs, as contiguous bytes.
struct Runs {
    first: Vec<Vec<u8>>,
    second: Vec<Vec<u8>>,
}

/// Runs a case twice at different addresses over different poison. `None` where a run gave nothing to judge.
fn run_twice(prepared: &Prepared<'_>, runner: &mut dyn Runner, findings: &mut Vec<Finding>) -> Option<Runs> {
    let first = run(prepared, runner, FIRST_POISON, findings)?;
    interleave(prepared, runner, findings)?;
    // The first run's buffers are still alive here, so the second run's lie elsewhere.
    let second = run(prepared, runner, SECOND_POISON, findings)?;
    let bytes = |invocation: &Invocation<'_>| invocation.outputs.iter().map(Buffer::contiguous_bytes).collect();
    Some(Runs { first: bytes(&first), second: bytes(&second) })
}

/// Now and then, a call with other shapes between the two runs: state kept by shape shows.
fn interleave(prepared: &Prepared<'_>, runner: &mut dyn Runner, findings: &mut Vec<Finding>) -> Option<()> {
    let mut stream = Stream::new(prepared.case.descriptor.seed, "sequence");
    if !stream.chance(1, SEQUENCE_EVERY) {
        return Some(());
    }
    let Some(neighbour) = neighbour(prepared.subject, prepared.case, &mut stream) else { return Some(()) };
    if let Err(error) = run_case(prepared.subject, &neighbour, runner) {
        findings.push(runner_failed(format!("a call with {} failed: {error}", neighbour.descriptor.sizes)));
        return None;
    }
    Some(())
}

/// Runs a case once and returns its outputs, unjudged.
pub fn run_case(subject: &Subject, case: &Case, runner: &mut dyn Runner) -> Result<Vec<Buffer>, RunnerError> {
    let prepared = Prepared::new(subject, case, runner);
    let impossible = || RunnerError::Raised("the shape of an output cannot be computed".to_string());
    let mut invocation = prepared.invocation(FIRST_POISON).ok_or_else(impossible)?;
    run_guarded(runner, &mut invocation)?;
    Ok(invocation.outputs)
}

fn run<'a>(
    prepared: &Prepared<'a>,
    runner: &mut dyn Runner,
    poison: u8,
    findings: &mut Vec<Finding>,
) -> Option<Invocation<'a>> {
    let Some(mut invocation) = prepared.invocation(poison) else {
        findings.push(runner_failed("the shape of an output cannot be computed".to_string()));
        return None;
    };
    if let Err(error) = run_guarded(runner, &mut invocation) {
        findings.push(runner_failed(error.to_string()));
        return None;
    }
    for (spec, buffer) in prepared.outputs().zip(&invocation.outputs) {
        let descriptor = &prepared.case.descriptor;
        let (dtype, shape) = (spec.dtype_in(descriptor.dtype), spec.shape(&descriptor.sizes).unwrap_or_default());
        let (check, explanation) = if buffer.shape() != shape {
            (Check::Shape, format!("output '{}' has shape {:?}, expected {shape:?}", spec.name, buffer.shape()))
        } else if buffer.dtype() != dtype {
            (Check::Dtype, format!("output '{}' is {}, expected {dtype}", spec.name, buffer.dtype()))
        } else {
            continue;
        };
        findings.push(Finding { check, tensor: spec.name.clone(), explanation, ..runner_failed(String::new()) });
        return None;
    }
    // A second run that finds the same says nothing new.
    if findings.is_empty() && runner.description().writes_into_buffers {
        check_buffers(prepared, &invocation, findings);
    }
    Some(invocation)
}

fn runner_failed(explanation: String) -> Finding {
    Finding {
        check: Check::Runner,
        tensor: String::new(),
        mismatched: 0,
        elements: 0,
        worst: None,
        bug_class: BugClass::Crash,
        explanation,
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

fn judge_outputs(prepared: &Prepared<'_>, expectations: &[Expectation], runs: &Runs, verdict: &mut Verdict) {
    let subject = prepared.subject;
    let descriptor = &prepared.case.descriptor;
    let guarded = verdict.runner.writes_into_buffers;
    for (index, (spec, expectation)) in prepared.outputs().zip(expectations).enumerate() {
        let rule = subject.rule(spec.dtype_in(descriptor.dtype));
        let (first, second) = (&runs.first[index], &runs.second[index]);
        let size = rule.dtype.size();
        if first != second && guarded {
            let unwritten = never_written(first, second, size);
            if !unwritten.is_empty() {
                verdict.findings.push(structure::not_written(spec, expectation.values.len(), &unwritten));
            }
        }
        let comparison = rule.compare(first, expectation);
        count(&mut verdict.elements, &comparison);
        verdict.near |= comparison.near;
        if comparison.mismatched > 0 {
            let finding = structure::describe(prepared, spec, &rule, first, expectation, &comparison);
            verdict.findings.push(finding);
        } else if first != second && verdict.findings.is_empty() {
            if subject.precision.atomics {
                let again = rule.compare(second, expectation);
                if again.mismatched > 0 {
                    verdict.findings.push(structure::describe(prepared, spec, &rule, second, expectation, &again));
                }
            } else {
                verdict.findings.push(structure::nondeterministic(spec, first, second, size));
            }
        }
        if verdict.findings.is_empty() && index == 0 {
            let input = same_shape_input(prepared, spec);
            verdict.discrimination = decoy::discriminate(&rule, expectation, input.as_deref());
        }
    }
}

fn count(elements: &mut ElementCounts, comparison: &Comparison) {
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
    let Ok(expectations) = subject.expect(&twin.case) else { return };
    let prepared = Prepared::new(subject, &twin.case, runner);
    let mut findings = Vec::new();
    if let Some(invocation) = run(&prepared, runner, FIRST_POISON, &mut findings) {
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
        finding.explanation = format!("{} ({}): {}", twin.property.name(), twin.transformation, finding.explanation);
        finding.check = Check::Metamorphic;
        verdict.findings.push(finding);
    }
}
