//! The native module of the Python package: the engine and the client of gpuemu, in the process of Python.

use pyo3::prelude::*;

/// What `gpuemu` is made of.
#[pymodule]
#[pyo3(name = "_native")]
fn native(module: &Bound<'_, PyModule>) -> PyResult<()> {
    module.add("VERSION", gpuemu_daemon::service::VERSION)?;
    module.add("PROTOCOL_VERSION", gpuemu_common::protocol::PROTOCOL_VERSION)
}
