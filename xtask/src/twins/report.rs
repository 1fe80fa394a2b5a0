//! What a run of the twins prints: a table for people, a document for programs.

use serde_json::{Value, json};

use super::row::{Counts, Row, counted};

/// A line a cell, their total, and what there is to say of pairs that did not do well.
pub fn text(rows: &[Row], worse: &[String]) -> String {
    let mut lines = vec![["language/door", "pairs", "caught", "clean", "named"].map(str::to_string)];
    let line = |name: String, counts: &Counts| {
        let [pairs, caught, clean, named] = counts.named_numbers().map(|(_, number)| number.to_string());
        [name, pairs, caught, clean, named]
    };
    lines.extend(counted(rows).iter().map(|(cell, counts)| line(cell.to_string(), counts)));
    lines.push(line("all".to_string(), &total(rows)));
    let width = lines.iter().map(|line| line[0].len()).max().unwrap_or(0);
    let mut text: String = lines
        .iter()
        .map(|[name, numbers @ ..]| {
            let numbers: String = numbers.iter().map(|number| format!("  {number:>6}")).collect();
            format!("{name:width$}{numbers}\n")
        })
        .collect();
    let troubled: Vec<&Row> = rows.iter().filter(|row| !row.faults().is_empty()).collect();
    if !troubled.is_empty() {
        text.push('\n');
    }
    for row in troubled {
        let said = if row.said.is_empty() { "nothing".to_string() } else { row.said.join(", ") };
        let faults = row.faults().join(", ");
        let expected = row.expected.join(", ");
        text += &format!("{faults}: {} of {}: must be {expected}; said {said}\n", row.pair, row.cell);
        text.extend(row.notes.iter().map(|note| format!("    {note}\n")));
    }
    if !worse.is_empty() {
        text += "\nworse than lab/twins/baseline.toml:\n";
        text.extend(worse.iter().map(|one| format!("    {one}\n")));
    }
    text
}

/// The same as one document.
pub fn json(rows: &[Row], worse: &[String]) -> Value {
    let numbers = |counts: &Counts| -> Value {
        counts.named_numbers().into_iter().map(|(name, number)| (name.to_string(), json!(number))).collect()
    };
    let cells: Vec<Value> = counted(rows)
        .iter()
        .map(|(cell, counts)| json!({ "language": cell.language, "door": cell.door, "counts": numbers(counts) }))
        .collect();
    json!({
        "cells": cells,
        "total": numbers(&total(rows)),
        "pairs": rows.iter().map(Row::json).collect::<Vec<_>>(),
        "worse": worse,
    })
}

fn total(rows: &[Row]) -> Counts {
    let mut total = Counts::default();
    rows.iter().for_each(|row| total.add(row));
    total
}

#[cfg(test)]
mod tests {
    use super::super::row::tests::row;
    use super::*;

    #[test]
    fn cells_are_counted_and_pairs_that_did_not_do_well_are_named() {
        let rows = [row("good", true, true, true), row("missed", false, true, false)];
        let text = text(&rows, &["missed of numpy/check is not caught".to_string()]);
        assert!(text.contains("numpy/check         2       1       2       1\n"), "{text}");
        assert!(text.contains("all                 2       1       2       1\n"), "{text}");
        assert!(text.contains("not caught: missed of numpy/check: must be value; said nothing"), "{text}");
        assert!(text.ends_with("worse than lab/twins/baseline.toml:\n    missed of numpy/check is not caught\n"));
        assert!(!text.contains("good of"), "{text}");
    }

    #[test]
    fn programs_get_the_same_numbers() {
        let rows = [row("good", true, true, true), row("flagged", true, false, true)];
        let document = json(&rows, &[]);
        let counts = json!({ "pairs": 2, "caught": 2, "clean": 1, "named": 2 });
        assert_eq!(document["total"], counts);
        assert_eq!(document["cells"], json!([{ "language": "numpy", "door": "check", "counts": counts }]));
        assert_eq!(document["pairs"][1]["clean"], json!(false));
    }
}
