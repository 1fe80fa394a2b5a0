//! What came of each pair at each door, as the runner prints it, and how many did well in each cell.

use std::collections::BTreeMap;
use std::fmt;
use std::str::FromStr;

use serde_json::{Value, json};

/// A language and a door: what pairs are counted by.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct Cell {
    pub language: String,
    pub door: String,
}

impl fmt::Display for Cell {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(formatter, "{}/{}", self.language, self.door)
    }
}

impl FromStr for Cell {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        let (language, door) = text.split_once('/').ok_or_else(|| format!("'{text}' is no LANGUAGE/DOOR"))?;
        if super::environment_of(language).is_none() {
            let known: Vec<&str> = super::LANGUAGES.iter().map(|(name, _)| *name).collect();
            return Err(format!("there is no language '{language}'; the languages are {}", known.join(", ")));
        }
        if !super::DOORS.contains(&door) {
            return Err(format!("there is no door '{door}'; the doors are {}", super::DOORS.join(", ")));
        }
        Ok(Self { language: language.to_string(), door: door.to_string() })
    }
}

/// What came of a pair.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Row {
    pub pair: String,
    /// Who has it, such as `grown`.
    pub source: String,
    pub cell: Cell,
    /// The wrong twin was reported.
    pub caught: bool,
    /// The right twin was not.
    pub clean: bool,
    /// The wrong twin was reported by what must report it.
    pub named: bool,
    pub expected: Vec<String>,
    pub said: Vec<String>,
    pub notes: Vec<String>,
}

impl Row {
    /// Reads what the runner prints, an object a line.
    pub fn all(text: &str) -> Result<Vec<Self>, String> {
        text.lines().filter(|line| !line.trim().is_empty()).map(Self::read).collect()
    }

    fn read(line: &str) -> Result<Self, String> {
        let unreadable = |what: &str| format!("the runner of the twins printed no {what}: {line}");
        let value: Value = serde_json::from_str(line).map_err(|_| unreadable("JSON"))?;
        let text = |name: &str| value[name].as_str().map(str::to_string).ok_or_else(|| unreadable(name));
        let truth = |name: &str| value[name].as_bool().ok_or_else(|| unreadable(name));
        let list = |name: &str| -> Result<Vec<String>, String> {
            let words = value[name].as_array().ok_or_else(|| unreadable(name))?;
            words.iter().map(|word| word.as_str().map(str::to_string).ok_or_else(|| unreadable(name))).collect()
        };
        Ok(Self {
            pair: text("pair")?,
            source: text("source")?,
            cell: Cell { language: text("language")?, door: text("door")? },
            caught: truth("caught")?,
            clean: truth("clean")?,
            named: truth("named")?,
            expected: list("expected")?,
            said: list("said")?,
            notes: list("notes")?,
        })
    }

    pub fn json(&self) -> Value {
        json!({
            "pair": self.pair,
            "source": self.source,
            "language": self.cell.language,
            "door": self.cell.door,
            "caught": self.caught,
            "clean": self.clean,
            "named": self.named,
            "expected": self.expected,
            "said": self.said,
            "notes": self.notes,
        })
    }

    /// The words for what is not well; none where all is.
    pub fn faults(&self) -> Vec<&'static str> {
        let mut faults = Vec::new();
        if !self.caught {
            faults.push("not caught");
        } else if !self.named {
            faults.push("not named");
        }
        if !self.clean {
            faults.push("not clean");
        }
        faults
    }
}

/// How many pairs of a cell did well.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Counts {
    pub pairs: usize,
    pub caught: usize,
    pub clean: usize,
    pub named: usize,
}

impl Counts {
    pub fn add(&mut self, row: &Row) {
        self.pairs += 1;
        self.caught += usize::from(row.caught);
        self.clean += usize::from(row.clean);
        self.named += usize::from(row.named);
    }

    /// With their names, in the order in which they are shown.
    pub fn named_numbers(&self) -> [(&'static str, usize); 4] {
        [("pairs", self.pairs), ("caught", self.caught), ("clean", self.clean), ("named", self.named)]
    }
}

/// The counts of each cell.
pub fn counted(rows: &[Row]) -> BTreeMap<Cell, Counts> {
    let mut cells: BTreeMap<Cell, Counts> = BTreeMap::new();
    for row in rows {
        cells.entry(row.cell.clone()).or_default().add(row);
    }
    cells
}

#[cfg(test)]
pub mod tests {
    use super::*;

    /// A row of `numpy/check`.
    pub fn row(pair: &str, caught: bool, clean: bool, named: bool) -> Row {
        let said = if caught { vec!["value".to_string()] } else { Vec::new() };
        Row {
            pair: pair.to_string(),
            source: "twins".to_string(),
            cell: "numpy/check".parse().unwrap(),
            caught,
            clean,
            named,
            expected: vec!["value".to_string()],
            said,
            notes: Vec::new(),
        }
    }

    #[test]
    fn a_row_is_read_as_it_was_written() {
        let first = row("a", true, true, false);
        let text = format!("{}\n\n{}\n", first.json(), row("b", false, false, false).json());
        let read = Row::all(&text).unwrap();
        assert_eq!(read[0], first);
        assert_eq!(read[0].faults(), ["not named"]);
        assert_eq!(read[1].faults(), ["not caught", "not clean"]);
        let counts = counted(&read)[&first.cell];
        assert_eq!(counts, Counts { pairs: 2, caught: 1, clean: 1, named: 0 });
    }

    #[test]
    fn what_is_no_row_is_refused() {
        assert!(Row::all("Traceback").unwrap_err().contains("printed no JSON"));
        let mut value = row("a", true, true, true).json();
        value["clean"] = Value::Null;
        assert!(Row::all(&value.to_string()).unwrap_err().contains("printed no clean"));
    }

    #[test]
    fn a_cell_is_a_known_language_and_a_known_door() {
        assert_eq!("cuda/launch-table".parse::<Cell>().unwrap().to_string(), "cuda/launch-table");
        assert!("cuda".parse::<Cell>().unwrap_err().contains("no LANGUAGE/DOOR"));
        assert!("fortran/check".parse::<Cell>().unwrap_err().contains("the languages are numpy"));
        assert!("cuda/window".parse::<Cell>().unwrap_err().contains("the doors are check"));
    }
}
