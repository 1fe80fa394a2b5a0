//! P1: `allclose` as really run.

use std::fmt::Write;

use gpuemu_corpus::detection::DTYPES;
use gpuemu_corpus::published::{KERNELS, Role};
use gpuemu_corpus::studies::oracle::{Answer, CHECKS, ROWS, Row, SHAPES, run as run_study, work};
use gpuemu_engine::oracle::naive::{NaiveInputs, SEEDS};
use serde_json::{Map, Value, json};

use super::chart::{Grid, Place, grid};
use super::figure::{Anchor, Colour, FAINT, Figure, TOP};
use super::words::{list, of, table};
use super::{Destination, Finished, at_fault, header, progress_bar};
use crate::expected_error::ExpectedError;
use crate::options::runner::RunnerArgument;

/// Arguments of `gpuemu study oracle`.
#[derive(Debug, clap::Args)]
pub struct Arguments {
    /// Base seed: with the same one every case is the same, byte for byte.
    #[arg(long, default_value_t = 0)]
    seed: u64,
    /// Cases that our verdict has for each kernel.
    #[arg(long, default_value_t = 500, value_parser = clap::value_parser!(u64).range(1..))]
    cases: u64,
    /// What runs the Triton kernels.
    #[arg(long, value_enum, default_value_t = RunnerArgument::Native)]
    runner: RunnerArgument,
    #[command(flatten)]
    pub(super) destination: Destination,
}

/// What was written down of the published check, and never run.
const PUBLISHED_ACCEPTED: usize = 10;

pub(super) fn run(arguments: &Arguments, quiet: bool) -> Result<Finished, ExpectedError> {
    let bar = progress_bar(work(arguments.cases), "cases and settings", quiet);
    let rows = run_study(arguments.runner.choice(), arguments.seed, arguments.cases, &|done| bar.inc(done));
    bar.finish_and_clear();
    let rows = rows.map_err(at_fault)?;
    let ours = Ours::of(&rows);
    Ok(Finished {
        name: "oracle",
        text: text(&rows, &ours, arguments),
        json: document(&rows, &ours, arguments),
        figure: draw(&rows, &ours, arguments),
        holds: rows.iter().all(Row::verdict_is_right),
    })
}

/// What our verdict said.
struct Ours {
    bugs: usize,
    caught: usize,
    controls: usize,
    flagged: usize,
}

impl Ours {
    fn of(rows: &[Row]) -> Self {
        let flagged = |role| rows.iter().filter(|row| row.entry.role() == role && row.counts.detected > 0).count();
        let bugs = bugs(rows).count();
        Self { bugs, caught: flagged(Role::Bug), controls: rows.len() - bugs, flagged: flagged(Role::Control) }
    }
}

fn bugs(rows: &[Row]) -> impl Iterator<Item = &Row> {
    rows.iter().filter(|row| row.entry.role() == Role::Bug)
}

/// In one setting and by one check: how many bugs are accepted, and of how many that were run.
fn accepted_bugs(rows: &[Row], check: usize, setting: &Answer) -> (usize, usize) {
    let same =
        |answer: &Answer| (answer.shape, answer.inputs, answer.dtype) == (setting.shape, setting.inputs, setting.dtype);
    bugs(rows).fold((0, 0), |(yes, all), row| {
        let (accepted, run) = row.accepted(check, same);
        (yes + accepted, all + run)
    })
}

/// The setting in which a check accepts most bugs, and how many.
fn most_accepted(rows: &[Row], check: usize) -> Option<(&Answer, usize, usize)> {
    let settings = rows.first()?.answers.iter();
    let counted = settings.map(|setting| {
        let (accepted, run) = accepted_bugs(rows, check, setting);
        (setting, accepted, run)
    });
    // The first of equal ones.
    counted.reduce(|best, next| if next.1 > best.1 { next } else { best })
}

fn text(rows: &[Row], ours: &Ours, arguments: &Arguments) -> String {
    let settings = SHAPES.len() * NaiveInputs::ALL.len() * DTYPES.len();
    let mut text = format!(
        "P1: which kernels does `allclose` on one shape accept?\n\
         {} kernels ({}); {settings} settings each: {} shapes, {} kinds of input, {} dtypes; {SEEDS} random inputs a setting; base seed {}\n\
         a shape that is a number is the width of what is reduced: rows of {ROWS}xH, matmul 64xKx64, attention with 8 queries, N keys and \
         D = 64; as large for what reduces nothing\n\n\
         settings in which a kernel is accepted\n",
        KERNELS.len(),
        arguments.runner.words(),
        SHAPES.len(),
        NaiveInputs::ALL.len(),
        DTYPES.len(),
        arguments.seed
    );
    text.push_str(&by_kernel(rows));
    text.push_str(
        "\nwrong kernels accepted, of those that were run, by shape and inputs: float32 / float16 / bfloat16\n",
    );
    text.push_str(&by_setting(rows));
    text.push('\n');
    // Writing to a string cannot fail.
    let _ = footer(&mut text, rows, ours, arguments);
    text
}

fn by_kernel(rows: &[Row]) -> String {
    let mut head = vec!["#", "kernel", "is", "gpuemu"];
    head.extend(CHECKS.iter().map(|check| check.name));
    let cells = |row: &Row| {
        let mut cells = vec![
            row.entry.number.to_string(),
            row.entry.name.to_string(),
            if row.entry.role() == Role::Bug { "wrong" } else { "right" }.to_string(),
            if row.counts.detected > 0 { "rejects" } else { "accepts" }.to_string(),
        ];
        cells.extend((0..CHECKS.len()).map(|check| {
            let (accepted, run) = row.accepted(check, |_| true);
            of(accepted, run)
        }));
        cells
    };
    table(&head, 4, rows.iter().map(cells))
}

fn by_setting(rows: &[Row]) -> String {
    let mut head = vec!["shape", "inputs"];
    head.extend(CHECKS.iter().map(|check| check.name));
    let mut lines = Vec::new();
    for (shape, _) in SHAPES {
        for inputs in NaiveInputs::ALL {
            let mut cells = vec![shape.to_string(), inputs.name().to_string()];
            cells.extend((0..CHECKS.len()).map(|check| {
                let counts = DTYPES.map(|dtype| {
                    let setting = Answer { shape, inputs: inputs.name(), dtype, accepted: None };
                    let (accepted, run) = accepted_bugs(rows, check, &setting);
                    if run == bugs(rows).count() { accepted.to_string() } else { of(accepted, run) }
                });
                counts.join(" / ")
            }));
            lines.push(cells);
        }
    }
    table(&head, 2, lines)
}

fn footer(text: &mut String, rows: &[Row], ours: &Ours, arguments: &Arguments) -> std::fmt::Result {
    writeln!(
        text,
        "gpuemu: {} of {} wrong kernels caught, {} of {} right ones flagged ({} cases each)",
        ours.caught, ours.bugs, ours.flagged, ours.controls, arguments.cases
    )?;
    for (check, usual) in CHECKS.iter().enumerate() {
        let Some((setting, most, run)) = most_accepted(rows, check) else { continue };
        let named = |wanted: fn(usize, usize) -> bool, role: Role| -> Vec<&str> {
            let of_role = rows.iter().filter(|row| row.entry.role() == role);
            let kept = of_role.filter(|row| {
                let (accepted, run) = row.accepted(check, |_| true);
                wanted(accepted, run)
            });
            kept.map(|row| row.entry.name).collect()
        };
        writeln!(
            text,
            "{}: accepts at most {most} of {run} wrong kernels in one setting ({} in {}, shape {})",
            usual.name, setting.inputs, setting.dtype, setting.shape
        )?;
        writeln!(text, "  accepted in every setting: {}", list(&named(|yes, all| yes == all, Role::Bug)))?;
        writeln!(text, "  accepted in some:          {}", list(&named(|yes, all| yes > 0 && yes < all, Role::Bug)))?;
        writeln!(text, "  right, rejected in some:   {}", list(&named(|yes, all| yes < all, Role::Control)))?;
    }
    writeln!(text, "published: one-shape `allclose` accepts {PUBLISHED_ACCEPTED} of 10; written down, never run")?;
    let most = (0..CHECKS.len()).filter_map(|check| most_accepted(rows, check)).map(|found| found.1).max().unwrap_or(0);
    if most >= PUBLISHED_ACCEPTED {
        writeln!(
            text,
            "what differs: some setting does accept that many; most settings accept fewer, as the table shows."
        )
    } else {
        writeln!(
            text,
            "what differs: as run, it accepts at most {most}. A bug that changes most elements of every output by a \
             visible amount fails at any shape; accepted are those that the shape or the inputs never \
             trigger, or make smaller than the tolerance."
        )
    }
}

fn document(rows: &[Row], ours: &Ours, arguments: &Arguments) -> Map<String, Value> {
    let mut map = header(arguments.seed, arguments.cases, arguments.runner);
    let checks: Vec<Value> = CHECKS
        .iter()
        .enumerate()
        .map(|(check, usual)| {
            let most = most_accepted(rows, check);
            json!({
                "name": usual.name,
                "most_accepted": most.map(|(_, accepted, _)| accepted),
                "most_accepted_in": most.map(|(setting, ..)| json!({
                    "shape": setting.shape, "inputs": setting.inputs, "dtype": setting.dtype,
                })),
            })
        })
        .collect();
    let kernels: Vec<Value> = rows
        .iter()
        .map(|row| {
            json!({
                "number": row.entry.number,
                "name": row.entry.name,
                "op": row.entry.op(),
                "role": row.entry.role(),
                "bug": row.entry.bug,
                "runner": row.runner,
                "gpuemu_rejects": row.counts.detected > 0,
                "counts": row.counts,
                "settings": row.answers,
            })
        })
        .collect();
    map.insert("seeds_per_setting".to_string(), json!(SEEDS));
    map.insert("checks".to_string(), json!(checks));
    map.insert("kernels".to_string(), json!(kernels));
    map.insert(
        "gpuemu".to_string(),
        json!({ "bugs": ours.bugs, "caught": ours.caught, "controls": ours.controls, "false_alarms": ours.flagged }),
    );
    map.insert("published".to_string(), json!({ "allclose_accepts": PUBLISHED_ACCEPTED, "was_run": false }));
    map
}

/// From rejected in all dtypes to accepted in all.
const SHADES: [Colour; 4] = ["#bfe3cd", "#f6e2b3", "#eeb48f", "#dd8673"];
const NOT_RUN: Colour = "#eef0f2";

fn draw(rows: &[Row], ours: &Ours, arguments: &Arguments) -> String {
    let title = "P1: wrong kernels that allclose on one shape accepts";
    let remark = format!(
        "dtypes (of 3) in which {} accepts the wrong kernel, by inputs and shape; {}; base seed {}",
        CHECKS[0].name,
        arguments.runner.words(),
        arguments.seed
    );
    let mut figure = Figure::new(960.0, title, &remark);
    let labels: Vec<String> = SHAPES.iter().map(|(shape, _)| shape.to_string()).collect();
    let columns = NaiveInputs::ALL.map(|inputs| (inputs.name().to_string(), labels.clone())).to_vec();
    let lines = bugs(rows).map(|row| {
        let mut cells = Vec::new();
        for inputs in NaiveInputs::ALL {
            for (shape, _) in SHAPES {
                let here = |answer: &Answer| answer.shape == shape && answer.inputs == inputs.name();
                let (accepted, run) = row.accepted(0, here);
                let colour = if run == 0 { NOT_RUN } else { SHADES[(accepted * 3 / run.max(1)).min(3)] };
                cells.push((colour, if run == 0 { "-".to_string() } else { accepted.to_string() }));
            }
        }
        let ours = if row.counts.detected > 0 { (SHADES[0], "0".to_string()) } else { (SHADES[3], "3".to_string()) };
        cells.push(ours);
        (row.entry.name.to_string(), cells)
    });
    let rows: Vec<_> = lines.collect();
    let mut columns: Vec<(String, Vec<String>)> = columns;
    columns.push(("gpuemu".to_string(), vec![String::new()]));
    let bottom = grid(&mut figure, Place { left: 176.0, top: TOP + 14.0, width: 0.0 }, &Grid { columns, rows });
    let meaning = [
        ("rejected in all dtypes", SHADES[0]),
        ("accepted in one", SHADES[1]),
        ("accepted in two", SHADES[2]),
        ("accepted in all", SHADES[3]),
    ];
    figure.legend(176.0, bottom + 24.0, &meaning);
    let verdict = format!(
        "gpuemu: {} of {} wrong kernels caught, {} of {} right ones flagged, {} cases each. Written down of allclose, and never run: {PUBLISHED_ACCEPTED} of 10 accepted.",
        ours.caught, ours.bugs, ours.flagged, ours.controls, arguments.cases
    );
    figure.text(24.0, bottom + 50.0, Anchor::Start, FAINT, &verdict);
    figure.finish()
}
