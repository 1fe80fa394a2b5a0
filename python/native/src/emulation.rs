//! Compiled kernels, run in the PTX machine on memory that Python owns.

use gpuemu_machine::{Argument, Buffer, Launch, LaunchError, LaunchOptions, Outcome, Program, Role};
use gpuemu_ptx::Source;
use pyo3::prelude::*;
use pyo3::types::PyBytes;
use serde_json::json;

use crate::arrays::{Memory, bytes_of, fill};
use crate::client_error::exception;
use crate::refusal::invalid;

/// An argument as Python hands it over.
#[derive(FromPyObject)]
enum GivenArgument<'py> {
    /// Name, role, memory, its distance from a multiple of 512 bytes, and bytes of an element.
    Buffer(String, String, Bound<'py, Memory>, u64, u32),
    /// Another argument, and bytes from the beginning of its memory.
    Within(usize, u64),
    Value(Bound<'py, PyBytes>),
}

impl GivenArgument<'_> {
    fn argument(&self, py: Python<'_>) -> PyResult<Argument> {
        match self {
            Self::Buffer(name, role, memory, offset, element_bytes) => {
                let contents = bytes_of(memory)?;
                let bytes = contents.len() as u64;
                let (role, contents) = match role.as_str() {
                    "input" => (Role::Input, contents),
                    "output" => (Role::Output, contents),
                    "input_output" => (Role::InputOutput, contents),
                    other => return Err(invalid(py, &format!("'{other}' is not the role of a buffer"))),
                };
                let (name, offset, element_bytes) = (name.clone(), *offset, *element_bytes);
                Ok(Argument::Buffer(Buffer { name, role, bytes, contents, offset, pointer: 0, element_bytes }))
            }
            Self::Within(argument, offset) => Ok(Argument::Within { argument: *argument, offset: *offset }),
            Self::Value(bytes) => Ok(Argument::Value(bytes.as_bytes().to_vec())),
        }
    }
}

/// A kernel that is decoded once and launched many times.
#[pyclass(frozen)]
pub struct KernelProgram {
    program: Program,
}

#[pymethods]
impl KernelProgram {
    /// Decodes an entry of PTX; the only one if none is named. `name` is the file's in messages.
    #[staticmethod]
    #[pyo3(signature = (name, ptx, entry=None))]
    fn decode(py: Python<'_>, name: &str, ptx: String, entry: Option<&str>) -> PyResult<Self> {
        let source = Source::new(name, ptx);
        let decoded = py.detach(|| Program::decode(&source, entry));
        match decoded {
            Ok(program) => Ok(Self { program }),
            Err(error) => Err(exception(py, "KernelError", "NotDecoded", &error.to_string(), None)),
        }
    }

    /// Name, bytes and type of each parameter.
    fn parameters(&self) -> Vec<(String, u64, String)> {
        let described = |parameter: &gpuemu_machine::execution::program::Parameter| {
            (parameter.name.clone(), parameter.bytes, parameter.scalar.name().to_string())
        };
        self.program.parameters().iter().map(described).collect()
    }

    /// Runs it. Memory that is not an input holds the result afterwards; what was seen comes back as JSON.
    fn launch(
        &self,
        py: Python<'_>,
        grid: [u32; 3],
        block: [u32; 3],
        shared_bytes: u32,
        arguments: Vec<GivenArgument<'_>>,
        options: &str,
    ) -> PyResult<String> {
        let options: LaunchOptions =
            serde_json::from_str(options).map_err(|error| invalid(py, &format!("the options are wrong: {error}")))?;
        let given = arguments.iter().map(|argument| argument.argument(py)).collect::<PyResult<Vec<_>>>()?;
        let launch = Launch { grid, block, shared_bytes, arguments: given };
        let outcome = py.detach(|| self.program.launch(&launch, &options)).map_err(|error| launch_error(py, &error))?;
        write_back(&arguments, &outcome)?;
        let Outcome { findings, more_findings, not_checked, printed, statistics, .. } = outcome;
        let texts: Vec<String> = findings.iter().map(|found| found.lines(None).join("\n  ")).collect();
        let seen = json!({
            "findings": findings, "texts": texts, "more_findings": more_findings, "not_checked": not_checked, "printed": printed,
            "statistics": statistics,
        });
        Ok(seen.to_string())
    }
}

/// Copies the buffers that the kernel may have written to where they came from.
fn write_back(arguments: &[GivenArgument<'_>], outcome: &Outcome) -> PyResult<()> {
    let memories = arguments.iter().filter_map(|argument| match argument {
        GivenArgument::Buffer(_, role, memory, ..) => Some((role, memory)),
        _ => None,
    });
    for ((role, memory), bytes) in memories.zip(&outcome.buffers) {
        if role != "input" {
            fill(memory, bytes)?;
        }
    }
    Ok(())
}

fn launch_error(py: Python<'_>, error: &LaunchError) -> PyErr {
    let code = match error {
        LaunchError::Refused(_) | LaunchError::Exhausted(_) => "LaunchRefused",
        LaunchError::Assertion { .. } => "AssertionFailed",
        LaunchError::Trap { .. } => "Trap",
        LaunchError::Endless { .. } | LaunchError::Late(_) => "Endless",
    };
    exception(py, "KernelError", code, &error.to_string(), None)
}
