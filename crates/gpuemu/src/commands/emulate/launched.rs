//! One launch from beginning to end, and the report on it.

use std::fmt::Write;
use std::path::PathBuf;

use gpuemu_machine::{Launch, LaunchError, LaunchOptions, Outcome, Program};
use gpuemu_model::emulation::{AccessCheck, AccessFault, AccessFinding, EmulationStatistics};
use gpuemu_model::nearest::nearest;
use gpuemu_ptx::Source;
use serde::Serialize;

use super::launch_argument::{LaunchArguments, fit};
use super::launch_options::{Code, LaunchForm, MachineOptions, Sizes, code};
use super::output::{OutputSummary, check_saved, save};
use crate::exit_code;
use crate::expected_error::ExpectedError;
use crate::format::{Format, write_json, write_text};
use crate::report::access::{self, ShownFinding};
use crate::report::style::{BAD, GOOD, WARNING, paint};

/// Addresses below this are a null pointer with an offset.
const NULL_PAGE: u64 = 1 << 20;

#[derive(Debug, Serialize)]
pub struct LaunchReport {
    file: String,
    producer: String,
    /// The architecture that the code was made for.
    target: String,
    entry: String,
    grid: [u32; 3],
    block: [u32; 3],
    shared_bytes: u32,
    tensor_core: String,
    approximation: String,
    checks: Vec<AccessCheck>,
    /// Why the kernel stopped itself; nothing where it came to its end.
    failure: Option<String>,
    outputs: Vec<OutputSummary>,
    saved: Vec<PathBuf>,
    findings: Vec<ShownFinding>,
    more_findings: u64,
    /// What could not be checked, and why.
    not_checked: Vec<String>,
    printed: String,
    trace: Vec<String>,
    /// Nothing where the kernel stopped itself.
    statistics: Option<EmulationStatistics>,
}

struct Entry {
    name: String,
    target: String,
    /// Threads of a block that the code asks for.
    required: Option<[u32; 3]>,
}

/// Launches a kernel and makes a report.
pub fn launch(
    file: &str,
    form: &LaunchForm,
    machine: &MachineOptions,
    checks: Vec<AccessCheck>,
) -> Result<LaunchReport, ExpectedError> {
    let code = code(file, &form.compile)?;
    let entry = entry(&code.source, form.entry.as_deref())?;
    let refused = |error: gpuemu_ptx::PtxError| ExpectedError::plain(error.to_string());
    let program = Program::decode(&code.source, Some(&entry.name)).map_err(refused)?;
    let LaunchArguments { arguments, buffers, null } = fit(&entry.name, &form.arguments, program.parameters())?;
    check_saved(form, &buffers)?;
    let launch =
        Launch { grid: form.grid.0, block: block(form, &code, &entry)?, shared_bytes: shared(form, &code)?, arguments };
    let options = LaunchOptions { trace: form.traced(), ..machine.options(checks) };
    let mut report = LaunchReport {
        file: file.to_string(),
        producer: code.producer,
        target: entry.target,
        entry: entry.name,
        grid: launch.grid,
        block: launch.block,
        shared_bytes: launch.shared_bytes,
        tensor_core: format!("{:?}", options.tensor_core).to_lowercase(),
        approximation: format!("{:?}", options.approximation).to_lowercase(),
        checks: options.checks.clone(),
        failure: None,
        outputs: Vec::new(),
        saved: Vec::new(),
        findings: Vec::new(),
        more_findings: 0,
        not_checked: Vec::new(),
        printed: String::new(),
        trace: Vec::new(),
        statistics: None,
    };
    let outcome: Outcome = match program.launch(&launch, &options) {
        Ok(outcome) => outcome,
        Err(error @ (LaunchError::Assertion { .. } | LaunchError::Trap { .. })) => {
            report.failure = Some(error.to_string());
            return Ok(report);
        }
        Err(error @ LaunchError::Endless { .. }) => {
            let hint = "a kernel that waits for something that never comes ends like this; --max-steps allows more";
            return Err(ExpectedError::new(error.to_string(), hint));
        }
        Err(error @ (LaunchError::Refused(_) | LaunchError::Late(_) | LaunchError::Exhausted(_))) => {
            return Err(ExpectedError::plain(error.to_string()));
        }
    };
    if let Some(error) = null_pointer(&outcome.findings, &null) {
        return Err(error);
    }
    report.saved = save(form, &buffers, &outcome.buffers)?;
    let written = buffers.iter().zip(&outcome.buffers).filter(|(buffer, _)| buffer.written);
    report.outputs = written.map(|(buffer, bytes)| OutputSummary::new(buffer, bytes)).collect();
    let sizes: Vec<(&str, u64)> = buffers.iter().map(|buffer| (buffer.name.as_str(), buffer.bytes)).collect();
    report.findings = outcome.findings.into_iter().map(|finding| ShownFinding::new(finding, &sizes)).collect();
    report.more_findings = outcome.more_findings;
    report.not_checked = outcome.not_checked;
    report.printed = outcome.printed;
    report.trace = outcome.trace;
    report.statistics = Some(outcome.statistics);
    Ok(report)
}

fn entry(source: &Source, name: Option<&str>) -> Result<Entry, ExpectedError> {
    let module = source.parse().map_err(|error| ExpectedError::plain(error.to_string()))?;
    let names: Vec<&str> = module.entries().map(|entry| entry.name).collect();
    let function = match (name, names.as_slice()) {
        (_, []) => return Err(ExpectedError::plain(format!("{} has no entry", source.name))),
        (None, [only]) => module.defined(only),
        (None, _) => {
            let message = format!("{} has {} entries", source.name, names.len());
            return Err(ExpectedError::new(message, format!("name one with --entry: {}", names.join(", "))));
        }
        (Some(name), _) => module.entries().find(|entry| entry.name == name),
    };
    let Some(function) = function else {
        let name = name.unwrap_or_default();
        let meant = nearest(name, names.iter().copied());
        let hint = meant
            .map_or_else(|| format!("there are: {}", names.join(", ")), |meant| format!("did you mean '{meant}'?"));
        return Err(ExpectedError::new(format!("{} has no entry '{name}'", source.name), hint));
    };
    let required = function.directive("reqntid").map(|numbers| {
        std::array::from_fn(|index| numbers.get(index).and_then(|number| u32::try_from(*number).ok()).unwrap_or(1))
    });
    Ok(Entry { name: function.name.to_string(), target: module.architecture().to_string(), required })
}

fn block(form: &LaunchForm, code: &Code, entry: &Entry) -> Result<[u32; 3], ExpectedError> {
    let compiled = code.threads.and_then(|threads| u32::try_from(threads).ok()).map(|threads| [threads, 1, 1]);
    let given = form.block.map(|Sizes(sizes)| sizes);
    given.or(entry.required).or(compiled).ok_or_else(|| {
        let message = format!("{} does not say how many threads a block has", entry.name);
        ExpectedError::new(message, "say it, as in --block 128,1,1")
    })
}

fn shared(form: &LaunchForm, code: &Code) -> Result<u32, ExpectedError> {
    match (form.shared, code.shared) {
        (Some(bytes), _) => Ok(bytes),
        (None, None) => Ok(0),
        (None, Some(bytes)) => u32::try_from(bytes).map_err(|_| {
            ExpectedError::plain(format!("the compiler asks for {bytes} bytes of shared memory, which nothing has"))
        }),
    }
}

/// A null pointer among the arguments that the kernel follows is a wrong launch, not a wrong kernel.
fn null_pointer(findings: &[AccessFinding], null: &[String]) -> Option<ExpectedError> {
    let follows = |finding: &&AccessFinding| {
        finding.fault == AccessFault::Unmapped && finding.address.is_some_and(|address| address < NULL_PAGE)
    };
    let finding = findings.iter().find(follows).filter(|_| !null.is_empty())?;
    let place = finding.place.as_ref().map_or(String::new(), |place| format!(" at {place}"));
    let message = format!("the kernel follows a null pointer{place}: {}", finding.message);
    Some(ExpectedError::new(message, format!("null was given for: {}; give a buffer", null.join(", "))))
}

impl LaunchReport {
    /// Writes it; the number is the exit status.
    pub fn write(&self, format: Format) -> Result<u8, ExpectedError> {
        match format {
            Format::Json => write_json(self)?,
            Format::Text => write_text(&self.text())?,
        }
        let clean = self.failure.is_none() && self.findings.is_empty() && self.more_findings == 0;
        Ok(match (clean, self.not_checked.is_empty()) {
            (false, _) => exit_code::FAILED,
            // Nothing was found where something was not looked at: that is no pass.
            (true, false) => exit_code::ENVIRONMENT_ERROR,
            (true, true) => exit_code::PASSED,
        })
    }

    fn text(&self) -> String {
        let mut text = String::new();
        // Writing to a string cannot fail.
        let _ = self.write_text(&mut text);
        text
    }

    fn write_text(&self, text: &mut String) -> std::fmt::Result {
        let three = |sizes: [u32; 3]| sizes.map(|size| size.to_string()).join(" x ");
        let (grid, block) = (three(self.grid), three(self.block));
        writeln!(text, "{} of {} ({}, PTX for {})", self.entry, self.file, self.producer, self.target)?;
        writeln!(text, "  grid {grid}, block {block}, {} bytes of dynamic shared memory", self.shared_bytes)?;
        let width = self.outputs.iter().map(|output| output.name.len()).max().unwrap_or(0);
        for output in &self.outputs {
            text.push_str(&output.text(width));
        }
        for file in &self.saved {
            writeln!(text, "  wrote {}", file.display())?;
        }
        for (title, lines) in [("printed", self.printed.lines().collect()), ("trace", self.traced())] {
            let lines: Vec<&str> = lines;
            if !lines.is_empty() {
                writeln!(text, "{title}:")?;
                lines.iter().try_for_each(|line| writeln!(text, "  {line}"))?;
            }
        }
        if let Some(failure) = &self.failure {
            writeln!(text, "{}  {failure}", paint(BAD, "FAIL"))?;
            return Ok(());
        }
        text.push_str(&access::text(&self.findings, self.more_findings));
        for what in &self.not_checked {
            writeln!(text, "{} {what}", paint(WARNING, "not checked:"))?;
        }
        let checks = match self.checks.as_slice() {
            [] => "bounds checked".to_string(),
            checks => format!("checked: {}", checks.iter().map(|check| check.name()).collect::<Vec<_>>().join(", ")),
        };
        let statistics = self.statistics.unwrap_or_default();
        let EmulationStatistics { blocks, warp_instructions, lane_operations } = statistics;
        let did =
            format!("{blocks} blocks, {warp_instructions} instructions of warps, {lane_operations} of lanes; {checks}");
        let found = self.findings.len() as u64 + self.more_findings;
        match found {
            0 if !self.not_checked.is_empty() => {
                writeln!(text, "{}  nothing found in {did}", paint(WARNING, "NOT CHECKED"))
            }
            0 => writeln!(text, "{}  nothing found in {did}", paint(GOOD, "PASS")),
            _ => writeln!(text, "{}  {} in {did}", paint(BAD, "FAIL"), access::counted(found)),
        }
    }

    fn traced(&self) -> Vec<&str> {
        self.trace.iter().map(String::as_str).collect()
    }
}
