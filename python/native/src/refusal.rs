//! Refusals of the engine and the daemon as Python exceptions.

use gpuemu_daemon::failure::Failure;
use pyo3::exceptions::PyRuntimeError;
use pyo3::prelude::*;
use pyo3::types::PyDict;

/// `gpuemu.errors.ClientError` with the code, message and hint of a failure.
pub fn refusal(py: Python<'_>, failure: &Failure) -> PyErr {
    client_error(py, &failure.code.to_string(), &failure.message, failure.hint.as_deref())
}

/// `gpuemu.errors.ClientError` for an argument that makes no sense.
pub fn invalid(py: Python<'_>, message: &str) -> PyErr {
    client_error(py, "InvalidRequest", message, None)
}

fn client_error(py: Python<'_>, code: &str, message: &str, hint: Option<&str>) -> PyErr {
    let made = py.import("gpuemu.errors").and_then(|module| {
        let keywords = PyDict::new(py);
        keywords.set_item("code", code)?;
        keywords.set_item("hint", hint)?;
        module.getattr("ClientError")?.call((message,), Some(&keywords))
    });
    match made {
        Ok(error) => PyErr::from_value(error),
        Err(_) => PyRuntimeError::new_err(message.to_string()),
    }
}
