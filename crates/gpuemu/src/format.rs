//! Formats in which results are printed. Standard output carries only the result.

use std::io::Write;

use clap::ValueEnum;
use serde::Serialize;

use crate::expected_error::ExpectedError;

/// A format of results.
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub enum Format {
    /// For people.
    Text,
    /// For programs.
    Json,
}

/// Writes a result as one JSON document.
pub fn write_json(value: &impl Serialize) -> Result<(), ExpectedError> {
    let mut output = std::io::stdout().lock();
    serde_json::to_writer_pretty(&mut output, value)?;
    writeln!(output)?;
    Ok(())
}

/// Writes text; a reader that has gone away is no error.
pub fn write_text(text: &str) -> Result<(), ExpectedError> {
    match anstream::stdout().lock().write_all(text.as_bytes()) {
        Err(error) if error.kind() != std::io::ErrorKind::BrokenPipe => Err(error.into()),
        _ => Ok(()),
    }
}
