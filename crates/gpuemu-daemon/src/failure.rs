//! Why a request was not done: a code, what is wrong, what to do.

use gpuemu_common::config::{ConfigError, InvalidFile};
use gpuemu_common::protocol::{ErrorCode, Response};
use gpuemu_engine::{Outcome, Verdict};

use crate::executor::ExecutorError;
use crate::store::StoreError;

/// Why a request was not done.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Failure {
    /// What kind of error.
    pub code: ErrorCode,
    /// What is wrong, with the value that was wrong.
    pub message: String,
    /// What to do.
    pub hint: Option<String>,
    /// What is not valid in a configuration file, and where, if that is what it is.
    pub invalid: Option<Box<InvalidFile>>,
}

impl Failure {
    /// A failure without a hint.
    pub fn new(code: ErrorCode, message: impl Into<String>) -> Self {
        Self { code, message: message.into(), hint: None, invalid: None }
    }

    /// A request that asks for something impossible.
    pub fn invalid(message: impl Into<String>) -> Self {
        Self::new(ErrorCode::InvalidRequest, message)
    }

    /// A reference that gave no answer, in its own words.
    pub fn reference(verdict: &Verdict) -> Option<Self> {
        let failed = verdict.outcome == Outcome::Error;
        failed.then(|| Self::new(ErrorCode::ReferenceScriptFailed, verdict.undetermined.clone().unwrap_or_default()))
    }

    /// Adds what to do.
    pub fn hint(mut self, hint: impl Into<String>) -> Self {
        self.hint = Some(hint.into());
        self
    }
}

impl From<Failure> for Response {
    fn from(failure: Failure) -> Response {
        Response::Error { code: failure.code, message: failure.message, hint: failure.hint }
    }
}

impl From<ConfigError> for Failure {
    fn from(error: ConfigError) -> Self {
        let message = error.to_string();
        let invalid = match error {
            ConfigError::Invalid(invalid) => Some(invalid),
            _ => None,
        };
        Self { invalid, ..Self::new(ErrorCode::ConfigError, message) }
    }
}

impl From<StoreError> for Failure {
    fn from(error: StoreError) -> Self {
        Self::new(ErrorCode::InternalError, error.to_string())
    }
}

/// A script or module that cannot even be started is the project's configuration, not a verdict.
impl From<ExecutorError> for Failure {
    fn from(error: ExecutorError) -> Self {
        Self::new(ErrorCode::ConfigError, error.to_string())
    }
}
