//! The signed report: what stored verdicts rest on, and a signature over the exact bytes.

use gpuemu_engine::case::GENERATOR_VERSION;
use gpuemu_model::evidence::{Evidence, contradiction};
use gpuemu_model::json::ToJson;
use gpuemu_model::report::{Conclusion, RunReport};
use gpuemu_process::fault;
use gpuemu_wire::client::unexpected;
use gpuemu_wire::protocol::{GatherEvidence, Request, Response};

use crate::commands::sign::KeyOption;
use crate::expected_error::ExpectedError;
use crate::format::{ReportFormat, ReportOutput, write_text};
use crate::session::{Session, note};
use crate::{report, signing, whole_files};

/// Adds what the verdicts rest on. What is missing, weak or out of date keeps the report from passing.
pub fn add_evidence(session: &mut Session, report: &mut RunReport) -> Result<(), ExpectedError> {
    let request = Request::GatherEvidence(GatherEvidence { project: session.project() });
    let (ops, mut reservations) = match session.run(request)? {
        Response::Evidence { ops, reservations } => (ops, reservations),
        other => return Err(unexpected(&other).into()),
    };
    let unproven = report.ops.iter().filter(|summary| !ops.iter().any(|op| op.op == summary.op));
    reservations.extend(unproven.map(|summary| {
        format!("{}: it is no op of the configuration, or only a client judged it in its own process", summary.op)
    }));
    let file = &session.config.file;
    let configuration = std::fs::read_to_string(file);
    let configuration = fault!("sign.configuration", std::io::Error::other("injected"), configuration)
        .map_err(|error| ExpectedError::plain(format!("{} cannot be read: {error}", file.display())))?;
    report.evidence = Some(Evidence {
        configuration,
        generator_version: GENERATOR_VERSION,
        system: format!("{} {}", std::env::consts::OS, std::env::consts::ARCH),
        reservations,
        ops,
    });
    report.passed = report.conclusion() == Conclusion::Passed;
    Ok(())
}

/// Writes the report and its signature, both or none; the number is the exit status.
pub fn write(report: &RunReport, key: &KeyOption, output: &ReportOutput) -> Result<u8, ExpectedError> {
    if let Some(problem) = contradiction(report) {
        return Err(ExpectedError::plain(format!("the report is not signed: {problem}")));
    }
    let Some(path) = &output.output else {
        return Err(ExpectedError::new("a signed report needs a file", "name one with --output"));
    };
    if !matches!(output.format, ReportFormat::Text | ReportFormat::Json) {
        let hint = "leave --format out; `gpuemu report --from FILE` writes it in another format afterwards";
        return Err(ExpectedError::new("a signed report is JSON", hint));
    }
    let mut text = report.to_pretty_json()?;
    text.push('\n');
    let key = fault!("sign.key", ExpectedError::plain("injected"), key.load())?;
    fault!("sign.sign");
    let (signature, file) = (signing::sign(&key, text.as_bytes()), signing::signature_file(path));
    let write = || whole_files::write(&[(path, text.as_bytes()), (&file, &signature)]);
    fault!("sign.write", std::io::Error::other("injected"), write())
        .map_err(|error| ExpectedError::plain(format!("{} cannot be written: {error}", path.display())))?;
    let mut words = report::text::run(report);
    let word = if report.passed { "PASSED" } else { "NOT PASSED" };
    let fingerprint = signing::fingerprint(&key.verifying_key());
    words.push_str(&format!(
        "{word}: signed by key {fingerprint}\nwrote {}\nwrote {}\n",
        path.display(),
        file.display()
    ));
    // Whoever asked for JSON has it in the file.
    match output.format {
        ReportFormat::Json => note(words.trim_end()),
        _ => write_text(&words)?,
    }
    Ok(report::exit_code_of(report))
}
