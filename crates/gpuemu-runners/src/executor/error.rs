//! What goes wrong with Python, in its own words.

use std::path::PathBuf;
use std::time::Duration;

use gpuemu_config::Failure;
use gpuemu_model::ErrorCode;
use gpuemu_process::instruction_cap;
use thiserror::Error;

/// Why a call gave no outputs.
#[derive(Debug, Clone, PartialEq, Eq, Error)]
pub enum ExecutorError {
    /// There is no such script.
    #[error("there is no script {}; a relative path is taken from the project's root", path.display())]
    NotFound {
        /// Where it should be.
        path: PathBuf,
    },
    /// A process cannot be started, or its script cannot be read.
    #[error("cannot run {}: {message}", program.display())]
    Spawn {
        /// The program or script.
        program: PathBuf,
        message: String,
    },
    /// It took too long and was ended, with every process it had started.
    #[error("{what} did not finish within {} s and was ended{}", limit.as_secs_f64(), section("stderr", stderr))]
    TimedOut {
        /// The script or callable.
        what: String,
        /// The time it had.
        limit: Duration,
        /// The end of its stderr.
        stderr: String,
    },
    /// The process ended in failure.
    #[error("{what} {status}{}{}", section("stderr", stderr), illegal_instruction(status, stderr))]
    Failed {
        /// The script or callable.
        what: String,
        /// How it ended: "exited with status 1", "was killed by SIGSEGV".
        status: String,
        /// The end of its stderr.
        stderr: String,
    },
    /// It raised an exception.
    #[error("{what} raised an exception:\n{}{}", traceback.trim_end(), section("stderr", stderr))]
    Raised {
        /// The script or callable.
        what: String,
        traceback: String,
        /// The end of its stderr.
        stderr: String,
    },
    /// It ended well but printed nothing.
    #[error(
        "{what} exited with status 0 but printed nothing; it has to print {{\"outputs\": ...}} to stdout{}",
        section("stderr", stderr)
    )]
    NoOutput {
        what: String,
        /// The end of its stderr.
        stderr: String,
    },
    /// What it gave are not outputs.
    #[error("the output of {what} is wrong: {message}{}{}", section("stdout", stdout), section("stderr", stderr))]
    BadOutput {
        /// The script or callable.
        what: String,
        /// What is wrong, and with which output.
        message: String,
        /// The start and the end of its stdout.
        stdout: String,
        /// The end of its stderr.
        stderr: String,
    },
    /// It gave more than is allowed and was ended.
    #[error("{what} gave more than {limit} bytes of output, the most that is allowed{}", section("stderr", stderr))]
    OutputTooLarge {
        /// The script or callable.
        what: String,
        /// The limit in bytes.
        limit: u64,
        /// The end of its stderr.
        stderr: String,
    },
    /// The worker and the daemon do not understand each other.
    #[error("the worker of {what} broke the protocol: {message}")]
    Protocol {
        /// The script or callable.
        what: String,
        message: String,
    },
    /// There is no such module or function, or its import failed.
    #[error("cannot load the callable {target}: {}{}", message.trim_end(), section("stderr", stderr))]
    Import {
        /// The module and function asked for.
        target: String,
        /// Why, with the traceback of a failed import.
        message: String,
        /// The end of its stderr.
        stderr: String,
    },
}

impl ExecutorError {
    /// Whether the script is not there at all.
    pub fn script_is_missing(&self) -> bool {
        matches!(self, ExecutorError::NotFound { .. })
    }
}

/// A message about what a program returned, with what it wrote to stderr below.
pub fn with_stderr(message: String, stderr: &str) -> String {
    message + &section("stderr", stderr)
}

/// A stream's text below the message; nothing where there is none.
fn section(name: &str, text: &str) -> String {
    match text.trim_end() {
        "" => String::new(),
        text => format!("\nits {name}:\n{text}"),
    }
}

/// What to do about an illegal instruction inside a framework, below everything else; nothing after any other end.
fn illegal_instruction(status: &str, stderr: &str) -> String {
    instruction_cap::hint(status, stderr).map(|hint| format!("\n{hint}")).unwrap_or_default()
}

/// A script or module that cannot even be started is the project's configuration, not a verdict.
impl From<ExecutorError> for Failure {
    fn from(error: ExecutorError) -> Self {
        Self::new(ErrorCode::ConfigError, error.to_string())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_silent_stream_takes_no_line() {
        let failed = |stderr: &str| {
            let status = "exited with status 3".to_string();
            ExecutorError::Failed { what: "a.py".to_string(), status, stderr: stderr.to_string() }.to_string()
        };
        assert_eq!(failed(" \n"), "a.py exited with status 3");
        assert_eq!(failed("oh\nno\n"), "a.py exited with status 3\nits stderr:\noh\nno");
    }

    #[test]
    fn an_illegal_instruction_inside_a_framework_says_what_to_do() {
        let failed = |status: &str| {
            let (status, stderr) = (status.to_string(), "Extension modules: torch._C (total: 1)".to_string());
            ExecutorError::Failed { what: "a.py".to_string(), status, stderr }.to_string()
        };
        assert!(failed("was killed by SIGILL").contains("ONEDNN_MAX_CPU_ISA="));
        assert!(!failed("was killed by SIGSEGV").contains("ONEDNN_MAX_CPU_ISA="));
    }
}
