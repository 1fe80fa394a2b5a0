//! Triton kernels, compiled by the project's own Triton.
//!
//! Constants are numbers, booleans and strings. Numbers that are not finite are written as `"float:-inf"`, `"float:inf"`
//! and `"float:nan"`, types of `triton.language` as `"type:float32"`.

use std::collections::BTreeMap;

use serde::{Deserialize, Serialize};

use super::python::{self, Program};
use super::{CompileError, CompileRequest, CompiledSource, file_names};
use crate::tools::Toolchain;

const PROGRAM: Program = Program {
    text: include_str!("compile_triton.py"),
    environment: &[
        // Its default differs from version to version.
        ("TRITON_DEFAULT_FP_FUSION", Some("1")),
        // These would give something else than the kernel.
        ("TRITON_INTERPRET", None),
        ("TRITON_KERNEL_OVERRIDE", None),
        ("TRITON_KERNEL_DUMP", None),
        ("TRITON_DISABLE_LINE_INFO", None),
        ("TRITON_FORCE_DISABLE_FP_FUSION", None),
    ],
};

#[derive(Serialize)]
struct Question<'a> {
    root: &'a str,
    file: &'a str,
    kernel: &'a str,
    target: u32,
    signature: &'a [String],
    constants: &'a BTreeMap<String, serde_json::Value>,
    divisible_by_16: Option<&'a [String]>,
    num_warps: Option<u32>,
    num_stages: Option<u32>,
    memory_bytes: u64,
}

#[derive(Deserialize)]
#[serde(untagged)]
enum Answer {
    Compiled { ptx: String, producer: String, shared_bytes: u64, block_threads: u64 },
    Refused { error: String },
    NoCompiler { no_compiler: String },
}

pub(super) fn compile(
    request: &CompileRequest<'_>,
    file: &str,
    kernel: &str,
    toolchain: &Toolchain,
) -> Result<CompiledSource, CompileError> {
    let path = request.file(file)?;
    let root = request.root();
    let question = Question {
        root: &root.to_string_lossy(),
        file,
        kernel,
        target: request.target_number()?,
        signature: &request.table.signature,
        constants: &request.table.constants,
        divisible_by_16: request.table.divisible_by_16.as_deref(),
        num_warps: request.table.num_warps,
        num_stages: request.table.num_stages,
        memory_bytes: request.memory_bytes.unwrap_or(0),
    };
    let answer = python::ask(&PROGRAM, request, &question, toolchain);
    match answer.map_err(|message| request.broken("Triton", message))? {
        Answer::Compiled { ptx, producer, shared_bytes, block_threads } => Ok(CompiledSource {
            path,
            ptx: file_names::without_folders(&ptx, &root).into_bytes(),
            producer,
            dynamic_shared_bytes: Some(shared_bytes),
            block_threads: Some(block_threads),
        }),
        Answer::Refused { error } => Err(request.refused("Triton", &error)),
        Answer::NoCompiler { no_compiler } => {
            Err(CompileError::NoCompiler { source_text: request.source.to_string(), message: no_compiler })
        }
    }
}

#[cfg(test)]
mod tests {
    use gpuemu_config::CompileTable;

    /// The program refuses what is nothing, and says how it is written.
    #[test]
    fn what_toml_writes_as_infinite_arrives_as_nothing() {
        let table: CompileTable = toml::from_str("constants = { FILL = -inf, SLOPE = 0.5, TEXT = \"inf\" }").unwrap();
        let values = ["FILL", "SLOPE", "TEXT"].map(|name| table.constants[name].to_string());
        assert_eq!(values, ["null", "0.5", "\"inf\""]);
    }
}
