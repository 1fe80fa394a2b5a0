//! CUDA C++ as PTX, with the compilers that are installed.

use std::path::PathBuf;

use gpuemu_config::CompileTable;
use gpuemu_ptx::compile::{CompileRequest, compile};
use gpuemu_ptx::tools::{ToolSearch, Toolchain};
use pyo3::prelude::*;

use crate::client_error::exception;

/// Compiles a file of a folder with nvcc, or with NVRTC of the given Python. The PTX, and what compiled it.
#[pyfunction]
pub fn compile_cuda(
    py: Python<'_>,
    folder: PathBuf,
    file: &str,
    target: &str,
    options: Vec<String>,
    python: PathBuf,
) -> PyResult<(String, String)> {
    let table = CompileTable { target: Some(target.to_string()), options, ..CompileTable::default() };
    let compiled = py.detach(|| {
        let toolchain = Toolchain::find(&ToolSearch::of_process(Some(python.clone())));
        let request =
            CompileRequest { root: &folder, source: file, table: &table, python: &python, memory_bytes: None };
        compile(&request, &toolchain)
    });
    match compiled {
        Ok(compiled) => Ok((String::from_utf8_lossy(&compiled.ptx).into_owned(), compiled.producer)),
        Err(error) => Err(exception(py, "KernelError", "NotCompiled", &error.to_string(), None)),
    }
}
