//! How close correct kernels come to their tolerance, and whether wrong ones are caught.

use std::fmt::Write;
use std::io::IsTerminal;
use std::sync::Arc;

use comfy_table::{CellAlignment, ContentArrangement, Table, presets};
use gpuemu_corpus::detection::{DTYPES, Detection, TIGHT, measure};
use gpuemu_corpus::implementations::{Family, families};
use gpuemu_engine::Op;
use gpuemu_engine::oracle::tolerance::BOUND_FACTOR;
use indicatif::{ProgressBar, ProgressStyle};
use serde_json::{Value, json};

use crate::exit_code;
use crate::expected_error::ExpectedError;
use crate::format::{Format, write_json, write_text};
use crate::session::note;

/// Measures ops, all of them where none is chosen. A correct kernel that is flagged, or a wrong one that is not, is a
/// failure.
pub fn run(
    chosen: &[Arc<dyn Op>],
    cases: u64,
    mutant_cases: u64,
    seed: u64,
    format: Format,
) -> Result<u8, ExpectedError> {
    let mut families = families();
    families.sort_by_key(|family| family.op);
    let asked = |family: &Family| chosen.is_empty() || chosen.iter().any(|op| op.schema().name == family.op);
    families.retain(asked);
    let terminal = std::io::stderr().is_terminal();
    let bar = if terminal { ProgressBar::new(families.len() as u64) } else { ProgressBar::hidden() };
    if let Ok(style) = ProgressStyle::with_template("{msg:28} {wide_bar} {human_pos}/{human_len} ops {eta}") {
        bar.set_style(style);
    }
    let mut measured = Vec::with_capacity(families.len());
    for (index, family) in families.iter().enumerate() {
        bar.set_message(family.op);
        if !terminal && index % 20 == 19 {
            note(&format!("{} of {} ops measured", index + 1, families.len()));
        }
        measured.push((family, measure(family, seed, cases, mutant_cases)));
        bar.inc(1);
    }
    bar.finish_and_clear();
    match format {
        Format::Json => write_json(&measured.iter().map(|(family, found)| row(family, found)).collect::<Vec<_>>())?,
        Format::Text => write_text(&text(&measured))?,
    }
    let right = measured.iter().all(|(_, found)| found.rules[TIGHT].alarms == 0 && uncaught(found) == 0);
    Ok(if right { exit_code::PASSED } else { exit_code::FAILED })
}

/// Mutants that could be seen in some case of some dtype and were not.
fn uncaught(found: &Detection) -> usize {
    found.by_mutant.iter().filter(|mutant| mutant.caught != mutant.observable).count()
}

fn row(family: &Family, found: &Detection) -> Value {
    let shares: serde_json::Map<String, Value> = DTYPES
        .iter()
        .zip(found.headroom)
        .map(|(dtype, ratio)| (dtype.to_string(), json!(ratio / BOUND_FACTOR)))
        .collect();
    json!({
        "op": family.op,
        "correct_kernels": family.implementations.len(),
        "checks": found.checks,
        "false_alarms": found.rules[TIGHT].alarms,
        "flagged": found.alarms,
        "largest_error_over_tolerance": shares,
        "mutants": found.by_mutant,
    })
}

fn text(measured: &[(&Family, Detection)]) -> String {
    let mut table = Table::new();
    table.load_style(presets::NOTHING).set_content_arrangement(ContentArrangement::Dynamic);
    let dtypes = DTYPES.map(|dtype| dtype.to_string());
    let mut header = vec!["op", "kernels", "checks", "alarms"];
    header.extend(dtypes.iter().map(String::as_str));
    header.extend(["mutants", "caught"]);
    table.set_header(header);
    for column in table.column_iter_mut().skip(1) {
        column.set_cell_alignment(CellAlignment::Right);
    }
    let (mut checks, mut alarms, mut mutants, mut missed) = (0, 0, 0, Vec::new());
    for (family, found) in measured {
        let mut cells = vec![
            family.op.to_string(),
            family.implementations.len().to_string(),
            found.checks.to_string(),
            found.rules[TIGHT].alarms.to_string(),
        ];
        cells.extend(found.headroom.iter().map(|ratio| format!("{:.3}", ratio / BOUND_FACTOR)));
        let caught = found.by_mutant.iter().filter(|mutant| mutant.is_caught()).count();
        cells.extend([found.by_mutant.len().to_string(), caught.to_string()]);
        table.add_row(cells);
        checks += found.checks;
        alarms += found.rules[TIGHT].alarms;
        mutants += found.by_mutant.len();
        for mutant in found.by_mutant.iter().filter(|mutant| mutant.caught != mutant.observable) {
            let (seen, of) = (mutant.caught, mutant.observable);
            missed.push(format!("{} {}: caught {seen:?} of {of:?} observable cases", family.op, mutant.name));
        }
    }
    let mut text = format!("largest error over the tolerance of correct kernels, by dtype\n\n{table}\n\n");
    // Writing to a string cannot fail.
    let _ = writeln!(
        text,
        "{} ops, {checks} checks of correct kernels, {alarms} false alarms; {mutants} mutants, {} missed where observable",
        measured.len(),
        missed.len()
    );
    for line in missed {
        let _ = writeln!(text, "  missed: {line}");
    }
    for alarm in measured.iter().flat_map(|(_, found)| &found.alarms) {
        let _ = writeln!(text, "  false alarm: {alarm}");
    }
    text
}
