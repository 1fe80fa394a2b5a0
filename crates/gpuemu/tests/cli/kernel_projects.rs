//! Compiled kernels of a project: checked, kept under a tag, compared, part of the gate.
#![allow(clippy::unwrap_used, clippy::panic, clippy::print_stderr, reason = "tests fail by panicking")]

use serde_json::Value;
use snapbox::str;

use crate::fixture::kernels::{CONFIG, LEAKY_RELU, TWO_KERNELS, compiled, gpuemu, json, stderr, stdout};
use crate::fixture::{Project, text_of};

#[test]
fn a_project_of_kernels_is_checked_the_same_with_and_without_the_daemon() {
    let project = compiled();
    let lint = json(&project, &["lint"], 0);
    let names: Vec<&str> =
        lint["kernels"].as_array().unwrap().iter().map(|one| one["kernel"].as_str().unwrap()).collect();
    assert_eq!(names, ["leaky_relu", "pair"]);
    assert_eq!(lint["kernels"][1]["config_line"], 10);
    let artifacts = json(&project, &["artifacts", "--kernel", "pair"], 0);
    assert_eq!(artifacts["kernels"][0], lint["kernels"][1]);
    let text = stdout(&project, &["artifacts"], 0);
    assert!(stdout(&project, &["status"], 0).contains("  pair        kernel kernels/two_kernels.ptx\n"));
    // What was measured is stored once, as long as it stays the same.
    let status = project.json(&["daemon", "status", "--format", "json"], 0);
    assert_eq!(status["status"]["stored"]["artifacts"], 2);
    gpuemu(&project, &["daemon", "stop"]).assert().success();
    assert_eq!(json(&project, &["--no-daemon", "lint"], 0), lint);
    assert_eq!(stdout(&project, &["--no-daemon", "artifacts"], 0), text);
    project.replace("kernels/leaky_relu.ptx", "0f3C23D70A", "0f3DCCCCCD");
    json(&project, &["--no-daemon", "lint"], 0);
    let status = json(&project, &["--no-daemon", "status"], 0);
    assert_eq!(status["daemon"]["stored"]["artifacts"], 3);
}

#[test]
fn a_changed_constant_is_shown_although_all_counts_are_equal() {
    let project = compiled();
    gpuemu(&project, &["baseline", "good"]).assert().success().stdout_eq("good  2 kernels\n");
    gpuemu(&project, &["baseline", "list"]).assert().success().stdout_eq("good  2 kernels\n");
    gpuemu(&project, &["diff", "--baseline", "good"]).assert().success().stdout_eq(str![[r#"
against baseline good (threshold 10 %)
  same       leaky_relu      kernel, all counts are equal
  same       pair block_sum  kernel, all counts are equal
  same       pair fill       kernel, all counts are equal

"#]]);
    let before = project.read("kernels/leaky_relu.ptx");
    project.replace("kernels/leaky_relu.ptx", "0f3C23D70A", "0f3DCCCCCD");
    gpuemu(&project, &["diff", "--baseline", "good"]).assert().success().stdout_eq(str![[r#"
against baseline good (threshold 10 %)
  changed    leaky_relu      kernel, all counts are equal, 2 constants differ
    constant mul.f32 0f3DCCCCCD (0.1): 0 -> 1 times
    constant mul.f32 0f3C23D70A (0.01): 1 -> 0 times
  same       pair block_sum  kernel, all counts are equal
  same       pair fill       kernel, all counts are equal

"#]]);
    gpuemu(&project, &["diff", "--baseline", "good", "--fail-on-constants"]).assert().code(1);
    let compared = json(&project, &["diff", "--baseline", "good", "--fail-on-constants"], 1);
    assert_eq!(compared["artifacts"][0]["status"], "changed");
    assert_eq!(compared["artifacts"][0]["changes"], serde_json::json!([]));
    // Two files, without a project.
    project.write("before.ptx", &before);
    let between = ["diff", "--ptx", "before.ptx", "kernels/leaky_relu.ptx"];
    assert!(stdout(&project, &between, 0).contains("2 constants differ"));
    stdout(&project, &[&between[..], &["--fail-on-constants"]].concat(), 1);
    assert_eq!(json(&project, &between, 0)["artifacts"][0]["constants"], compared["artifacts"][0]["constants"]);
    gpuemu(&project, &["baseline", "delete", "good"]).assert().success();
    gpuemu(&project, &["baseline", "list"]).assert().success().stdout_eq("no baseline is stored\n");
}

#[test]
fn what_is_worse_or_gone_is_no_pass() {
    let project = compiled();
    gpuemu(&project, &["baseline", "good"]).assert().success();
    gpuemu(&project, &["ci", "--format", "json", "--output", "good.json"]).assert().success();
    project.replace("kernels/two_kernels.ptx", "tile[256]", "tile[512]");
    let text = stdout(&project, &["diff", "--baseline", "good"], 1);
    assert!(text.contains("REGRESSED  pair block_sum") && text.contains("shared bytes: 1024 -> 2048  worse"), "{text}");
    for baseline in ["good", "good.json"] {
        stdout(&project, &["ci", "--baseline", baseline], 0);
        stdout(&project, &["ci", "--baseline", baseline, "--fail-on-regression"], 1);
    }
    // Nothing to compare with is no comparison.
    let mut empty: Value = serde_json::from_str(&project.read("good.json")).unwrap();
    empty["kernels"] = serde_json::json!([]);
    project.write("empty.json", &empty.to_string());
    assert!(stderr(&project, &["diff", "--baseline", "empty.json"], 2).contains("has no case or kernel to compare"));
    project.write("kernels/two_kernels.ptx", "not PTX");
    let text = stdout(&project, &["diff", "--baseline", "good"], 2);
    assert!(text.contains("ERROR      pair") && text.contains("two_kernels.ptx:1:1"), "{text}");
    // A baseline is kept of the rest, and says so.
    let stored = gpuemu(&project, &["baseline", "rest"]).assert().success().stdout_eq("rest  1 kernel\n");
    assert!(text_of(&stored.get_output().stderr).contains("kernel 'pair' is not kept"));
    project.write("kernels/two_kernels.ptx", TWO_KERNELS);
    project.replace("gpuemu.toml", "name = \"pair\"", "name = \"other\"");
    let text = stdout(&project, &["diff", "--baseline", "good"], 2);
    assert!(text.contains("the project no longer has this kernel") && text.contains("new        other"), "{text}");
    stdout(&project, &["ci", "--baseline", "good"], 2);
}

#[test]
fn the_gate_is_closed_by_a_kernel_in_every_format() {
    let project = compiled();
    gpuemu(&project, &["ci"]).assert().success().stdout_eq(str![[r#"
PASS   leaky_relu  kernel, 1 entry, PTX for sm_80, as written[..]
...
2 of 2 kernels passed; 0 cases, thorough, base seed [..] s

"#]]);
    gpuemu(&project, &["test", "--quick"]).assert().success();
    let checks = "kernels/two_kernels.ptx\"\n[kernels.artifact_checks]\nforbidden_instructions = [\"bar.sync\"]";
    project.replace("gpuemu.toml", "kernels/two_kernels.ptx\"", checks);
    let text = stdout(&project, &["ci"], 1);
    assert!(text.contains("FAIL   pair ") && text.contains("1 of 2 kernels passed, 1 failed; "), "{text}");
    assert!(text.contains("at kernels/two_kernels.ptx:34:2"), "{text}");
    let report = json(&project, &["ci"], 1);
    assert_eq!((report["passed"].as_bool(), report["kernels"][1]["status"].as_str()), (Some(false), Some("failed")));
    let xml = stdout(&project, &["ci", "--format", "junit"], 1);
    assert!(
        xml.contains("<testsuite name=\"kernel pair\" tests=\"2\"") && xml.contains("forbidden-instruction"),
        "{xml}"
    );
    gpuemu(&project, &["daemon", "stop"]).assert().success();
    stdout(&project, &["--no-daemon", "ci"], 1);
    // An op that nothing here can run is not passed for the sake of the kernels beside it.
    project.write("gpuemu.toml", &format!("{CONFIG}\n[[ops]]\nname = \"relu\"\n"));
    let text = stdout(&project, &["ci"], 2);
    assert!(text.contains("op 'relu' is left out") && text.contains("2 of 2 kernels passed"), "{text}");
    // Nor is one of a kernel that nobody knows how to launch.
    project.write("gpuemu.toml", &format!("{CONFIG}\n[[ops]]\nname = \"relu\"\nkernel = \"leaky_relu\"\n"));
    let errors = stderr(&project, &["ci"], 2);
    assert!(errors.contains("op 'relu' is the kernel 'leaky_relu', which has no launch table"), "{errors}");
    // A kernel that cannot be read is an error: nothing is known of it.
    project.write("gpuemu.toml", CONFIG);
    project.write("kernels/two_kernels.ptx", "not PTX");
    let text = stdout(&project, &["ci"], 2);
    assert!(text.contains("ERROR  pair ") && text.contains("kernels/two_kernels.ptx:1:1: "), "{text}");
    assert_eq!(json(&project, &["ci"], 2)["kernels"][1]["artifact"], Value::Null);
    assert!(stdout(&project, &["ci", "--format", "junit"], 2).contains("errors=\"1\""));
    stdout(&project, &["report", "--include-lint"], 2);
}

#[test]
fn rules_of_the_projects_own_are_held_to() {
    let project = compiled();
    let rule = "[[rules]]\nname = \"no-barriers\"\nseverity = \"error\"\npattern = \"bar.sync\"\nmessage = \"barriers are slow\"\n";
    project.write("rules.toml", rule);
    stdout(&project, &["--no-daemon", "lint"], 0);
    let text = stdout(&project, &["--no-daemon", "lint", "--rules-file", "rules.toml"], 1);
    assert!(text.contains("error[no-barriers] block_sum: barriers are slow"), "{text}");
    project.write("gpuemu.toml", &format!("{CONFIG}\n[lint]\nrule_files = [\"rules.toml\"]\n"));
    let text = stdout(&project, &["--no-daemon", "lint"], 1);
    assert!(text.contains("error[no-barriers]"), "{text}");
    stdout(&project, &["--no-daemon", "lint", "--allow", "no-barriers"], 0);
    let errors = stderr(&project, &["--no-daemon", "lint", "--rules-file", "rules.toml"], 2);
    assert!(errors.contains("has a second rule 'no-barriers'"), "{errors}");
    project.replace("rules.toml", "severity = \"error\"", "severity = \"warning\"");
    stdout(&project, &["--no-daemon", "lint"], 0);
    stdout(&project, &["--no-daemon", "lint", "--deny-warnings"], 1);
    assert_eq!(json(&project, &["--no-daemon", "lint", "--deny-warnings"], 1)["kernels"][1]["status"], "failed");
    project.replace("rules.toml", "pattern", "patern");
    let errors = stderr(&project, &["--no-daemon", "lint"], 2);
    assert!(errors.contains("rules.toml:4:1") && errors.contains("did you mean `pattern`?"), "{errors}");
}

#[test]
fn ops_and_kernels_stand_side_by_side() {
    let Some(project) = Project::new() else { return };
    project.write("gpuemu.toml", &format!("{CONFIG}\n[[ops]]\nname = \"relu\"\nmodule = \"relu\"\n"));
    project.write("relu.py", "import numpy as np\n\n\ndef relu(input):\n    return np.maximum(input, 0)\n");
    project.write("kernels/leaky_relu.ptx", LEAKY_RELU);
    project.write("kernels/two_kernels.ptx", TWO_KERNELS);
    let text = stdout(&project, &["test", "--quick"], 0);
    assert!(
        text.contains("PASS   relu  10 cases") && text.contains("1 of 1 ops passed, 2 of 2 kernels passed; 10 cases"),
        "{text}"
    );
    // One op is asked for: kernels are not.
    let report = json(&project, &["test", "--quick", "--op", "relu"], 0);
    assert_eq!(report["kernels"], serde_json::json!([]));
    assert_eq!(json(&project, &["fuzz", "--iterations", "5"], 0)["kernels"], serde_json::json!([]));
    gpuemu(&project, &["baseline", "good"]).assert().success().stdout_eq("good  1 ops, 5 cases, 2 kernels\n");
    project.write("kernels/leaky_relu.ptx", &LEAKY_RELU.replace("0f3C23D70A", "0f3DCCCCCD"));
    gpuemu(&project, &["diff", "--baseline", "good"]).assert().success().stdout_eq(str![[r#"
against baseline good (threshold 10 %)
  same       relu  [..]
  changed    leaky_relu      kernel, all counts are equal, 2 constants differ
...
"#]]);
    let compared = json(&project, &["diff", "--baseline", "good", "--op", "relu"], 0);
    assert_eq!(compared["artifacts"], serde_json::json!([]));
    gpuemu(&project, &["ci", "--quick", "--format", "junit", "--output", "results.xml"]).assert().success();
    let schema = concat!(env!("CARGO_MANIFEST_DIR"), "/tests/data/junit.xsd");
    let program = "import sys, xmlschema\nxmlschema.XMLSchema(sys.argv[1]).validate(sys.argv[2])\n";
    let output = project.python(&["-c", program, schema, "results.xml"]).output().unwrap();
    assert!(output.status.success(), "{}", text_of(&output.stderr));
}

#[test]
fn a_changed_kernel_is_looked_at_where_only_changes_are() {
    let project = compiled();
    let git = |arguments: &[&str]| {
        let identity = ["-c", "user.name=n", "-c", "user.email=e@example.org", "-c", "commit.gpgsign=false"];
        let output = std::process::Command::new("git")
            .args(identity)
            .args(arguments)
            .current_dir(project.folder.path())
            .output();
        assert!(output.unwrap().status.success());
    };
    project.write("notes.txt", "");
    git(&["init", "--quiet"]);
    git(&["add", "."]);
    git(&["commit", "--quiet", "-m", "first"]);
    // git is looked for on PATH.
    let changed = |status: i32| project.json(&["--no-daemon", "ci", "--changed", "--format", "json"], status);
    project.write("notes.txt", "more");
    assert_eq!(changed(0)["kernels"], serde_json::json!([]));
    project.replace("kernels/leaky_relu.ptx", "0f3C23D70A", "0f3DCCCCCD");
    assert_eq!(changed(0)["kernels"].as_array().unwrap().len(), 2);
    project.write("kernels/leaky_relu.ptx", "not PTX");
    assert_eq!(changed(2)["kernels"][0]["status"], "error");
}
