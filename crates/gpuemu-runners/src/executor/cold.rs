//! Scripts in a process of their own per call.

use std::io;
use std::path::{Path, PathBuf};
use std::process::Command;

use gpuemu_process::fault;
use gpuemu_process::{GRACE, describe};
use rustix::process::Pid;

use super::interpreter::may_import_a_framework;
use super::process::{self, Ending, Run};
use super::tail::Tail;
use super::{Arguments, ExecutorError, Interpreter, NamedTensors, Program, document};

const LAUNCHER: &str = concat!(include_str!("start.py"), include_str!("launcher.py"));

/// A script with one process per call. What is not a `.py` file is executed directly.
#[derive(Debug)]
pub struct ColdScript {
    interpreter: Interpreter,
    script: PathBuf,
    /// The stderr of the last process.
    stderr: Option<Tail>,
}

impl ColdScript {
    /// A script that is there and can be read.
    pub fn new(interpreter: Interpreter, script: PathBuf) -> Result<Self, ExecutorError> {
        let script = interpreter.file(&script);
        check(&script)?;
        Ok(Self { interpreter, script, stderr: None })
    }

    /// Where the script is.
    pub(super) fn script(&self) -> &Path {
        &self.script
    }

    /// Whether Python runs it.
    pub(super) fn is_python(&self) -> bool {
        self.script.extension().is_some_and(|extension| extension == "py")
    }

    fn run(&self, arguments: &Arguments<'_>, input: Vec<u8>) -> Result<Run, ExecutorError> {
        let (interpreter, script) = (&self.interpreter, &self.script);
        let mut command;
        let limit;
        if self.is_python() {
            command = interpreter.command(LAUNCHER);
            command.arg(script).arg(interpreter.root()).arg(interpreter.memory_argument());
            // The launcher limits itself.
            limit = None;
        } else {
            command = Command::new(script);
            command.current_dir(interpreter.root());
            may_import_a_framework(&mut command);
            limit = interpreter.memory_bytes;
        }
        fault!("script.start");
        process::run(&mut command, input, arguments.timeout, interpreter.output_bytes, |started| {
            limit_memory(started, limit);
        })
        .map_err(|error| interpreter.spawn_error(&command, &error))
    }
}

impl Program for ColdScript {
    fn call(&mut self, arguments: &Arguments<'_>) -> Result<NamedTensors, ExecutorError> {
        let what = self.script.display().to_string();
        let input = document::request(arguments).map_err(|error| error.to_string());
        let input = fault!("script.encode", "injected".to_string(), input)
            .map_err(|message| ExecutorError::Protocol { what: what.clone(), message })?;
        let Run { ending, stdout, stderr } = self.run(arguments, input)?;
        let last = self.stderr.insert(stderr);
        let stderr = || last.at_end(GRACE);
        match ending {
            Ending::TimedOut => Err(ExecutorError::TimedOut { what, limit: arguments.timeout, stderr: stderr() }),
            Ending::TooMuchOutput => {
                Err(ExecutorError::OutputTooLarge { what, limit: self.interpreter.output_bytes, stderr: stderr() })
            }
            Ending::Unreadable(error) => {
                Err(ExecutorError::Protocol { what, message: format!("its output cannot be read: {error}") })
            }
            Ending::Exited(Ok(status)) if status.success() => document::outputs(&what, &stdout, stderr),
            Ending::Exited(status) => {
                let status = describe(status, self.interpreter.memory_bytes);
                Err(ExecutorError::Failed { what, status, stderr: stderr() })
            }
        }
    }

    fn stderr(&mut self) -> String {
        self.stderr.as_ref().map(|stderr| stderr.at_end(GRACE)).unwrap_or_default()
    }
}

fn check(script: &Path) -> Result<(), ExecutorError> {
    let unreadable = |message: String| ExecutorError::Spawn { program: script.to_path_buf(), message };
    match std::fs::File::open(script).and_then(|file| file.metadata()) {
        Ok(found) if found.is_file() => Ok(()),
        Ok(_) => Err(unreadable("it is not a file".to_string())),
        Err(error) if error.kind() == io::ErrorKind::NotFound => {
            Err(ExecutorError::NotFound { path: script.to_path_buf() })
        }
        Err(error) => Err(unreadable(error.to_string())),
    }
}

#[cfg(target_os = "linux")]
fn limit_memory(process: Pid, limit: Option<u64>) {
    use rustix::process::{Resource, Rlimit, prlimit};
    if limit.is_some() {
        // A process that is gone already needs no limit.
        let _ = prlimit(Some(process), Resource::As, Rlimit { current: limit, maximum: limit });
    }
}

/// Elsewhere only a process itself can set its limits.
#[cfg(not(target_os = "linux"))]
fn limit_memory(_: Pid, _: Option<u64>) {}
