//! `--shard` and `report --merge`: the parts of a run, joined, are the run.
#![allow(clippy::unwrap_used, reason = "tests fail by panicking")]

use serde_json::Value;

use crate::fixture::kernels::{gpuemu, softmax_kernel};
use crate::fixture::{Project, text_of};

/// Three ops of compiled kernels: a right one, one that masks with 0, and a right one held to a tolerance that no
/// correct kernel keeps.
fn project() -> Project {
    let project = Project::without_python();
    let kernels =
        softmax_kernel(&project, "right", "softmax") + &softmax_kernel(&project, "masked", "softmax_other_zero");
    project.write(
        "gpuemu.toml",
        &format!(
            "[project]\nname = \"sharded\"\nframework = \"numpy\"\n\n[validation]\nseed = 7\n\n{kernels}\
             [[ops]]\nname = \"softmax\"\nkernel = \"right\"\ndtypes = [\"float32\"]\n\n\
             [[ops]]\nname = \"masked\"\nop = \"softmax\"\nkernel = \"masked\"\ndtypes = [\"float32\"]\nvalues = \"regular\"\n\n\
             [[ops]]\nname = \"tight\"\nop = \"softmax\"\nkernel = \"right\"\ndtypes = [\"float32\"]\ntolerance = \"fixed\"\n\
             [ops.tolerances.float32]\natol = 0.0\nrtol = 1e-9\n\n\
             [[expected_failures]]\nop = \"tight\"\nreason = \"a tolerance for nobody\"\nexpires = \"2999-01-01\"\n"
        ),
    );
    project
}

/// Runs with a store of its own, as another machine would, and writes the report.
fn write_report(project: &Project, file: &str, arguments: &[&str], status: i32) {
    let home = tempfile::tempdir().unwrap();
    let arguments = [arguments, &["--no-daemon", "--format", "json", "--output", file]].concat();
    gpuemu(project, &arguments).env("GPUEMU_HOME", home.path()).assert().code(status);
}

/// A report without what differs from one run to the next.
fn same_run(report: &str) -> Value {
    fn strip(value: &mut Value) {
        match value {
            Value::Object(fields) => {
                for name in ["time", "seconds", "run"] {
                    fields.remove(name);
                }
                fields.values_mut().for_each(strip);
            }
            Value::Array(items) => items.iter_mut().for_each(strip),
            _ => {}
        }
    }
    let mut value = serde_json::from_str(report).unwrap();
    strip(&mut value);
    value
}

#[test]
fn shards_joined_are_the_run_in_one_piece() {
    let project = project();
    // More failures than a report lists, so that the order in which they are joined shows.
    let ci = ["ci", "--iterations", "150"];
    write_report(&project, "whole.json", &ci, 1);
    let whole = project.read("whole.json");
    for count in [2, 3] {
        let mut files = Vec::new();
        for index in 1..=count {
            let (shard, file) = (format!("{index}/{count}"), format!("{index}.json"));
            write_report(&project, &file, &[&ci[..], &["--shard", &shard]].concat(), 1);
            files.push(file);
        }
        // The order of the files does not matter.
        files.reverse();
        let files: Vec<&str> = files.iter().map(String::as_str).collect();
        let merge = [&["report", "--format", "json", "--merge"], &files[..]].concat();
        let joined = text_of(&gpuemu(&project, &merge).assert().code(1).get_output().stdout);
        assert_eq!(same_run(&joined), same_run(&whole), "{count} shards");
        let text = [&["report", "--format", "text", "--merge"], &files[..]].concat();
        let text = text_of(&gpuemu(&project, &text).assert().code(1).get_output().stdout);
        assert!(text.contains("FAIL   masked") && text.contains("XFAIL  tight"), "{text}");
    }
    let report: Value = serde_json::from_str(&whole).unwrap();
    assert!(report["ops"][1]["failed"].as_u64() > Some(50), "{}", report["ops"][1]["failed"]);
    let warnings = report["ops"][2]["warnings"].to_string();
    assert!(warnings.contains("of the first 20 failures are within the rigorous bound"), "{warnings}");
}

#[test]
fn what_is_not_all_of_one_run_is_not_joined() {
    let project = project();
    let fuzz = ["fuzz", "--op", "softmax", "--iterations", "9", "--shard"];
    write_report(&project, "1.json", &[&fuzz[..], &["1/2"]].concat(), 0);
    write_report(&project, "2.json", &[&fuzz[..], &["2/2"]].concat(), 0);
    write_report(&project, "other.json", &[&fuzz[..], &["2/2", "--seed", "8"]].concat(), 0);
    write_report(&project, "whole.json", &["fuzz", "--op", "softmax", "--iterations", "9"], 0);
    let refused = |files: &[&str], words: &str| {
        let output = gpuemu(&project, &[&["report", "--merge"], files].concat()).assert().code(2);
        let said = text_of(&output.get_output().stderr);
        assert!(said.contains(words) && output.get_output().stdout.is_empty(), "{said}");
    };
    refused(&["1.json"], "of 2 shards 2 is missing");
    refused(&["1.json", "1.json"], "shard 1 is there twice");
    refused(&["1.json", "whole.json"], "whole.json is no shard");
    refused(&["1.json", "other.json"], "the seed is '7' in 1.json and '8' in other.json");
    refused(&["1.json", "none.json"], "none.json is not a report of gpuemu");
    // A case that a report no longer lists was not judged.
    let mut report: Value = serde_json::from_str(&project.read("2.json")).unwrap();
    report["ops"][0]["part"]["cases"].as_array_mut().unwrap().pop();
    project.write("fewer.json", &report.to_string());
    refused(&["1.json", "fewer.json"], "counts 4 cases of op 'softmax', 0 of them failed, and lists others");
    report["ops"][0]["cases"] = 3.into();
    project.write("fewer.json", &report.to_string());
    // Nor is one of an op whose cases were emptied, whatever the report calls the op.
    let emptied = |change: fn(&mut Value)| {
        let mut report: Value = serde_json::from_str(&project.read("2.json")).unwrap();
        change(&mut report["ops"][0]);
        project.write("emptied.json", &report.to_string());
    };
    emptied(|op| {
        op.as_object_mut().unwrap().remove("part");
    });
    refused(&["1.json", "emptied.json"], "the report emptied.json judges op 'softmax' and lists none of its cases");
    // One that could not be started there is no pass, and no reason to refuse the others.
    emptied(|op| {
        op.as_object_mut().unwrap().remove("part");
        for count in ["planned", "cases", "passed"] {
            op[count] = 0.into();
        }
        (op["status"], op["message"]) = ("error".into(), "it was not there".into());
    });
    let text = text_of(
        &gpuemu(&project, &["report", "--merge", "1.json", "emptied.json"]).assert().code(2).get_output().stdout,
    );
    assert!(text.contains("ERROR  softmax") && text.contains("it was not there"), "{text}");
    let none = |op: &mut Value| {
        for count in ["planned", "cases", "passed"] {
            op[count] = 0.into();
        }
        op["part"]["cases"] = Value::Array(Vec::new());
    };
    emptied(none);
    refused(&["1.json", "emptied.json"], "the cases of op 'softmax' are not those of shard");
    emptied(|op| op["part"]["cases"][1] = op["part"]["cases"][0].clone());
    refused(
        &["1.json", "emptied.json"],
        "in the report emptied.json, the cases of op 'softmax' are not those of shard 2/2 of 9 cases",
    );
    emptied(|op| op["op"] = "other\nPASS   softmax".into());
    refused(&["emptied.json"], "the name of the op \"other\\nPASS   softmax\" has the character \\u{a}");
    let files = ["report", "--merge", "1.json", "fewer.json"];
    let text = text_of(&gpuemu(&project, &files).assert().code(1).get_output().stdout);
    assert!(text.contains("only 8 of 9 cases are in the reports"), "{text}");
    project.replace("gpuemu.toml", "sharded", "renamed");
    refused(&["1.json", "2.json"], "another configuration than the project has now");
}

#[test]
fn shards_need_a_seed_a_number_of_cases_and_a_case_each() {
    let project = project();
    let refused = |arguments: &[&str], words: &str| {
        let output =
            gpuemu(&project, &[&["fuzz", "--no-daemon", "--op", "softmax"], arguments].concat()).assert().code(2);
        let said = text_of(&output.get_output().stderr);
        assert!(said.contains(words), "{said}");
    };
    refused(&["--shard", "0/2"], "'0/2' is no shard: write it as i/n");
    refused(&["--shard", "3/9", "--iterations", "8"], "there are 9 shards, but only 8 cases of each op");
    refused(&["--shard", "1/2", "--seconds", "1"], "cannot be used with");
    project.replace("gpuemu.toml", "seed = 7\n", "");
    refused(&["--shard", "1/2"], "give all shards the same seed");
}
