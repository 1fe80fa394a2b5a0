//! Requests that trials send, and what they ask of the store afterwards.

use std::collections::BTreeSet;

use gpuemu_model::report::ValidationResult;
use gpuemu_model::settings::ProjectReference;
use gpuemu_model::tensor_data::{NamedTensorData, TensorData};
use gpuemu_tensor::{DType, Tensor};
use gpuemu_wire::Client;
use gpuemu_wire::protocol::{ListResults, Request, Response, ValidateOp};

/// A right output of `relu`, to be judged and kept.
pub fn right_answer(project: &ProjectReference) -> Result<Request, String> {
    let tensor = Tensor::from_f64(DType::F32, vec![2, 3], &[1.0; 6]).map_err(|error| error.to_string())?;
    let tensor = TensorData::base64(&tensor);
    Ok(relu_of_itself(project, tensor))
}

/// `relu` of what is not negative is the same.
pub fn relu_of_itself(project: &ProjectReference, tensor: TensorData) -> Request {
    let mut inputs = NamedTensorData::default();
    inputs.0.push(("input".to_string(), tensor.clone()));
    Request::ValidateOp(ValidateOp {
        project: project.clone(),
        op_name: "relu".to_string(),
        inputs,
        output: Some(tensor),
        outputs: None,
        kwargs: Default::default(),
    })
}

/// Everything that is stored of a project.
pub fn stored(client: &mut Client, project: &ProjectReference) -> Result<Vec<ValidationResult>, String> {
    let request = ListResults { project: project.clone(), op_name: None, limit: Some(u64::MAX), since_hours: None };
    match client.call(&Request::ListResults(request)).map_err(|error| error.to_string())? {
        Response::Results { results } => Ok(results),
        _ => Err("unexpected response to ListResults".to_string()),
    }
}

pub fn stored_runs(client: &mut Client, project: &ProjectReference) -> Result<BTreeSet<u64>, String> {
    Ok(stored(client, project)?.into_iter().filter_map(|result| result.run).collect())
}
