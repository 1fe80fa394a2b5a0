//! The numbers around the worst element.

use gpuemu_model::picture::{ErrorPicture, WindowElement};

use super::level::{Level, share_words};
use crate::markup::Markup;
use crate::report::text::digits;

/// Draws the table: what was returned over what was expected.
pub fn draw(markup: &mut Markup, picture: &ErrorPicture) {
    let window = &picture.window;
    let rank = window.worst.len();
    let row_axis = rank.checked_sub(2).map_or(0, |axis| window.worst[axis]);
    let column_axis = rank.checked_sub(1).map_or(0, |axis| window.worst[axis]);
    markup.element("div", &[("class", "scroll")], |markup| {
        markup.element("table", &[("class", "window")], |markup| {
            let entry = match rank {
                0..=2 => String::new(),
                _ => format!(" at {:?}", &window.worst[..rank - 2]),
            };
            let caption = format!("'{}'{entry}: returned, and below it expected", picture.tensor);
            markup.leaf("caption", &[], &caption);
            markup.element("tr", &[], |markup| {
                markup.leaf("td", &[], "");
                for place in 0..window.rows.first().map_or(0, Vec::len) {
                    markup.leaf("th", &[("scope", "col")], &(window.first_column + place).to_string());
                }
            });
            for (place, row) in window.rows.iter().enumerate() {
                let index = window.first_row + place;
                markup.element("tr", &[], |markup| {
                    markup.leaf("th", &[("scope", "row")], &index.to_string());
                    for (across, element) in row.iter().enumerate() {
                        let worst = index == row_axis && window.first_column + across == column_axis;
                        draw_element(markup, element, worst);
                    }
                });
            }
        });
    });
}

fn draw_element(markup: &mut Markup, element: &WindowElement, worst: bool) {
    let class = format!("{}{}", Level::of(element.error).class(), if worst { " worst" } else { "" });
    let (actual, expected) = told_apart(element.actual, element.expected);
    markup.element("td", &[("class", &class), ("title", &share_words(element.error))], |markup| {
        markup.leaf("b", &[], &actual);
        markup.leaf("span", &[], &expected);
    });
}

/// Two numbers in as few digits as tell them apart.
fn told_apart(actual: f64, expected: f64) -> (String, String) {
    let written = [4, 6, 9].map(|count| (digits(actual, count), digits(expected, count)));
    let same = actual == expected || (actual.is_nan() && expected.is_nan());
    let found = written.iter().find(|(actual, expected)| same || actual != expected);
    found.cloned().unwrap_or_else(|| (digits(actual, 17), digits(expected, 17)))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn numbers_that_differ_are_written_differently() {
        let pair = |actual, expected| told_apart(actual, expected);
        assert_eq!(pair(1.0, 2.0), ("1".to_string(), "2".to_string()));
        assert_eq!(pair(0.123456, 0.123461), ("0.123456".to_string(), "0.123461".to_string()));
        let (actual, expected) = pair(1.0, 1.0 + f64::EPSILON);
        assert_ne!(actual, expected);
        assert_eq!(pair(f64::NAN, 0.5), ("NaN".to_string(), "0.5".to_string()));
    }
}
