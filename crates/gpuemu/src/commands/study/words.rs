//! How studies write tables, shares and names.

use std::io::IsTerminal;

use comfy_table::{Cell, CellAlignment, ContentArrangement, Table, presets};
use gpuemu_corpus::studies::proportion::Proportion;

/// A table whose columns after the first `names` are numbers.
pub fn table(header: &[&str], names: usize, rows: impl IntoIterator<Item = Vec<String>>) -> String {
    let mut table = Table::new();
    // Where no terminal says how wide it is, no line is broken.
    let terminal = std::io::stdout().is_terminal();
    let arrangement = if terminal { ContentArrangement::Dynamic } else { ContentArrangement::Disabled };
    table.load_style(presets::NOTHING).set_content_arrangement(arrangement);
    let aligned = |place: usize, text: &str| {
        let alignment = if place < names { CellAlignment::Left } else { CellAlignment::Right };
        Cell::new(text).set_alignment(alignment)
    };
    table.set_header(header.iter().enumerate().map(|(place, text)| aligned(place, text)));
    for row in rows {
        table.add_row(row.iter().enumerate().map(|(place, text)| aligned(place, text)));
    }
    // Trailing blanks are noise in a file.
    table.lines().map(|line| format!("{}\n", line.trim_end())).collect()
}

/// A share, as in `73.2 %`.
pub fn percent(share: f64) -> String {
    format!("{:.1} %", 100.0 * share)
}

/// A proportion without its interval.
pub fn share(proportion: Proportion) -> String {
    proportion.share.map_or("none".to_string(), percent)
}

/// A proportion with its interval, as in `73.2 % [71.0, 75.3]`.
pub fn share_with_interval(proportion: Proportion) -> String {
    match (proportion.share, proportion.interval) {
        (Some(share), Some([low, high])) => {
            format!("{} [{}, {}]", percent(share), decimals(100.0 * low), decimals(100.0 * high))
        }
        _ => "none".to_string(),
    }
}

/// Numbers near nothing keep two digits: the end of an interval is not 0.
fn decimals(number: f64) -> String {
    let places = if number > 0.0 && number < 0.1 { 1 - number.log10().floor() as i32 } else { 1 };
    format!("{number:.*}", places.unsigned_abs() as usize)
}

/// A count of a whole, as in `20 of 1882`.
pub fn of(part: usize, whole: usize) -> String {
    format!("{part} of {whole}")
}

/// A list of names, or that there is none.
pub fn list(names: &[&str]) -> String {
    if names.is_empty() { "none".to_string() } else { names.join(", ") }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn shares_keep_the_digits_that_matter() {
        assert_eq!(share_with_interval(Proportion::of(20, 1882)), "1.1 % [0.7, 1.6]");
        assert_eq!(share_with_interval(Proportion::of(0, 200_000)), "0.0 % [0.0, 0.0019]");
        assert_eq!(share_with_interval(Proportion::of(9, 6400)), "0.1 % [0.074, 0.3]");
        assert_eq!(share_with_interval(Proportion::of(0, 0)), "none");
    }
}
