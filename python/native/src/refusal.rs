//! Refusals of the engine as Python exceptions.

use gpuemu_config::failure::Failure;
use pyo3::prelude::*;

use crate::client_error::exception;

/// `gpuemu.errors.ClientError` with the code, message and hint of a failure.
pub fn refusal(py: Python<'_>, failure: &Failure) -> PyErr {
    exception(py, "ClientError", &failure.code.to_string(), &failure.message, failure.hint.as_deref())
}

/// `gpuemu.errors.ClientError` for an argument that makes no sense.
pub fn invalid(py: Python<'_>, message: &str) -> PyErr {
    exception(py, "ClientError", "InvalidRequest", message, None)
}
