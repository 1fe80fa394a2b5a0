//! Errors that are the user's to mend, with a hint of how.

/// An error with exit status 2.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ExpectedError {
    /// What is wrong, with the value that was wrong.
    pub message: String,
    pub hint: Option<String>,
}

impl ExpectedError {
    /// An error with a hint.
    pub fn new(message: impl Into<String>, hint: impl Into<String>) -> Self {
        Self { message: message.into(), hint: Some(hint.into()) }
    }

    /// An error that says all there is.
    pub fn plain(message: impl Into<String>) -> Self {
        Self { message: message.into(), hint: None }
    }
}

impl From<std::io::Error> for ExpectedError {
    fn from(error: std::io::Error) -> Self {
        Self { message: format!("cannot write the result: {error}"), hint: None }
    }
}

impl From<serde_json::Error> for ExpectedError {
    fn from(error: serde_json::Error) -> Self {
        Self { message: format!("cannot write the result as JSON: {error}"), hint: None }
    }
}
