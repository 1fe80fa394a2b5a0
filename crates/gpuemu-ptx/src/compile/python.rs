//! Programs in Python that compile: a request goes to one as a file, and its answer comes back as one.

use std::ffi::OsString;
use std::fs;
use std::path::PathBuf;

use serde::Serialize;
use serde::de::DeserializeOwned;

use super::{CompileRequest, LIMITS};
use crate::tools::process::{self, private_folder};
use crate::tools::{ToolSearch, Toolchain, python_program};

/// Put in front of every program.
const COMMON: &str = include_str!("answered.py");

/// The end of what a program wrote to its stderr, kept for a message.
const STDERR_BYTES: usize = 4000;

/// A program and what it is called in messages.
pub(super) struct Program {
    pub text: &'static str,
    pub environment: &'static [(&'static str, Option<&'static str>)],
}

/// Runs a program in the project's folder. What went wrong is told in words, to be put after "it".
pub(super) fn ask<Answer: DeserializeOwned>(
    program: &Program,
    request: &CompileRequest<'_>,
    question: &impl Serialize,
    toolchain: &Toolchain,
) -> Result<Answer, String> {
    let unwritable = |error: std::io::Error| format!("has no temporary folder: {error}");
    let folder = private_folder().map_err(unwritable)?;
    let [question_file, answer_file] = ["question.json", "answer.json"].map(|name| folder.path().join(name));
    let text = serde_json::to_vec(question).map_err(|error| format!("cannot be asked: {error}"))?;
    fs::write(&question_file, text).map_err(unwritable)?;

    let python = python_of(request, toolchain);
    let mut command = toolchain.command(&python);
    let mut code = OsString::from(COMMON);
    code.push(program.text);
    // No bytecode: that knows the time of a source only to the second, and would hide an edit.
    command.args(["-B", "-u", "-c"]).arg(code).args([&question_file, &answer_file]).current_dir(request.root());
    command.env("TRITON_CACHE_DIR", folder.path().join("cache"));
    for (name, value) in program.environment {
        match value {
            Some(value) => command.env(name, value),
            None => command.env_remove(name),
        };
    }
    let finished = process::run(&mut command, folder.path(), LIMITS).map_err(|error| match error {
        process::ProcessError::Start(error) => {
            format!("needs Python, and {} cannot be started: {error}", python.display())
        }
        other => other.to_string(),
    })?;
    let answer = fs::read(&answer_file).ok().and_then(|text| serde_json::from_slice(&text).ok());
    answer.ok_or_else(|| {
        let stderr = finished.stderr.trim();
        let start = stderr.len().saturating_sub(STDERR_BYTES);
        let start = (start..stderr.len()).find(|at| stderr.is_char_boundary(*at)).unwrap_or(stderr.len());
        format!("gave no answer: {} {}\n{}", python.display(), finished.ending, &stderr[start..])
    })
}

/// The Python with its folder, where that is known.
fn python_of(request: &CompileRequest<'_>, toolchain: &Toolchain) -> PathBuf {
    if request.python.components().count() > 1 {
        return request.root().join(request.python);
    }
    let python = Some(request.python.to_path_buf());
    let search = ToolSearch { python, ..toolchain.search().clone() };
    python_program(&search).unwrap_or_else(|| request.python.to_path_buf())
}
