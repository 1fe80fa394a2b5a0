//! P2: fixed, calibrated and rigorous tolerances.

use std::fmt::Write;

use gpuemu_corpus::published::{KERNELS, Role};
use gpuemu_corpus::studies::headroom::{self, Gap, Headroom};
use gpuemu_corpus::studies::proportion::Proportion;
use gpuemu_corpus::studies::tolerance::{
    BOUND, CALIBRATED, CALIBRATION_CASES, CaseInputs, FIXED, Found, RULES, Row, RuleFound, VERDICT, run as run_study,
    total, work,
};
use serde_json::{Map, Value, json};

use super::words::{of, percent, share, share_with_interval, table};
use super::{Destination, Finished, at_fault, header, progress_bar, tolerance_figure};
use crate::expected_error::ExpectedError;
use crate::options::runner::RunnerArgument;

/// Arguments of `gpuemu study tolerance`.
#[derive(Debug, clap::Args)]
pub struct Arguments {
    /// Base seed: with the same one every case is the same, byte for byte.
    #[arg(long, default_value_t = 0)]
    pub(super) seed: u64,
    /// Cases of each correct kernel; the wrong ones, and the published inputs, have a fifth of them.
    #[arg(long, default_value_t = 12_500, value_parser = clap::value_parser!(u64).range(1..))]
    pub(super) cases: u64,
    /// What runs the Triton kernels.
    #[arg(long, value_enum, default_value_t = RunnerArgument::Native)]
    pub(super) runner: RunnerArgument,
    #[command(flatten)]
    pub(super) destination: Destination,
}

/// Each mutant has this share of the cases.
const MUTANT_SHARE: u64 = 100;

/// What was published: recall of cases by fixed and calibrated tolerances, and false alarms of the latter.
const PUBLISHED: (f64, f64, usize, usize) = (0.732, 0.824, 20, 1882);

pub(super) fn run(arguments: &Arguments, quiet: bool) -> Result<Finished, ExpectedError> {
    let mutant_cases = (arguments.cases / MUTANT_SHARE).max(1);
    let bar = progress_bar(work(arguments.cases) + headroom::work(mutant_cases), "cases", quiet);
    let progress = |done| bar.inc(done);
    let rows = run_study(arguments.runner.choice(), arguments.seed, arguments.cases, &progress).map_err(at_fault)?;
    let headroom = headroom::run(&rows, arguments.seed, mutant_cases, &progress);
    bar.finish_and_clear();
    let totals = Totals::of(&rows);
    Ok(Finished {
        name: "tolerance",
        text: text(&rows, &totals, &headroom, arguments),
        json: document(&rows, &totals, &headroom, arguments),
        figure: tolerance_figure::draw(&totals, &headroom, arguments),
        holds: totals.hold(),
    })
}

/// All cases by inputs: those of wrong and those of right kernels.
pub(super) struct Totals(Vec<(CaseInputs, Found, Found)>);

impl Totals {
    fn of(rows: &[Row]) -> Self {
        let both = |inputs| (inputs, total(rows, inputs, Role::Bug), total(rows, inputs, Role::Control));
        Self(CaseInputs::ALL.map(both).to_vec())
    }

    /// Every rule with every kind of input.
    pub(super) fn measures(&self) -> impl Iterator<Item = RuleMeasure> {
        let rules = |(inputs, bugs, controls): &(CaseInputs, Found, Found)| {
            std::array::from_fn::<_, { RULES.len() }, _>(|rule| RuleMeasure::of(*inputs, rule, bugs, controls))
        };
        self.0.iter().flat_map(rules)
    }

    /// What the study demands: the bound, and the verdict, find every observable case and flag nothing that is right.
    fn hold(&self) -> bool {
        self.measures()
            .filter(|measure| measure.rule == BOUND || measure.rule == VERDICT)
            .all(|measure| measure.observable.part == measure.observable.whole && measure.alarms.part == 0)
    }

    fn measure(&self, inputs: CaseInputs, rule: usize) -> Option<RuleMeasure> {
        self.measures().find(|measure| measure.inputs == inputs && measure.rule == rule)
    }
}

/// What one rule did with one kind of input.
pub(super) struct RuleMeasure {
    pub(super) inputs: CaseInputs,
    pub(super) rule: usize,
    pub(super) recall: Proportion,
    pub(super) triggered: Proportion,
    pub(super) beyond_ulp: Proportion,
    pub(super) observable: Proportion,
    pub(super) alarms: Proportion,
}

impl RuleMeasure {
    fn of(inputs: CaseInputs, rule: usize, bugs: &Found, controls: &Found) -> Self {
        let RuleFound { detected, triggered, beyond_ulp, observable } = bugs.rules[rule];
        Self {
            inputs,
            rule,
            recall: Proportion::of(detected, bugs.cases),
            triggered: Proportion::of(triggered, bugs.triggered),
            beyond_ulp: Proportion::of(beyond_ulp, bugs.beyond_ulp),
            observable: Proportion::of(observable, bugs.observable),
            alarms: Proportion::of(controls.rules[rule].detected, controls.cases),
        }
    }

    fn cells(&self) -> Vec<String> {
        vec![
            self.inputs.name().to_string(),
            RULES[self.rule].to_string(),
            share_with_interval(self.recall),
            share(self.triggered),
            share(self.beyond_ulp),
            share(self.observable),
            of(self.alarms.part, self.alarms.whole),
            share_with_interval(self.alarms),
        ]
    }
}

fn text(rows: &[Row], totals: &Totals, headroom: &[Headroom], arguments: &Arguments) -> String {
    let mut text = format!(
        "P2: what does each tolerance find, and how often does it cry wolf?\n\
         {} kernels ({}); calibrated to p95 x 1.5 of {CALIBRATION_CASES} other cases of the right kernel, by dtype; base seed {}\n\n\
         wrong kernels: cases found, of all and of those in which the bug shows; right kernels: false alarms; intervals of 95 %\n",
        KERNELS.len(),
        arguments.runner.words(),
        arguments.seed
    );
    let head =
        ["inputs", "rule", "of all cases", "of triggered", "beyond 1 ulp", "of observable", "false alarms", "share"];
    text.push_str(&table(&head, 2, totals.measures().map(|measure| measure.cells())));
    text.push_str("\nby kernel, our inputs: cases flagged\n");
    text.push_str(&by_kernel(rows));
    text.push_str("\nheadroom: error over the bound; above 1 fails\n");
    text.push_str(&headroom_table(headroom));
    text.push('\n');
    // Writing to a string cannot fail.
    let _ = footer(&mut text, rows, totals, headroom);
    text
}

fn by_kernel(rows: &[Row]) -> String {
    let mut head = vec!["#", "kernel", "is", "cases", "triggered", "observable"];
    head.extend(RULES);
    let cells = |row: &Row| {
        let found = &row.found;
        let is = if row.entry.role() == Role::Bug { "wrong" } else { "right" };
        let mut cells = vec![row.entry.number.to_string(), row.entry.name.to_string(), is.to_string()];
        cells.extend([found.cases, found.triggered, found.observable].map(|count| count.to_string()));
        cells.extend(found.rules.map(|rule| rule.detected.to_string()));
        cells
    };
    table(&head, 3, rows.iter().filter(|row| row.inputs == CaseInputs::Ours).map(cells))
}

fn ratio(number: Option<f64>) -> String {
    match number {
        None => "-".to_string(),
        Some(number) if number < 1000.0 => format!("{number:.3}"),
        Some(number) => format!("{number:.1e}"),
    }
}

fn headroom_table(headroom: &[Headroom]) -> String {
    let head = ["op", "dtype", "largest, right", "smallest, published bugs", "smallest, mutants", "without a size"];
    let cells = |row: &Headroom| {
        let Headroom { op, dtype, published, mutants } = row;
        vec![
            op.to_string(),
            dtype.to_string(),
            ratio(published.correct),
            ratio(published.wrong),
            ratio(mutants.wrong),
            (published.without_size + mutants.without_size).to_string(),
        ]
    };
    table(&head, 2, headroom.iter().map(cells))
}

/// The largest error over the bound of right kernels, and the smallest of observable wrong ones.
pub(super) fn closest(headroom: &[Headroom]) -> Gap {
    headroom.iter().fold(Gap::default(), |all, row| all.join(row.published).join(row.mutants))
}

fn footer(text: &mut String, rows: &[Row], totals: &Totals, headroom: &[Headroom]) -> std::fmt::Result {
    let gap = closest(headroom);
    writeln!(
        text,
        "gap: right kernels reach {} of the bound at most; observable bugs exceed it {} times at least",
        ratio(gap.correct),
        ratio(gap.wrong)
    )?;
    for row in rows {
        for seed in &row.found.surprises {
            let what = if row.entry.role() == Role::Bug { "missed" } else { "false alarm" };
            writeln!(text, "{what}: {} with {}, seed {seed}", row.entry.name, row.inputs.words())?;
        }
    }
    let (fixed, calibrated, alarms, controls) = PUBLISHED;
    writeln!(
        text,
        "published: fixed {} of cases, calibrated {} with {alarms} of {controls} false alarms",
        percent(fixed),
        percent(calibrated)
    )?;
    for inputs in CaseInputs::ALL {
        let (Some(fixed), Some(calibrated)) = (totals.measure(inputs, FIXED), totals.measure(inputs, CALIBRATED))
        else {
            continue;
        };
        let holds = if fixed.recall.part <= calibrated.recall.part { "holds" } else { "does not hold" };
        let (fixed, calibrated, inputs) = (share(fixed.recall), share(calibrated.recall), inputs.words());
        writeln!(text, "the published order, fixed below calibrated, {holds} with {inputs}: {fixed} and {calibrated}")?;
    }
    let measured = |rule| totals.measure(CaseInputs::Published, rule);
    let (Some(calibrated), Some(bound)) = (measured(CALIBRATED), measured(BOUND)) else { return Ok(()) };
    let reachable = Proportion::of(bound.triggered.whole, bound.recall.whole);
    let beyond = if reachable.share.is_some_and(|share| share < PUBLISHED.1) {
        ", so the published share of a calibrated tolerance is out of reach with the shapes drawn here"
    } else {
        ""
    };
    writeln!(
        text,
        "what differs: with the published inputs the bug changes something in {} of the cases, and no sound check can find \
         more{beyond}; the bound finds {} of all, {} of the observable ones. A calibrated tolerance flags the kernel it was calibrated on in {} cases: a \
         twentieth of its cases lie beyond p95 by definition, and nothing keeps them within 1.5 times it.",
        share(reachable),
        share(bound.recall),
        share(bound.observable),
        of(calibrated.alarms.part, calibrated.alarms.whole)
    )
}

fn document(rows: &[Row], totals: &Totals, headroom: &[Headroom], arguments: &Arguments) -> Map<String, Value> {
    let mut map = header(arguments.seed, arguments.cases, arguments.runner);
    let rules: Vec<Value> = totals
        .measures()
        .map(|measure| {
            json!({
                "inputs": measure.inputs,
                "rule": RULES[measure.rule],
                "recall": measure.recall,
                "of_triggered": measure.triggered,
                "beyond_ulp": measure.beyond_ulp,
                "observable": measure.observable,
                "false_alarms": measure.alarms,
            })
        })
        .collect();
    let kernels: Vec<Value> = rows
        .iter()
        .map(|row| {
            let calibrated: Map<String, Value> =
                row.calibrated.iter().map(|(dtype, pair)| (dtype.to_string(), json!(pair))).collect();
            let rules: Map<String, Value> =
                RULES.iter().zip(row.found.rules).map(|(rule, found)| (rule.to_string(), json!(found))).collect();
            json!({
                "number": row.entry.number,
                "name": row.entry.name,
                "role": row.entry.role(),
                "inputs": row.inputs,
                "runner": row.runner,
                "cases": row.found.cases,
                "undetermined": row.found.undetermined,
                "triggered": row.found.triggered,
                "beyond_ulp": row.found.beyond_ulp,
                "observable": row.found.observable,
                "calibrated": calibrated,
                "rules": rules,
                "surprises": row.found.surprises.iter().map(u64::to_string).collect::<Vec<_>>(),
            })
        })
        .collect();
    let (fixed, calibrated, alarms, controls) = PUBLISHED;
    map.insert("calibration_cases".to_string(), json!(CALIBRATION_CASES));
    map.insert("rules".to_string(), json!(rules));
    map.insert("kernels".to_string(), json!(kernels));
    map.insert("headroom".to_string(), json!(headroom));
    map.insert("closest".to_string(), json!(closest(headroom)));
    map.insert(
        "published".to_string(),
        json!({
            "fixed_recall": fixed, "calibrated_recall": calibrated, "false_alarms": alarms, "control_cases": controls,
        }),
    );
    map
}
