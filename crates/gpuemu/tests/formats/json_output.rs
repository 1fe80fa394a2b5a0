//! With `--format json`, standard output is one JSON document or nothing, whatever the exit status.

use std::collections::BTreeSet;

use gpuemu_tensor::DType;
use gpuemu_tensor::npy;
use serde_json::Value;

use super::corpus_run::corpus_project;
use crate::fixture::kernels::{LEAKY_RELU, gpuemu};
use crate::fixture::{Project, text_of};

/// What a command prints: a document where it has a result, nothing where it has none.
#[derive(PartialEq)]
enum Expected {
    Document,
    Nothing,
}
use Expected::{Document, Nothing};

/// One JSON document in a workflow of GitHub and elsewhere, and the same exit status.
#[track_caller]
fn check(project: &Project, arguments: &[&str], status: i32, expected: Expected) -> Value {
    let arguments = [arguments, &["--format", "json"]].concat();
    let mut document = Value::Null;
    for workflow in ["true", ""] {
        let command = gpuemu(project, &arguments).env("GITHUB_ACTIONS", workflow);
        let output = command.env("GITHUB_STEP_SUMMARY", project.path("summary.md")).output().unwrap();
        let (result, said) = (text_of(&output.stdout), text_of(&output.stderr));
        assert_eq!(output.status.code(), Some(status), "{arguments:?}: {said}{result}");
        if expected == Nothing {
            assert_eq!(result, "", "{arguments:?}");
            assert!(said.contains("error"), "{arguments:?}: {said}");
            continue;
        }
        // A parser of one document refuses anything after it.
        document = serde_json::from_str(&result).unwrap_or_else(|error| panic!("{arguments:?}: {error}\n{result}"));
        assert!(document.is_object() || document.is_array(), "{arguments:?}");
    }
    document
}

/// The commands that can print JSON, as the help has them.
fn commands_with_json() -> BTreeSet<String> {
    let project = Project::without_python();
    let help = |arguments: &[&str]| text_of(&gpuemu(&project, arguments).assert().success().get_output().stdout);
    let listed = help(&["--help"]);
    let listed = listed.split("Commands:").nth(1).unwrap().split("\n\n").next().unwrap();
    let names = listed.lines().filter_map(|line| line.split_whitespace().next()).filter(|name| *name != "help");
    let has_json = |name: &&str| {
        let all = help(&[name, "--help"]);
        let subcommands = all.split("Commands:").nth(1).map(|part| part.split("\n\n").next().unwrap().to_string());
        let subcommands = subcommands.unwrap_or_default();
        let mut deeper =
            subcommands.lines().filter_map(|line| line.split_whitespace().next()).filter(|one| *one != "help");
        all.contains("--format <") || deeper.any(|one| help(&[name, one, "--help"]).contains("--format <"))
    };
    names.filter(has_json).map(ToString::to_string).collect()
}

#[test]
fn every_command_prints_one_document_or_nothing() {
    let project = corpus_project(&["relu_one_more"]);
    project.write("leaky_relu.ptx", LEAKY_RELU);
    let bytes: Vec<u8> = [1.0f32, -2.0].iter().flat_map(|value| value.to_le_bytes()).collect();
    std::fs::write(project.path("in.npy"), npy::write(DType::F32, &[2], &bytes)).unwrap();
    let mut tried = BTreeSet::new();
    let mut try_it = |arguments: &[&str], status: i32, expected: Expected| {
        tried.insert(arguments[0].to_string());
        check(&project, arguments, status, expected)
    };
    // What passes, what fails, and what cannot work.
    let right = "right_relu_elements_relu_dtypes___float32__";
    let few = ["--iterations", "2", "--op"];
    for command in ["test", "fuzz", "ci"] {
        try_it(&[&[command], &few[..], &[right]].concat(), 0, Document);
        let seed = if command == "test" { "--base-seed" } else { "--seed" };
        try_it(&[&[command], &few[..], &["relu_one_more", seed, "7"]].concat(), 1, Document);
        try_it(&[command, "--op", "nobody"], 2, Nothing);
    }
    let report = try_it(&["report"], 1, Document);
    let seed = report["ops"].as_array().unwrap().iter().flat_map(|op| op["failures"].as_array().unwrap());
    let seed = seed.map(|failure| failure["seed"].as_str().unwrap().to_string()).next().unwrap();
    try_it(&["report", "--op", right], 0, Document);
    try_it(&["report", "--op", "nobody"], 2, Nothing);
    try_it(&["report", "--from", "none.json"], 2, Nothing);
    try_it(&["report", "--include-lint", "--include-artifacts"], 1, Document);
    try_it(&["test", "--seed", &seed], 1, Document);
    try_it(&["reproduce", &seed], 1, Document);
    try_it(&["reproduce", "1"], 2, Nothing);
    try_it(&["minimize", &seed], 1, Document);
    try_it(&["minimize", "1"], 2, Nothing);
    try_it(&["failures"], 0, Document);
    try_it(&["failures", "show", &seed], 0, Document);
    try_it(&["failures", "show", "1"], 2, Nothing);
    try_it(&["failures", "replay"], 1, Document);
    try_it(&["coverage"], 0, Document);
    try_it(&["coverage", "--op", "nobody"], 2, Nothing);
    try_it(&["baseline", "good"], 0, Document);
    try_it(&["baseline", "list"], 0, Document);
    // Nothing regressed, and one of the kernels still fails.
    try_it(&["diff", "--baseline", "good"], 1, Document);
    try_it(&["diff", "--baseline", "nobody"], 2, Nothing);
    try_it(&["lint"], 0, Document);
    try_it(&["lint", "--forbid", "ret"], 1, Document);
    try_it(&["lint", "--kernel", "nobody"], 2, Nothing);
    try_it(&["artifacts"], 0, Document);
    try_it(&["artifacts", "none.ptx"], 2, Document);
    let launch = ["leaky_relu.ptx", "--block", "32", "--arg", "x=f32:in.npy", "--arg", "y=f32:out:2", "--arg"];
    for command in ["emulate", "sanitize"] {
        try_it(&[&[command], &launch[..], &["i32:2"]].concat(), 0, Document);
        try_it(&[&[command], &launch[..], &["i32:9"]].concat(), 1, Document);
        try_it(&[command, "none.ptx"], 2, Nothing);
    }
    try_it(&["calibrate", "--op", right, "--control", "nobody"], 2, Nothing);
    try_it(&["config", "check"], 0, Document);
    try_it(&["status"], 0, Document);
    try_it(&["daemon", "status"], 0, Document);
    try_it(&["ops"], 0, Document);
    try_it(&["ops", "softmax"], 0, Document);
    try_it(&["ops", "nobody"], 2, Nothing);
    try_it(&["corpus", "--kernel", "relu_one_more", "--cases", "2"], 0, Document);
    try_it(&["corpus", "--kernel", "nobody"], 2, Nothing);
    try_it(&["study", "artifacts"], 0, Document);
    try_it(&["study", "artifacts", "--seed", "1"], 2, Nothing);
    try_it(&["init", "other", "--force"], 0, Document);
    try_it(&["init", "other"], 2, Nothing);
    try_it(&["version"], 0, Document);
    try_it(&["verify", "none.json"], 2, Nothing);
    assert_eq!(tried, commands_with_json(), "every command with --format is tried here");
}

#[test]
fn a_signed_report_leaves_stdout_to_programs() {
    let project = corpus_project(&["relu_one_more"]);
    let op = "right_relu_elements_relu_dtypes___float32__";
    check(&project, &["test", "--iterations", "2", "--op", op], 0, Document);
    // The report is in the file: there is nothing left to print.
    let signed = ["report", "--signed", "--output", "signed.json"];
    let output = gpuemu(&project, &[&signed[..], &["--format", "json"]].concat()).output().unwrap();
    assert_eq!(text_of(&output.stdout), "", "{}", text_of(&output.stderr));
    assert!(text_of(&output.stderr).contains("signed by key"));
    check(&project, &["verify", "signed.json", "--signature-only"], 0, Document);
    let refused = gpuemu(&project, &[&signed[..], &["--format", "sarif"]].concat()).assert().code(2);
    assert!(text_of(&refused.get_output().stderr).contains("a signed report is JSON"));
}
