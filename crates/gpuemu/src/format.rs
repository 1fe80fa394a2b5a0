//! Formats in which results are printed. Standard output carries only the result.

use std::io::Write;
use std::path::{Path, PathBuf};

use clap::ValueEnum;
use gpuemu_process::fault;
use serde::Serialize;

use crate::expected_error::ExpectedError;
use crate::session::note;
use crate::whole_files;

/// A format of results that people or programs read.
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub enum Format {
    /// For people.
    Text,
    /// For programs.
    Json,
}

/// A format of the report on a run.
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub enum ReportFormat {
    /// For people.
    Text,
    /// For programs.
    Json,
    /// For CI systems.
    Junit,
    /// For services that show findings beside the code.
    Sarif,
    /// For a comment on a pull request.
    Markdown,
    /// A page with pictures of the errors, for a browser.
    Html,
}

/// Where a report goes, and in which form.
#[derive(Debug, Clone, clap::Args)]
pub struct ReportOutput {
    /// Format of the result.
    #[arg(long, value_enum, default_value_t = ReportFormat::Text)]
    pub format: ReportFormat,
    /// Write the result to this file in place of standard output.
    #[arg(long, value_name = "FILE")]
    pub output: Option<PathBuf>,
    /// Do not look for the smallest failing cases, which an HTML report and a campaign on a cluster show.
    #[arg(long, alias = "no_minimize")]
    pub no_minimize: bool,
}

impl ReportOutput {
    pub fn write(&self, text: &str) -> Result<(), ExpectedError> {
        write_to(self.output.as_deref(), text)
    }
}

/// Where a result goes, and in which form.
#[derive(Debug, Clone, clap::Args)]
pub struct Output {
    /// Format of the result.
    #[arg(long, value_enum, default_value_t = Format::Text)]
    pub format: Format,
    /// Write the result to this file in place of standard output.
    #[arg(long, value_name = "FILE")]
    pub output: Option<PathBuf>,
}

impl Output {
    pub fn write(&self, text: &str) -> Result<(), ExpectedError> {
        write_to(self.output.as_deref(), text)
    }
}

fn write_to(path: Option<&Path>, text: &str) -> Result<(), ExpectedError> {
    let Some(path) = path else { return write_text(text) };
    let plain = anstream::adapter::strip_str(text).to_string();
    let written = fault!("report.write", std::io::Error::other("injected"), write_file(path, plain.as_bytes()));
    written.map_err(|error| {
        ExpectedError::plain(format!("the report cannot be written to {}: {error}", path.display()))
    })?;
    note(&format!("wrote {}", path.display()));
    Ok(())
}

/// Writes a file as a whole, so that no part of a report is taken for a report.
fn write_file(path: &Path, bytes: &[u8]) -> std::io::Result<()> {
    match whole_files::write(&[(path, bytes)]) {
        // Nothing may be put beside it, and yet it may be written itself.
        Err(error) if error.kind() == std::io::ErrorKind::PermissionDenied => std::fs::write(path, bytes),
        written => written,
    }
}

/// Writes a result as one JSON document.
pub fn write_json(value: &impl Serialize) -> Result<(), ExpectedError> {
    let mut text = serde_json::to_string_pretty(value)?;
    text.push('\n');
    write_text(&text)
}

/// Writes text; a reader that has gone away is no error.
pub fn write_text(text: &str) -> Result<(), ExpectedError> {
    let mut stdout = anstream::stdout().lock();
    // What is only kept for later would be lost without a word.
    let mut write = || stdout.write_all(text.as_bytes()).and_then(|()| stdout.flush());
    match fault!("stdout.write", std::io::Error::other("injected"), write()) {
        Err(error) if error.kind() != std::io::ErrorKind::BrokenPipe => Err(error.into()),
        _ => Ok(()),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_report_is_written_whole_or_not_at_all() {
        let folder = tempfile::TempDir::new().unwrap();
        let path = folder.path().join("report");
        write_file(&path, b"old").unwrap();
        write_file(&path, b"new").unwrap();
        assert_eq!(std::fs::read(&path).unwrap(), b"new");
        assert!(write_file(&folder.path().join("no/report"), b"x").is_err());
        assert_eq!(std::fs::read_dir(folder.path()).unwrap().count(), 1);
    }
}
