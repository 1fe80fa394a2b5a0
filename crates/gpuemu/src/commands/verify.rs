//! `gpuemu verify`: whether a signed report is what was signed, and what it says. Offline.

use std::fmt::Write;
use std::path::{Path, PathBuf};

use gpuemu_model::evidence::contradiction;
use gpuemu_model::report::RunReport;
use gpuemu_process::fault;
use serde::Serialize;

use super::sign::{own_keys, parse};
use crate::exit_code;
use crate::expected_error::ExpectedError;
use crate::format::{Format, write_json, write_text};
use crate::report::style::{BAD, GOOD, paint};
use crate::signing;

/// Arguments of `gpuemu verify`.
#[derive(Debug, Clone, clap::Args)]
pub struct Arguments {
    /// The report.
    #[arg(value_name = "REPORT")]
    report: PathBuf,
    /// The public key of who signed it, as PEM [default: your own].
    #[arg(long, value_name = "FILE")]
    key: Option<PathBuf>,
    /// The signature [default: the file beside the report whose name ends in .sig].
    #[arg(long, value_name = "FILE")]
    signature: Option<PathBuf>,
    /// Only look at the signature: a report that says failed is as good as one that says passed.
    #[arg(long)]
    signature_only: bool,
    /// Format of the result.
    #[arg(long, value_enum, default_value_t = Format::Text)]
    format: Format,
}

/// The result as JSON.
#[derive(Serialize)]
struct Verified<'a> {
    report: &'a Path,
    key: String,
    signature_is_valid: bool,
    passed: Option<bool>,
    problem: Option<String>,
}

pub fn run(arguments: &Arguments) -> Result<u8, ExpectedError> {
    let read = |path: &Path| {
        let bytes = std::fs::read(path);
        fault!("verify.read", std::io::Error::other("injected"), bytes)
            .map_err(|error| ExpectedError::plain(format!("{} cannot be read: {error}", path.display())))
    };
    let signature = arguments.signature.clone().unwrap_or_else(|| signing::signature_file(&arguments.report));
    let (bytes, signature) = (read(&arguments.report)?, read(&signature)?);
    let key_file = match &arguments.key {
        Some(path) => path.clone(),
        None => own_keys()?.public,
    };
    if arguments.key.is_none() && !key_file.exists() {
        return Err(ExpectedError::new(
            "there is no key to verify with: you have none of your own",
            "give the public key of who signed the report with --key",
        ));
    }
    let key = signing::read_public(&key_file)?;
    let mut verified = Verified {
        report: &arguments.report,
        key: signing::fingerprint(&key),
        signature_is_valid: signing::is_valid(&key, &bytes, &signature),
        passed: None,
        problem: None,
    };
    // Nothing is read of what nobody stands for.
    let report = if verified.signature_is_valid { Some(parse(&arguments.report, &bytes)?) } else { None };
    verified.problem = report.as_ref().and_then(contradiction);
    verified.passed = report.as_ref().map(|report| report.passed && verified.problem.is_none());
    match arguments.format {
        Format::Json => write_json(&verified)?,
        Format::Text => write_text(&describe(&verified, report.as_ref()))?,
    }
    let good = verified.signature_is_valid && (arguments.signature_only || verified.passed == Some(true));
    Ok(if good { exit_code::PASSED } else { exit_code::FAILED })
}

fn describe(verified: &Verified<'_>, report: Option<&RunReport>) -> String {
    let (file, key) = (verified.report.display(), &verified.key);
    let Some(report) = report else {
        let word = paint(BAD, "REJECTED");
        return format!("{word}  {file}: these bytes were not signed by key {key}\n");
    };
    // Writing to a string cannot fail.
    let mut text = format!("{}  {file}: signed by key {key}\n", paint(GOOD, "VALID"));
    let word = if verified.passed == Some(true) { paint(GOOD, "PASSED") } else { paint(BAD, "NOT PASSED") };
    let (ops, cases) = (report.ops.len(), report.cases());
    let _ = writeln!(text, "{word}  {}: {ops} ops, {cases} cases, gpuemu {}", report.project, report.gpuemu);
    if let Some(problem) = &verified.problem {
        let _ = writeln!(text, "  the report contradicts itself: {problem}");
    }
    for op in report.ops.iter().filter(|op| op.failed > 0) {
        let _ = writeln!(text, "  {}: {} of {} cases failed", op.op, op.failed, op.cases);
    }
    for reservation in report.evidence.iter().flat_map(|evidence| &evidence.reservations) {
        let _ = writeln!(text, "  {reservation}");
    }
    text
}
