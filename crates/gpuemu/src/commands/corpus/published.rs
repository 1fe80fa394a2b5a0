//! The published kernels, and what is said of them.

use std::fmt::Write;
use std::io::IsTerminal;
use std::time::Instant;

use comfy_table::{Cell, CellAlignment, ContentArrangement, Table, presets};
use gpuemu_corpus::grown::Pair;
use gpuemu_corpus::kernel_run::{self, CaseCounts, Row};
use gpuemu_corpus::published::{self, Entry, KERNELS, Role};
use gpuemu_engine::oracle::Subject;
use gpuemu_engine::verdict::Verdict;
use indicatif::{ProgressBar, ProgressStyle};
use serde::Serialize;
use serde_json::{Map, Value, json};

use super::{Arguments, PUBLISHED_CASES, Ran, Set, at_fault};
use crate::exit_code;
use crate::expected_error::ExpectedError;
use crate::format::{Format, write_json, write_text};

#[derive(Debug, Serialize)]
struct Summary {
    bugs: usize,
    caught: usize,
    controls: usize,
    false_alarms: usize,
    cases: usize,
    undetermined: usize,
    triggered: usize,
    triggered_detected: usize,
    beyond_ulp: usize,
    beyond_ulp_detected: usize,
    observable: usize,
    observable_detected: usize,
    detected: usize,
    allclose_caught: usize,
    allclose_false_alarms: usize,
    weak: usize,
    seconds: f64,
}

pub(super) fn run(entries: &[&'static Entry], arguments: &Arguments) -> Result<Ran, ExpectedError> {
    let started = Instant::now();
    let cases = arguments.cases.unwrap_or(PUBLISHED_CASES);
    let rows = run_all(entries, arguments, cases)?;
    let summary = summarise(&rows, started.elapsed().as_secs_f64());
    let right = rows.iter().all(Row::verdict_is_right) && summary.observable_detected == summary.observable;
    let mut json = Map::new();
    json.insert("cases_per_kernel".to_string(), json!(cases));
    json.insert("runner".to_string(), json!(arguments.runner.choice()));
    json.insert("kernels".to_string(), rows.iter().map(row_json).collect());
    json.insert("summary".to_string(), json!(summary));
    let exit = if right { exit_code::PASSED } else { exit_code::FAILED };
    Ok(Ran { json, text: text(&rows, &summary, arguments), exit })
}

/// The kernels that are asked for.
pub(super) fn chosen(arguments: &Arguments, pairs: &[Pair]) -> Result<Vec<&'static Entry>, ExpectedError> {
    let mut entries = Vec::new();
    for name in arguments.kernel.iter().filter(|name| !pairs.iter().any(|pair| pair.name == **name)) {
        entries.push(published::find(name).ok_or_else(|| {
            let known: Vec<&str> = KERNELS.iter().map(|entry| entry.name).collect();
            let hint = format!("the corpus has: {}; pairs are listed by --set grown", known.join(", "));
            ExpectedError::new(format!("unknown kernel '{name}'"), hint)
        })?);
    }
    if arguments.kernel.is_empty() && arguments.set != Set::Grown {
        entries.extend(KERNELS.iter());
    }
    entries.retain(|entry| !arguments.controls || entry.role() == Role::Control);
    if entries.is_empty() && pairs.is_empty() {
        return Err(ExpectedError::new("no kernel is left to run", "--controls leaves out kernels with a bug"));
    }
    Ok(entries)
}

fn run_all(entries: &[&'static Entry], arguments: &Arguments, cases: u64) -> Result<Vec<Row>, ExpectedError> {
    let total = cases * entries.len() as u64;
    let bar = if std::io::stderr().is_terminal() { ProgressBar::new(total) } else { ProgressBar::hidden() };
    if let Ok(style) = ProgressStyle::with_template("{msg:24} {wide_bar} {human_pos}/{human_len} cases {eta}") {
        bar.set_style(style);
    }
    let mut rows = Vec::with_capacity(entries.len());
    for entry in entries {
        bar.set_message(entry.name);
        let choice = arguments.runner.choice();
        let subject =
            entry.subject(choice).ok_or_else(|| at_fault(format!("kernel '{}' has no built-in op", entry.name)))?;
        let row = kernel_run::run(entry, choice, &subject, arguments.seed, cases, &|done| bar.inc(done));
        rows.push(row.map_err(at_fault)?);
    }
    bar.finish_and_clear();
    Ok(rows)
}

fn summarise(rows: &[Row], seconds: f64) -> Summary {
    let counts = rows.iter().fold(CaseCounts::default(), |counts, row| counts.join(row.counts));
    let of_role = |role: Role| rows.iter().filter(move |row| row.entry.role() == role);
    Summary {
        bugs: of_role(Role::Bug).count(),
        caught: of_role(Role::Bug).filter(|row| row.flagged()).count(),
        controls: of_role(Role::Control).count(),
        false_alarms: of_role(Role::Control).filter(|row| row.flagged()).count(),
        cases: counts.cases,
        undetermined: counts.undetermined,
        triggered: counts.triggered,
        triggered_detected: counts.triggered_detected,
        beyond_ulp: counts.beyond_ulp,
        beyond_ulp_detected: counts.beyond_ulp_detected,
        observable: counts.observable,
        observable_detected: counts.observable_detected,
        detected: counts.detected,
        allclose_caught: of_role(Role::Bug).filter(|row| row.allclose_rejects()).count(),
        allclose_false_alarms: of_role(Role::Control).filter(|row| row.allclose_rejects()).count(),
        weak: rows.iter().filter(|row| !row.weak.is_empty()).count(),
        seconds,
    }
}

fn row_json(row: &Row) -> Value {
    let first = row.first.as_ref().map(|(index, verdict)| {
        json!({
            "index": index,
            "verdict": verdict.result,
            "replay": verdict.replay,
        })
    });
    let smallest = row.smallest.as_ref().map(|smallest| {
        json!({
            "case": smallest.case.descriptor,
            "finding": smallest.verdict.finding(),
            "passing_neighbour": smallest.neighbour,
            "runs": smallest.runs,
            "values_edited": smallest.edited,
        })
    });
    json!({
        "number": row.entry.number,
        "name": row.entry.name,
        "op": row.entry.op(),
        "role": row.entry.role(),
        "bug": row.entry.bug,
        "runner": row.runner.kind,
        "flagged": row.flagged(),
        "verdict_is_right": row.verdict_is_right(),
        "allclose": row.naive,
        "allclose_rejects": row.allclose_rejects(),
        "counts": row.counts,
        "first_failure": first,
        "smallest_failure": smallest,
        "suspected": row.suspected,
        "weak": row.weak,
    })
}

fn text(rows: &[Row], summary: &Summary, arguments: &Arguments) -> String {
    let mut table = Table::new();
    table.load_style(presets::NOTHING).set_content_arrangement(ContentArrangement::Dynamic);
    if !std::io::stdout().is_terminal() {
        table.set_width(160);
    }
    table.set_header([
        "#",
        "kernel",
        "is",
        "allclose",
        "gpuemu",
        "triggered",
        "observable",
        "detected",
        "first failing seed",
        "smallest failing case",
        "suspected",
    ]);
    for row in rows {
        let counts = row.counts;
        let number = |value: usize| Cell::new(value).set_alignment(CellAlignment::Right);
        table.add_row([
            number(row.entry.number as usize),
            Cell::new(row.entry.name),
            Cell::new(if row.entry.role() == Role::Bug { "wrong" } else { "right" }),
            Cell::new(if row.allclose_rejects() { "rejects" } else { "accepts" }),
            Cell::new(if row.flagged() { "rejects" } else { "accepts" }),
            number(counts.triggered),
            Cell::new(format!("{}/{}", counts.observable_detected, counts.observable))
                .set_alignment(CellAlignment::Right),
            number(counts.detected),
            Cell::new(row.first.as_ref().map_or(String::new(), |(_, verdict)| verdict.case.seed.to_string())),
            Cell::new(row.smallest.as_ref().map_or(String::new(), smallest_text)),
            Cell::new(row.suspected.map_or("", |class| class.name())),
        ]);
    }
    let mut text = format!("{table}\n\n");
    // Writing to a string cannot fail.
    let _ = footer(&mut text, rows, summary, arguments);
    text
}

fn smallest_text(smallest: &gpuemu_engine::minimise::Minimised) -> String {
    let descriptor = &smallest.case.descriptor;
    let named: Vec<String> = descriptor
        .sizes
        .named
        .iter()
        .filter(|(_, size)| *size != 1)
        .map(|(name, size)| format!("{name}={size}"))
        .collect();
    let mut shape = descriptor.sizes.batch.iter().map(ToString::to_string).collect::<Vec<_>>().join("x");
    if !named.is_empty() {
        shape = [shape, named.join(" ")].into_iter().filter(|part| !part.is_empty()).collect::<Vec<_>>().join(" ");
    }
    if shape.is_empty() {
        shape = "one element".to_string();
    }
    match &smallest.neighbour {
        Some(neighbour) => format!("{shape} ({}={} passes)", neighbour.dimension, neighbour.passes),
        None => shape,
    }
}

fn share(part: usize, whole: usize) -> String {
    if whole == 0 {
        return "none".to_string();
    }
    format!("{part} of {whole} ({:.1} %)", 100.0 * part as f64 / whole as f64)
}

fn footer(text: &mut String, rows: &[Row], summary: &Summary, arguments: &Arguments) -> std::fmt::Result {
    writeln!(
        text,
        "gpuemu:   {} of {} wrong kernels caught, {} of {} right ones flagged",
        summary.caught, summary.bugs, summary.false_alarms, summary.controls
    )?;
    writeln!(
        text,
        "allclose: {} of {} wrong kernels caught, {} of {} right ones flagged (one shape, 5 seeds, uniform and normal inputs)",
        summary.allclose_caught, summary.bugs, summary.allclose_false_alarms, summary.controls
    )?;
    writeln!(text, "cases of wrong kernels found:")?;
    writeln!(text, "  observable            {}", share(summary.observable_detected, summary.observable))?;
    writeln!(text, "  beyond 1 ulp          {}", share(summary.beyond_ulp_detected, summary.beyond_ulp))?;
    writeln!(text, "  merely triggered      {}", share(summary.triggered_detected, summary.triggered))?;
    writeln!(
        text,
        "{} cases, base seed {}, {:.1} s; {} undetermined; weak kernels: {}",
        summary.cases, arguments.seed, summary.seconds, summary.undetermined, summary.weak
    )?;
    for row in rows {
        for weakness in &row.weak {
            writeln!(text, "weak: {} in {}: {}", row.entry.name, weakness.dtype, weakness.reason)?;
        }
    }
    if let Some((_, verdict)) = rows.iter().find_map(|row| row.first.as_ref()) {
        writeln!(text, "replay a case: {}", verdict.replay)?;
    }
    Ok(())
}

/// Runs one case of a kernel again.
pub(super) fn replay(entry: &'static Entry, seed: u64, arguments: &Arguments) -> Result<u8, ExpectedError> {
    let choice = arguments.runner.choice();
    let subject =
        entry.subject(choice).ok_or_else(|| at_fault(format!("kernel '{}' has no built-in op", entry.name)))?;
    let verdict = kernel_run::replay(entry, choice, &subject, seed)
        .map_err(|error| at_fault(format!("the case with seed {seed} cannot be run: {error}")))?;
    match arguments.format {
        Format::Json => write_json(&verdict.result)?,
        Format::Text => write_text(&verdict_text(entry, &subject, &verdict))?,
    }
    Ok(if verdict.failed() { exit_code::FAILED } else { exit_code::PASSED })
}

fn verdict_text(entry: &Entry, subject: &Subject, verdict: &Verdict) -> String {
    let case = &verdict.case;
    let layout = subject.schema().layout_summary(case);
    let mut text = format!(
        "{}: {:?}\n  op         {}\n  dtype      {}\n  sizes      {}\n  layout     {}\n  values     {}\n  seed       {}\n",
        entry.name, verdict.outcome, case.op, case.dtype, case.sizes, layout, case.values, case.seed
    );
    if let Some(reason) = &verdict.message {
        text.push_str(&format!("  undetermined: {reason}\n"));
    }
    for finding in &verdict.failures {
        text.push_str(&format!("  {}: {} [{}]\n", finding.check, finding.explanation, finding.bug_class));
        if let Some(worst) = &finding.worst {
            text.push_str(&format!(
                "    worst at {:?}: {:e}, expected {:e} (error {:e}, allowed {:e})\n",
                worst.index, worst.actual, worst.expected, worst.error, worst.allowed
            ));
        }
    }
    text
}
