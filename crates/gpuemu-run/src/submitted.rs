//! Judging outputs that were computed elsewhere, for inputs that are given or that a seed stands for.

use gpuemu_config::failure::Failure;
use gpuemu_engine::case::given::{Form, given};
use gpuemu_engine::ops::check_domains;
use gpuemu_engine::oracle::judge_given;
use gpuemu_engine::schema::{Parameters, Schema};
use gpuemu_engine::{Case, Verdict};
use gpuemu_runners::python_program::match_outputs;
use gpuemu_tensor::Tensor;
use gpuemu_tensor::rng::blake2b;
use serde_json::{Map, Value};

use crate::configured_op::ConfiguredOp;
use crate::op_definition::set_parameter;

/// Parameters by name, those not given as the op has them.
pub fn parameters_of(op: &ConfiguredOp, given: &Map<String, Value>) -> Result<Parameters, Failure> {
    let schema = op.subject.schema();
    let mut parameters = op.sampler.parameters.clone();
    for (name, value) in given {
        if !schema.parameters.iter().any(|spec| spec.name == *name) {
            return Err(Failure::invalid(unknown_parameter(name, schema)));
        }
        set_parameter(&mut parameters, schema, name, value).map_err(Failure::invalid)?;
    }
    Ok(parameters)
}

/// Judges outputs for inputs, both given. A single output may have any name.
pub fn judge_tensors(
    op: &ConfiguredOp,
    inputs: Vec<(String, Tensor)>,
    outputs: Vec<(String, Tensor)>,
    parameters: &Parameters,
) -> Result<(Case, Verdict), Failure> {
    let schema = op.subject.schema();
    let wanted: Vec<String> = match (schema.outputs.as_slice(), outputs.as_slice()) {
        ([only], [_]) => vec![only.name.clone()],
        _ => outputs.iter().map(|(name, _)| name.clone()).collect(),
    };
    let starts = inputs.iter().map(|(name, tensor)| (Form::of(name, tensor), tensor.storage().as_bytes()));
    let seed = identity(starts, parameters);
    let case = given(schema, op.subject.fingerprint(), seed, inputs, parameters, &wanted)
        .map_err(|error| Failure::invalid(format!("op '{}': {error}", op.name)))?;
    check_domains(schema, &case).map_err(|error| {
        Failure::invalid(format!("op '{}': {error}", op.name)).hint("the op is not defined there: fix the input")
    })?;
    let verdict = judge_named(op, &case, outputs)?;
    Ok((case, verdict))
}

/// Judges outputs of a case. A single output may have any name.
pub fn judge_named(op: &ConfiguredOp, case: &Case, outputs: Vec<(String, Tensor)>) -> Result<Verdict, Failure> {
    let specs = op.subject.schema().outputs.iter().filter(|spec| spec.is_in(&case.descriptor));
    let names: Vec<String> = specs.map(|spec| spec.name.clone()).collect();
    let matched = match_outputs(&names, names.len(), &outputs).map_err(Failure::invalid)?;
    // The order of the schema, without copies of what may be large.
    let places: Vec<usize> = matched
        .iter()
        .filter_map(|wanted| outputs.iter().position(|(_, tensor)| std::ptr::eq(tensor, *wanted)))
        .collect();
    let mut taken: Vec<Option<Tensor>> = outputs.into_iter().map(|(_, tensor)| Some(tensor)).collect();
    let ordered: Vec<Tensor> = places.into_iter().filter_map(|place| taken[place].take()).collect();
    Ok(judge_given(&op.subject, case, &ordered))
}

/// A client that changed its inputs computed another case than the one that is judged.
pub fn check_inputs(op: &ConfiguredOp, case: &Case, given: &[(String, Tensor)]) -> Result<(), Failure> {
    let expected = case.named_inputs(op.subject.schema());
    for (name, tensor) in given {
        let Some((_, right)) = expected.iter().find(|(known, _)| known == name) else {
            return Err(Failure::invalid(format!("the case with this seed has no input '{name}'")));
        };
        let same = tensor.dtype() == right.dtype()
            && tensor.shape() == right.shape()
            && tensor.to_contiguous_bytes() == right.to_contiguous_bytes();
        if !same {
            let message = format!("input '{name}' is not the one that seed {} gives", case.descriptor.seed);
            let hint = "send the inputs as they were handed out, and the same config; an op that writes over its inputs must work on copies";
            return Err(Failure::invalid(message).hint(hint));
        }
    }
    Ok(())
}

fn unknown_parameter(name: &str, schema: &Schema) -> String {
    let known: Vec<&str> = schema.parameters.iter().map(|spec| spec.name.as_str()).collect();
    let known = if known.is_empty() { "it has none".to_string() } else { format!("it has {}", known.join(", ")) };
    format!("op '{}' has no parameter '{name}'; {known}", schema.name)
}

/// Bytes of an input that tell it from others.
pub const IDENTITY_BYTES: usize = 4096;

/// A number that stands for given inputs: the same inputs have the same one. Their first bytes tell them apart
/// well enough for a list; nothing is ever rebuilt from this number.
pub fn identity<'a>(inputs: impl Iterator<Item = (Form, &'a [u8])>, parameters: &Parameters) -> u64 {
    let mut state = blake2b(8).to_state();
    for (form, bytes) in inputs {
        state.update(form.name.as_bytes()).update(form.dtype.name().as_bytes());
        form.shape.iter().for_each(|size| {
            state.update(&size.to_le_bytes());
        });
        state.update(&bytes[..bytes.len().min(IDENTITY_BYTES)]);
    }
    state.update(parameters.to_string().as_bytes());
    state.finalize().as_bytes().iter().fold(0, |word, byte| (word << 8) | u64::from(*byte))
}
