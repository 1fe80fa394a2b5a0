//! Memory discipline: what a run left behind in buffers that belong to the engine.

use super::judge::Prepared;
use gpuemu_tensor::Tensor;

use crate::runner::{Buffer, GuardDamage, Invocation, RunnerDescription};
use crate::verdict::{BugClass, Check, Finding};

/// What outputs hold before the first run: NaN in every float format.
pub const FIRST_POISON: u8 = 0xff;

/// What outputs hold before the second run: other bits, so that what was never written differs.
pub const SECOND_POISON: u8 = 0xab;

/// Guard bands of every buffer, and the bytes of every input, as far as the runner lets them be seen.
pub fn check_buffers(
    prepared: &Prepared<'_>,
    invocation: &Invocation<'_>,
    runner: &RunnerDescription,
    findings: &mut Vec<Finding>,
) {
    if runner.inputs_watched {
        check_inputs(prepared, invocation, findings);
    }
    if !runner.writes_into_buffers {
        return;
    }
    for (spec, buffer) in prepared.outputs().zip(&invocation.outputs) {
        if let Some(damage) = buffer.guard_damage() {
            let elements = buffer.shape().iter().product();
            findings.push(out_of_bounds(&spec.name, elements, buffer.dtype().size(), damage));
        }
        if let Some(input) = prepared.overwritten(spec) {
            check_gaps(&spec.name, buffer, &prepared.pristine(input), findings);
        }
    }
}

/// What lies between the elements of a tensor that is written in place is not the kernel's.
fn check_gaps(name: &str, buffer: &Buffer, before: &Tensor, findings: &mut Vec<Finding>) {
    let (size, data) = (buffer.dtype().size(), buffer.data());
    let original = before.storage().as_bytes();
    if data.len() != original.len() || buffer.strides() != before.strides() {
        return;
    }
    let mut element = vec![false; data.len() / size];
    let visit = |position: usize| element[position] = true;
    gpuemu_tensor::tensor::for_each_position(before.shape(), before.strides(), before.offset(), visit);
    let pairs = data.chunks_exact(size).zip(original.chunks_exact(size)).zip(&element);
    let changed: Vec<usize> =
        pairs.enumerate().filter(|(_, ((now, then), inside))| !**inside && now != then).map(|(at, _)| at).collect();
    if let Some(first) = changed.first() {
        findings.push(Finding {
            check: Check::OutOfBounds,
            tensor: name.to_string(),
            mismatched: changed.len(),
            elements: before.len(),
            worst: None,
            bug_class: BugClass::OutOfBounds,
            places: Vec::new(),
            explanation: format!(
                "the kernel wrote between the elements of '{name}' ({} places, the first at storage element {first})",
                changed.len()
            ),
        });
    }
}

fn check_inputs(prepared: &Prepared<'_>, invocation: &Invocation<'_>, findings: &mut Vec<Finding>) {
    let schema = prepared.subject.schema();
    for (index, spec) in schema.inputs.iter().enumerate() {
        let (Some(buffer), Some(tensor)) = (&invocation.inputs[index], &prepared.case.inputs[index]) else { continue };
        let overwritten_by_design = schema.outputs.iter().any(|output| output.name == spec.name);
        let original = prepared.pristine(tensor);
        if !overwritten_by_design && buffer.data() != original.storage().as_bytes() {
            let pairs = buffer.data().iter().zip(original.storage().as_bytes());
            let size = tensor.dtype().size();
            let changed = pairs.enumerate().filter(|(_, (now, before))| now != before).map(|(at, _)| at / size);
            let mut elements: Vec<usize> = changed.collect();
            elements.dedup();
            let first = elements.first().copied().unwrap_or(0);
            findings.push(input_overwritten(&spec.name, tensor.len(), elements.len(), first));
        }
        if let Some(damage) = buffer.guard_damage() {
            findings.push(out_of_bounds(&spec.name, tensor.len(), tensor.dtype().size(), damage));
        }
    }
}

/// The finding on an input of so many elements of whose storage some changed, the first at a place.
pub fn input_overwritten(input: &str, elements: usize, changed: usize, first: usize) -> Finding {
    Finding {
        check: Check::InputModified,
        tensor: input.to_string(),
        mismatched: changed,
        elements,
        worst: None,
        bug_class: BugClass::InputOverwritten,
        places: Vec::new(),
        explanation: format!(
            "the kernel wrote over its input '{input}' ({changed} elements, the first at storage element {first})"
        ),
    }
}

/// The finding on stores outside of a tensor of so many elements of a size.
pub fn out_of_bounds(tensor: &str, elements: usize, size: usize, damage: GuardDamage) -> Finding {
    let side = if damage.after { "after the end" } else { "before the start" };
    Finding {
        check: Check::OutOfBounds,
        tensor: tensor.to_string(),
        mismatched: damage.bytes.div_ceil(size),
        elements,
        worst: None,
        bug_class: BugClass::OutOfBounds,
        places: Vec::new(),
        explanation: format!(
            "the kernel wrote {} bytes outside of '{tensor}', the nearest {} bytes {side}",
            damage.bytes, damage.distance
        ),
    }
}

/// The finding on a call after which the thread computes in another way than before.
pub fn float_environment_left(differences: &[impl AsRef<str>]) -> Finding {
    let words: Vec<&str> = differences.iter().map(AsRef::as_ref).collect();
    let words = if words.is_empty() { "the standard one".to_string() } else { words.join(", ") };
    Finding {
        check: Check::FloatEnvironment,
        tensor: String::new(),
        mismatched: 0,
        elements: 0,
        worst: None,
        bug_class: BugClass::FloatEnvironment,
        places: Vec::new(),
        explanation: format!("the kernel left another floating-point environment behind: {words}"),
    }
}

/// Elements that hold the first poison after the first run and the second after the second.
pub fn never_written(first: &[u8], second: &[u8], size: usize) -> Vec<usize> {
    let pairs = first.chunks_exact(size).zip(second.chunks_exact(size)).enumerate();
    let poisoned = |bytes: &[u8], poison: u8| bytes.iter().all(|byte| *byte == poison);
    pairs
        .filter(|(_, (first, second))| poisoned(first, FIRST_POISON) && poisoned(second, SECOND_POISON))
        .map(|(index, _)| index)
        .collect()
}
