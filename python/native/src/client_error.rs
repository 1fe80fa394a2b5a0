//! Errors of the connection as exceptions of `gpuemu.errors`, with a code and what to do.

use gpuemu_config::ConfigError;
use gpuemu_wire::{ClientError, StartError, TransportError};
use pyo3::prelude::*;
use pyo3::types::PyDict;

/// An exception of `gpuemu.errors`.
pub fn exception(py: Python<'_>, class: &str, code: &str, message: &str, hint: Option<&str>) -> PyErr {
    let made = || {
        let arguments = PyDict::new(py);
        arguments.set_item("code", code)?;
        arguments.set_item("hint", hint)?;
        py.import("gpuemu.errors")?.getattr(class)?.call((message,), Some(&arguments))
    };
    made().map_or_else(|error| error, PyErr::from_value)
}

fn connection_error(py: Python<'_>, code: &str, message: &str, hint: Option<&str>) -> PyErr {
    exception(py, "ConnectionError", code, message, hint)
}

/// Nobody listens, and no daemon can be started. `hint` says why not.
pub fn not_running(py: Python<'_>, socket: &std::path::Path, hint: Option<&str>) -> PyErr {
    connection_error(py, "NotRunning", &format!("no daemon listens on {}", socket.display()), hint)
}

/// Why there is no connection.
pub fn start_error(py: Python<'_>, error: &StartError) -> PyErr {
    let hint = match error {
        StartError::Client(error) => return client_error(py, error),
        StartError::Spawn(_) => "set GPUEMU_DAEMON to the program gpuemu-daemon, or install gpuemu again",
        StartError::Ended { .. } | StartError::TooSlow(_) => "`gpuemu daemon logs` shows what it wrote",
    };
    connection_error(py, "NotStarted", &error.to_string(), Some(hint))
}

/// Why a request was not done.
pub fn client_error(py: Python<'_>, error: &ClientError) -> PyErr {
    let message = error.to_string();
    match error {
        ClientError::Refused { code, message, hint } => {
            exception(py, "ClientError", &code.to_string(), message, hint.as_deref())
        }
        ClientError::Version { .. } => {
            let hint = "end that daemon with `gpuemu daemon stop`; one of this version is started when it is needed";
            connection_error(py, "VersionMismatch", &message, Some(hint))
        }
        ClientError::Unreadable(_) => {
            connection_error(py, "Unreadable", &message, Some("`gpuemu daemon stop` ends it"))
        }
        ClientError::Transport(TransportError::TimedOut(_)) => {
            let hint = "give the client a larger `timeout`, or submit the request as a job";
            connection_error(py, "TimedOut", &message, Some(hint))
        }
        ClientError::Transport(TransportError::Connect { .. }) => connection_error(py, "ConnectFailed", &message, None),
        ClientError::Transport(TransportError::Broken(_) | TransportError::NotSent(_)) => {
            let hint = "whether the request was done is not known; `gpuemu daemon logs` may say why the daemon ended";
            connection_error(py, "Broken", &message, Some(hint))
        }
        ClientError::Transport(_) => connection_error(py, "Unreadable", &message, None),
    }
}

/// What is wrong with a project's configuration.
pub fn config_error(py: Python<'_>, error: &ConfigError) -> PyErr {
    exception(py, "ClientError", "ConfigError", &error.to_string(), None)
}
