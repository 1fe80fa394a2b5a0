//! A report as one page that needs nothing else: no network, no framework, no script to read it.

mod card;
mod charts;
mod heat_map;
mod history;
mod level;
mod overview;
mod window;

use base64::Engine;
use base64::engine::general_purpose::STANDARD;
use gpuemu_model::artifact::Severity;
use gpuemu_model::report::{OpReport, RunReport};
use gpuemu_run::expected::date_of;
use sha2::{Digest, Sha256};

use level::Level;

use super::illustrations::{Illustrations, most_telling};
use super::text::op_counts;
use crate::markup::Markup;

const STYLE: &str = include_str!("style.css");
const SCRIPT: &str = include_str!("page.js");

/// Hatching that several drawings share.
const PATTERNS: &str = "<svg class=\"patterns\" width=\"0\" height=\"0\" aria-hidden=\"true\"><defs>\
<pattern id=\"hatch\" width=\"6\" height=\"6\" patternUnits=\"userSpaceOnUse\" patternTransform=\"rotate(45)\">\
<rect width=\"6\" height=\"6\" class=\"hatch-ground\"/><rect width=\"2.5\" height=\"6\" class=\"hatch-line\"/></pattern>\
<pattern id=\"dots\" width=\"5\" height=\"5\" patternUnits=\"userSpaceOnUse\">\
<circle cx=\"1.5\" cy=\"1.5\" r=\"0.8\" class=\"dot\"/></pattern>\
<pattern id=\"stripes\" width=\"5\" height=\"5\" patternUnits=\"userSpaceOnUse\" patternTransform=\"rotate(-45)\">\
<rect width=\"2\" height=\"5\" class=\"stripe\"/></pattern></defs></svg>";

pub fn page(report: &RunReport, illustrations: &Illustrations) -> String {
    let mut markup = Markup::default();
    markup.literal("<!doctype html>\n");
    markup.element("html", &[("lang", "en")], |markup| {
        markup.element("head", &[], |markup| head(markup, report));
        markup.line();
        let words: Vec<&str> = Level::all().map(Level::words).collect();
        markup.element("body", &[("data-levels", &words.join("|"))], |markup| {
            markup.literal("<a class=\"skip\" href=\"#failures\">Skip to the failures</a>");
            markup.literal(PATTERNS);
            markup.element("main", &[], |markup| {
                overview::header(markup, report);
                overview::ops(markup, report, illustrations);
                failures(markup, report, illustrations);
                kernels(markup, report);
                rest(markup, report);
            });
            markup.line();
            markup.literal("<script>");
            markup.literal(SCRIPT);
            markup.literal("</script>");
        });
    });
    markup.line();
    markup.finish()
}

/// Nothing is loaded, and nothing runs but the script of this page.
fn head(markup: &mut Markup, report: &RunReport) {
    let hash = |text: &str| format!("'sha256-{}'", STANDARD.encode(Sha256::digest(text.as_bytes())));
    let policy = format!(
        "default-src 'none'; style-src {}; script-src {}; base-uri 'none'; form-action 'none'",
        hash(STYLE),
        hash(SCRIPT)
    );
    markup.literal("<meta charset=\"utf-8\"/>");
    markup.void("meta", &[("http-equiv", "Content-Security-Policy"), ("content", &policy)]);
    markup.literal("<meta name=\"viewport\" content=\"width=device-width, initial-scale=1\"/>");
    markup.literal("<meta name=\"color-scheme\" content=\"light dark\"/>");
    let (_, verdict) = overview::verdict(report);
    markup.leaf("title", &[], &format!("{verdict}: {}, {}", report.project, op_counts(report)));
    markup.literal("<style>");
    markup.literal(STYLE);
    markup.literal("</style>");
}

fn failures(markup: &mut Markup, report: &RunReport, illustrations: &Illustrations) {
    markup.line();
    markup.element("div", &[("class", "bar"), ("id", "failures")], |markup| {
        markup.leaf("h2", &[], "Findings");
        markup.literal(
            "<div class=\"controls\" hidden><label>Filter ops <input type=\"search\" id=\"filter\"/></label>\
             <button type=\"button\" id=\"expand\">Open all</button>\
             <button type=\"button\" id=\"collapse\">Close all</button>\
             <span class=\"muted\"><kbd>j</kbd> <kbd>k</kbd> next, previous failure</span></div>",
        );
    });
    let mut number = 0;
    if !report.ops.iter().any(overview::is_spoken_of) {
        markup.leaf("p", &[("class", "muted")], "No finding.");
    }
    for (place, op) in report.ops.iter().enumerate().filter(|(_, op)| overview::is_spoken_of(op)) {
        let chosen = most_telling(&op.failures);
        let others = (0..op.failures.len()).filter(|place| !chosen.contains(place));
        let order: Vec<usize> = chosen.iter().copied().chain(others).collect();
        markup.line();
        let id = format!("op-{place}");
        markup.element("section", &[("id", &id), ("data-op", &op.op)], |markup| {
            about(markup, op);
            for place in order {
                number += 1;
                card::draw(markup, number, &op.failures[place], illustrations.of(&op.op, place));
            }
            let unlisted = op.failed as usize - op.failures.len().min(op.failed as usize);
            if unlisted > 0 {
                markup.element("p", &[("class", "muted")], |markup| {
                    markup.text(&format!("{unlisted} more failed: "));
                    markup.leaf("code", &[], &format!("gpuemu failures --op {}", op.op));
                });
            }
        });
    }
}

fn about(markup: &mut Markup, op: &OpReport) {
    let (class, word) = overview::status(op);
    markup.element("h3", &[], |markup| {
        markup.leaf("span", &[("class", &format!("chip {class}"))], word);
        markup.text(" ");
        markup.text(&op.op);
    });
    let dtypes: Vec<String> = op.dtypes.iter().map(|counts| counts.dtype.to_string()).collect();
    let judged = if op.reference.is_empty() { String::new() } else { format!(", judged by {}", op.reference) };
    let cases = match op.failed {
        0 => format!("{} cases", op.cases),
        failed => format!("{failed} of {} cases failed", op.cases),
    };
    markup.leaf("p", &[("class", "muted")], &format!("{cases}, {}, {}{judged}", dtypes.join(" "), op.runner));
    if let Some(message) = &op.message {
        markup.leaf("p", &[("class", "note said")], message);
    }
    if op.regressed {
        markup.leaf("p", &[("class", "note")], "It passed in the run before.");
    }
    for warning in &op.warnings {
        markup.element("p", &[("class", "note")], |markup| {
            markup.leaf("strong", &[], "Warning: ");
            markup.text(warning);
        });
    }
}

fn kernels(markup: &mut Markup, report: &RunReport) {
    if report.kernels.is_empty() && report.comparison.is_none() {
        return;
    }
    if !report.kernels.is_empty() {
        markup.leaf("h2", &[], "Compiled kernels");
        plain(markup, &super::kernels::text(&report.kernels, Severity::Warning));
    }
    if let Some(comparison) = &report.comparison {
        markup.leaf("h2", &[], "Against the baseline");
        plain(markup, &super::text::comparison(comparison));
    }
}

fn plain(markup: &mut Markup, text: &str) {
    let text = anstream::adapter::strip_str(text).to_string();
    markup.element("div", &[("class", "scroll")], |markup| {
        markup.leaf("pre", &[], text.trim_end());
    });
}

/// What was not checked, and what stands against the verdicts.
fn rest(markup: &mut Markup, report: &RunReport) {
    let mut missing: Vec<&str> = Vec::new();
    for what in report.ops.iter().flat_map(|op| &op.not_checked) {
        if !missing.contains(&what.as_str()) {
            missing.push(what);
        }
    }
    if !missing.is_empty() {
        let text = format!("Not checked, because of how the ops run: {}.", missing.join(", "));
        markup.leaf("p", &[("class", "muted")], &text);
    }
    let reservations = report.evidence.iter().flat_map(|evidence| &evidence.reservations);
    for reservation in reservations {
        markup.element("p", &[("class", "note")], |markup| {
            markup.leaf("strong", &[], "Stands against a pass: ");
            markup.text(reservation);
        });
    }
}

/// A time in milliseconds since 1970, in words.
fn time_words(time: u64) -> String {
    let seconds = time / 1000;
    let (year, month, day) = date_of(seconds / 86_400);
    let (hour, minute) = (seconds / 3600 % 24, seconds / 60 % 60);
    format!("{year:04}-{month:02}-{day:02} {hour:02}:{minute:02} UTC")
}

#[cfg(test)]
mod tests;
