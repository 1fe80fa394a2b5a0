//! `gpuemu corpus`, as a user sees it.
#![allow(clippy::unwrap_used, reason = "tests fail by panicking")]

use serde_json::Value;
use snapbox::cmd::{Command, cargo_bin};
use snapbox::str;

fn gpuemu(arguments: &[&str]) -> Command {
    Command::new(cargo_bin!("gpuemu")).args(arguments).env("NO_COLOR", "1")
}

fn json(arguments: &[&str], code: i32) -> Value {
    let output = gpuemu(arguments).assert().code(code);
    serde_json::from_slice(&output.get_output().stdout).unwrap()
}

#[test]
fn the_summary_has_every_count() {
    let report = json(&["corpus", "--cases", "40", "--format", "json"], 0);
    let summary = &report["summary"];
    assert_eq!((&summary["bugs"], &summary["caught"]), (&10.into(), &10.into()));
    assert_eq!((&summary["controls"], &summary["false_alarms"]), (&16.into(), &0.into()));
    assert_eq!(summary["cases"], 26 * 40);
    assert_eq!(summary["observable"], summary["observable_detected"]);
    for count in ["triggered", "detected", "allclose_caught", "seconds", "beyond_ulp_detected"] {
        assert!(summary[count].as_f64().is_some_and(|count| count > 0.0), "{count}: {summary}");
    }
    assert_eq!(report["kernels"].as_array().unwrap().len(), 26);
}

#[test]
fn a_row_shows_the_failure_and_how_to_replay_it() {
    let report = json(&["corpus", "--kernel", "softmax_other_zero", "--cases", "40", "--format", "json"], 0);
    let row = &report["kernels"][0];
    assert_eq!((row["flagged"].as_bool(), row["role"].as_str()), (Some(true), Some("bug")));
    assert_eq!(row["suspected"], "padding");
    let smallest = &row["smallest_failure"];
    assert_eq!(smallest["case"]["sizes"]["named"], serde_json::json!([["H", 3]]));
    assert_eq!(smallest["passing_neighbour"], serde_json::json!({"dimension": "H", "fails": 3, "passes": 4}));
    // Seeds are strings: numbers lose their upper bits in other languages.
    let first = &row["first_failure"];
    let seed = first["verdict"]["case"]["seed"].as_str().unwrap();
    assert_eq!(first["replay"], format!("gpuemu corpus --kernel softmax_other_zero --replay {seed}"));
    let replayed = json(&["corpus", "--kernel", "6", "--replay", seed, "--format", "json"], 1);
    assert_eq!(replayed, first["verdict"]);
}

#[test]
fn a_replay_for_people() {
    gpuemu(&["corpus", "--kernel", "softmax_other_zero", "--replay", "7614348615068889964"])
        .assert()
        .code(1)
        .stderr_eq("")
        .stdout_eq(str![[r#"
softmax_other_zero: Failed
...
  value: [..] of [..] elements of 'out' differ; rows sum to [..] in place of 1[..] [padding in a denominator]
    worst at [..]: [..], expected [..] (error [..], allowed [..])

"#]]);
}

#[test]
fn the_table_ends_with_what_was_found() {
    let output =
        gpuemu(&["corpus", "--cases", "20", "--kernel", "relu", "--kernel", "gelu_no_half"]).assert().success();
    let text = String::from_utf8(output.get_output().stdout.clone()).unwrap();
    assert!(text.contains("1 of 1 wrong kernels caught, 0 of 1 right ones flagged"), "{text}");
    assert!(text.contains("beyond 1 ulp") && text.contains("merely triggered"), "{text}");
    assert!(text.contains("replay a case: gpuemu corpus --kernel gelu_no_half --replay "), "{text}");
}

#[test]
fn mistakes_are_usage_errors() {
    gpuemu(&["corpus", "--kernel", "softmx"]).assert().code(2).stdout_eq("").stderr_eq(str![[r#"
error: unknown kernel 'softmx'
hint: the corpus has: [..]

"#]]);
    gpuemu(&["corpus", "--replay", "1"]).assert().code(2).stdout_eq("");
    gpuemu(&["corpus", "--cases", "0"]).assert().code(2).stdout_eq("");
    gpuemu(&["corpus", "--seed", "-1"]).assert().code(2).stdout_eq("");
    gpuemu(&["corpus", "--controls", "--kernel", "gelu_no_half"]).assert().code(2).stdout_eq("");
    gpuemu(&["corpus", "--format", "yaml"]).assert().code(2).stdout_eq("");
    gpuemu(&[]).assert().code(2).stdout_eq("");
}

#[test]
fn the_same_seed_gives_the_same_report() {
    let strip = |mut report: Value| {
        report["summary"]["seconds"] = Value::Null;
        report
    };
    let arguments = ["corpus", "--cases", "15", "--seed", "18446744073709551615", "--format", "json"];
    assert_eq!(strip(json(&arguments, 0)), strip(json(&arguments, 0)));
}
