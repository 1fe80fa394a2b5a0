//! What gpuemu is made of: every crate from the registry, pinned, under a licence that may be used.

use std::collections::BTreeMap;

use serde_json::Value;
use spdx::{Expression, Licensee, ParseMode};

use crate::failure::Failure;
use crate::{process, repository};

/// The file that says what may be used; cargo-deny reads it too.
const RULES: &str = "deny.toml";

/// Checks every crate, and the advisories where cargo-deny and its database can be had.
pub fn run() -> Result<(), Failure> {
    let path = repository::root()?.join(RULES);
    let rules =
        std::fs::read_to_string(&path).map_err(|error| Failure::Environment(format!("{}: {error}", path.display())))?;
    let mut command = process::cargo()?;
    command.args(["metadata", "--format-version", "1", "--locked", "--all-features"]);
    let (metadata, verdict) = process::run_keeping_output(&mut command)?;
    verdict?;
    let allowed = allowed(&rules).map_err(Failure::Environment)?;
    println!("{}", summary(&metadata, &allowed).map_err(Failure::Check)?);
    advisories()
}

/// Advisories need a program and a database that are not everybody's.
fn advisories() -> Result<(), Failure> {
    let mut command = process::cargo()?;
    if !command.args(["deny", "--version"]).output().is_ok_and(|output| output.status.success()) {
        println!("advisories: not checked, cargo-deny is not installed");
        return Ok(());
    }
    process::run(process::cargo()?.args(["deny", "check", "advisories", "bans", "sources"]))
}

fn allowed(rules: &str) -> Result<Vec<Licensee>, String> {
    let rules: toml::Table = rules.parse().map_err(|error| format!("{RULES}: {error}"))?;
    let names = rules.get("licenses").and_then(|licenses| licenses.get("allow")).and_then(toml::Value::as_array);
    let names = names.ok_or_else(|| format!("{RULES} has no list of licences"))?;
    let licence = |name: &toml::Value| {
        let name = name.as_str().ok_or_else(|| format!("{RULES}: a licence is not a string"))?;
        Licensee::parse(name).map_err(|error| format!("{RULES}: {error}"))
    };
    names.iter().map(licence).collect()
}

/// One line about all crates, or what is wrong with some.
fn summary(metadata: &str, allowed: &[Licensee]) -> Result<String, String> {
    let metadata: Value = serde_json::from_str(metadata).map_err(|error| format!("cargo metadata: {error}"))?;
    let packages = metadata["packages"].as_array().ok_or("cargo metadata lists no packages")?;
    let mut problems = Vec::new();
    let mut versions: BTreeMap<&str, u64> = BTreeMap::new();
    let (own, foreign): (Vec<&Value>, Vec<&Value>) = packages.iter().partition(|package| package["source"].is_null());
    // Where any registry is allowed, nothing is said of registries.
    for package in own.iter().filter(|package| package["publish"].is_null()) {
        problems.push(format!("{} could be published; `publish.workspace = true` keeps it here", package["name"]));
    }
    for package in &foreign {
        let name = package["name"].as_str().unwrap_or_default();
        *versions.entry(name).or_default() += 1;
        if !package["source"].as_str().is_some_and(|source| source.starts_with("registry+")) {
            problems.push(format!("{name} comes from {}", package["source"]));
        }
        let licence = package["license"].as_str().unwrap_or_default();
        match Expression::parse_mode(licence, ParseMode::LAX) {
            Ok(expression) if expression.evaluate(|wanted| allowed.iter().any(|have| have.satisfies(wanted))) => {}
            Ok(_) => problems.push(format!("{name} is under {licence}, which {RULES} does not allow")),
            Err(error) => problems.push(format!("{name} has no licence that can be read: {error}")),
        }
    }
    if !problems.is_empty() {
        return Err(problems.join("\n"));
    }
    let several = versions.values().filter(|count| **count > 1).count();
    Ok(format!(
        "{} crates, all from the registry and under allowed licences; {several} in several versions",
        foreign.len()
    ))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn metadata(license: &str, source: &str) -> String {
        serde_json::json!({ "packages": [
            { "name": "own", "license": null, "source": null, "publish": [] },
            { "name": "theirs", "license": license, "source": source },
        ] })
        .to_string()
    }

    #[test]
    fn what_may_not_be_used_is_named() {
        let allowed = allowed("[licenses]\nallow = [\"MIT\", \"BSD-3-Clause\"]\n").unwrap();
        let look = |license: &str, source: &str| summary(&metadata(license, source), &allowed);
        assert!(look("MIT OR GPL-3.0-only", "registry+index").unwrap().starts_with("1 crates"));
        assert!(look("MIT/Apache-2.0", "registry+index").is_ok());
        for license in ["GPL-3.0-only", "MIT AND GPL-3.0-only", "", "my own"] {
            assert!(look(license, "registry+index").unwrap_err().contains("theirs"), "{license}");
        }
        assert!(look("MIT", "git+somewhere").unwrap_err().contains("git+somewhere"));
    }
    #[test]
    fn a_crate_of_ours_that_could_be_published_is_named() {
        let open = r#"{ "packages": [{ "name": "own", "source": null, "publish": null }] }"#;
        assert!(summary(open, &[]).unwrap_err().starts_with("\"own\" could be published"));
        assert!(summary(&open.replace("\"publish\": null", "\"publish\": []"), &[]).is_ok());
    }
}
