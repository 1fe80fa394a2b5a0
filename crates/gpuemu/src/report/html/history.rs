//! What an op came to in its stored runs, as a line of small bars.

use gpuemu_model::report::{OpStatus, StoredRun};

use super::time_words;
use crate::markup::{Markup, Picture};

/// Pixels of a bar, the gap included, and of the highest one.
const BAR: (f64, f64) = (6.0, 22.0);

/// Draws the runs of an op, the oldest first: how large a share of its cases failed.
pub fn draw(markup: &mut Markup, runs: &[&StoredRun]) {
    if runs.is_empty() {
        markup.leaf("span", &[("class", "muted")], "no stored run");
        return;
    }
    let (size, label) = ((BAR.0 * runs.len() as f64, BAR.1 + 2.0), words(runs));
    markup.picture(&Picture { class: "history", size, label: &label, data: &[] }, |markup| {
        for (place, run) in runs.iter().enumerate() {
            let share = run.op.failed as f64 / run.op.cases.max(1) as f64;
            let (class, tall) = match run.op.status {
                OpStatus::Passed => ("good", 3.0),
                OpStatus::Failed => ("bad", (BAR.1 * share).max(5.0)),
                OpStatus::ExpectedFailure => ("warn", (BAR.1 * share).max(5.0)),
                OpStatus::Error | OpStatus::Unfinished => ("warn", BAR.1 / 2.0),
            };
            let numbers = [place as f64 * BAR.0, BAR.1 - tall, BAR.0 - 2.0, tall].map(|value| format!("{value:.1}"));
            let [x, y, width, height] = &numbers;
            let attributes = [("class", class), ("x", x), ("y", y), ("width", width), ("height", height)];
            markup.element("rect", &attributes.map(|(name, value)| (name, value as &str)), |markup| {
                let (failed, cases) = (run.op.failed, run.op.cases);
                markup.leaf("title", &[], &format!("{}: {failed} of {cases} cases failed", time_words(run.time)));
            });
        }
    });
}

/// The history in words.
pub fn words(runs: &[&StoredRun]) -> String {
    let passed = runs.iter().filter(|run| run.op.status == OpStatus::Passed).count();
    let Some(newest) = runs.last() else { return "no stored run".to_string() };
    let (failed, cases) = (newest.op.failed, newest.op.cases);
    let noun = if runs.len() == 1 { "run" } else { "runs" };
    format!("passed in {passed} of {} stored {noun}; in the newest {failed} of {cases} cases failed", runs.len())
}
