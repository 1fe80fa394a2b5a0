//! Reports against the schemas of their formats.

use serde_json::{Value, json};

use super::corpus_run::{report, rewritten, written};
use crate::fixture::{Project, text_of};

fn validator(schema: &str) -> jsonschema::Validator {
    let schema: Value = serde_json::from_str(schema).unwrap();
    jsonschema::options().should_validate_formats(true).build(&schema).unwrap()
}

fn errors(validator: &jsonschema::Validator, value: &Value) -> Vec<String> {
    validator.iter_errors(value).map(|error| format!("{}: {error}", error.instance_path())).collect()
}

fn report_schema() -> jsonschema::Validator {
    validator(include_str!("../../../../docs/reference/report.schema.json"))
}

fn sarif_schema() -> jsonschema::Validator {
    validator(include_str!("../data/sarif-2.1.0.json"))
}

#[test]
fn the_json_of_a_run_is_as_its_schema_says() {
    let schema = report_schema();
    assert_eq!(errors(&schema, &serde_json::from_str(written()).unwrap()), [""; 0]);
    // The schema says something: what is no report is refused.
    let mut wrong = report();
    wrong["ops"][0]["failed"] = "many".into();
    assert_eq!(errors(&schema, &wrong).len(), 1);
    let mut wrong = report();
    wrong["ops"][0]["status"] = "fine".into();
    assert_eq!(errors(&schema, &wrong).len(), 1);
    let mut wrong = report();
    wrong.as_object_mut().unwrap().remove("passed");
    assert_eq!(errors(&schema, &wrong).len(), 1);
}

#[test]
fn seeds_and_numbers_that_json_has_no_name_for_are_in_the_schema() {
    let mut wide = report();
    wide["seed"] = "18446744073709551615".into();
    wide["ops"][0]["max_abs_diff"] = "NaN".into();
    wide["ops"][0]["max_rel_diff"] = "-Infinity".into();
    assert_eq!(errors(&report_schema(), &wide), [""; 0]);
    wide["seed"] = "-1".into();
    wide["ops"][0]["max_abs_diff"] = "a lot".into();
    assert_eq!(errors(&report_schema(), &wide).len(), 2);
}

#[test]
fn sarif_is_as_its_official_schema_says() {
    let schema = sarif_schema();
    let log: Value = serde_json::from_str(&rewritten(&report(), "sarif")).unwrap();
    assert_eq!(errors(&schema, &log), [""; 0]);
    let results = log["runs"][0]["results"].as_array().unwrap();
    assert!(results.len() >= 4, "{}", results.len());
    let mut wrong = log.clone();
    wrong["runs"][0]["results"][0]["level"] = "fatal".into();
    assert_eq!(errors(&schema, &wrong).len(), 1);
    let mut wrong = log;
    wrong["runs"][0]["results"][0]["locations"][0]["physicalLocation"]["region"]["startLine"] = 0.into();
    assert_eq!(errors(&schema, &wrong).len(), 1);
}

#[test]
fn what_could_not_be_judged_or_fails_as_expected_is_sarif_too() {
    let mut report = report();
    for op in report["ops"].as_array_mut().unwrap() {
        if op["status"] == "failed" {
            op["status"] = "expected_failure".into();
            op["message"] = "expected: known [since](1) long".into();
        }
    }
    report["ops"][0]["status"] = "error".into();
    report["ops"][0]["message"] = "the reference raised\nZeroDivisionError".into();
    report["kernels"] = json!([]);
    let project = Project::without_python();
    project.write("report.json", &report.to_string());
    let output = project.gpuemu(&["report", "--from", "report.json", "--format", "sarif"]).assert().code(2);
    let log: Value = serde_json::from_str(&text_of(&output.get_output().stdout)).unwrap();
    assert_eq!(errors(&sarif_schema(), &log), [""; 0]);
    let run = &log["runs"][0];
    let invocation = &run["invocations"][0];
    assert_eq!((&invocation["executionSuccessful"], &invocation["exitCode"]), (&false.into(), &2.into()));
    let said = invocation["toolExecutionNotifications"][0]["message"]["text"].as_str().unwrap();
    assert!(said.contains("could not be judged: the reference raised\nZeroDivisionError"), "{said}");
    let results = run["results"].as_array().unwrap();
    let accepted: Vec<&Value> = results.iter().filter(|result| result["suppressions"].is_array()).collect();
    assert!(!accepted.is_empty());
    assert!(accepted.iter().all(|result| result["level"] == "note"), "{accepted:?}");
    assert!(results.iter().any(|result| result["ruleId"] == "run/error" && result["level"] == "error"));
}

#[test]
fn junit_is_as_its_schema_says() {
    let Some(project) = Project::new() else { return };
    project.write("results.xml", &rewritten(&report(), "junit"));
    let schema = concat!(env!("CARGO_MANIFEST_DIR"), "/tests/data/junit.xsd");
    let program = "import sys, xmlschema\nxmlschema.XMLSchema(sys.argv[1]).validate(sys.argv[2])\n";
    let output = project.python(&["-c", program, schema, "results.xml"]).output().unwrap();
    assert!(output.status.success(), "{}", text_of(&output.stderr));
}

#[test]
fn the_places_of_findings_are_files_of_the_repository() {
    let log: Value = serde_json::from_str(&rewritten(&report(), "sarif")).unwrap();
    let results = log["runs"][0]["results"].as_array().unwrap();
    let first = |rule: &str| {
        let result = results.iter().find(|result| result["ruleId"] == rule).unwrap_or_else(|| panic!("no {rule}"));
        let location = &result["locations"][0]["physicalLocation"];
        (location["artifactLocation"]["uri"].as_str().unwrap(), location["region"]["startLine"].as_u64().unwrap())
    };
    // What the machine and the linter find is at its line, what the oracle finds at the op's.
    let (file, line) = first("check/out_of_bounds");
    assert_eq!(file, "kernels/cuda/ptx/relu_elements_one_more.ptx");
    assert!(line > 1);
    assert_eq!(first("check/race").0, "kernels/cuda/ptx/sum_tree_no_barrier.ptx");
    assert!(first("lint/address-overflow").0.starts_with("kernels/cuda/ptx/embedding_rows"));
    let report = report();
    let op = report["ops"].as_array().unwrap().iter().find(|op| op["op"] == "layernorm_tail_in_variance").unwrap();
    assert_eq!(first("check/value"), ("kernels/gpuemu.toml", op["line"].as_u64().unwrap()));
}

#[test]
fn fingerprints_are_those_of_the_next_run() {
    let fingerprints = |report: &Value| -> Vec<String> {
        let log: Value = serde_json::from_str(&rewritten(report, "sarif")).unwrap();
        let results = log["runs"][0]["results"].as_array().unwrap();
        let mut all: Vec<String> = results.iter().map(|result| result["partialFingerprints"].to_string()).collect();
        all.sort();
        all
    };
    let before = fingerprints(&report());
    let mut distinct = before.clone();
    distinct.dedup();
    assert_eq!(distinct, before, "each issue has its own");
    // Other seeds, figures and lines.
    let mut other = report();
    other["seed"] = "8".into();
    for op in other["ops"].as_array_mut().unwrap() {
        op["line"] = (op["line"].as_u64().unwrap() + 3).into();
        for failure in op["failures"].as_array_mut().unwrap() {
            failure["seed"] = "123".into();
            failure["tolerance_share"] = 9.0.into();
        }
    }
    assert_eq!(fingerprints(&other), before);
}
