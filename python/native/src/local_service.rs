//! gpuemu's service in the process of Python, with a folder of its own: what a worker of a campaign runs ops with. It
//! ends with the process, however that ends.

use std::path::PathBuf;
use std::sync::Arc;

use gpuemu_config::Environment;
use gpuemu_model::json::{FromJson, ToJson};
use gpuemu_service::Service;
use gpuemu_wire::protocol::Request;
use pyo3::prelude::*;

use crate::client_error::exception;
use crate::refusal::invalid;

/// The service over one folder.
#[pyclass(frozen, module = "gpuemu._native")]
pub struct LocalService(Arc<Service>);

#[pymethods]
impl LocalService {
    /// Takes a folder for the store; nobody else may have it.
    #[new]
    fn new(py: Python<'_>, home: PathBuf) -> PyResult<Self> {
        let opened = py.detach(|| Service::open(&home, "a worker", Environment::of_process()));
        opened.map(Self).map_err(|error| exception(py, "ClientError", "StorageError", &error.to_string(), None))
    }

    /// Answers a request, both as JSON, in which tensors are texts.
    fn call(&self, py: Python<'_>, request: &str) -> PyResult<String> {
        let request = Request::from_json(request.as_bytes())
            .map_err(|error| invalid(py, &format!("the request cannot be understood: {error}")))?;
        let answer = py.detach(|| self.0.answer(request, &[]));
        answer.response.to_json().map_err(|error| invalid(py, &error.to_string()))
    }
}
