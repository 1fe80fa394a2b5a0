//! Why a request was not done: a code, what is wrong, what to do.

use gpuemu_model::ErrorCode;

use crate::{ConfigError, InvalidFile};

/// Why a request was not done.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Failure {
    /// What kind of error.
    pub code: ErrorCode,
    /// What is wrong, with the value that was wrong.
    pub message: String,
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

    /// Adds what to do.
    pub fn hint(mut self, hint: impl Into<String>) -> Self {
        self.hint = Some(hint.into());
        self
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
