//! Each command on a small project, as a user types it.
#![allow(clippy::unwrap_used, clippy::panic, clippy::print_stderr, reason = "tests fail by panicking")]

use std::io::{BufRead, BufReader};
use std::process::{Command, Stdio};

use snapbox::str;

use crate::fixture::{Project, text_of};

const CONFIG: &str = r#"[project]
name = "small"
framework = "numpy"

[validation]
seed = 5

[[ops]]
name = "relu"
module = "kernels:relu"

[[ops]]
name = "double"
module = "kernels:double"
signature = "x[M,N] -> out[M,N]"
reference = "double_ref.py"
execution_mode = "daemon_orchestrated"
values = "regular"
"#;

const KERNELS: &str = r#"import numpy as np

def relu(input):
    return np.maximum(input, 0)

def double(x):
    return x + x
"#;

const REFERENCE: &str = r#"import base64
import json
import sys

import numpy as np

encoded = json.loads(sys.stdin.read())["inputs"]["x"]
x = np.frombuffer(base64.b64decode(encoded["data"]), dtype=encoded["dtype"]).reshape(encoded["shape"])
out = 2 * x
data = base64.b64encode(out.tobytes()).decode()
json.dump({"outputs": {"out": {"data": data, "dtype": str(out.dtype), "shape": list(out.shape)}}}, sys.stdout)
"#;

fn small() -> Option<Project> {
    let project = Project::new()?;
    project.write("gpuemu.toml", CONFIG);
    project.write("kernels.py", KERNELS);
    project.write("double_ref.py", REFERENCE);
    Some(project)
}

#[test]
fn version_and_completions_need_no_project() {
    let project = Project::without_python();
    project.gpuemu(&["version"]).assert().success().stdout_eq(str![[r#"
gpuemu [..]
protocol 1, report 1, case generator 1

"#]]);
    assert_eq!(project.json(&["version", "--format", "json"], 0)["protocol_version"], 1);
    for shell in ["bash", "zsh", "fish"] {
        let script = project.stdout(&["completions", shell], 0);
        assert!(script.contains("gpuemu") && script.contains("minimize"), "{script}");
    }
}

#[test]
fn the_daemon_is_started_looked_at_and_stopped() {
    let project = Project::without_python();
    project.gpuemu(&["daemon", "status"]).assert().code(2).stdout_eq("the daemon does not run\n");
    project.gpuemu(&["daemon", "start", "--background"]).assert().success().stdout_eq("").stderr_eq(str![[r#"
started the daemon (process [..])

"#]]);
    project.gpuemu(&["daemon", "start", "--background"]).assert().success().stdout_eq("the daemon runs already\n");
    project.gpuemu(&["daemon", "status"]).assert().success().stdout_eq(str![[r#"
gpuemu [..] runs as process [..] since [..] s on [..]gpuemu.sock
0 jobs running; stored: 0 results, 0 failures, 0 baselines

"#]]);
    let status = project.json(&["daemon", "status", "--format", "json"], 0);
    assert_eq!((status["running"].as_bool(), status["status"]["stored"]["results"].as_u64()), (Some(true), Some(0)));
    assert!(project.stdout(&["daemon", "logs"], 0).contains("listens on"));
    project.gpuemu(&["daemon", "stop"]).assert().success().stdout_eq("the daemon has ended\n");
    project.gpuemu(&["daemon", "stop"]).assert().success().stdout_eq("the daemon does not run\n");
    assert!(project.stdout(&["daemon", "logs", "-n", "1"], 0).contains("asked to end"));
}

#[test]
fn a_run_is_the_same_for_the_same_seed_with_and_without_the_daemon() {
    let Some(project) = small() else { return };
    let run = |arguments: &[&str]| {
        let mut report = project.json(arguments, 0);
        // What a run takes and when it was is not part of what it found.
        for name in ["run", "time", "seconds"] {
            report[name] = serde_json::Value::Null;
        }
        for op in report["ops"].as_array_mut().unwrap() {
            op["seconds"] = serde_json::Value::Null;
        }
        report
    };
    let arguments = ["fuzz", "--iterations", "30", "--seed", "18446744073709551615", "--format", "json"];
    let first = run(&arguments);
    assert_eq!(first["seed"], "18446744073709551615");
    assert_eq!(first["ops"][0]["cases"], 30);
    assert_eq!(run(&arguments), first);
    assert_eq!(run(&[&arguments[..], &["--parallel", "0"]].concat()), first);
    project.gpuemu(&["daemon", "stop"]).assert().success();
    assert_eq!(run(&[&["--no-daemon"][..], &arguments].concat()), first);
    // The configured seed is used, and printed, where none is given.
    assert!(project.stdout(&["test", "--quick"], 0).contains("base seed 5,"));
}

#[test]
fn cases_are_drawn_as_asked_for_and_replayed_from_the_line_alone() {
    let Some(project) = small() else { return };
    project.replace("kernels.py", "np.maximum(input, 0)", "np.maximum(input, 0) + (input.shape[-1] > 20)");
    let arguments =
        ["fuzz", "--op", "relu", "--dtypes", "float16,float64", "--values", "integers", "--layouts", "strided"];
    let report = project.json(&[&arguments[..], &["--format", "json", "--seed", "3"]].concat(), 1);
    let op = &report["ops"][0];
    let dtypes: Vec<&str> = op["dtypes"].as_array().unwrap().iter().map(|one| one["dtype"].as_str().unwrap()).collect();
    assert_eq!(dtypes, ["float16", "float64"]);
    for failure in op["failures"].as_array().unwrap() {
        assert_eq!(failure["values"], "integers");
        assert!(["contiguous", "input:row_gap", "input:column_step"].contains(&failure["layout"].as_str().unwrap()));
    }
    let failure = &op["failures"][0];
    let replay: Vec<String> = failure["replay"].as_str().unwrap().split(' ').skip(1).map(ToString::to_string).collect();
    assert!(replay.join(" ").ends_with("--op relu --dtypes float16,float64 --values integers --layouts strided"));
    let words: Vec<&str> = replay.iter().map(String::as_str).chain(["--format", "json"]).collect();
    assert_eq!(project.json(&words, 1)["case"], failure["case"]);
    // Another machine has no stored result: the line is enough.
    let elsewhere = small().unwrap();
    elsewhere.write("kernels.py", &project.read("kernels.py"));
    let replayed = elsewhere.json(&words, 1);
    assert_eq!((&replayed["case"], &replayed["failures"]), (&failure["case"], &failure["failures"]));
    let narrowed = ["fuzz", "--op", "double", "--min-shape", "3,5", "--max-shape", "4,6", "--format", "json"];
    for case in project.json(&narrowed, 0)["ops"][0]["case_results"].as_array().unwrap() {
        let sizes = &case["case"]["sizes"]["named"];
        assert!((3..=4).contains(&sizes[0][1].as_u64().unwrap()) && (5..=6).contains(&sizes[1][1].as_u64().unwrap()));
    }
}

#[test]
fn failures_are_listed_shown_and_replayed() {
    let Some(project) = small() else { return };
    project.gpuemu(&["failures"]).assert().success().stdout_eq("no failure is stored\n");
    project.replace("kernels.py", "x + x", "x + x + (x.shape[-1] == 7)");
    project
        .gpuemu(&["fuzz", "--op", "double", "--max-shape", "9,9", "--iterations", "300", "--fail-fast"])
        .assert()
        .code(1);
    let failures = project.json(&["failures", "list", "--format", "json"], 0);
    assert_eq!(failures.as_array().unwrap().len(), 1);
    let seed = failures[0]["seed"].as_str().unwrap();
    let line = project.stdout(&["failures", "--op", "double"], 0);
    assert!(line.starts_with("double  float32, x[") && line.contains(&format!("seed {seed}  value [")), "{line}");
    let mut shown = project.json(&["failures", "show", seed, "--format", "json"], 0);
    // One failure comes with its inputs.
    let inputs = shown.as_object_mut().unwrap().shift_remove("inputs").unwrap();
    assert!(inputs["x"]["data"].is_string() && inputs["x"]["shape"] == failures[0]["shapes"][0][1], "{inputs}");
    assert_eq!(shown, failures[0]);
    project.gpuemu(&["failures", "replay"]).assert().code(1).stdout_eq(str![[r#"
FAILED  double  [..]

0 fixed, 1 failed, 0 errors

"#]]);
    let minimized = project.json(&["minimize", seed, "--format", "json"], 1);
    assert_eq!(minimized["minimized"]["sizes"], "M=1 N=7");
    assert_eq!(minimized["neighbour"], serde_json::json!({ "dimension": "N", "fails": 7, "passes": 8 }));
    // The smallest case is kept beside the one that it came from, and the seed still stands for that one.
    assert_eq!(project.json(&["failures", "--format", "json"], 0).as_array().unwrap().len(), 2);
    assert_eq!(project.json(&["reproduce", seed, "--format", "json"], 1)["case"], failures[0]["case"]);
    project.write("kernels.py", KERNELS);
    project.gpuemu(&["failures", "replay"]).assert().success().stdout_eq(str![[r#"
FIXED   double  [..] (minimized)  [..]
FIXED   double  [..]

2 fixed, 0 failed, 0 errors

"#]]);
    let refused = project.gpuemu(&["minimize", seed]).assert().code(2);
    assert!(text_of(&refused.get_output().stderr).contains("passes: there is nothing to shrink"));
}

#[test]
fn every_stored_failure_is_replayed_and_a_failing_baseline_is_no_good_state() {
    let Some(project) = small() else { return };
    project.replace("kernels.py", "np.maximum(input, 0)", "np.maximum(input, 0) + 1");
    project.replace("kernels.py", "x + x", "x + 1");
    project.gpuemu(&["fuzz", "--op", "double", "--iterations", "20"]).assert().code(1);
    project.gpuemu(&["fuzz", "--op", "relu", "--iterations", "200"]).assert().code(1);
    let listed = project.gpuemu(&["failures"]).assert().success();
    assert!(text_of(&listed.get_output().stderr).contains("these are the newest 100"));
    // The older ones still fail: mending the newest does not make it green.
    project.replace("kernels.py", "np.maximum(input, 0) + 1", "np.maximum(input, 0)");
    let text = project.stdout(&["failures", "replay"], 1);
    assert!(text.contains("FIXED   relu") && text.contains("FAILED  double"), "{text}");
    let stored = project.gpuemu(&["baseline", "bad"]).assert().success();
    assert!(text_of(&stored.get_output().stderr).contains("of these cases fail"));
    let text = project.stdout(&["diff", "--baseline", "bad", "--op", "double"], 1);
    assert!(text.contains("same") && text.contains("failing, 0 of them newly"), "{text}");
}

#[test]
fn expected_failures_pass_the_gate_until_they_expire_or_are_mended() {
    let Some(project) = small() else { return };
    project.replace("kernels.py", "np.maximum(input, 0)", "np.maximum(input, 1)");
    project.gpuemu(&["test", "--op", "relu"]).assert().code(1);
    let expected = |date: &str| {
        let entry = "\n[[expected_failures]]\nop = \"relu\"\ndtype = \"float32\"\nreason = \"the new formula\"\n";
        project.write("gpuemu.toml", &format!("{CONFIG}{entry}expires = \"{date}\"\n"));
    };
    expected("2099-12-31");
    let text = project.stdout(&["test"], 0);
    assert!(text.contains("XFAIL  relu") && text.contains("expected: the new formula"), "{text}");
    assert!(text.contains("1 of 2 ops passed, 1 failed as expected;"), "{text}");
    expected("2020-01-31");
    let text = project.stdout(&["test"], 1);
    assert!(text.contains("warning: the expected failure of 'relu' in float32 expired on 2020-01-31"), "{text}");
    expected("2099-12-31");
    project.write("kernels.py", KERNELS);
    let text = project.stdout(&["test"], 0);
    assert!(text.contains("passes now: remove it from expected_failures"), "{text}");
    // An op that passed before and fails now is a regression, whatever is expected of it.
    project.replace("kernels.py", "np.maximum(input, 0)", "np.maximum(input, 1)");
    let text = project.stdout(&["test"], 1);
    assert!(text.contains("it passed in the run before"), "{text}");
}

#[test]
fn a_run_that_takes_too_long_is_unfinished_and_not_passed() {
    let Some(project) = small() else { return };
    project.replace("kernels.py", "    return x + x", "    import time\n\n    time.sleep(0.05)\n    return x + x");
    project.write("gpuemu.toml", &format!("{CONFIG}\n[ci]\nthorough_timeout = 1\n"));
    let text = project.stdout(&["test"], 1);
    assert!(text.contains("STOP   double") && text.contains("time ran out after "), "{text}");
    // Fuzzing for some seconds is over when they are.
    let report = project.json(&["fuzz", "--seconds", "1", "--format", "json"], 0);
    assert!(report["ops"].as_array().unwrap().iter().all(|op| op["cases"].as_u64().unwrap() > 0), "{report}");
}

#[test]
fn an_interrupt_stops_the_job_and_keeps_what_was_done() {
    let Some(project) = small() else { return };
    project.gpuemu(&["daemon", "start", "--background"]).assert().success();
    let mut process = plain(&project, &["fuzz", "--op", "relu", "--iterations", "100000000"]).spawn().unwrap();
    // Results are stored as they come: when there are some, the job runs.
    while project.json(&["daemon", "status", "--format", "json"], 0)["status"]["stored"]["results"] == 0 {}
    let interrupt = Command::new("kill").args(["-INT", &process.id().to_string()]).status().unwrap();
    assert!(interrupt.success());
    let output = process.wait().unwrap();
    assert_eq!(output.code(), Some(1));
    let status = project.json(&["daemon", "status", "--format", "json"], 0);
    assert_eq!(status["status"]["running_jobs"], 0);
}

/// gpuemu as a plain process, whose output can be read while it runs.
fn plain(project: &Project, arguments: &[&str]) -> Command {
    let mut command = Command::new(env!("CARGO_BIN_EXE_gpuemu"));
    command.args(arguments).current_dir(project.folder.path()).stdout(Stdio::piped()).stderr(Stdio::null());
    command.env("GPUEMU_HOME", project.home.path()).env("GPUEMU_PYTHON", &project.python);
    command.env("XDG_CONFIG_HOME", project.home.path()).env("NO_COLOR", "1");
    command
}

#[test]
fn a_watched_project_is_tried_again_after_every_change() {
    let Some(project) = small() else { return };
    let mut process = plain(&project, &["test", "--watch", "--op", "relu", "--iterations", "20"]).spawn().unwrap();
    let mut lines = BufReader::new(process.stdout.take().unwrap()).lines();
    let mut next = |start: &str| {
        let found = lines.find(|line| line.as_ref().is_ok_and(|line| line.starts_with(start)));
        assert!(found.is_some(), "no line with {start}");
    };
    next("PASS   relu");
    project.replace("kernels.py", "np.maximum(input, 0)", "np.maximum(input, 2)");
    next("FAIL   relu");
    project.write("kernels.py", KERNELS);
    next("PASS   relu");
    process.kill().unwrap();
    process.wait().unwrap();
}

#[test]
fn only_what_changed_since_a_revision_is_run() {
    let Some(project) = small() else { return };
    let git = |arguments: &[&str]| {
        let identity = ["-c", "user.name=n", "-c", "user.email=e@example.org", "-c", "commit.gpgsign=false"];
        let output = Command::new("git").args(identity).args(arguments).current_dir(project.folder.path()).output();
        let output = output.unwrap();
        assert!(output.status.success(), "{}", text_of(&output.stderr));
    };
    let refused = project.gpuemu(&["test", "--changed"]).assert().code(2);
    assert!(text_of(&refused.get_output().stderr).contains("git"));
    project.write(
        "relu.py",
        "from helper import zero\nimport numpy as np\n\ndef relu(input):\n    return np.maximum(input, zero())\n",
    );
    project.write("helper.py", "def zero():\n    return 0\n");
    project.write("notes.txt", "");
    project.replace("gpuemu.toml", "kernels:relu", "relu");
    git(&["init", "-q"]);
    git(&["add", "-A"]);
    git(&["commit", "-q", "-m", "start"]);
    let run = || {
        let text = project.stdout(&["test", "--changed", "HEAD", "--iterations", "5"], 0);
        ["relu", "double"].into_iter().filter(|op| text.contains(&format!("PASS   {op} "))).collect::<Vec<_>>()
    };
    assert!(run().is_empty());
    // Whoever uploads the report finds one.
    project.gpuemu(&["ci", "--changed", "HEAD", "--format", "junit", "--output", "r.xml"]).assert().success();
    assert!(project.read("r.xml").contains("tests=\"0\""));
    std::fs::remove_file(project.path("r.xml")).unwrap();
    project.write("notes.txt", "no op is made of this");
    assert!(run().is_empty());
    project.write("helper.py", "def zero():\n    return 0.0\n");
    assert_eq!(run(), ["relu"]);
    git(&["checkout", "-q", "helper.py"]);
    project.write("double_ref.py", &format!("{REFERENCE}\n"));
    assert_eq!(run(), ["double"]);
    git(&["checkout", "-q", "double_ref.py"]);
    project.replace("gpuemu.toml", "values = \"regular\"", "values = \"integers\"");
    assert_eq!(run(), ["double"]);
    project.replace("gpuemu.toml", "seed = 5", "seed = 6");
    assert_eq!(run(), ["relu", "double"]);
    git(&["checkout", "-q", "gpuemu.toml"]);
    project.write("shared.py", "nobody knows who uses this\n");
    assert_eq!(run(), ["relu", "double"]);
}

#[test]
fn reports_are_made_of_stored_results() {
    let Some(project) = small() else { return };
    project.gpuemu(&["test", "--iterations", "20"]).assert().success();
    project.replace("kernels.py", "x + x", "x * 3");
    project.gpuemu(&["test", "--iterations", "20"]).assert().code(1);
    let text = project.stdout(&["report"], 1);
    assert!(text.contains("FAIL   double") && text.contains("PASS   relu") && text.contains("stored"), "{text}");
    let report = project.json(&["report", "--format", "json", "--since_hours", "1", "--include_lint"], 1);
    assert_eq!(report["mode"], "stored");
    assert_eq!(report["ops"][0]["cases"], 20);
    assert!(report["warnings"][0].as_str().unwrap().contains("no compiled kernels"), "{report}");
    project.gpuemu(&["report", "--format", "junit", "--output", "r.xml"]).assert().code(1);
    assert!(project.read("r.xml").contains("<failure"));
    project.gpuemu(&["report", "--since-hours", "0"]).assert().code(2);
    let status = project.stdout(&["status"], 0);
    assert!(status.contains("double  module kernels:double, float32, judged by warm script double_ref.py"), "{status}");
    assert!(status.contains("newest failures:"), "{status}");
}
