//! P4: what compiled code shows.

use std::fmt::Write;

use gpuemu_corpus::studies::artifacts::{
    ASSEMBLED_MEASURES, Compared, MEASURES, PUBLISHED_MEASURES, Pair, Study, run as run_study, work,
};
use gpuemu_model::artifact::ToolSearch;
use gpuemu_ptx::tools::Toolchain;
use serde_json::{Map, Value, json};

use super::chart::{Axis, Bar, Group, Place, bars};
use super::figure::{AMBER, Anchor, BLUE, Colour, FAINT, Figure, GREEN, TOP};
use super::words::{list, of, table};
use super::{Destination, Finished, at_fault, progress_bar};
use crate::expected_error::ExpectedError;
use crate::session::{current_folder, python_of};

/// Arguments of `gpuemu study artifacts`. Nothing is drawn at random.
#[derive(Debug, clap::Args)]
pub struct Arguments {
    #[command(flatten)]
    pub(super) destination: Destination,
}

/// What was published: the wrong kernel, and by how much its virtual registers and instructions moved.
const PUBLISHED: [(&str, [i64; 2]); 9] = [
    ("softmax_other_zero", [0, 0]),
    ("gelu_no_half", [-8, -8]),
    ("silu_double_argument", [-1, -1]),
    ("rmsnorm_no_root", [-1, -1]),
    ("l2norm_no_root", [-1, -1]),
    ("leaky_relu_slope", [0, 0]),
    ("matmul_overwrite", [-15, -8]),
    ("attention_no_scale", [-2, -2]),
    ("flash_no_rescale", [-36, -55]),
];

/// The measures, in few words.
const HEADINGS: [&str; MEASURES.len()] = [
    "registers",
    "instructions",
    "arithmetic",
    "memory",
    "control",
    "loops",
    "shared bytes",
    "hardware registers",
    "machine instructions",
];

/// Constants that are named in the text for each pair.
const SHOWN_CONSTANTS: usize = 3;

pub(super) fn run(_: &Arguments, quiet: bool) -> Result<Finished, ExpectedError> {
    let toolchain = Toolchain::find(&ToolSearch::of_process(Some(python_of(&current_folder()?))));
    let bar = progress_bar(work(), "pairs", quiet);
    let study = run_study(&toolchain, &|done| bar.inc(done));
    bar.finish_and_clear();
    let study = study.map_err(at_fault)?;
    Ok(Finished {
        name: "artifacts",
        text: text(&study),
        json: document(&study),
        figure: draw(&study),
        holds: compared(&study).all(|(_, found)| found.seen_by_count() || found.seen_by_constants()),
    })
}

fn compared(study: &Study) -> impl Iterator<Item = (&Pair, &Compared)> {
    study.pairs.iter().filter_map(|pair| Some((pair, pair.compared.as_ref()?)))
}

fn published(pair: &Pair) -> Option<[i64; 2]> {
    PUBLISHED.iter().find(|(name, _)| *name == pair.bug.name).map(|(_, deltas)| *deltas)
}

fn signed(delta: Option<i64>) -> String {
    match delta {
        None => "not measured".to_string(),
        Some(0) => "0".to_string(),
        Some(delta) => format!("{delta:+}"),
    }
}

/// The two published deltas, or ours.
fn two(deltas: [Option<i64>; 2]) -> String {
    deltas.map(signed).join(" / ")
}

fn text(study: &Study) -> String {
    let mut text = String::from(
        "P4: what does compiled code show of a bug, without running it?\n\
         wrong minus right, in the code that runs the corpus's shape in float32\n\
         constants: the fingerprint of all immediates; forms: compiled for a dtype and tile; registers: those that the PTX declares\n\n",
    );
    let mut head = vec!["#", "wrong kernel", "constants", "forms seen", "published"];
    head.extend(HEADINGS);
    let line = |pair: &Pair| {
        let mut cells = vec![pair.bug.number.to_string(), pair.bug.name.to_string()];
        match &pair.compared {
            None => {
                cells.extend(["not compiled".to_string(), "-".to_string(), "-".to_string()]);
                cells.extend(MEASURES.map(|_| "-".to_string()));
            }
            Some(found) => {
                cells.push(if found.seen_by_constants() { "differ" } else { "same" }.to_string());
                cells.push(of(found.forms_seen, found.forms));
                cells.push(published(pair).map_or("-".to_string(), |deltas| two(deltas.map(Some))));
                cells.extend(
                    found
                        .measures
                        .iter()
                        .map(|measure| measure.delta().map_or("-".to_string(), |delta| signed(Some(delta)))),
                );
            }
        }
        cells
    };
    text.push_str(&table(&head, 4, study.pairs.iter().map(line)));
    text.push('\n');
    // Writing to a string cannot fail.
    let _ = footer(&mut text, study);
    text
}

fn footer(text: &mut String, study: &Study) -> std::fmt::Result {
    let named = |wanted: &dyn Fn(&Compared) -> bool| -> Vec<&str> {
        compared(study).filter(|(_, found)| wanted(found)).map(|(pair, _)| pair.bug.name).collect()
    };
    writeln!(text, "seen by a count:          {}", list(&named(&Compared::seen_by_count)))?;
    let only = |found: &Compared| !found.seen_by_count() && found.seen_by_constants();
    writeln!(text, "seen by constants alone:  {}", list(&named(&only)))?;
    let neither = |found: &Compared| !found.seen_by_count() && !found.seen_by_constants();
    writeln!(text, "seen by neither:          {}", list(&named(&neither)))?;
    for (pair, found) in compared(study).filter(|(_, found)| only(found)) {
        writeln!(text, "  {}, of {} constants that differ:", pair.bug.name, found.constants.len())?;
        for change in found.constants.iter().take(SHOWN_CONSTANTS) {
            writeln!(
                text,
                "    {}: {} in the right kernel, {} in the wrong one",
                change.value, change.before, change.now
            )?;
        }
    }
    let (forms, seen) =
        compared(study).fold((0, 0), |(forms, seen), (_, found)| (forms + found.forms, seen + found.forms_seen));
    writeln!(
        text,
        "over all compiled forms (dtypes and tiles): a count or the constants differ in {}",
        of(seen, forms)
    )?;
    for tool in &study.tools {
        writeln!(text, "measured with {} {}", tool.name, tool.version)?;
    }
    for (what, why) in &study.not_measured {
        writeln!(text, "not measured: {what}: {why}")?;
    }
    writeln!(
        text,
        "published (registers / instructions): counts move for gelu, matmul, flash, attention, l2norm, rmsnorm and silu, \
         and not for softmax and leaky_relu"
    )?;
    difference(text, study)
}

fn difference(text: &mut String, study: &Study) -> std::fmt::Result {
    let (mut same, mut moved) = (Vec::new(), Vec::new());
    for (pair, found) in compared(study) {
        let Some(figures) = published(pair) else { continue };
        let ours = PUBLISHED_MEASURES.map(|place| found.measures.get(place).and_then(|measure| measure.delta()));
        let alike = ours == figures.map(Some);
        if alike {
            same.push(pair.bug.name);
        } else {
            moved.push(format!("{} ({})", pair.bug.name, two(ours)));
        }
    }
    let moved: Vec<&str> = moved.iter().map(String::as_str).collect();
    writeln!(
        text,
        "what differs: the same deltas come out for {}; others for {}. The published figures are those of their compiler's \
         version and target; ours are of the files in lab/corpus/ptx. A bug that no count shows is seen by its constants \
         where it changes one.",
        list(&same),
        list(&moved)
    )
}

fn document(study: &Study) -> Map<String, Value> {
    let pairs: Vec<Value> = study
        .pairs
        .iter()
        .map(|pair| {
            json!({
                "number": pair.bug.number,
                "wrong": pair.bug.name,
                "right": pair.control.name,
                "compiled": pair.compared.is_some(),
                "seen_by_count": pair.compared.as_ref().map(Compared::seen_by_count),
                "seen_by_constants": pair.compared.as_ref().map(Compared::seen_by_constants),
                "compared": pair.compared,
                "published": published(pair).map(|[registers, instructions]| {
                    json!({ "registers": registers, "instructions": instructions })
                }),
            })
        })
        .collect();
    let mut map = Map::new();
    map.insert("seed".to_string(), Value::Null);
    map.insert("pairs".to_string(), json!(pairs));
    map.insert("tools".to_string(), json!(study.tools));
    map.insert("not_measured".to_string(), json!(study.not_measured));
    map
}

/// Ends and guides of the axis of deltas.
const AXIS: Axis<'static> = Axis {
    low: -80.0,
    high: 20.0,
    ticks: &[(-80.0, "-80"), (-60.0, "-60"), (-40.0, "-40"), (-20.0, "-20"), (0.0, "0"), (20.0, "+20")],
};

fn draw(study: &Study) -> String {
    let remark = "wrong minus right kernel, in the code that runs the corpus's shape in float32";
    let mut figure = Figure::new(960.0, "P4: what compiled code shows of a bug", remark);
    let top = TOP + 6.0;
    let colours: [(&str, Colour); 3] =
        [("declared registers", BLUE), ("instructions", GREEN), ("published registers / instructions", AMBER)];
    figure.legend(230.0, top, &colours);
    let groups: Vec<Group> = compared(study)
        .map(|(pair, found)| {
            let constants = if found.seen_by_constants() { "constants differ" } else { "constants are the same" };
            let mut bars = Vec::new();
            for (place, colour) in PUBLISHED_MEASURES.into_iter().zip([BLUE, GREEN]) {
                let delta = found.measures.get(place).and_then(|measure| measure.delta());
                bars.push(Bar { value: delta.map(|delta| delta as f64), colour, text: signed(delta) });
            }
            if let Some([registers, instructions]) = published(pair) {
                let text = two([Some(registers), Some(instructions)]);
                bars.push(Bar { value: Some(instructions as f64), colour: AMBER, text });
            }
            Group { label: format!("{}: {constants}", pair.bug.name), bars }
        })
        .collect();
    let place = Place { left: 330.0, top: top + 30.0, width: 560.0 };
    let bottom = bars(&mut figure, place, "change of the counts of the PTX", AXIS, &groups);
    let assembled = ASSEMBLED_MEASURES.map(|place| MEASURES[place]).join(" and ");
    let said = if study.tools.is_empty() {
        format!("{assembled}: not measured, no assembler was found")
    } else {
        format!("{assembled} are in the JSON")
    };
    figure.text(24.0, bottom + 16.0, Anchor::Start, FAINT, &said);
    figure.finish()
}
