//! One failure: what is wrong, where, and how to see it again.

use gpuemu_model::finding::Finding;
use gpuemu_model::picture::ErrorPicture;
use gpuemu_model::report::ValidationResult;
use gpuemu_wire::protocol::{Illustration, SmallestCase};

use super::level::Level;
use super::{charts, heat_map, time_words, window};
use crate::markup::Markup;
use crate::report::illustrations::Shown;
use crate::report::text::{case_line, digits, number};

/// Draws the card of a failure. One that was run again for its picture is open.
pub fn draw(markup: &mut Markup, number: usize, failure: &ValidationResult, shown: Option<&Shown>) {
    let id = format!("failure-{number}");
    let mut attributes = vec![("class", "card"), ("id", id.as_str())];
    if shown.is_some() {
        attributes.push(("open", ""));
    }
    markup.line();
    markup.element("details", &attributes, |markup| {
        markup.element("summary", &[], |markup| summary(markup, failure));
        markup.element("div", &[("class", "body")], |markup| {
            findings(markup, failure);
            match shown {
                Some(Shown::Again(illustration)) => again(markup, failure, illustration),
                Some(Shown::Not(reason)) => note(markup, "No picture: ", reason),
                None => {}
            }
            facts(markup, failure);
            replay(markup, failure);
        });
    });
}

fn summary(markup: &mut Markup, failure: &ValidationResult) {
    let kind = failure.finding().map_or("failure", |finding| finding.bug_class.name());
    markup.leaf("span", &[("class", "kind")], kind);
    let shapes: Vec<String> = failure.shapes.iter().map(|(name, shape)| format!("{name}{shape:?}")).collect();
    let shapes = if shapes.is_empty() { failure.sizes.clone() } else { shapes.join(" ") };
    markup.leaf("span", &[("class", "case")], &format!("{} {shapes}", failure.dtype));
    if let Some(finding) = failure.finding() {
        let extent = match finding.elements {
            0 => finding.check.name().to_string(),
            elements => format!("{} of {elements} elements", finding.mismatched),
        };
        markup.leaf("span", &[("class", "extent")], &extent);
    }
}

fn findings(markup: &mut Markup, failure: &ValidationResult) {
    markup.element("ul", &[("class", "findings")], |markup| {
        for finding in &failure.failures {
            markup.element("li", &[], |markup| {
                markup.leaf("code", &[], finding.check.name());
                markup.text(" ");
                markup.leaf("span", &[("class", "said")], finding.explanation.trim_end());
                worst(markup, finding);
            });
        }
    });
}

fn worst(markup: &mut Markup, finding: &Finding) {
    let Some(worst) = &finding.worst else { return };
    let text = format!(
        "Worst at {:?}: {}, expected {} (error {}, allowed {})",
        worst.index,
        digits(worst.actual, 9),
        digits(worst.expected, 9),
        number(worst.error),
        number(worst.allowed)
    );
    markup.leaf("div", &[("class", "muted")], &text);
}

fn again(markup: &mut Markup, failure: &ValidationResult, illustration: &Illustration) {
    if illustration.result.passed {
        let when = time_words(failure.time);
        note(
            markup,
            "Passes now: ",
            &format!("it failed on {when}, and was right when it was run again for this page"),
        );
        return;
    }
    match (&illustration.picture, &illustration.without_picture) {
        (Some(picture), _) => pictures(markup, picture, illustration),
        (None, Some(reason)) => note(markup, "No picture: ", reason),
        (None, None) => {
            let why = illustration.result.message.as_deref().unwrap_or("it could not be judged when it was run again");
            note(markup, "No picture: ", why);
        }
    }
    if let Some(smallest) = &illustration.smallest {
        draw_smallest(markup, smallest);
    }
}

fn pictures(markup: &mut Markup, picture: &ErrorPicture, illustration: &Illustration) {
    markup.element("div", &[("class", "pictures")], |markup| {
        markup.element("figure", &[], |markup| {
            markup.leaf("h4", &[], "Where the errors are");
            markup.element("div", &[("class", "scroll")], |markup| heat_map::draw(markup, picture));
            let has = |level: &Level| picture.map.cells.iter().any(|cell| Level::of(*cell) == *level);
            legend(markup, Level::all().filter(has).map(|level| (level.class(), level.words())));
            markup.element("figcaption", &[], |markup| {
                markup.text(&map_words(picture, illustration));
                for words in heat_map::tile_words(picture) {
                    markup.text(" ");
                    markup.text(&words);
                }
            });
            markup.leaf("p", &[("class", "readout"), ("aria-live", "polite")], "");
        });
        markup.element("figure", &[], |markup| {
            markup.leaf("h4", &[], "What was returned, as a multiple of what was expected");
            markup.element("div", &[("class", "scroll")], |markup| heat_map::draw_ratios(markup, picture));
            let classes = heat_map::ratio_classes(picture).into_iter();
            legend(markup, classes.map(|class| (class.class(), class.words())));
            let caption = "Of the gravest element of each cell. One colour all over is a factor, a mix of all is data in the wrong place.";
            markup.leaf("figcaption", &[], caption);
        });
        markup.element("figure", &[], |markup| {
            markup.leaf("h4", &[], "How large they are");
            charts::histogram(markup, &picture.histogram);
            let caption = "Elements by their error as a share of what is allowed; heights are logarithmic.";
            markup.leaf("figcaption", &[], caption);
        });
        markup.element("figure", &[], |markup| {
            markup.leaf("h4", &[], "Largest error along each dim");
            charts::profiles(markup, &picture.profiles);
            let caption = match picture.profiles.is_empty() {
                true => "The output has no dim with more than one element.",
                false => "The dashed line is what is allowed; heights are logarithmic.",
            };
            markup.leaf("figcaption", &[], caption);
        });
        markup.element("figure", &[], |markup| {
            markup.leaf("h4", &[], "Around the worst element");
            window::draw(markup, picture);
        });
    });
}

/// What the map shows beyond its axes.
fn map_words(picture: &ErrorPicture, illustration: &Illustration) -> String {
    let map = &picture.map;
    let (rank, shape) = (picture.shape.len(), &picture.shape);
    let mut text = format!("'{}' {shape:?} over its last two dims.", picture.tensor);
    if rank < 2 {
        text = format!("'{}' {shape:?}.", picture.tensor);
    }
    if map.entries > 1 {
        text.push_str(&format!(" The gravest of the {} entries of the other dims.", map.entries));
    }
    if map.row_step > 1 || map.column_step > 1 {
        text.push_str(&format!(" A cell is the gravest of {} × {} elements.", map.row_step, map.column_step));
    }
    if illustration.result.failing_case.is_some() {
        text.push_str(" Of the extra case that failed, drawn from this one.");
    }
    text
}

/// The colours that a map has, and what they stand for.
fn legend(markup: &mut Markup, colours: impl Iterator<Item = (&'static str, &'static str)>) {
    markup.element("ul", &[("class", "legend"), ("aria-label", "colours of the map")], |markup| {
        for (class, words) in colours {
            markup.element("li", &[], |markup| {
                markup.element("svg", &[("width", "12"), ("height", "12"), ("aria-hidden", "true")], |markup| {
                    markup.void("path", &[("class", class), ("d", "M0 0h12v12h-12z")]);
                });
                markup.text(words);
            });
        }
    });
}

fn draw_smallest(markup: &mut Markup, smallest: &SmallestCase) {
    markup.element("div", &[("class", "smallest")], |markup| {
        markup.leaf("h4", &[], "Smallest failing case");
        markup.element("p", &[], |markup| {
            if let Some(neighbour) = &smallest.neighbour {
                let (dimension, fails, passes) = (&neighbour.dimension, neighbour.fails, neighbour.passes);
                markup.leaf("strong", &[("class", "bad-text")], &format!("fails at {dimension}={fails}"));
                markup.text(", ");
                markup.leaf("strong", &[("class", "good-text")], &format!("passes at {dimension}={passes}"));
            } else {
                markup.text("No passing case next to it was found.");
            }
        });
        let result = &smallest.result;
        markup.leaf("p", &[], &format!("{} ({})", case_line(result), result.sizes));
        if let Some(finding) = result.finding() {
            markup.leaf("p", &[("class", "said muted")], finding.explanation.trim_end());
        }
        let edited = if smallest.values_edited { "; its values were simplified" } else { "" };
        markup.leaf("p", &[("class", "muted")], &format!("Found in {} runs{edited}.", smallest.runs));
    });
}

fn facts(markup: &mut Markup, failure: &ValidationResult) {
    markup.element("dl", &[], |markup| {
        let mut fact = |name: &str, value: &str| {
            if !value.is_empty() {
                markup.leaf("dt", &[], name);
                markup.leaf("dd", &[], value);
            }
        };
        fact("case", &case_line(failure));
        fact("tolerance", &failure.tolerance);
        fact("run by", &failure.runner);
        fact("not checked", &failure.not_checked.join(", "));
        fact("found", &time_words(failure.time));
        let extra = failure.failing_case.is_some();
        fact("note", if extra { "found by an extra case drawn from this one" } else { "" });
        fact("message", failure.message.as_deref().unwrap_or_default());
        fact("warnings", &failure.warnings.join("; "));
    });
}

fn replay(markup: &mut Markup, failure: &ValidationResult) {
    markup.element("p", &[("class", "replay")], |markup| {
        markup.leaf("code", &[], &failure.replay);
        markup.element("button", &[("type", "button"), ("class", "copy"), ("hidden", "")], |markup| {
            markup.text("Copy");
        });
    });
}

fn note(markup: &mut Markup, what: &str, why: &str) {
    markup.element("p", &[("class", "note")], |markup| {
        markup.leaf("strong", &[], what);
        markup.text(why);
        if !why.ends_with(['.', '!', '?']) {
            markup.text(".");
        }
    });
}
