//! The figure of P2: what each rule finds, and the gap between right and wrong kernels.

use gpuemu_corpus::studies::headroom::Headroom;
use gpuemu_corpus::studies::tolerance::{CaseInputs, RULES};

use super::chart::{Axis, Bar, Group, Place, bars};
use super::figure::{AMBER, Anchor, BLUE, Colour, FAINT, Figure, GREEN, GUIDE, INK, RED, TOP};
use super::tolerance::{Arguments, RuleMeasure, Totals};
use super::words::{share, share_with_interval};

const LEFT: f64 = 190.0;
const WIDTH: f64 = 560.0;

/// Decades of the axis of errors over the bound.
const DECADES: (i32, i32) = (-4, 8);

pub(super) fn draw(totals: &Totals, headroom: &[Headroom], arguments: &Arguments) -> String {
    let remark = format!(
        "cases of ten wrong kernels found, and false alarms on sixteen right ones; {}; base seed {}",
        arguments.runner.words(),
        arguments.seed
    );
    let mut figure = Figure::new(960.0, "P2: what each tolerance finds, and the room it leaves", &remark);
    let mut top = TOP + 6.0;
    figure.legend(
        LEFT,
        top,
        &[("of all cases", BLUE), ("of triggered", AMBER), ("of observable", GREEN), ("false alarms", RED)],
    );
    top += 30.0;
    for inputs in CaseInputs::ALL {
        let groups: Vec<Group> =
            totals.measures().filter(|measure| measure.inputs == inputs).map(|m| group(&m)).collect();
        let heading = match inputs {
            CaseInputs::Published => "published inputs: uniform in [-10, 10), contiguous, float32 and float16",
            CaseInputs::Ours => "our inputs: all kinds of values, layouts and dtypes",
        };
        top = bars(&mut figure, Place { left: LEFT, top, width: WIDTH }, heading, Axis::SHARES, &groups) + 24.0;
    }
    gaps(&mut figure, top, headroom);
    figure.finish()
}

fn group(measure: &RuleMeasure) -> Group {
    let bar = |value: Option<f64>, colour: Colour, text: String| Bar { value, colour, text };
    Group {
        label: RULES[measure.rule].to_string(),
        bars: vec![
            bar(measure.recall.share, BLUE, share_with_interval(measure.recall)),
            bar(measure.triggered.share, AMBER, share(measure.triggered)),
            bar(measure.observable.share, GREEN, share(measure.observable)),
            bar(measure.alarms.share, RED, share_with_interval(measure.alarms)),
        ],
    }
}

/// Dots on a scale of decades: the largest error of right kernels, and the smallest of observable wrong ones.
fn gaps(figure: &mut Figure, top: f64, headroom: &[Headroom]) {
    figure.sized_text(24.0, top, Anchor::Start, INK, 13.0, "headroom: error over the bound; above 1 fails");
    figure.legend(
        LEFT,
        top + 22.0,
        &[
            ("largest of right kernels", GREEN),
            ("smallest observable published bug", RED),
            ("smallest observable mutant", AMBER),
        ],
    );
    let first = top + 52.0;
    let height = headroom.len() as f64 * 15.0;
    let (low, high) = DECADES;
    let at = |ratio: f64| {
        let decades = ratio.max(f64::MIN_POSITIVE).log10().clamp(f64::from(low), f64::from(high));
        LEFT + WIDTH * (decades - f64::from(low)) / f64::from(high - low)
    };
    for decade in (low..=high).step_by(2) {
        let x = at(10f64.powi(decade));
        figure.text(x, first - 8.0, Anchor::Middle, FAINT, &format!("1e{decade}"));
        figure.line((x, first - 3.0), (x, first + height), GUIDE);
    }
    figure.line((at(1.0), first - 3.0), (at(1.0), first + height), INK);
    for (place, row) in headroom.iter().enumerate() {
        let y = first + place as f64 * 15.0 + 8.0;
        figure.text(LEFT - 10.0, y + 4.0, Anchor::End, INK, &format!("{} {}", row.op, row.dtype));
        for (ratio, colour) in [(row.published.correct, GREEN), (row.mutants.wrong, AMBER), (row.published.wrong, RED)]
        {
            if let Some(ratio) = ratio {
                figure.dot(at(ratio), y, colour);
            }
        }
    }
}
