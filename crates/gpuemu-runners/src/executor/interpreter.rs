//! The Python of a project and the way every process of it is started.

use std::io;
use std::path::{Path, PathBuf};
use std::process::Command;
use std::sync::Once;
use std::time::Duration;

use gpuemu_process::instruction_cap;

use super::ExecutorError;
use super::process::{self, Ending};

/// How long an import may take.
const IMPORT_TIMEOUT: Duration = Duration::from_secs(120);

/// Bytes that an import may print.
const IMPORT_OUTPUT: u64 = 1 << 20;

/// Caps the instructions of a program that may import a framework, where the processor refuses some that it lists.
pub(super) fn may_import_a_framework(command: &mut Command) {
    static SAID: Once = Once::new();
    if let Some(cap) = instruction_cap::needed() {
        SAID.call_once(|| {
            tracing::warn!("{}", instruction_cap::explanation(cap));
        });
    }
    instruction_cap::apply(command);
}

/// Where and how Python runs for one project.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub struct Interpreter {
    /// The Python: a name to be found in `PATH`, or a path, relative to the root.
    pub python: PathBuf,
    /// The working folder. Modules are looked for here first, by a script after its own folder.
    pub root: PathBuf,
    /// Most bytes of address space a process may take.
    pub memory_bytes: Option<u64>,
    /// Most bytes a script may print, and a callable may return.
    pub output_bytes: u64,
}

impl Interpreter {
    /// The working folder, absolute: children are started in it.
    pub(super) fn root(&self) -> PathBuf {
        std::path::absolute(&self.root).unwrap_or_else(|_| self.root.clone())
    }

    /// A file named relative to the root.
    pub(super) fn file(&self, path: &Path) -> PathBuf {
        self.root().join(path)
    }

    /// Python with a program given as text. It writes no bytecode: that knows the time of a source only to the
    /// second, and would hide an edit.
    pub(super) fn command(&self, program: &str) -> Command {
        let mut command = match self.python.components().count() {
            1 => Command::new(&self.python),
            _ => Command::new(self.file(&self.python)),
        };
        command.args(["-B", "-u", "-c", program]).current_dir(self.root());
        may_import_a_framework(&mut command);
        command
    }

    /// Whether a module can be imported.
    pub fn imports(&self, module: &str) -> Result<bool, ExecutorError> {
        let mut command = self.command(&format!("import {module}"));
        let run = process::run(&mut command, Vec::new(), IMPORT_TIMEOUT, IMPORT_OUTPUT, |_| {});
        let run = run.map_err(|error| self.spawn_error(&command, &error))?;
        Ok(matches!(run.ending, Ending::Exited(Ok(status)) if status.success()))
    }

    /// The memory limit as the Python programs take it.
    pub(super) fn memory_argument(&self) -> String {
        self.memory_bytes.unwrap_or(0).to_string()
    }

    /// Why a process could not be started.
    pub(super) fn spawn_error(&self, command: &Command, error: &io::Error) -> ExecutorError {
        let program = PathBuf::from(command.get_program());
        let root = self.root();
        // The system blames the program for a missing working folder.
        let message = match error.kind() {
            _ if !root.is_dir() => format!("the working folder {} does not exist", root.display()),
            io::ErrorKind::NotFound => format!("{error}; is it installed?"),
            io::ErrorKind::PermissionDenied => format!("{error}; make it executable with chmod +x"),
            _ => error.to_string(),
        };
        ExecutorError::Spawn { program, message }
    }
}
