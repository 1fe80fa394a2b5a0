//! The charts that studies draw: bars side by side, and squares in a grid.

use super::figure::{Anchor, Colour, FAINT, Figure, GUIDE, INK};

/// The axis of a bar chart.
#[derive(Debug, Clone, Copy)]
pub struct Axis<'a> {
    pub low: f64,
    pub high: f64,
    /// Where guides stand, with their texts.
    pub ticks: &'a [(f64, &'a str)],
}

impl Axis<'_> {
    /// Shares from nothing to everything.
    pub const SHARES: Axis<'static> = Axis {
        low: 0.0,
        high: 1.0,
        ticks: &[(0.0, "0 %"), (0.25, "25 %"), (0.5, "50 %"), (0.75, "75 %"), (1.0, "100 %")],
    };
}

/// One bar: how long, in what colour, and what stands beside it.
#[derive(Debug, Clone)]
pub struct Bar {
    /// Where it ends; it begins at 0. None draws nothing but the text.
    pub value: Option<f64>,
    pub colour: Colour,
    /// What stands beside it.
    pub text: String,
}

/// Bars with a common label.
#[derive(Debug, Clone)]
pub struct Group {
    pub label: String,
    /// The bars, from above.
    pub bars: Vec<Bar>,
}

/// Where charts stand: labels to the left of `left`, data from there for `width`.
#[derive(Debug, Clone, Copy)]
pub struct Place {
    /// Left end of the data.
    pub left: f64,
    /// Upper end of the chart, its heading included.
    pub top: f64,
    /// Width of the data.
    pub width: f64,
}

const BAR: f64 = 13.0;
const GAP: f64 = 9.0;

/// Draws groups of bars below each other; the answer is where they end.
pub fn bars(figure: &mut Figure, place: Place, heading: &str, axis: Axis<'_>, groups: &[Group]) -> f64 {
    let Place { left, top, width } = place;
    figure.sized_text(24.0, top, Anchor::Start, INK, 13.0, heading);
    let first = top + 30.0;
    let height: f64 = groups.iter().map(|group| group.bars.len() as f64 * BAR + GAP).sum();
    let at = |value: f64| left + width * (value.clamp(axis.low, axis.high) - axis.low) / (axis.high - axis.low);
    for (value, text) in axis.ticks {
        figure.text(at(*value), first - 8.0, Anchor::Middle, FAINT, text);
        figure.line((at(*value), first - 3.0), (at(*value), first + height - GAP + 3.0), GUIDE);
    }
    let mut y = first;
    for group in groups {
        let middle = y + group.bars.len() as f64 * BAR / 2.0 + 4.0;
        figure.text(left - 10.0, middle, Anchor::End, INK, &group.label);
        for bar in &group.bars {
            let value = bar.value.unwrap_or(0.0);
            let (from, to) = (at(value.min(0.0)), at(value.max(0.0)));
            if bar.value.is_some() {
                // A bar of no length still shows where it is.
                figure.rectangle(from, y + 1.0, (to - from).max(1.5), BAR - 3.0, bar.colour);
            }
            let beside = if value < 0.0 { (from - 5.0, Anchor::End) } else { (to + 6.0, Anchor::Start) };
            figure.text(beside.0, y + BAR - 3.0, beside.1, FAINT, &bar.text);
            y += BAR;
        }
        y += GAP;
    }
    y
}

/// A grid of coloured squares.
#[derive(Debug, Clone)]
pub struct Grid {
    /// Labels of columns, in groups with a heading each.
    pub columns: Vec<(String, Vec<String>)>,
    /// Labels of rows, each with the colours and texts of its squares.
    pub rows: Vec<(String, Vec<(Colour, String)>)>,
}

const CELL: (f64, f64) = (27.0, 20.0);
const BETWEEN: f64 = 10.0;

/// Draws a grid; the answer is where it ends.
pub fn grid(figure: &mut Figure, place: Place, grid: &Grid) -> f64 {
    let Place { left, top, .. } = place;
    let mut columns = Vec::new();
    let mut x = left;
    for (heading, labels) in &grid.columns {
        figure.text(x + labels.len() as f64 * CELL.0 / 2.0, top, Anchor::Middle, INK, heading);
        for label in labels {
            figure.sized_text(x + CELL.0 / 2.0, top + 16.0, Anchor::Middle, FAINT, 8.5, label);
            columns.push(x);
            x += CELL.0;
        }
        x += BETWEEN;
    }
    let mut y = top + 22.0;
    for (label, cells) in &grid.rows {
        figure.text(left - 8.0, y + 14.0, Anchor::End, INK, label);
        for (x, (colour, text)) in columns.iter().zip(cells) {
            figure.rectangle(*x, y, CELL.0 - 2.0, CELL.1 - 2.0, colour);
            figure.sized_text(x + CELL.0 / 2.0 - 1.0, y + 13.0, Anchor::Middle, INK, 9.0, text);
        }
        y += CELL.1;
    }
    y
}
