//! What kind of error an answer is.

use std::fmt;

use serde::{Deserialize, Serialize};

use crate::schema::JsonSchema;

/// The code of an error.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Serialize, Deserialize, JsonSchema)]
pub enum ErrorCode {
    /// The project has no op of that name.
    OpNotFound,
    /// A reference gave no answer.
    ReferenceScriptFailed,
    /// The request cannot be understood, or asks for something impossible.
    InvalidRequest,
    /// A fault of gpuemu, or of the machine.
    InternalError,
    /// There is no such result, failure or job.
    NotFound,
    /// The project's configuration is wrong, or not the one that the client read.
    ConfigError,
    /// The project has no kernel of that name.
    KernelNotFound,
    /// There is no such artifact.
    ArtifactNotFound,
    /// There is no baseline of that tag.
    BaselineNotFound,
    /// A text is not PTX.
    PtxParseError,
    /// SASS cannot be read without a tool that is not there.
    CuobjdumpNotAvailable,
    /// Client and daemon are of different versions.
    VersionMismatch,
}

impl fmt::Display for ErrorCode {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(formatter, "{self:?}")
    }
}
