//! Judging outputs that a client computed.

use gpuemu_config::failure::Failure;
use gpuemu_engine::case::given::{Form, given};
use gpuemu_engine::case::materialise;
use gpuemu_engine::ops::check_domains;
use gpuemu_engine::oracle::judge_given;
use gpuemu_engine::schema::{Parameters, Schema};
use gpuemu_engine::{Case, Verdict};
use gpuemu_model::json::ToJson;
use gpuemu_model::tensor_data::{NamedTensorData, TensorData};
use gpuemu_process::fault;
use gpuemu_run::configured_op::ConfiguredOp;
use gpuemu_run::op_definition::set_parameter;
use gpuemu_run::project::Project;
use gpuemu_run::result::reference_failure;
use gpuemu_run::result::{Context, result_of};
use gpuemu_runners::python_program::match_outputs;
use gpuemu_store::results::record_of;
use gpuemu_store::{FailureRecord, Snapshot, StoreError};
use gpuemu_tensor::Tensor;
use gpuemu_tensor::rng::blake2b;
use gpuemu_wire::protocol::{Response, SubmitOutput, ValidateOp};
use serde_json::{Map, Value};

use super::{Service, read_tensor, read_tensors, streamed};

impl Service {
    /// Judges an output for inputs of the client's own.
    pub(super) fn validate(&self, request: &ValidateOp, payload: &[u8]) -> Result<Response, Failure> {
        let project = self.project(&request.project)?;
        let op = ConfiguredOp::open(&project, &request.op_name, &Default::default(), &self.pool)?;
        let parameters = parameters_of(&op, &request.kwargs)?;
        if let Some((case, verdict)) = streamed::judge(&op, request, &parameters)? {
            return self.keep(&project, &op, &case, &verdict, &Default::default());
        }
        let injected = || Failure::invalid("injected");
        let inputs = fault!("validate.read", injected(), read_tensors(&request.inputs, payload))?;
        let outputs = read_outputs(&request.output, &request.outputs, payload)?;
        fault!("validate.judge");
        let (case, verdict) = judge_tensors(&op, inputs, outputs, &parameters)?;
        self.keep(&project, &op, &case, &verdict, &Default::default())
    }

    /// Judges an output for a case that gpuemu generated.
    pub(super) fn submit_output(&self, request: &SubmitOutput, payload: &[u8]) -> Result<Response, Failure> {
        let project = self.project(&request.project)?;
        let op = ConfiguredOp::open(&project, &request.op_name, &request.config, &self.pool)?;
        let descriptor = op.subject.describe(&op.sampler, request.seed);
        let case =
            materialise(op.subject.schema(), &descriptor).map_err(|error| Failure::invalid(error.to_string()))?;
        if let Some(inputs) = &request.inputs {
            check_inputs(&op, &case, &read_tensors(inputs, payload)?)?;
        }
        let outputs = read_outputs(&request.output, &request.outputs, payload)?;
        let verdict = judge_named(&op, &case, outputs)?;
        self.keep(&project, &op, &case, &verdict, &request.config)
    }

    /// Keeps the verdict on a submitted output, and answers with it.
    fn keep(
        &self,
        project: &Project,
        op: &ConfiguredOp,
        case: &Case,
        verdict: &Verdict,
        settings: &gpuemu_model::settings::FuzzConfig,
    ) -> Result<Response, Failure> {
        if let Some(failure) = reference_failure(verdict) {
            return Err(failure);
        }
        let run = self.store.next_run();
        let warn_threshold = project.config.policies.warn_threshold;
        let context = Context { op: &op.name, run: Some(run), settings, warn_threshold };
        let result = result_of(&op.subject, verdict, context);
        let record = record_of(&result, &project.key, run, 0, 0);
        let mut failures = Vec::new();
        if verdict.failed() {
            let snapshot = snapshot_of(op, case, project.config.storage.snapshot_bytes);
            let verdict = result.to_json().unwrap_or_default();
            failures.push(FailureRecord { result: record.clone(), verdict, snapshot });
        }
        let kept = self.store.append(&[record], &failures);
        fault!("validate.keep", StoreError::Damaged("injected".to_string()), kept)?;
        Ok(Response::ValidationResult { result: Box::new(result) })
    }
}

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
        Failure::invalid(format!("op '{}': {error}", op.name)).hint("the op is not defined there: mend the input")
    })?;
    let verdict = judge_named(op, &case, outputs)?;
    Ok((case, verdict))
}

/// The inputs of a case, to be kept with its failure.
pub(super) fn snapshot_of(op: &ConfiguredOp, case: &Case, limit: u64) -> Snapshot {
    Snapshot::of(&named_inputs(op.subject.schema(), case), limit)
}

/// The inputs of a case by name.
pub fn named_inputs(schema: &Schema, case: &Case) -> Vec<(String, Tensor)> {
    let pairs = schema.inputs.iter().zip(&case.inputs);
    pairs.filter_map(|(spec, tensor)| Some((spec.name.clone(), tensor.clone()?))).collect()
}

fn unknown_parameter(name: &str, schema: &Schema) -> String {
    let known: Vec<&str> = schema.parameters.iter().map(|spec| spec.name.as_str()).collect();
    let known = if known.is_empty() { "it has none".to_string() } else { format!("it has {}", known.join(", ")) };
    format!("op '{}' has no parameter '{name}'; {known}", schema.name)
}

/// Bytes of an input that tell it from others.
pub(super) const IDENTITY_BYTES: usize = 4096;

/// A number that stands for given inputs: the same inputs have the same one. Their first bytes tell them apart
/// well enough for a list; nothing is ever rebuilt from this number.
pub(super) fn identity<'a>(inputs: impl Iterator<Item = (Form, &'a [u8])>, parameters: &Parameters) -> u64 {
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

fn read_outputs(
    output: &Option<TensorData>,
    outputs: &Option<NamedTensorData>,
    payload: &[u8],
) -> Result<Vec<(String, Tensor)>, Failure> {
    match (output, outputs) {
        (Some(output), None) => Ok(vec![("output".to_string(), read_tensor("output", output, payload)?)]),
        (None, Some(outputs)) => read_tensors(outputs, payload),
        _ => Err(Failure::invalid("give either 'output' or 'outputs'")),
    }
}

fn judge_named(op: &ConfiguredOp, case: &Case, outputs: Vec<(String, Tensor)>) -> Result<Verdict, Failure> {
    let specs = op.subject.schema().outputs.iter().filter(|spec| case.descriptor.has(spec));
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
fn check_inputs(op: &ConfiguredOp, case: &Case, given: &[(String, Tensor)]) -> Result<(), Failure> {
    let expected = named_inputs(op.subject.schema(), case);
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
