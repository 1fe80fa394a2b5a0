//! The pairs of the grown corpus, run as the ops of a project.

use std::collections::BTreeMap;
use std::fmt::Write;
use std::io::IsTerminal;
use std::path::Path;
use std::time::Instant;

use comfy_table::{Cell, ContentArrangement, Table, presets};
use gpuemu_config::ArtifactChecks;
use gpuemu_corpus::grown::{self, CaughtBy, Pair, Project, Side, op_of, ptx_of};
use gpuemu_model::artifact::OccupancyLaunch;
use gpuemu_model::artifact::{KernelStatus, Severity};
use gpuemu_model::finding::Check;
use gpuemu_model::report::{OpReport, OpStatus};
use gpuemu_model::settings::{FuzzConfig, Mode};
use gpuemu_ptx::inspect::Inspector;
use gpuemu_ptx::tools::Toolchain;
use gpuemu_wire::protocol::{ReplayCase, Request, RunCi};
use serde_json::{Map, Value, json};
use tempfile::TempDir;

use super::{Arguments, GROWN_CASES, Ran, Set, at_fault};
use crate::commands::reproduce;
use crate::commands::test::run_ops;
use crate::exit_code;
use crate::expected_error::ExpectedError;
use crate::session::{GlobalOptions, Session};

/// The pairs that are asked for. Names that no pair has are those of published kernels, or nobody's.
pub(super) fn chosen(arguments: &Arguments) -> Result<Vec<Pair>, ExpectedError> {
    let mut pairs = grown::pairs().map_err(at_fault)?;
    if arguments.kernel.is_empty() {
        if arguments.set == Set::Published && arguments.write.is_none() {
            pairs.clear();
        }
    } else {
        pairs.retain(|pair| arguments.kernel.contains(&pair.name));
    }
    Ok(pairs)
}

/// Writes pairs as a project.
pub(super) fn write(pairs: &[Pair], folder: &Path) -> Result<u8, ExpectedError> {
    let configuration = folder.join("gpuemu.toml");
    if configuration.exists() {
        let hint = "name a folder that is empty or does not exist";
        return Err(ExpectedError::new(format!("{} exists already", configuration.display()), hint));
    }
    std::fs::create_dir_all(folder)?;
    Project::of(pairs).map_err(at_fault)?.write(folder)?;
    crate::format::write_text(&format!("wrote {} pairs to {}\n", pairs.len(), folder.display()))?;
    Ok(exit_code::PASSED)
}

/// A project of pairs in a folder that is removed afterwards.
struct Opened {
    folder: TempDir,
    session: Session,
}

fn open(pairs: &[Pair], quiet: bool) -> Result<Opened, ExpectedError> {
    let folder = tempfile::Builder::new().prefix("gpuemu-corpus-").tempdir()?;
    let project = folder.path().join("project");
    std::fs::create_dir(&project)?;
    Project::of(pairs).map_err(at_fault)?.write(&project)?;
    let session = Session::apart(&project, &folder.path().join("home"), quiet)?;
    Ok(Opened { folder, session })
}

/// Runs one case of a wrong twin again.
pub(super) fn replay(pair: &Pair, seed: u64, arguments: &Arguments) -> Result<u8, ExpectedError> {
    let mut opened = open(std::slice::from_ref(pair), true)?;
    let side = if arguments.controls { Side::Right } else { Side::Wrong };
    let request = ReplayCase {
        project: opened.session.project(),
        op_name: Some(op_of(pair, side)),
        seed,
        config: FuzzConfig::default(),
        minimized: false,
    };
    reproduce::replay(&mut opened.session, request, arguments.format)
}

/// What came of one twin.
struct Twin {
    op: String,
    /// None if it is not to be run.
    report: Option<OpReport>,
    /// Rules that its code breaks, of those that are asked about.
    lint: Vec<String>,
}

/// What came of a pair.
struct Row<'a> {
    pair: &'a Pair,
    right: Twin,
    /// None where only the right ones are run.
    wrong: Option<Twin>,
}

pub(super) fn run(pairs: &[Pair], arguments: &Arguments, options: &GlobalOptions) -> Result<Ran, ExpectedError> {
    let started = Instant::now();
    let cases = arguments.cases.unwrap_or(GROWN_CASES);
    let mut opened = open(pairs, options.quiet)?;
    let mut ops: Vec<String> = Vec::new();
    for pair in pairs {
        ops.push(op_of(pair, Side::Right));
        if !arguments.controls && pair.caught_by.iter().any(|caught_by| matches!(caught_by, CaughtBy::Check(_))) {
            ops.push(op_of(pair, Side::Wrong));
        }
    }
    ops.sort();
    ops.dedup();
    let request = RunCi {
        project: opened.session.project(),
        ops,
        mode: Mode::Fuzz,
        config: FuzzConfig { iterations: Some(cases), seed: Some(arguments.seed), ..FuzzConfig::default() },
        parallel: Some(0),
        fail_fast: false,
        shard: None,
        baseline: None,
        fail_on_regression: false,
        kernels: Some(false),
        tools: None,
    };
    let report = run_ops(&mut opened.session, Request::RunCi(request))?;
    let found: BTreeMap<String, OpReport> = report.ops.into_iter().map(|op| (op.op.clone(), op)).collect();
    let project = opened.folder.path().join("project");
    let mut rows = Vec::new();
    for pair in pairs {
        let twin = |side: Side| -> Result<Twin, ExpectedError> {
            let op = op_of(pair, side);
            Ok(Twin { report: found.get(&op).cloned(), lint: lint(pair, side, &project)?, op })
        };
        let wrong = if arguments.controls { None } else { Some(twin(Side::Wrong)?) };
        rows.push(Row { pair, right: twin(Side::Right)?, wrong });
    }
    let seconds = started.elapsed().as_secs_f64();
    let exit =
        match (rows.iter().all(|row| row.is_right() || row.not_run().is_some()), rows.iter().any(Row::is_not_run)) {
            (false, _) => exit_code::FAILED,
            // Nothing is known of what did not run.
            (true, true) => exit_code::ENVIRONMENT_ERROR,
            (true, false) => exit_code::PASSED,
        };
    let mut json = Map::new();
    json.insert("cases_per_twin".to_string(), json!(cases));
    json.insert("pairs".to_string(), rows.iter().map(Row::json).collect());
    json.insert("pairs_summary".to_string(), summary(&rows, seconds));
    Ok(Ran { json, text: text(&rows, arguments, cases, seconds), exit })
}

/// Rules that a twin's code breaks, of those that the pair is caught by.
fn lint(pair: &Pair, side: Side, project: &Path) -> Result<Vec<String>, ExpectedError> {
    let asked: Vec<&String> = pair
        .caught_by
        .iter()
        .filter_map(|caught_by| match caught_by {
            CaughtBy::Lint(rule) => Some(rule),
            CaughtBy::Check(_) => None,
        })
        .collect();
    if asked.is_empty() {
        return Ok(Vec::new());
    }
    // Rules that are asked about need nothing of NVIDIA's tools.
    let toolchain = Toolchain::default();
    let inspector =
        Inspector { toolchain: &toolchain, architectures: &[], rules: &[], launch: OccupancyLaunch::default() };
    let mut broken = Vec::new();
    for file in ptx_of(pair, side).map_err(at_fault)? {
        let report = inspector.file(&project.join(file), &ArtifactChecks::default());
        if report.status == KernelStatus::Error {
            return Err(at_fault(report.message.unwrap_or_default()));
        }
        // Notes are no catch, and no alarm.
        let found = report.lint.findings.into_iter().filter(|finding| finding.severity >= Severity::Warning);
        broken.extend(found.map(|finding| finding.rule));
    }
    broken.retain(|rule| asked.contains(&rule));
    broken.sort();
    broken.dedup();
    Ok(broken)
}

impl Twin {
    /// Why nothing is known of it, if that is so.
    fn not_run(&self) -> Option<String> {
        let report = self.report.as_ref()?;
        let unknown = matches!(report.status, OpStatus::Error | OpStatus::Unfinished) && report.failed == 0;
        unknown.then(|| report.message.clone().unwrap_or_default())
    }

    fn passed(&self) -> bool {
        self.lint.is_empty() && self.report.as_ref().is_some_and(|report| report.status == OpStatus::Passed)
    }

    /// How many of the failures that are kept were found by each check.
    fn checks(&self) -> BTreeMap<Check, u64> {
        let mut checks = BTreeMap::new();
        for finding in self.report.iter().flat_map(|report| &report.failures).flat_map(|failure| &failure.failures) {
            *checks.entry(finding.check).or_default() += 1;
        }
        checks
    }

    fn failed(&self) -> u64 {
        self.report.as_ref().map_or(0, |report| report.failed)
    }

    fn json(&self) -> Value {
        let report = self.report.as_ref();
        json!({
            "op": self.op,
            "cases": report.map_or(0, |report| report.cases),
            "failed": self.failed(),
            "undetermined": report.map_or(0, |report| report.undetermined),
            "checks": self.checks(),
            "lint": self.lint,
            "first_failing_seed": report.and_then(|report| report.failures.first()).map(|failure| failure.seed.to_string()),
            "not_run": self.not_run(),
            "not_checked": report.map(|report| report.not_checked.clone()).unwrap_or_default(),
        })
    }
}

impl Row<'_> {
    fn not_run(&self) -> Option<String> {
        self.right.not_run().or_else(|| self.wrong.as_ref().and_then(Twin::not_run))
    }

    fn is_not_run(&self) -> bool {
        self.not_run().is_some()
    }

    /// What reported the wrong twin, of what must.
    fn reported_by(&self) -> Vec<String> {
        let Some(wrong) = &self.wrong else { return Vec::new() };
        let checks = wrong.checks();
        let reports = |caught_by: &&CaughtBy| match caught_by {
            CaughtBy::Check(check) => checks.contains_key(check),
            CaughtBy::Lint(rule) => wrong.lint.contains(rule),
        };
        self.pair.caught_by.iter().filter(reports).map(ToString::to_string).collect()
    }

    fn is_right(&self) -> bool {
        !self.is_not_run() && self.right.passed() && (self.wrong.is_none() || !self.reported_by().is_empty())
    }

    fn json(&self) -> Value {
        json!({
            "name": self.pair.name,
            "class": self.pair.class,
            "language": self.pair.language,
            "says": self.pair.says,
            "caught_by": self.pair.caught_by,
            "reported_by": self.reported_by(),
            "right": self.right.json(),
            "wrong": self.wrong.as_ref().map(Twin::json),
            "verdict_is_right": self.is_right(),
        })
    }
}

fn summary(rows: &[Row<'_>], seconds: f64) -> Value {
    let wrong = rows.iter().filter_map(|row| row.wrong.as_ref().map(|_| row));
    json!({
        "pairs": rows.len(),
        "caught": wrong.filter(|row| !row.reported_by().is_empty()).count(),
        "false_alarms": rows.iter().filter(|row| !row.right.passed() && row.right.not_run().is_none()).count(),
        "not_run": rows.iter().filter(|row| row.is_not_run()).count(),
        "seconds": seconds,
    })
}

fn text(rows: &[Row<'_>], arguments: &Arguments, cases: u64, seconds: f64) -> String {
    let mut table = Table::new();
    table.load_style(presets::NOTHING).set_content_arrangement(ContentArrangement::Dynamic);
    if !std::io::stdout().is_terminal() {
        table.set_width(160);
    }
    table.set_header(["pair", "class", "in", "right twin", "wrong twin", "must be reported by", "verdict"]);
    for row in rows {
        let counted = |twin: &Twin| match (twin.not_run(), &twin.report) {
            (Some(_), _) => "not run".to_string(),
            (None, None) => format!("breaks {}", twin.lint.join(", ")),
            (None, Some(report)) if report.failed == 0 => "accepted".to_string(),
            (None, Some(report)) => {
                let checks: Vec<String> = twin.checks().keys().map(ToString::to_string).collect();
                format!("{} of {} fail: {}", report.failed, report.cases, checks.join(", "))
            }
        };
        let caught_by: Vec<String> = row.pair.caught_by.iter().map(ToString::to_string).collect();
        table.add_row([
            Cell::new(&row.pair.name),
            Cell::new(&row.pair.class),
            Cell::new(row.pair.language.folder()),
            Cell::new(counted(&row.right)),
            Cell::new(row.wrong.as_ref().map_or(String::new(), counted)),
            Cell::new(caught_by.join(" or ")),
            Cell::new(if row.is_right() {
                "right"
            } else if row.is_not_run() {
                "none"
            } else {
                "WRONG"
            }),
        ]);
    }
    let mut text = format!("{table}\n\n");
    // Writing to a string cannot fail.
    let _ = footer(&mut text, rows, arguments, cases, seconds);
    text
}

fn footer(text: &mut String, rows: &[Row<'_>], arguments: &Arguments, cases: u64, seconds: f64) -> std::fmt::Result {
    let wrong = rows.iter().filter(|row| row.wrong.is_some()).count();
    let caught = rows.iter().filter(|row| !row.reported_by().is_empty()).count();
    let flagged = rows.iter().filter(|row| !row.right.passed() && row.right.not_run().is_none()).count();
    writeln!(
        text,
        "gpuemu:   {caught} of {wrong} wrong twins reported by the check that must, {flagged} of {} right ones flagged",
        rows.len()
    )?;
    writeln!(text, "{cases} cases of each twin, base seed {}, {seconds:.1} s", arguments.seed)?;
    for row in rows {
        if let Some(why) = row.not_run() {
            writeln!(text, "not run: {}: {why}", row.pair.name)?;
        }
    }
    let failing = |row: &Row<'_>| {
        let seed = row.wrong.as_ref()?.report.as_ref()?.failures.first()?.seed;
        Some((row.pair.name.clone(), seed))
    };
    if let Some((name, seed)) = rows.iter().find_map(failing) {
        writeln!(text, "replay a case: gpuemu corpus --kernel {name} --replay {seed}")?;
    }
    Ok(())
}
