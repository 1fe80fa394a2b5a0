//! `gpuemu corpus --set grown`: every wrong twin is reported by the check that must, and no right one is.
#![allow(clippy::unwrap_used, clippy::print_stderr, reason = "tests fail by panicking")]

use std::collections::BTreeSet;

use serde_json::Value;
use snapbox::cmd::{Command, cargo_bin};

use crate::pages::assert_shown;

/// Python twins run with the Python of the tests; without one they must be said not to have run.
fn gpuemu(arguments: &[&str]) -> Command {
    let python = std::env::var_os("GPUEMU_TEST_PYTHON");
    assert!(python.is_some() || std::env::var_os("CI").is_none(), "GPUEMU_TEST_PYTHON is not set");
    let python = python.unwrap_or_else(|| "/nonexistent/python".into());
    Command::new(cargo_bin!("gpuemu")).args(arguments).env("NO_COLOR", "1").env("GPUEMU_PYTHON", python)
}

fn exit_of_all() -> i32 {
    if std::env::var_os("GPUEMU_TEST_PYTHON").is_some() { 0 } else { 2 }
}

fn json(arguments: &[&str], code: i32) -> Value {
    let output = gpuemu(arguments).assert();
    let output = output.get_output();
    let report = serde_json::from_slice(&output.stdout).unwrap_or(Value::Null);
    let wrong: Vec<&Value> = report["pairs"]
        .as_array()
        .into_iter()
        .flatten()
        .filter(|pair| pair["verdict_is_right"] == false && pair["right"]["not_run"].is_null())
        .collect();
    let said = String::from_utf8_lossy(&output.stderr);
    assert_eq!(output.status.code(), Some(code), "{wrong:#?}\n{said}");
    report
}

#[test]
fn every_wrong_twin_is_reported_and_no_right_one() {
    let report = json(&["corpus", "--set", "grown", "--cases", "40", "--format", "json"], exit_of_all());
    assert_eq!(report["seed"], "0");
    let summary = &report["pairs_summary"];
    assert_eq!(summary["false_alarms"], 0, "{summary}");
    let ran = summary["pairs"].as_u64().unwrap() - summary["not_run"].as_u64().unwrap();
    assert_eq!(summary["caught"], ran, "{summary}");
    let pairs = &summary["pairs"];
    let classes: BTreeSet<&str> =
        report["pairs"].as_array().unwrap().iter().map(|pair| pair["class"].as_str().unwrap()).collect();
    let row = format!(
        "[{pairs} pairs](lab/corpus/README.md) in {} classes of bugs | not run | {pairs} of {pairs} |",
        classes.len()
    );
    assert_shown("README.md", &row);
}

#[test]
fn a_failing_case_of_a_pair_is_replayed() {
    let name = "sum_tree_no_barrier";
    let report = json(&["corpus", "--kernel", name, "--cases", "20", "--format", "json"], 0);
    let pair = &report["pairs"][0];
    assert_eq!((&pair["name"], &pair["reported_by"]), (&name.into(), &serde_json::json!(["race"])));
    let seed = pair["wrong"]["first_failing_seed"].as_str().unwrap();
    let replayed = json(&["corpus", "--kernel", name, "--replay", seed, "--format", "json"], 1);
    assert_eq!(replayed["seed"], seed);
    let right = json(&["corpus", "--kernel", name, "--replay", seed, "--controls", "--format", "json"], 0);
    assert_eq!(right["passed"], true);
    // Both sets at once: the keys of one do not hide those of the other.
    let both = json(&["corpus", "--kernel", name, "--kernel", "softmax", "--cases", "10", "--format", "json"], 0);
    assert_eq!((both["kernels"].as_array().unwrap().len(), both["pairs"].as_array().unwrap().len()), (1, 1));
}

#[test]
fn the_pairs_become_a_project() {
    let folder = tempfile::tempdir().unwrap();
    let project = folder.path().join("pairs");
    let write = ["corpus", "--write", project.to_str().unwrap()];
    gpuemu(&write).assert().success();
    let said = gpuemu(&write).assert().code(2);
    assert!(String::from_utf8_lossy(&said.get_output().stderr).contains("exists already"));
    let configuration = std::fs::read_to_string(project.join("gpuemu.toml")).unwrap();
    assert!(configuration.contains("[[ops]]") && configuration.contains("[[kernels]]"));
}

#[test]
fn names_that_nobody_has_are_refused() {
    let said = gpuemu(&["corpus", "--set", "grown", "--kernel", "nothing"]).assert().code(2);
    let said = String::from_utf8_lossy(&said.get_output().stderr).into_owned();
    assert!(said.contains("unknown kernel 'nothing'"), "{said}");
}
