//! P3: kinds of input.

use std::fmt::Write;

use gpuemu_corpus::published::{KERNELS, Role};
use gpuemu_corpus::studies::inputs::{
    CHECKS, NamedStrategy, OURS, PUBLISHED, Row, STRATEGIES, Total, run as run_study, total, work,
};
use gpuemu_corpus::studies::proportion::Proportion;
use gpuemu_engine::Sampler;
use gpuemu_model::Strategy;
use serde_json::{Map, Value, json};

use super::chart::{Axis, Bar, Group, Place, bars};
use super::figure::{AMBER, BLUE, Colour, Figure, GREEN, RED, TOP};
use super::words::{of, percent, share, share_with_interval, table};
use super::{Destination, Finished, at_fault, header, progress_bar};
use crate::expected_error::ExpectedError;
use crate::options::runner::RunnerArgument;

/// Arguments of `gpuemu study inputs`.
#[derive(Debug, clap::Args)]
pub struct Arguments {
    /// Base seed: with the same one every case is the same, byte for byte.
    #[arg(long, default_value_t = 0)]
    seed: u64,
    /// Cases of each kernel and kind of input.
    #[arg(long, default_value_t = 400, value_parser = clap::value_parser!(u64).range(1..))]
    cases: u64,
    /// What runs the Triton kernels.
    #[arg(long, value_enum, default_value_t = RunnerArgument::Native)]
    runner: RunnerArgument,
    #[command(flatten)]
    pub(super) destination: Destination,
}

/// What was published of a kind of input: recall of cases, and false alarms.
const PUBLISHED_SHARES: [(&str, f64, f64); 4] =
    [("adversarial", 0.99, 0.94), ("boundary", 0.78, 0.0), ("default", 0.71, 0.0), ("regular", 0.64, 0.0)];

pub(super) fn run(arguments: &Arguments, quiet: bool) -> Result<Finished, ExpectedError> {
    let bar = progress_bar(work(arguments.cases), "cases", quiet);
    let rows = run_study(arguments.runner.choice(), arguments.seed, arguments.cases, &|done| bar.inc(done));
    bar.finish_and_clear();
    let rows = rows.map_err(at_fault)?;
    let measures: Vec<Measure> = STRATEGIES.iter().map(|strategy| Measure::of(&rows, strategy)).collect();
    Ok(Finished {
        name: "inputs",
        text: text(&measures, arguments),
        json: document(&rows, &measures, arguments),
        figure: draw(&measures, arguments),
        holds: holds(&measures),
    })
}

/// What was found with one kind of input.
struct Measure {
    strategy: NamedStrategy,
    bugs: Total,
    controls: Total,
}

impl Measure {
    fn of(rows: &[Row], strategy: &NamedStrategy) -> Self {
        let of_role = |role| total(rows, strategy, role);
        Self { strategy: *strategy, bugs: of_role(Role::Bug), controls: of_role(Role::Control) }
    }

    fn recall(&self, check: usize) -> Proportion {
        Proportion::of(self.bugs.found.checks[check].detected, self.bugs.found.cases)
    }

    fn observable(&self, check: usize) -> Proportion {
        Proportion::of(self.bugs.found.checks[check].observable, self.bugs.found.observable)
    }

    /// Cases flagged in which the bug changes nothing.
    fn by_accident(&self, check: usize) -> Proportion {
        Proportion::of(self.bugs.found.checks[check].untouched, self.bugs.found.checks[check].detected)
    }

    fn alarms(&self, check: usize) -> Proportion {
        Proportion::of(self.controls.found.checks[check].detected, self.controls.found.cases)
    }

    fn with_nan(&self) -> Proportion {
        Proportion::of(
            self.bugs.found.with_nan + self.controls.found.with_nan,
            self.bugs.found.cases + self.controls.found.cases,
        )
    }
}

/// The strategy that cases are drawn by where nothing is said.
fn default_strategy() -> Strategy {
    Sampler::default().strategy
}

fn of_strategy(measures: &[Measure], strategy: Strategy) -> Option<&Measure> {
    measures.iter().find(|measure| measure.strategy.strategy == strategy && measure.strategy.dtype.is_none())
}

/// What the study demands: with our default inputs our verdict flags nothing that is right, and finds as many kernels,
/// and as large a share of the observable cases, as the published check does with `adversarial`.
fn holds(measures: &[Measure]) -> bool {
    let ours = of_strategy(measures, default_strategy());
    let published = of_strategy(measures, Strategy::Adversarial);
    let (Some(ours), Some(published)) = (ours, published) else { return false };
    let at_least = |left: Proportion, right: Proportion| left.share.unwrap_or(0.0) >= right.share.unwrap_or(0.0);
    ours.alarms(OURS).part == 0
        && ours.bugs.flagged[OURS] >= published.bugs.flagged[PUBLISHED]
        && at_least(ours.observable(OURS), published.observable(PUBLISHED))
}

fn text(measures: &[Measure], arguments: &Arguments) -> String {
    let mut text = format!(
        "P3: what does each kind of input find?\n\
         {} kernels ({}); {} cases for each kernel and kind of input; base seed {}\n\
         published check: fixed tolerances, and any NaN fails; ours: the verdict; by accident: flagged, and the bug changes nothing there\n\n",
        KERNELS.len(),
        arguments.runner.words(),
        arguments.cases,
        arguments.seed
    );
    let head = ["check", "inputs", "kernels", "of all cases", "of observable", "by accident", "false alarms", "share"];
    let mut lines = Vec::new();
    for (check, name) in CHECKS.iter().enumerate() {
        for measure in measures {
            let default = check == OURS && Some(measure.strategy) == own(measures);
            let mark = if default { " (our default)" } else { "" };
            lines.push(vec![
                name.to_string(),
                format!("{}{mark}", measure.strategy.name),
                of(measure.bugs.flagged[check], measure.bugs.kernels),
                share_with_interval(measure.recall(check)),
                share(measure.observable(check)),
                share(measure.by_accident(check)),
                of(measure.alarms(check).part, measure.alarms(check).whole),
                share_with_interval(measure.alarms(check)),
            ]);
        }
    }
    text.push_str(&table(&head, 2, lines));
    text.push('\n');
    // Writing to a string cannot fail.
    let _ = footer(&mut text, measures);
    text
}

fn own(measures: &[Measure]) -> Option<NamedStrategy> {
    of_strategy(measures, default_strategy()).map(|measure| measure.strategy)
}

fn footer(text: &mut String, measures: &[Measure]) -> std::fmt::Result {
    let figures: Vec<String> = PUBLISHED_SHARES
        .iter()
        .map(|(name, recall, alarms)| {
            format!("{name} {} of cases and {} false alarms", percent(*recall), percent(*alarms))
        })
        .collect();
    writeln!(text, "published: {}", figures.join("; "))?;
    let (Some(ours), Some(nan)) =
        (of_strategy(measures, default_strategy()), of_strategy(measures, Strategy::NanInjected))
    else {
        return Ok(());
    };
    writeln!(
        text,
        "ours, by default: {} of {} wrong kernels, {} of observable cases, {} of {} right cases flagged",
        ours.bugs.flagged[OURS],
        ours.bugs.kernels,
        share(ours.observable(OURS)),
        ours.alarms(OURS).part,
        ours.alarms(OURS).whole
    )?;
    writeln!(
        text,
        "what differs: any NaN fails the published check, also one that belongs there. {} of the cases of `{}` have one here, \
         and {} of those of `nan_injected`, where it flags {} of the right ones; by their false alarms nearly every case of \
         the published adversarial values had one. Its other false alarms are overflows, and errors that a fixed tolerance \
         does not allow for. They lift its recall too: {} of the wrong cases it flags with `{}` are cases in which the bug \
         changes nothing. Shapes are drawn alike for all kinds of input here; the published `regular` kept to regular \
         shapes as well.",
        share(ours.with_nan()),
        ours.strategy.name,
        share(nan.with_nan()),
        share(nan.alarms(PUBLISHED)),
        share(ours.by_accident(PUBLISHED)),
        ours.strategy.name
    )
}

fn document(rows: &[Row], measures: &[Measure], arguments: &Arguments) -> Map<String, Value> {
    let mut map = header(arguments.seed, arguments.cases, arguments.runner);
    let strategies: Vec<Value> = measures
        .iter()
        .map(|measure| {
            let checks: Map<String, Value> = CHECKS
                .iter()
                .enumerate()
                .map(|(check, name)| {
                    let found = json!({
                        "kernels": Proportion::of(measure.bugs.flagged[check], measure.bugs.kernels),
                        "recall": measure.recall(check),
                        "observable": measure.observable(check),
                        "by_accident": measure.by_accident(check),
                        "false_alarms": measure.alarms(check),
                        "kernels_falsely_flagged": measure.controls.flagged[check],
                    });
                    (name.to_string(), found)
                })
                .collect();
            json!({
                "name": measure.strategy.name,
                "is_our_default": Some(measure.strategy) == own(measures),
                "with_nan": measure.with_nan(),
                "undetermined": measure.bugs.found.undetermined + measure.controls.found.undetermined,
                "checks": checks,
            })
        })
        .collect();
    let kernels: Vec<Value> = rows
        .iter()
        .map(|row| {
            let found = &row.found;
            json!({
                "name": row.entry.name,
                "role": row.entry.role(),
                "strategy": row.strategy.name,
                "runner": row.runner,
                "cases": found.cases,
                "observable": found.observable,
                "published": found.checks[PUBLISHED],
                "ours": found.checks[OURS],
            })
        })
        .collect();
    let published: Map<String, Value> = PUBLISHED_SHARES
        .iter()
        .map(|(name, recall, alarms)| (name.to_string(), json!({ "recall": recall, "false_alarms": alarms })))
        .collect();
    map.insert("strategies".to_string(), json!(strategies));
    map.insert("kernels".to_string(), json!(kernels));
    map.insert("published".to_string(), json!(published));
    map
}

fn draw(measures: &[Measure], arguments: &Arguments) -> String {
    let remark = format!(
        "cases of ten wrong kernels found, and false alarms on sixteen right ones; {} cases each; {}; base seed {}",
        arguments.cases,
        arguments.runner.words(),
        arguments.seed
    );
    let mut figure = Figure::new(960.0, "P3: what each kind of input finds", &remark);
    let mut top = TOP + 6.0;
    figure.legend(
        210.0,
        top,
        &[("of all cases", BLUE), ("of observable", GREEN), ("false alarms", RED), ("published figure", AMBER)],
    );
    top += 30.0;
    let headings = ["published check: fixed tolerances, any NaN fails", "our verdict"];
    for (check, heading) in headings.iter().enumerate() {
        let groups: Vec<Group> = measures.iter().map(|measure| group(measure, check, measures)).collect();
        top = bars(&mut figure, Place { left: 210.0, top, width: 520.0 }, heading, Axis::SHARES, &groups) + 24.0;
    }
    figure.finish()
}

fn group(measure: &Measure, check: usize, measures: &[Measure]) -> Group {
    let bar = |value: Option<f64>, colour: Colour, text: String| Bar { value, colour, text };
    let mut bars = vec![
        bar(measure.recall(check).share, BLUE, share_with_interval(measure.recall(check))),
        bar(measure.observable(check).share, GREEN, share(measure.observable(check))),
        bar(measure.alarms(check).share, RED, share_with_interval(measure.alarms(check))),
    ];
    let published = PUBLISHED_SHARES.iter().find(|(name, ..)| check == PUBLISHED && *name == measure.strategy.name);
    if let Some((_, recall, alarms)) = published {
        let text = format!("published: {}, alarms {}", percent(*recall), percent(*alarms));
        bars.push(bar(Some(*recall), AMBER, text));
    }
    let default = check == OURS && Some(measure.strategy) == own(measures);
    let mark = if default { " (our default)" } else { "" };
    Group { label: format!("{}{mark}", measure.strategy.name), bars }
}
