//! Judging outputs that a client computed.

use gpuemu_config::failure::Failure;
use gpuemu_engine::case::materialise;
use gpuemu_engine::{Case, Verdict};
use gpuemu_model::tensor_data::{NamedTensorData, TensorData};
use gpuemu_process::fault;
use gpuemu_run::configured_op::ConfiguredOp;
use gpuemu_run::project::Project;
use gpuemu_run::result::reference_failure;
use gpuemu_run::result::{Context, result_of};
use gpuemu_run::submitted::{check_inputs, judge_named, judge_tensors, parameters_of};
use gpuemu_store::{FailureRecord, ResultRecord, Snapshot, StoreError};
use gpuemu_tensor::Tensor;
use gpuemu_wire::protocol::{Response, SubmitOutput, ValidateOp};

use super::{Service, read_tensor, read_tensors, streamed};

impl Service {
    /// Judges an output for inputs of the client's own.
    pub(super) fn validate(&self, request: &ValidateOp, payload: &[u8]) -> Result<Response, Failure> {
        let project = self.project(&request.project)?;
        let op = ConfiguredOp::open(&project, &request.op_name, &Default::default(), &self.pool)?;
        let parameters = parameters_of(&op, &request.kwargs)?;
        if let Some((case, verdict)) = streamed::judge(&op, request, &parameters)? {
            return self.keep(&project, &op, &case, verdict, &Default::default());
        }
        let injected = || Failure::invalid("injected");
        let inputs = fault!("validate.read", injected(), read_tensors(&request.inputs, payload))?;
        let outputs = read_outputs(&request.output, &request.outputs, payload)?;
        fault!("validate.judge");
        let (case, verdict) = judge_tensors(&op, inputs, outputs, &parameters)?;
        self.keep(&project, &op, &case, verdict, &Default::default())
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
        self.keep(&project, &op, &case, verdict, &request.config)
    }

    /// Keeps the verdict on a submitted output, and answers with it.
    fn keep(
        &self,
        project: &Project,
        op: &ConfiguredOp,
        case: &Case,
        verdict: Verdict,
        settings: &gpuemu_model::settings::FuzzConfig,
    ) -> Result<Response, Failure> {
        if let Some(failure) = reference_failure(&verdict) {
            return Err(failure);
        }
        let run = self.store.next_run();
        let warn_threshold = project.config.policies.warn_threshold;
        let context = Context::new(&op.name, Some(run), settings, warn_threshold);
        let result = result_of(&op.subject, case, verdict, context);
        let record = ResultRecord::of(&result, &project.key, run, 0, 0);
        let mut failures = Vec::new();
        if result.failed() {
            let snapshot = snapshot_of(op, case, project.config.storage.snapshot_bytes);
            failures.push(FailureRecord { result: record.clone(), snapshot });
        }
        let kept = self.store.append(&[record], &failures);
        fault!("validate.keep", StoreError::Damaged("injected".to_string()), kept)?;
        Ok(Response::ValidationResult { result: Box::new(result) })
    }
}

/// The inputs of a case, to be kept with its failure.
pub(super) fn snapshot_of(op: &ConfiguredOp, case: &Case, limit: u64) -> Snapshot {
    Snapshot::of(&case.named_inputs(op.subject.schema()), limit)
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
