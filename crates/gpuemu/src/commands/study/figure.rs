//! A minimal writer of SVG: text, boxes, lines and dots on a light ground.

use std::fmt::Write;

use crate::markup::escape;

pub type Colour = &'static str;

pub const INK: Colour = "#24292f";
/// Remarks, ticks and guides.
pub const FAINT: Colour = "#6e7781";
pub const GUIDE: Colour = "#d8dee4";
pub const RED: Colour = "#c8553d";
pub const GREEN: Colour = "#2d8659";
/// The first of others.
pub const BLUE: Colour = "#3b6fb6";
/// The second of others.
pub const AMBER: Colour = "#d9a03f";

const GROUND: Colour = "#ffffff";
const FONT: &str = "DejaVu Sans, Verdana, Arial, sans-serif";

/// Where text stands from its point.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Anchor {
    Start,
    /// It is centred there.
    Middle,
    End,
}

impl Anchor {
    const fn name(self) -> &'static str {
        match self {
            Anchor::Start => "start",
            Anchor::Middle => "middle",
            Anchor::End => "end",
        }
    }
}

/// A drawing. Coordinates are pixels from the upper left corner.
#[derive(Debug, Clone)]
pub struct Figure {
    width: f64,
    title: String,
    body: String,
    /// The lowest point that something reaches.
    bottom: f64,
}

/// Where a drawing begins below its title.
pub const TOP: f64 = 74.0;

impl Figure {
    /// An empty drawing with a title and a line below it.
    pub fn new(width: f64, title: &str, remark: &str) -> Self {
        let mut figure = Self { width, title: title.to_string(), body: String::new(), bottom: 0.0 };
        figure.sized_text(24.0, 32.0, Anchor::Start, INK, 17.0, title);
        figure.text(24.0, 52.0, Anchor::Start, FAINT, remark);
        figure
    }

    /// Text on a line.
    pub fn text(&mut self, x: f64, y: f64, anchor: Anchor, colour: Colour, text: &str) {
        self.sized_text(x, y, anchor, colour, 11.0, text);
    }

    pub fn sized_text(&mut self, x: f64, y: f64, anchor: Anchor, colour: Colour, size: f64, text: &str) {
        self.reach(y + 4.0);
        let anchor = anchor.name();
        self.element(&format!(
            "<text x=\"{x:.1}\" y=\"{y:.1}\" text-anchor=\"{anchor}\" fill=\"{colour}\" font-size=\"{size}\">{}</text>",
            escape(text)
        ));
    }

    pub fn rectangle(&mut self, x: f64, y: f64, width: f64, height: f64, colour: Colour) {
        self.reach(y + height);
        self.element(&format!(
            "<rect x=\"{x:.1}\" y=\"{y:.1}\" width=\"{width:.1}\" height=\"{height:.1}\" fill=\"{colour}\"/>"
        ));
    }

    pub fn line(&mut self, from: (f64, f64), to: (f64, f64), colour: Colour) {
        self.reach(from.1.max(to.1));
        self.element(&format!(
            "<line x1=\"{:.1}\" y1=\"{:.1}\" x2=\"{:.1}\" y2=\"{:.1}\" stroke=\"{colour}\"/>",
            from.0, from.1, to.0, to.1
        ));
    }

    pub fn dot(&mut self, x: f64, y: f64, colour: Colour) {
        self.reach(y + 4.0);
        self.element(&format!("<circle cx=\"{x:.1}\" cy=\"{y:.1}\" r=\"4\" fill=\"{colour}\"/>"));
    }

    /// Boxes with what they mean, in a row.
    pub fn legend(&mut self, x: f64, y: f64, entries: &[(&str, Colour)]) {
        let mut x = x;
        for (name, colour) in entries {
            self.rectangle(x, y - 9.0, 10.0, 10.0, colour);
            self.text(x + 15.0, y, Anchor::Start, INK, name);
            // Letters of this size are about 6.4 pixels wide.
            x += 36.0 + 6.4 * name.chars().count() as f64;
        }
    }

    /// The drawing as a file.
    pub fn finish(&self) -> String {
        let (width, height) = (self.width, self.bottom + 20.0);
        format!(
            "<svg xmlns=\"http://www.w3.org/2000/svg\" width=\"{width:.0}\" height=\"{height:.0}\" \
             viewBox=\"0 0 {width:.0} {height:.0}\" font-family=\"{FONT}\" role=\"img\">\n\
             <title>{}</title>\n\
             <rect width=\"{width:.0}\" height=\"{height:.0}\" fill=\"{GROUND}\"/>\n{}</svg>\n",
            escape(&self.title),
            self.body
        )
    }

    fn reach(&mut self, y: f64) {
        self.bottom = self.bottom.max(y);
    }

    fn element(&mut self, element: &str) {
        // Writing to a string cannot fail.
        let _ = writeln!(self.body, "{element}");
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_drawing_holds_what_was_drawn_and_ends_below_it() {
        let mut figure = Figure::new(200.0, "a < b & \"c\"", "remark");
        figure.rectangle(10.0, 90.0, 30.0, 40.0, RED);
        figure.dot(5.0, 100.0, GREEN);
        let text = figure.finish();
        assert!(text.contains("<title>a &lt; b &amp; &quot;c&quot;</title>"), "{text}");
        assert!(text.contains("height=\"150\" viewBox=\"0 0 200 150\""), "{text}");
    }
}
