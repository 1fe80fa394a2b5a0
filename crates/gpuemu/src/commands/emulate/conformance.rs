//! `gpuemu emulate --conformance`: launches that were recorded on a chip, repeated and compared.

use std::fmt::Write;
use std::io::IsTerminal;
use std::path::Path;
use std::sync::Mutex;
use std::time::{Duration, Instant};

use comfy_table::{Cell, CellAlignment, Table, presets};
use gpuemu_machine::LaunchOptions;
use gpuemu_machine::conformance::{
    ConformanceOutcome, ConformanceReport, ConformanceSummary, LaunchResult, Pack, run as run_pack,
};
use indicatif::{ProgressBar, ProgressStyle};

use crate::exit_code;
use crate::expected_error::ExpectedError;
use crate::format::{Format, write_json, write_text};
use crate::report::style::{BAD, GOOD, WARNING, paint};
use crate::session::{GlobalOptions, note};

/// How often a line is written where there is no terminal.
const LINE_EVERY: Duration = Duration::from_secs(10);

/// Launches of one kind whose details are shown.
const MOST_SHOWN: usize = 50;

pub fn run(
    folder: &Path,
    machine: &LaunchOptions,
    format: Format,
    options: &GlobalOptions,
) -> Result<u8, ExpectedError> {
    let unreadable = |error: gpuemu_machine::conformance::PackError| {
        ExpectedError::new(error.to_string(), "name a folder with a manifest.json and the files that it names")
    };
    let pack = Pack::read(folder).map_err(unreadable)?;
    let progress = Progress::start(pack.entries.len(), options.quiet);
    let report = run_pack(&pack, machine, &|result| progress.show(result));
    progress.bar.finish_and_clear();
    let report = report.map_err(unreadable)?;
    match format {
        Format::Json => write_json(&report)?,
        Format::Text => write_text(&text(&report))?,
    }
    Ok(if report.summary.wrong == 0 { exit_code::PASSED } else { exit_code::FAILED })
}

/// Launches that are done: a bar on a terminal, a line now and then elsewhere.
struct Progress {
    bar: ProgressBar,
    total: usize,
    lines: bool,
    state: Mutex<(Instant, usize)>,
}

impl Progress {
    fn start(total: usize, quiet: bool) -> Self {
        let terminal = std::io::stderr().is_terminal() && !quiet;
        let bar = if terminal { ProgressBar::new(total as u64) } else { ProgressBar::hidden() };
        if let Ok(style) = ProgressStyle::with_template("{msg:30!} {wide_bar} {human_pos}/{human_len} launches {eta}") {
            bar.set_style(style);
        }
        Self { bar, total, lines: !terminal && !quiet, state: Mutex::new((Instant::now(), 0)) }
    }

    fn show(&self, result: &LaunchResult) {
        self.bar.inc(1);
        self.bar.set_message(result.id.clone());
        let Ok(mut state) = self.state.lock() else { return };
        let (last, done) = &mut *state;
        *done += 1;
        if self.lines && last.elapsed() >= LINE_EVERY {
            *last = Instant::now();
            note(&format!("{}: {done} of {} launches", result.id, self.total));
        }
    }
}

fn text(report: &ConformanceReport) -> String {
    let mut text = format!("{}\n\n", table(report));
    // Writing to a string cannot fail.
    let _ = details(&mut text, report);
    text
}

/// One row a kernel, a family of instructions or a set of tiles.
fn table(report: &ConformanceReport) -> String {
    let mut table = Table::new();
    table.load_style(presets::NOTHING);
    let mut groups: Vec<((&str, &str), Vec<&LaunchResult>)> = Vec::new();
    for launch in &report.launches {
        let key = (launch.set.as_str(), launch.group.as_str());
        match groups.iter_mut().find(|(known, _)| *known == key) {
            Some((_, launches)) => launches.push(launch),
            None => groups.push((key, vec![launch])),
        }
    }
    table.set_header([
        "set",
        "group",
        "launches",
        "bit-equal",
        "within bound",
        "wrong",
        "expected error",
        "skipped",
        "elements",
        "findings",
    ]);
    let rows =
        groups.iter().map(|((set, group), launches)| (*set, *group, ConformanceSummary::of(launches.iter().copied())));
    for (set, group, summary) in rows.chain([("all", "", report.summary)]) {
        let number = |count: u64| {
            let shown = if count == 0 { "-".to_string() } else { count.to_string() };
            Cell::new(shown).set_alignment(CellAlignment::Right)
        };
        let counts = [
            summary.launches,
            summary.bit_equal,
            summary.within_bound,
            summary.wrong,
            summary.expected_error,
            summary.skipped,
            summary.elements,
            summary.findings,
        ];
        table.add_row([Cell::new(set), Cell::new(group)].into_iter().chain(counts.map(number)));
    }
    table.to_string().lines().map(str::trim_end).collect::<Vec<_>>().join("\n")
}

fn details(text: &mut String, report: &ConformanceReport) -> std::fmt::Result {
    for outcome in ConformanceOutcome::ALL.into_iter().filter(|outcome| *outcome != ConformanceOutcome::BitEqual) {
        let style = if outcome == ConformanceOutcome::Wrong { BAD } else { WARNING };
        let launches: Vec<&LaunchResult> = report.launches.iter().filter(|launch| launch.outcome == outcome).collect();
        for launch in launches.iter().take(MOST_SHOWN) {
            let counts = match (launch.mismatches, launch.elements) {
                (Some(different), Some(elements)) => format!("{different} of {elements} elements differ; "),
                _ => String::new(),
            };
            let mut lines = launch.detail.lines();
            let first = lines.next().unwrap_or_default();
            writeln!(text, "{} {}: {counts}{first}", paint(style, outcome.name()), launch.id)?;
            lines.try_for_each(|line| writeln!(text, "    {line}"))?;
        }
        if launches.len() > MOST_SHOWN {
            writeln!(text, "{} and {} more", paint(style, outcome.name()), launches.len() - MOST_SHOWN)?;
        }
    }
    let found = report.launches.iter().flat_map(|launch| launch.findings.iter().map(move |finding| (launch, finding)));
    for (launch, finding) in found.clone().take(MOST_SHOWN) {
        let place = finding.place.as_ref().map_or(String::new(), |place| format!(" at {place}"));
        let head = paint(WARNING, &format!("finding[{}]", finding.fault.name()));
        writeln!(text, "{head} {}: {}{place}", launch.id, finding.message)?;
    }
    if found.clone().count() > MOST_SHOWN {
        writeln!(text, "and {} more findings", found.count() - MOST_SHOWN)?;
    }
    let ConformanceSummary { launches, bit_equal, within_bound, wrong, expected_error, skipped, .. } = report.summary;
    let (style, word) = if wrong == 0 { (GOOD, "PASS") } else { (BAD, "FAIL") };
    writeln!(
        text,
        "{}  {launches} launches: {bit_equal} bit-equal, {within_bound} within their bound, {wrong} wrong, \
         {expected_error} failed as recorded, {skipped} skipped; {} elements, {} findings",
        paint(style, word),
        report.summary.elements,
        report.summary.findings
    )
}
