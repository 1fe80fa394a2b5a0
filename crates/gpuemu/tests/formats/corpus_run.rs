//! One run of a few pairs of the grown corpus, which the tests here look at.

use std::sync::OnceLock;

use serde_json::Value;

use crate::fixture::kernels::gpuemu;
use crate::fixture::{Project, text_of};

/// A store past the end, a race, tail lanes in a variance, a 32-bit offset that wraps; each with its right twin.
const PAIRS: [&str; 4] = ["relu_one_more", "sum_tree_no_barrier", "layernorm_tail_in_variance", "embedding_int_offset"];

/// Where the project is said to lie: in a folder of a repository, on no machine at all.
const CONFIGURATION: &str = "/repository/kernels/gpuemu.toml";

pub fn corpus_project(pairs: &[&str]) -> Project {
    let project = Project::without_python();
    let named: Vec<&str> = pairs.iter().flat_map(|pair| ["--kernel", pair]).collect();
    gpuemu(&project, &[&["corpus", "--set", "grown", "--write", "."], named.as_slice()].concat()).assert().success();
    project
}

/// The JSON report on a run of the pairs, as it was written.
pub fn written() -> &'static str {
    static WRITTEN: OnceLock<String> = OnceLock::new();
    WRITTEN.get_or_init(|| {
        let project = corpus_project(&PAIRS);
        let ci =
            ["--no-daemon", "ci", "--seed", "7", "--iterations", "4", "--format", "json", "--output", "report.json"];
        gpuemu(&project, &ci).assert().code(1).stdout_eq("");
        project.read("report.json")
    })
}

/// The same without what differs from one run to the next, or from one processor to the next.
pub fn report() -> Value {
    let mut report = serde_json::from_str(written()).unwrap();
    normalise(&mut report);
    report["config"] = CONFIGURATION.into();
    report
}

fn normalise(value: &mut Value) {
    match value {
        Value::Object(fields) => {
            for (name, value) in fields.iter_mut() {
                match (name.as_str(), &value) {
                    ("time", Value::Number(_)) => *value = 0.into(),
                    ("seconds", Value::Number(_)) => *value = 0.0.into(),
                    ("run", Value::String(_)) => *value = "1".into(),
                    ("gpuemu", Value::String(_)) => *value = "0.0.0".into(),
                    ("config_digest", Value::String(_)) => *value = "0".into(),
                    _ => normalise(value),
                }
            }
        }
        Value::Array(items) => items.iter_mut().for_each(normalise),
        // The last digits of a reference's arithmetic are its processor's.
        Value::Number(number) if number.is_f64() => {
            let rounded: f64 = format!("{:.5e}", number.as_f64().unwrap()).parse().unwrap();
            *value = rounded.into();
        }
        _ => {}
    }
}

/// The report in another format.
pub fn rewritten(report: &Value, format: &str) -> String {
    let project = Project::without_python();
    project.write("report.json", &report.to_string());
    let code = match report["passed"] == true {
        true => 0,
        false => 1,
    };
    let command = gpuemu(&project, &["report", "--from", "report.json", "--format", format]);
    let output = command.env("GITHUB_WORKSPACE", "/repository").assert().code(code);
    assert_eq!(text_of(&output.get_output().stderr), "");
    text_of(&output.get_output().stdout)
}
