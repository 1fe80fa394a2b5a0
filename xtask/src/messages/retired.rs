//! Words that messages and documents no longer use: the second table of words in CONTRIBUTING.md, held against both.

use std::path::{Path, PathBuf};

use super::sources;
use crate::repository;

/// Where the table stands.
const TABLE: &str = "CONTRIBUTING.md";
const HEADING: &str = "### Retired words";

/// The head of a column that shows what is not written, here and on the page about messages.
const NOT: &str = "not";

/// History is not rewritten.
const HISTORY: &str = "docs/decisions";

/// A phrase, and what is written in place of it.
struct Retired {
    phrase: Vec<String>,
    instead: String,
}

/// The rows of the table; each may name several phrases.
fn retired(contributing: &str) -> Result<Vec<Retired>, String> {
    let (_, section) = contributing.split_once(HEADING).ok_or_else(|| format!("{TABLE} has no '{HEADING}'"))?;
    let lines = section.lines().map(str::trim).skip_while(|line| !line.starts_with('|'));
    let mut found = Vec::new();
    for row in lines.take_while(|line| line.starts_with('|')).skip(2) {
        let cells: Vec<&str> = row.trim_matches('|').split('|').map(str::trim).collect();
        let [phrases, instead, reason] = cells[..] else { return Err(format!("not three cells: {row}")) };
        if instead.is_empty() || reason.is_empty() {
            return Err(format!("an empty cell: {row}"));
        }
        let quoted: Vec<&str> = phrases.split('`').skip(1).step_by(2).collect();
        if quoted.is_empty() {
            return Err(format!("no phrase in backticks: {row}"));
        }
        for phrase in quoted {
            let phrase = words(phrase).into_iter().map(|(word, _)| word).collect();
            found.push(Retired { phrase, instead: instead.to_string() });
        }
    }
    Ok(found)
}

/// The words of a text in lower case and without punctuation, with their lines, the first being 1. What a table shows
/// under `not` is left out.
fn words(text: &str) -> Vec<(String, usize)> {
    let mut found = Vec::new();
    let mut within_examples = false;
    for (index, line) in text.lines().enumerate() {
        let row = line.trim().strip_prefix('|');
        let cells = row.and_then(|row| row.split_once('|'));
        within_examples = cells.is_some_and(|(first, _)| within_examples || first.trim() == NOT);
        let read = if let (true, Some((_, rest))) = (within_examples, cells) { rest } else { line };
        let of_line = read.split_whitespace().map(|word| word.trim_matches(|letter: char| !letter.is_alphanumeric()));
        found.extend(of_line.filter(|word| !word.is_empty()).map(|word| (word.to_lowercase(), index + 1)));
    }
    found
}

/// One line for each retired phrase of a text.
fn uses(retired: &[Retired], text: &str) -> Vec<(usize, String)> {
    let words = words(text);
    let mut found = Vec::new();
    for start in 0..words.len() {
        for Retired { phrase, instead } in retired {
            let behind = words[start..].iter().map(|(word, _)| word);
            if behind.take(phrase.len()).eq(phrase) {
                found.push((words[start].1, format!("'{}' is retired: {instead}", phrase.join(" "))));
            }
        }
    }
    found
}

fn documents(folder: &Path, found: &mut Vec<PathBuf>) {
    for entry in std::fs::read_dir(folder).unwrap() {
        let path = entry.unwrap().path();
        if path.is_dir() && !path.ends_with(HISTORY) {
            documents(&path, found);
        } else if path.extension().is_some_and(|extension| extension == "md") {
            found.push(path);
        }
    }
}

#[test]
fn messages_and_documents_use_no_retired_word() {
    let root = repository::root().unwrap();
    let retired = retired(&std::fs::read_to_string(root.join(TABLE)).unwrap()).unwrap();
    assert!(retired.len() > 10, "{TABLE} has {} retired words", retired.len());
    let mut found = Vec::new();
    for message in sources::messages(&root).unwrap() {
        let of_message = uses(&retired, &message.text).into_iter();
        found.extend(of_message.map(|(_, problem)| format!("{}:{}: {problem}", message.path, message.line)));
    }
    let mut pages = vec![root.join("README.md"), root.join(TABLE)];
    documents(&root.join("docs"), &mut pages);
    for page in pages {
        let of_page = uses(&retired, &std::fs::read_to_string(&page).unwrap());
        let name = page.strip_prefix(&root).unwrap().display();
        found.extend(of_page.iter().map(|(line, problem)| format!("{name}:{line}: {problem}")));
    }
    assert!(found.is_empty(), "\n{}", found.join("\n"));
}

#[test]
fn a_phrase_is_found_across_lines_and_not_within_words() {
    let table = format!(
        "{HEADING}\n\nThese:\n\n| not | but | because |\n| --- | --- | --- |\n| `of which`, `anew` | again | style |\n\nEnd\n"
    );
    let retired = retired(&table).unwrap();
    assert_eq!(retired.len(), 2);
    let found = uses(&retired, "Two files, of\n  which (`ANEW`) one is\nkept; often which.");
    let rows: Vec<(usize, &str)> = found.iter().map(|(line, problem)| (*line, problem.as_str())).collect();
    assert_eq!(rows, [(1, "'of which' is retired: again"), (2, "'anew' is retired: again")]);
}

#[test]
fn examples_of_what_is_not_written_are_no_use() {
    let retired = [Retired { phrase: vec!["anew".to_string()], instead: "again".to_string() }];
    let page = "| not | but |\n| --- | --- |\n| write it anew | write it again |\n\n| word | meaning |\n| --- | --- |\n| anew | again |\n";
    assert_eq!(uses(&retired, page).len(), 1);
    assert_eq!(uses(&retired, page)[0].0, 7);
    assert_eq!(uses(&retired, &page.replace("it again", "it anew")).len(), 2);
}

#[test]
fn a_table_that_cannot_be_read_is_an_error() {
    let table = |row: &str| format!("{HEADING}\n| not | but | because |\n| --- | --- | --- |\n{row}\n");
    assert!(retired("# Words").is_err());
    assert!(retired(&table("| `a` | b |")).is_err());
    assert!(retired(&table("| a | b | c |")).is_err());
    assert!(retired(&table("| `a` |  | c |")).is_err());
    assert_eq!(retired(&table("| `a` | b | c |")).unwrap().len(), 1);
}
