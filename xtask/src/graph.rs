//! `cargo xtask graph`: which of our crates stands on which, as cargo knows it.

use std::collections::BTreeMap;

use serde_json::Value;

use crate::failure::Failure;
use crate::process;

/// Crates that build or test, and that no program of a user has in it.
const ASIDE: [&str; 3] = ["gpuemu-no-schema", "gpuemu-torture", "xtask"];

/// Prints the graph.
pub fn run() -> Result<(), Failure> {
    print!("{}", printed()?);
    Ok(())
}

fn printed() -> Result<String, Failure> {
    let mut command = process::cargo()?;
    command.args(["metadata", "--format-version", "1", "--locked", "--no-deps"]);
    let output = command.output().map_err(|error| Failure::Environment(format!("cargo metadata: {error}")))?;
    let metadata: Value = serde_json::from_slice(&output.stdout)
        .map_err(|error| Failure::Environment(format!("cargo metadata printed no JSON: {error}")))?;
    Ok(lines(&metadata))
}

/// A line for each crate, lowest first: its name, and those that it names itself.
fn lines(metadata: &Value) -> String {
    let mut below: BTreeMap<&str, Vec<&str>> = BTreeMap::new();
    for package in metadata["packages"].as_array().into_iter().flatten() {
        let name = package["name"].as_str().unwrap_or_default();
        let own = package["dependencies"].as_array().into_iter().flatten();
        let own = own.filter(|dependency| dependency["path"].is_string() && dependency["kind"].is_null());
        let own = own.filter_map(|dependency| dependency["name"].as_str()).filter(|name| !ASIDE.contains(name));
        if !ASIDE.contains(&name) {
            below.insert(name, own.collect());
        }
    }
    let mut text = String::new();
    let mut floors: BTreeMap<&str, usize> = BTreeMap::new();
    while floors.len() < below.len() {
        let before = floors.len();
        for (name, own) in below.iter().filter(|(name, _)| !floors.contains_key(**name)).collect::<Vec<_>>() {
            let known: Option<Vec<usize>> = own.iter().map(|one| floors.get(one).copied()).collect();
            if let Some(known) = known {
                floors.insert(name, 1 + known.into_iter().max().unwrap_or(0));
            }
        }
        if floors.len() == before {
            // Cargo allows no circle; a crate that it did not list would be here.
            break;
        }
    }
    let mut order: Vec<(usize, &str)> = floors.into_iter().map(|(name, floor)| (floor, name)).collect();
    order.sort_unstable();
    for (floor, name) in order {
        let own = below.get(name).map(|own| own.join(", ")).unwrap_or_default();
        text.push_str(format!("{floor:>2}  {name:<16} {own}").trim_end());
        text.push('\n');
    }
    text
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::repository;

    const PAGE: &str = "docs/contributing/way-of-a-case.md";

    fn page() -> String {
        std::fs::read_to_string(repository::root().unwrap().join(PAGE)).unwrap()
    }

    #[test]
    fn a_crate_is_above_those_that_it_names() {
        let package = |name: &str, own: &[&str]| {
            let own: Vec<Value> =
                own.iter().map(|own| serde_json::json!({"name": own, "path": "x", "kind": null})).collect();
            serde_json::json!({"name": name, "dependencies": own})
        };
        let metadata =
            serde_json::json!({"packages": [package("c", &["a", "b"]), package("a", &[]), package("b", &["a"])]});
        let shown: Vec<String> = lines(&metadata).lines().map(|line| line.split_whitespace().collect()).collect();
        assert_eq!(shown, ["1a", "2ba", "3ca,b"]);
    }

    #[test]
    fn the_page_shows_the_graph_as_it_is() {
        let graph = printed().unwrap();
        assert!(page().contains(&graph), "{PAGE} shows another graph than cargo xtask graph:\n{graph}");
    }

    #[test]
    fn every_file_that_the_page_names_is_there_and_named_once_a_list() {
        let root = repository::root().unwrap();
        let text = page();
        let lists: Vec<&str> = text.split("\n## ").skip(1).filter(|part| part.starts_with("A case")).collect();
        assert_eq!(lists.len(), 2, "the page has the ways of two cases");
        for list in lists {
            let numbered = list.lines().filter(|line| line.starts_with(|first: char| first.is_ascii_digit()));
            let mut files: Vec<&str> = numbered.filter_map(|line| line.split('`').nth(1)).collect();
            assert!(files.len() > 10, "{files:?}");
            for file in &files {
                assert!(root.join(file).is_file(), "{PAGE} names {file}");
            }
            let all = files.len();
            files.sort_unstable();
            files.dedup();
            assert_eq!(files.len(), all, "a file is named twice");
        }
    }
}
