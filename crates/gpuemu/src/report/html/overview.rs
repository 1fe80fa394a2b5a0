//! The head of a page: what the run comes to, and each op in a line.

use gpuemu_model::report::{Conclusion, OpReport, OpStatus, RunReport};

use super::super::text::op_counts;
use super::{history, time_words};
use crate::markup::Markup;
use crate::report::illustrations::Illustrations;
use crate::report::text::number;

/// The verdict on a run: the class of its colour, and the word.
pub fn verdict(report: &RunReport) -> (&'static str, &'static str) {
    match report.conclusion() {
        // Where nothing had to be run, nothing failed.
        _ if report.passed => ("good", "Passed"),
        Conclusion::Passed => ("good", "Passed"),
        Conclusion::Failed => ("bad", "Failed"),
        Conclusion::Error => ("warn", "Could not be judged"),
    }
}

/// The class of a status's colour, and its word.
pub fn status(op: &OpReport) -> (&'static str, &'static str) {
    match op.status {
        OpStatus::Passed => ("good", "pass"),
        OpStatus::Failed => ("bad", "fail"),
        OpStatus::ExpectedFailure => ("warn", "expected"),
        OpStatus::Error => ("warn", "error"),
        OpStatus::Unfinished => ("warn", "unfinished"),
    }
}

pub fn header(markup: &mut Markup, report: &RunReport) {
    let (class, word) = verdict(report);
    markup.element("header", &[("class", class)], |markup| {
        markup.element("h1", &[], |markup| {
            markup.leaf("span", &[("class", "verdict")], word);
            markup.text(" ");
            markup.leaf("span", &[("class", "project")], &report.project);
        });
        let failed: u64 = report.ops.iter().map(|op| op.failed).sum();
        let cases = report.cases();
        let text = format!("{}; {failed} of {cases} cases failed", op_counts(report));
        markup.leaf("p", &[("class", "lead")], &text);
        let mut parts = Vec::new();
        if report.time > 0 {
            parts.push(time_words(report.time));
        }
        parts.push(match report.mode.as_str() {
            "stored" => "stored results, of each op its newest run".to_string(),
            mode => format!("{mode} run, base seed {}, {:.1} s", report.seed, report.seconds),
        });
        if let Some(part) = &report.part {
            parts.push(format!("shard {}", part.shard));
        }
        parts.push(format!("gpuemu {}", report.gpuemu));
        markup.leaf("p", &[("class", "muted")], &parts.join(" · "));
    });
    for warning in &report.warnings {
        markup.element("p", &[("class", "note")], |markup| {
            markup.leaf("strong", &[], "Warning: ");
            markup.text(warning);
        });
    }
}

/// Whether more is to be said about an op than a line.
pub fn is_spoken_of(op: &OpReport) -> bool {
    op.failed > 0 || op.message.is_some() || op.regressed || !op.warnings.is_empty()
}

/// Draws a line for each op.
pub fn ops(markup: &mut Markup, report: &RunReport, illustrations: &Illustrations) {
    if report.ops.is_empty() {
        return;
    }
    markup.leaf("h2", &[("id", "ops")], "Ops");
    markup.element("div", &[("class", "scroll")], |markup| {
        markup.element("table", &[("class", "ops")], |markup| {
            markup.element("thead", &[], |markup| {
                markup.element("tr", &[], |markup| {
                    for name in ["", "op", "cases failed", "largest error", "share of what is allowed", "history"] {
                        markup.leaf("th", &[("scope", "col")], name);
                    }
                });
            });
            markup.element("tbody", &[], |markup| {
                for (place, op) in report.ops.iter().enumerate() {
                    line(markup, op, place, illustrations);
                }
            });
        });
    });
}

fn line(markup: &mut Markup, op: &OpReport, place: usize, illustrations: &Illustrations) {
    let (class, word) = status(op);
    markup.line();
    markup.element("tr", &[("data-op", &op.op)], |markup| {
        markup.element("td", &[], |markup| markup.leaf("span", &[("class", &format!("chip {class}"))], word));
        markup.element("th", &[("scope", "row")], |markup| match is_spoken_of(op) {
            true => markup.leaf("a", &[("href", &format!("#op-{place}"))], &op.op),
            false => markup.text(&op.op),
        });
        let failed = if op.cases == 0 { "no case".to_string() } else { format!("{} of {}", op.failed, op.cases) };
        markup.leaf("td", &[], &failed);
        let judged = op.cases > 0;
        let written = |value: f64| if value.is_infinite() { "∞".to_string() } else { number(value) };
        markup.leaf("td", &[], &if judged { written(op.largest.max_abs_diff) } else { String::new() });
        markup.leaf("td", &[], &if judged { written(op.largest.tolerance_share) } else { String::new() });
        markup.element("td", &[], |markup| history::draw(markup, &illustrations.history(&op.op)));
    });
}
