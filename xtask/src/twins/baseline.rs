//! The committed counts of each cell, and the pairs that did not do well when they were written.

use std::collections::BTreeMap;

use toml::{Table, Value};

use super::row::{Cell, Counts, Row, counted};

/// What stands above the counts.
const HEAD: &str = "# What `cargo xtask twins` found of each language and door, and the pairs that it does not do well on. Written by\n\
    # `cargo xtask twins --write`: a run that does worse fails.\n";

/// The lists of a cell, with the word for what their pairs are.
const LISTS: [(&str, &str); 3] = [("not_caught", "not caught"), ("not_named", "not named"), ("not_clean", "not clean")];

/// A cell as it was.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
struct Known {
    counts: Counts,
    /// Pairs by what they were, in the words of [`Row::faults`].
    faults: BTreeMap<&'static str, Vec<String>>,
}

/// All cells as they were.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Baseline {
    cells: BTreeMap<Cell, Known>,
}

impl Baseline {
    pub fn read(text: &str) -> Result<Self, String> {
        let table: Table = toml::from_str(text).map_err(|error| error.to_string())?;
        let mut cells = BTreeMap::new();
        for (name, known) in &table {
            let cell: Cell = name.parse()?;
            let number = |key: &str| {
                let number = known.get(key).and_then(Value::as_integer).and_then(|number| usize::try_from(number).ok());
                number.ok_or_else(|| format!("the cell {name} has no number '{key}'"))
            };
            let counts = Counts {
                pairs: number("pairs")?,
                caught: number("caught")?,
                clean: number("clean")?,
                named: number("named")?,
            };
            let mut faults = BTreeMap::new();
            for (key, fault) in LISTS {
                let listed = known.get(key).and_then(Value::as_array).into_iter().flatten();
                let pairs: Vec<String> = listed.filter_map(Value::as_str).map(str::to_string).collect();
                if !pairs.is_empty() {
                    faults.insert(fault, pairs);
                }
            }
            cells.insert(cell, Known { counts, faults });
        }
        Ok(Self { cells })
    }

    /// The cells that were run, as they are now; the others stay as they were.
    pub fn renew(&mut self, asked: &[Cell], rows: &[Row]) {
        for cell in asked {
            self.cells.remove(cell);
        }
        for (cell, counts) in counted(rows) {
            self.cells.insert(cell, Known { counts, ..Known::default() });
        }
        for row in rows {
            let Some(known) = self.cells.get_mut(&row.cell) else { continue };
            for fault in row.faults() {
                known.faults.entry(fault).or_default().push(row.pair.clone());
            }
        }
        self.cells.values_mut().flat_map(|known| known.faults.values_mut()).for_each(|pairs| pairs.sort());
    }

    pub fn text(&self) -> String {
        let mut text = HEAD.to_string();
        for (cell, known) in &self.cells {
            text += &format!("\n[\"{cell}\"]\n");
            for (name, number) in known.counts.named_numbers() {
                text += &format!("{name} = {number}\n");
            }
            for (key, fault) in LISTS {
                if let Some(pairs) = known.faults.get(fault) {
                    let lines: String = pairs.iter().map(|pair| format!("    \"{pair}\",\n")).collect();
                    text += &format!("{key} = [\n{lines}]\n");
                }
            }
        }
        text
    }

    /// What is worse than it was: pairs, and where all pairs of a cell were run, its numbers.
    pub fn worse(&self, asked: &[Cell], rows: &[Row], is_whole: bool) -> Vec<String> {
        let mut worse = Vec::new();
        for row in rows {
            for fault in row.faults() {
                if !self.is_known(row, fault) {
                    worse.push(format!("{} of {} is {fault}", row.pair, row.cell));
                }
            }
        }
        if is_whole {
            let now = counted(rows);
            for cell in asked {
                let counts = now.get(cell).copied().unwrap_or_default();
                let before = self.cells.get(cell).map(|known| known.counts).unwrap_or_default();
                for ((name, number), (_, was)) in counts.named_numbers().into_iter().zip(before.named_numbers()) {
                    if number < was {
                        worse.push(format!("{cell} has {number} {name}, and had {was}"));
                    }
                }
            }
        }
        worse
    }

    fn is_known(&self, row: &Row, fault: &str) -> bool {
        let Some(known) = self.cells.get(&row.cell) else { return false };
        let listed = |fault: &str| known.faults.get(fault).is_some_and(|pairs| pairs.contains(&row.pair));
        // What was not caught was not named either.
        listed(fault) || (fault == "not named" && listed("not caught"))
    }
}

#[cfg(test)]
mod tests {
    use super::super::row::tests::row;
    use super::*;

    fn cell() -> Cell {
        "numpy/check".parse().unwrap()
    }

    fn of(rows: &[Row]) -> Baseline {
        let mut baseline = Baseline::default();
        baseline.renew(&[cell()], rows);
        baseline
    }

    #[test]
    fn it_is_read_as_it_was_written() {
        let baseline = of(&[row("b", false, true, false), row("a", true, false, false), row("c", true, true, true)]);
        let text = baseline.text();
        assert_eq!(Baseline::read(&text).unwrap(), baseline, "{text}");
        assert!(text.contains("caught = 2\n") && text.contains("not_caught = [\n    \"b\",\n]"), "{text}");
        assert!(Baseline::read("[\"numpy/check\"]\npairs = 1\n").unwrap_err().contains("'caught'"));
    }

    #[test]
    fn a_pair_that_is_known_to_be_missed_may_be_missed_and_no_other() {
        let baseline = of(&[row("a", false, true, false), row("b", true, true, true)]);
        let worse = |rows: &[Row]| baseline.worse(&[cell()], rows, true);
        assert!(worse(&[row("a", false, true, false), row("b", true, true, true)]).is_empty());
        // Caught by now, though not by the right name: better than before.
        assert!(worse(&[row("a", true, true, false), row("b", true, true, true)]).is_empty());
        // One better and another worse leaves the numbers as they were.
        let traded = worse(&[row("a", true, true, true), row("b", false, true, false)]);
        assert_eq!(traded, ["b of numpy/check is not caught"]);
        let flagged = worse(&[row("a", false, true, false), row("b", true, false, true)]);
        assert_eq!(flagged, ["b of numpy/check is not clean", "numpy/check has 1 clean, and had 2"]);
    }

    #[test]
    fn pairs_that_are_gone_are_missed_in_a_whole_run_alone() {
        let baseline = of(&[row("a", true, true, true), row("b", true, true, true)]);
        let rows = [row("b", true, true, true)];
        assert!(baseline.worse(&[cell()], &rows, false).is_empty());
        let worse = baseline.worse(&[cell()], &rows, true);
        assert_eq!(worse[0], "numpy/check has 1 pairs, and had 2");
        assert_eq!(worse.len(), 4);
    }

    #[test]
    fn a_new_pair_that_is_missed_fails_until_it_is_written_down() {
        let mut baseline = of(&[row("a", true, true, true)]);
        let rows = [row("a", true, true, true), row("new", true, true, false)];
        assert_eq!(baseline.worse(&[cell()], &rows, true), ["new of numpy/check is not named"]);
        baseline.renew(&[cell()], &rows);
        assert!(baseline.worse(&[cell()], &rows, true).is_empty());
    }

    #[test]
    fn cells_that_were_not_run_stay_as_they_were() {
        let mut baseline = of(&[row("a", true, true, true)]);
        baseline.renew(&["cuda/check".parse().unwrap()], &[]);
        assert_eq!(baseline, of(&[row("a", true, true, true)]));
        baseline.renew(&[cell()], &[]);
        assert_eq!(baseline, Baseline::default());
    }
}
