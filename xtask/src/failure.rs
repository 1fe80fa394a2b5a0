//! Why a development command ends with an exit code other than 0.

use std::process::ExitCode;

use thiserror::Error;

/// Keeps apart "something is wrong with the source" (exit code 1) and "this could not be found
/// out" (exit code 2).
#[derive(Debug, Error)]
pub enum Failure {
    /// Steps failed, and the summary has already said which.
    #[error("steps failed")]
    StepsFailed,
    /// A program ran and reported a failure.
    #[error("{0}")]
    Check(String),
    /// A program or a folder that the command needs cannot be had.
    #[error("{0}")]
    Environment(String),
}

impl Failure {
    /// The exit code of the whole command.
    pub fn exit_code(&self) -> ExitCode {
        match self {
            Self::StepsFailed | Self::Check(_) => ExitCode::from(1),
            Self::Environment(_) => ExitCode::from(2),
        }
    }

    /// What is still to be told: nothing where the summary has told it.
    pub fn message(&self) -> Option<String> {
        match self {
            Self::StepsFailed => None,
            Self::Check(_) | Self::Environment(_) => Some(self.to_string()),
        }
    }
}

/// A file or folder cannot be read, made or changed.
pub fn cannot(action: &str, what: &dyn std::fmt::Display, error: &std::io::Error) -> Failure {
    Failure::Environment(format!("cannot {action} {what}: {error}"))
}
