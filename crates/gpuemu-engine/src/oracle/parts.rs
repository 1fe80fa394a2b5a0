//! The verdict on large given outputs, part by part: each part is read, computed and compared while it
//! is in the cache, on all cores. Only an output that plainly passes is judged so; whatever is found
//! in a part is for the whole to be looked at.

use std::ops::Range;

use gpuemu_model::report::ValidationResult;
use gpuemu_tensor::{FloatEnvironment, Tensor};
use rayon::prelude::*;

use super::given::{submitted, submitted_verdict};
use super::judge::{Prepared, Runs, count, judge_outputs};
use super::measure::measure;
use super::subject::Subject;
use crate::case::{Case, CaseDescriptor};
use crate::schema::{Property, Schema, TensorSpec};
use crate::verdict::{ElementCounts, LargestErrors, Outcome, Verdict};

/// Elements of the largest tensor that a part has.
const PART_ELEMENTS: usize = 1 << 13;

/// Elements from which parts are worth their while.
const LEAST_ELEMENTS: usize = 1 << 20;

/// Which tensor a part is read from.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Side {
    /// An input, by its place in the schema.
    Input(usize),
    /// An output, by its place among those that take part.
    Output(usize),
}

/// Reads rows of a tensor: those of the leading dims of `...`, taken as one; all of it where it has none.
pub type ReadPart<'a> = dyn Fn(Side, Range<usize>) -> Result<Tensor, String> + Sync + 'a;

/// Whether a case of an op can be judged in parts: large, and each entry of the batch on its own.
pub fn divisible(subject: &Subject, descriptor: &CaseDescriptor) -> bool {
    let schema = subject.schema();
    let independent = schema.properties.contains(&Property::BatchInvariant) && subject.invariants.is_empty();
    let batched = schema.outputs.iter().all(|spec| spec.batch) && descriptor.sizes.batch_count() > 1;
    independent && batched && largest(schema, descriptor) >= LEAST_ELEMENTS
}

fn largest(schema: &Schema, descriptor: &CaseDescriptor) -> usize {
    let tensors = schema.inputs.iter().chain(&schema.outputs).filter(|spec| spec.is_in(descriptor));
    tensors.map(|spec| elements(spec, descriptor)).max().unwrap_or(0)
}

fn elements(spec: &TensorSpec, descriptor: &CaseDescriptor) -> usize {
    let shape = spec.shape(&descriptor.sizes).unwrap_or_default();
    shape.iter().fold(1, |product: usize, size| product.saturating_mul(*size))
}

/// Judges given outputs in parts. `None` where something was found: the whole must be judged.
pub fn judge_parts(
    subject: &Subject,
    descriptor: &CaseDescriptor,
    read: &ReadPart<'_>,
) -> Result<Option<Verdict>, String> {
    let _standard = FloatEnvironment::enter_standard();
    let rows = descriptor.sizes.batch_count();
    let row_elements = (largest(subject.schema(), descriptor) / rows.max(1)).max(1);
    let step = (PART_ELEMENTS / row_elements).max(1);
    let parts = rows.div_ceil(step);
    let part = |index: usize| {
        let range = index * step..((index + 1) * step).min(rows);
        judge_part(subject, descriptor, range, index + 1 == parts, read)
    };
    let passed: Result<Option<Vec<Passed>>, String> = (0..parts).into_par_iter().map(part).collect();
    let Some(mut passed) = passed? else { return Ok(None) };
    let Some(Passed { last: Some(mut verdict), .. }) = passed.pop() else { return Ok(None) };
    // What was judged is all of it, not the last part.
    let Verdict { result: whole, .. } = submitted_verdict(subject, descriptor);
    verdict.result = ValidationResult { elements: verdict.elements, largest: verdict.largest, ..whole };
    for part in passed {
        verdict.elements.compared += part.elements.compared;
        verdict.elements.excused += part.elements.excused;
        verdict.largest = verdict.largest.join(part.errors);
    }
    Ok(Some(*verdict))
}

/// What is known of a part in which everything passed.
struct Passed {
    elements: ElementCounts,
    errors: LargestErrors,
    /// The last part is judged with all that a verdict has.
    last: Option<Box<Verdict>>,
}

fn judge_part(
    subject: &Subject,
    descriptor: &CaseDescriptor,
    rows: Range<usize>,
    last: bool,
    read: &ReadPart<'_>,
) -> Result<Option<Passed>, String> {
    let schema = subject.schema();
    let mut part = descriptor.clone();
    part.sizes.batch = vec![rows.len()];
    let mut inputs = Vec::with_capacity(schema.inputs.len());
    for (index, spec) in schema.inputs.iter().enumerate() {
        let tensor = spec.is_in(&part).then(|| read(Side::Input(index), rows.clone())).transpose()?;
        inputs.push(tensor);
    }
    let case = Case { descriptor: part, inputs };
    let Ok(expectations) = subject.expect(&case) else { return Ok(None) };
    let specs: Vec<&TensorSpec> = schema.outputs.iter().filter(|spec| spec.is_in(descriptor)).collect();
    let mut outputs = Vec::with_capacity(specs.len());
    for place in 0..specs.len() {
        outputs.push(read(Side::Output(place), rows.clone())?);
    }
    if last {
        let runner = submitted();
        let prepared = Prepared::new(subject, &case, &runner);
        let mut verdict = submitted_verdict(subject, &case.descriptor);
        let first = outputs.iter().map(super::given::contiguous).collect();
        judge_outputs(
            &prepared,
            &expectations,
            &Runs { first, second: None, surplus: false, looked_at: Default::default() },
            &mut verdict,
        );
        let clean = verdict.failures.is_empty() && !verdict.near && verdict.elements.undetermined == 0;
        verdict.outcome = Outcome::Passed;
        let (elements, errors) = (verdict.elements, verdict.largest);
        return Ok(clean.then(|| Passed { elements, errors, last: Some(Box::new(verdict)) }));
    }
    let mut passed = Passed { elements: ElementCounts::default(), errors: LargestErrors::default(), last: None };
    for ((spec, output), expectation) in specs.iter().zip(&outputs).zip(&expectations) {
        let rule = subject.rule(spec.dtype_in(descriptor.dtype));
        let bytes = super::given::contiguous(output);
        if bytes.len() != expectation.values.len() * rule.dtype.size() {
            return Ok(None);
        }
        let comparison = rule.compare(&bytes, expectation);
        if comparison.mismatched > 0 || comparison.near || comparison.undetermined > 0 {
            return Ok(None);
        }
        count(&mut passed.elements, &comparison);
        if subject.measured {
            passed.errors = passed.errors.join(measure(&rule, &bytes, expectation));
        }
    }
    Ok(Some(passed))
}

#[cfg(test)]
mod tests {
    use gpuemu_tensor::DType;

    use super::*;
    use crate::case::given::{Form, describe, given};
    use crate::oracle::judge_given;
    use crate::schema::Parameters;

    fn rows_of(values: &[f64], columns: usize, rows: Range<usize>) -> Result<Tensor, String> {
        let part = &values[rows.start * columns..rows.end * columns];
        Tensor::from_f64(DType::F32, vec![rows.len(), columns], part).map_err(|error| error.to_string())
    }

    #[test]
    fn parts_give_the_verdict_of_the_whole() {
        let op = crate::ops::find("softmax").unwrap();
        let mut subject = Subject::new(op);
        subject.measured = true;
        let (rows, columns) = (5000, 257);
        let input: Vec<f64> = (0..rows * columns).map(|index| f64::from((index % 7919) as f32 / 97.0)).collect();
        let mut output = Vec::new();
        for row in input.chunks(columns) {
            let sum: f64 = row.iter().map(|x| (x - 90.0).exp()).sum();
            output.extend(row.iter().map(|x| (x - 90.0).exp() / sum));
        }
        let form = Form { name: "input".to_string(), dtype: DType::F32, shape: vec![50, 100, columns] };
        let descriptor =
            describe(subject.schema(), subject.fingerprint(), 1, &[form], &Parameters::default(), &[]).unwrap();
        assert!(divisible(&subject, &descriptor));
        let judge_with = |output: &[f64]| {
            let read = |side: Side, range: Range<usize>| match side {
                Side::Input(_) => rows_of(&input, columns, range),
                Side::Output(_) => rows_of(output, columns, range),
            };
            judge_parts(&subject, &descriptor, &read).unwrap()
        };
        let parts = judge_with(&output).unwrap();
        let tensor = |values: &[f64]| Tensor::from_f64(DType::F32, vec![50, 100, columns], values).unwrap();
        let inputs = vec![("input".to_string(), tensor(&input))];
        let case = given(subject.schema(), subject.fingerprint(), 1, inputs, &Parameters::default(), &[]).unwrap();
        let whole = judge_given(&subject, &case, &[tensor(&output)]);
        assert_eq!(parts, whole);
        assert_eq!(parts.elements.compared, rows * columns);
        // One wrong element in the middle is for the whole to be judged.
        output[rows * columns / 2] *= 1.001;
        assert!(judge_with(&output).is_none());
    }
}
