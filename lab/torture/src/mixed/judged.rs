//! Outputs that the daemon judges and keeps, and verdicts that it only keeps.

use gpuemu_model::finding::Outcome;
use gpuemu_model::report::ValidationResult;
use gpuemu_model::settings::{FuzzConfig, ProjectReference};
use gpuemu_model::tensor_data::{NamedTensorData, TensorData};
use gpuemu_tensor::{DType, Tensor};
use gpuemu_wire::protocol::{GetTestCase, RecordResults, Request, Response, SubmitOutput, TestCase, ValidateOp};
use gpuemu_wire::shared_memory;

use super::{MixedClient, holds, other};

impl MixedClient {
    /// An output of `relu` for inputs of the client's own.
    pub(super) fn judge(&mut self, project: &ProjectReference, right: bool) -> Result<(), String> {
        let result = self.verdict(project, right)?;
        let expected = if right { Outcome::Passed } else { Outcome::Failed };
        holds(result.outcome == expected && result.passed == right, || format!("it ended as {:?}", result.outcome))
    }

    fn verdict(&mut self, project: &ProjectReference, right: bool) -> Result<ValidationResult, String> {
        let width = 1 + self.choices.below(40) as usize;
        let values: Vec<f64> = (0..2 * width).map(|_| self.choices.below(2000) as f64 / 8.0 - 125.0).collect();
        let mut output: Vec<f64> = values.iter().map(|value| value.max(0.0)).collect();
        if !right {
            output[self.choices.below(2 * width as u64) as usize] += 1.0;
        }
        let mut inputs = NamedTensorData::default();
        inputs.0.push(("input".to_string(), tensor(&[2, width], &values)?));
        let request = ValidateOp {
            project: project.clone(),
            op_name: "relu".to_string(),
            inputs,
            output: Some(tensor(&[2, width], &output)?),
            outputs: None,
            kwargs: Default::default(),
        };
        match self.call(&Request::ValidateOp(request))? {
            Response::ValidationResult { result } => {
                self.keeps(1, u64::from(!right));
                Ok(*result)
            }
            answer => other(&answer),
        }
    }

    /// A generated case of `relu`.
    pub(super) fn case(&mut self, project: &ProjectReference) -> Result<TestCase, String> {
        let seed = self.choices.next_word();
        let request = GetTestCase {
            project: project.clone(),
            op_name: "relu".to_string(),
            seed: Some(seed),
            config: small(),
            encoding: Default::default(),
        };
        match self.call(&Request::GetTestCase(request))? {
            Response::TestCase { case } if case.seed == seed && case.dtype == DType::F32 => Ok(*case),
            answer => other(&answer),
        }
    }

    /// An output for a generated case, right or wrong.
    pub(super) fn submit(&mut self, project: &ProjectReference) -> Result<(), String> {
        let case = self.case(project)?;
        let Some((_, input)) = case.inputs.0.first() else { return Err("the case has no input".to_string()) };
        let input = input.tensor(&[], shared_memory::read).map_err(|error| error.to_string())?;
        let mut output: Vec<f64> = input.to_f64().iter().map(|value| if *value < 0.0 { 0.0 } else { *value }).collect();
        // Where there is nothing to compute, nothing can be wrong.
        let right = output.is_empty() || self.choices.chance(3, 4);
        if !right {
            output.fill(-1.0);
        }
        let request = SubmitOutput {
            project: project.clone(),
            op_name: "relu".to_string(),
            seed: case.seed,
            config: small(),
            inputs: None,
            output: Some(tensor(input.shape(), &output)?),
            outputs: None,
        };
        match self.call(&Request::SubmitOutput(request))? {
            Response::ValidationResult { result } => {
                self.keeps(1, u64::from(!right));
                // A case without elements is one of which nothing can be said.
                let expected = match (output.is_empty(), right) {
                    (true, _) => result.outcome != Outcome::Failed,
                    (false, right) => result.passed == right,
                };
                holds(expected && result.seed == case.seed, || format!("it ended as {:?}", result.outcome))
            }
            answer => other(&answer),
        }
    }

    /// Verdicts of the client's own, some of them failures.
    pub(super) fn record(&mut self, project: &ProjectReference) -> Result<(), String> {
        let (passed, failed) = match self.verdicts.take() {
            Some(verdicts) => verdicts,
            None => (self.verdict(project, true)?, self.verdict(project, false)?),
        };
        let count = 1 + self.choices.below(8);
        let failures = self.choices.below(2);
        let results: Vec<ValidationResult> = (0..count)
            .map(|index| {
                let like = if index < failures { &failed } else { &passed };
                ValidationResult { op: "recorded".to_string(), seed: self.choices.next_word(), ..like.clone() }
            })
            .collect();
        self.verdicts = Some((passed, failed));
        let request = RecordResults {
            project: project.clone(),
            op_name: "recorded".to_string(),
            base_seed: 1,
            run: None,
            settings: FuzzConfig::default(),
            results,
        };
        match self.call(&Request::RecordResults(request))? {
            Response::Recorded { .. } => {
                self.keeps(count, failures);
                Ok(())
            }
            answer => other(&answer),
        }
    }
}

fn small() -> FuzzConfig {
    FuzzConfig { dtypes: Some(vec![DType::F32]), quick: true, ..FuzzConfig::default() }
}

fn tensor(shape: &[usize], values: &[f64]) -> Result<TensorData, String> {
    let tensor = Tensor::from_f64(DType::F32, shape.to_vec(), values).map_err(|error| error.to_string())?;
    Ok(TensorData::base64(&tensor))
}
