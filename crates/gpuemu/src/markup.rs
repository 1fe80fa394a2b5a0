//! Text of HTML and SVG, put together so that nothing but what is written in this program can be markup.

use std::fmt::Write;

/// Text that is markup nowhere, inside of elements and of attributes in double quotes.
pub fn escape(text: &str) -> String {
    text.replace('&', "&amp;").replace('<', "&lt;").replace('>', "&gt;").replace('"', "&quot;")
}

/// An attribute and its value.
pub type Attribute<'a> = (&'static str, &'a str);

/// What is said of a picture.
#[derive(Debug, Clone, Copy)]
pub struct Picture<'a> {
    /// The class by which it is painted and found.
    pub class: &'a str,
    /// Width and height in pixels.
    pub size: (f64, f64),
    /// What it shows, in words.
    pub label: &'a str,
    /// What scripts and tests read off it.
    pub data: &'a [Attribute<'a>],
}

/// A document that grows. Names of elements and attributes are literals; everything else is escaped.
#[derive(Debug, Clone, Default)]
pub struct Markup {
    text: String,
}

impl Markup {
    /// An element with something in it.
    pub fn element(&mut self, name: &'static str, attributes: &[Attribute<'_>], inside: impl FnOnce(&mut Self)) {
        self.start(name, attributes);
        self.text.push('>');
        inside(self);
        // Writing to a string cannot fail.
        let _ = write!(self.text, "</{name}>");
    }

    /// A picture of a size in pixels, with words for those who do not see it.
    pub fn picture(&mut self, picture: &Picture<'_>, inside: impl FnOnce(&mut Self)) {
        let (width, height) = (format!("{:.0}", picture.size.0), format!("{:.0}", picture.size.1));
        let view = format!("0 0 {width} {height}");
        let mut attributes = vec![
            ("class", picture.class),
            ("viewBox", view.as_str()),
            ("width", width.as_str()),
            ("height", height.as_str()),
            ("role", "img"),
            ("aria-label", picture.label),
        ];
        attributes.extend(picture.data);
        self.element("svg", &attributes, inside);
    }

    /// An element with text in it.
    pub fn leaf(&mut self, name: &'static str, attributes: &[Attribute<'_>], text: &str) {
        self.element(name, attributes, |markup| markup.text(text));
    }

    /// An element that has nothing in it.
    pub fn void(&mut self, name: &'static str, attributes: &[Attribute<'_>]) {
        self.start(name, attributes);
        self.text.push_str("/>");
    }

    pub fn text(&mut self, text: &str) {
        self.text.push_str(&escape(text));
    }

    /// Markup that is part of this program.
    pub fn literal(&mut self, markup: &'static str) {
        self.text.push_str(markup);
    }

    /// The next element begins on a new line.
    pub fn line(&mut self) {
        self.text.push('\n');
    }

    pub fn finish(self) -> String {
        self.text
    }

    fn start(&mut self, name: &'static str, attributes: &[Attribute<'_>]) {
        let _ = write!(self.text, "<{name}");
        for (attribute, value) in attributes {
            let _ = write!(self.text, " {attribute}=\"{}\"", escape(value));
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn text_and_values_of_attributes_are_never_markup() {
        let mut markup = Markup::default();
        let hostile = "\"><script>alert('&')</script>";
        markup.element("p", &[("title", hostile)], |markup| {
            markup.text(hostile);
            markup.void("br", &[]);
        });
        assert_eq!(
            markup.finish(),
            "<p title=\"&quot;&gt;&lt;script&gt;alert('&amp;')&lt;/script&gt;\">\
             &quot;&gt;&lt;script&gt;alert('&amp;')&lt;/script&gt;<br/></p>"
        );
    }
}
