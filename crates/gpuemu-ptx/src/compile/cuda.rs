//! CUDA C++, compiled by nvcc where there is one, and otherwise by NVRTC through the project's Python.

use std::fs;
use std::path::{Path, PathBuf};

use serde::{Deserialize, Serialize};

use super::python::{self, Program};
use super::{CompileError, CompileRequest, CompiledSource, LIMITS, file_names};
use crate::tools::process::{self, private_folder};
use crate::tools::{Tool, Toolchain};

const PROGRAM: Program = Program { text: include_str!("compile_cuda.py"), environment: &[] };

#[derive(Serialize)]
struct Question<'a> {
    root: &'a str,
    file: &'a str,
    target: &'a str,
    options: &'a [String],
    cuda_home: Option<&'a Path>,
    memory_bytes: u64,
}

#[derive(Deserialize)]
#[serde(untagged)]
enum Answer {
    Compiled { ptx: String, producer: String },
    Refused { error: String },
    NoCompiler { no_compiler: String },
}

pub(super) fn compile(
    request: &CompileRequest<'_>,
    file: &str,
    toolchain: &Toolchain,
) -> Result<CompiledSource, CompileError> {
    let path = request.file(file)?;
    request.target_number()?;
    let Some(nvcc) = toolchain.nvcc() else {
        return with_nvrtc(request, file, path, toolchain, toolchain.missing("nvcc"));
    };
    match with_nvcc(request, file, &path, nvcc, toolchain) {
        // It preprocesses with the C++ compiler of the machine, which NVRTC does without.
        Err(CompileError::Refused { message, .. }) if lacks_host_compiler(&message) => {
            let why = format!("nvcc {} finds no C++ compiler: {message}", nvcc.version);
            with_nvrtc(request, file, path, toolchain, why)
        }
        other => other,
    }
}

fn lacks_host_compiler(message: &str) -> bool {
    ["host compiler", "Cannot find compiler", "cc1plus"].iter().any(|words| message.contains(words))
}

fn with_nvcc(
    request: &CompileRequest<'_>,
    file: &str,
    path: &Path,
    nvcc: &Tool,
    toolchain: &Toolchain,
) -> Result<CompiledSource, CompileError> {
    let compiler = format!("nvcc {}", nvcc.version);
    let broken = |message: String| request.broken(&compiler, message);
    let folder = private_folder().map_err(|error| broken(format!("has no temporary folder: {error}")))?;
    let output = folder.path().join("kernel.ptx");
    let mut command = toolchain.command(&nvcc.path);
    // Options follow, so that they win. The project's folder is the working one: options may have paths.
    command.args(["-ptx", "-lineinfo"]).arg(format!("-arch={}", request.target()));
    command.args(&request.table.options).arg(argument(file)).arg("-o").arg(&output).current_dir(request.root());
    let finished = process::run(&mut command, folder.path(), LIMITS).map_err(|error| broken(error.to_string()))?;
    if !finished.success {
        let said = format!("{}\n{}", finished.stdout, finished.stderr);
        let message = if said.trim().is_empty() { finished.ending } else { said };
        return Err(request.refused(&compiler, &message));
    }
    let ptx = fs::read(&output).map_err(|error| broken(format!("left no PTX: {error}")))?;
    let text = String::from_utf8_lossy(&ptx);
    Ok(compiled(path.to_path_buf(), &text, compiler, &request.root()))
}

/// A file whose name looks like an option is still a file.
fn argument(file: &str) -> String {
    if file.starts_with('-') { format!("./{file}") } else { file.to_string() }
}

fn with_nvrtc(
    request: &CompileRequest<'_>,
    file: &str,
    path: PathBuf,
    toolchain: &Toolchain,
    no_nvcc: String,
) -> Result<CompiledSource, CompileError> {
    let root = request.root();
    let question = Question {
        root: &root.to_string_lossy(),
        file,
        target: request.target(),
        options: &request.table.options,
        cuda_home: toolchain.search().cuda_home.as_deref(),
        memory_bytes: request.memory_bytes.unwrap_or(0),
    };
    let no_compiler = |no_nvrtc: &str| CompileError::NoCompiler {
        source_text: request.source.to_string(),
        message: format!(
            "{no_nvcc}; {no_nvrtc}. Install nvcc (a CUDA toolkit, or `pip install nvidia-cuda-nvcc nvidia-cuda-cccl`) or \
             NVRTC (`pip install nvidia-cuda-nvrtc`)"
        ),
    };
    match python::ask(&PROGRAM, request, &question, toolchain) {
        Ok(Answer::Compiled { ptx, producer }) => Ok(compiled(path, &ptx, producer, &root)),
        Ok(Answer::Refused { error }) => Err(request.refused("NVRTC", &error)),
        Ok(Answer::NoCompiler { no_compiler: message }) => Err(no_compiler(&message)),
        Err(message) if message.starts_with("needs Python") => Err(no_compiler(&format!("NVRTC {message}"))),
        Err(message) => Err(request.broken("NVRTC", message)),
    }
}

fn compiled(path: PathBuf, ptx: &str, producer: String, root: &Path) -> CompiledSource {
    let ptx = file_names::without_folders(ptx, root).into_bytes();
    CompiledSource { path, ptx, producer, dynamic_shared_bytes: None, block_threads: None }
}
