//! Verdicts that a client reached in its own process: kept, listed, and never taken for what the daemon can run.
#![allow(clippy::unwrap_used, clippy::panic, reason = "tests fail by panicking")]

use gpuemu_model::tensor_data::Payload;
use gpuemu_tensor::{DType, Layout};
use gpuemu_wire::protocol::{Request, Response};
use gpuemu_wire::{Client, Connection};
use serde_json::{Value, json};
use snapbox::str;

use crate::fixture::{Project, text_of};
use crate::running_daemon::{PATIENCE, RunningDaemon, ask, tensor};

/// A verdict as a client in Python hands it over.
fn verdict(op: &str, seed: u64, outcome: &str) -> Value {
    let finding = json!({
        "check": "value", "tensor": "out", "mismatched": 1, "elements": 2, "worst": null, "bug_class": "formula",
        "explanation": "1 of 2 elements differ",
    });
    json!({
        "op": op, "outcome": outcome, "passed": outcome == "passed", "seed": seed.to_string(), "dtype": "float32",
        "sizes": "N=2", "shapes": [["x", [2]]], "layout": "contiguous", "values": "regular", "parameters": "",
        "failures": if outcome == "failed" { vec![finding] } else { Vec::new() },
        "max_abs_diff": 1.0, "max_rel_diff": "NaN", "max_ulp_diff": 8.0, "tolerance_share": "Infinity",
        "tolerance": "exact", "elements": { "compared": 2, "mismatched": 1, "undetermined": 0, "excused": 0 },
        "runner": "a callable", "not_checked": [], "case": { "seed": seed.to_string() }, "time": 0,
        "replay": format!("python check.py --seed {seed}"),
    })
}

fn record(project: &Value, op: &str, results: &[Value]) -> Value {
    json!({ "type": "RecordResults", "project": project, "op_name": op, "base_seed": "7", "results": results })
}

fn recorded(connection: &mut Connection, request: &Value) -> String {
    let answer = ask(connection, request);
    assert_eq!(answer["type"], "Recorded", "{answer}");
    answer["run"].as_str().unwrap().to_string()
}

fn reference(daemon: &RunningDaemon) -> Value {
    serde_json::to_value(daemon.project()).unwrap()
}

fn stored(connection: &mut Connection, kind: &str, project: &Value) -> Vec<Value> {
    let answer = ask(connection, &json!({ "type": kind, "project": project }));
    answer["results"].as_array().unwrap().clone()
}

#[test]
fn batches_of_one_run_are_numbered_on_and_kept() {
    let mut daemon = RunningDaemon::start();
    let (project, mut connection) = (reference(&daemon), daemon.connection());
    let mut failed = verdict("my_op", 12, "failed");
    failed["inputs"] = json!({ "x": tensor(&[2], 3.0) });
    let mut first = record(&project, "my_op", &[verdict("my_op", 11, "passed"), failed]);
    first["settings"] = json!({ "max_shape": [9] });
    let run = recorded(&mut connection, &first);
    let mut second = record(&project, "my_op", &[verdict("my_op", 13, "undetermined")]);
    second["run"] = json!(run);
    assert_eq!(recorded(&mut connection, &second), run);
    assert_ne!(recorded(&mut connection, &record(&project, "my_op", &[verdict("my_op", 14, "passed")])), run);
    // Nothing that was answered is lost.
    daemon.kill_and_restart();
    let mut connection = daemon.connection();
    let results = stored(&mut connection, "ListResults", &project);
    let seeds: Vec<&str> = results.iter().map(|result| result["seed"].as_str().unwrap()).collect();
    assert_eq!(seeds, ["14", "13", "12", "11"], "one after the other, newest first");
    for result in &results {
        assert_eq!((&result["client_side"], &result["runner"]), (&json!(true), &json!("a callable")), "{result}");
        assert!(result["time"].as_u64().unwrap() > 1_600_000_000_000, "{result}");
    }
    let failures = stored(&mut connection, "ListFailures", &project);
    assert_eq!(failures.len(), 1);
    assert_eq!(failures[0]["replay"], "python check.py --seed 12");
    assert_eq!(failures[0]["settings"]["max_shape"], json!([9]));
    assert_eq!(failures[0]["run"], run.as_str());
    let kept = ask(&mut connection, &json!({ "type": "GetResult", "project": project, "seed": 12 }));
    assert_eq!(kept["result"]["inputs"]["x"], tensor(&[2], 3.0));
}

#[test]
fn inputs_travel_as_bytes_and_only_as_many_are_kept_as_the_project_wants() {
    let daemon = RunningDaemon::start();
    let config = "[project]\nname = \"p\"\n\n[storage]\nsnapshot_bytes = 100\n";
    let small = serde_json::to_value(daemon.project_with("small", &[("gpuemu.toml", config)])).unwrap();
    let elements: Vec<u8> = (0..120).collect();
    let input = Layout::Transposed.place(DType::F32, &[5, 6], &elements).unwrap();
    for (project, keeps) in [(reference(&daemon), true), (small, false)] {
        let mut payload = Payload::default();
        let mut failed = verdict("op", 5, "failed");
        failed["inputs"] = json!({ "x": payload.push(&input) });
        let request: Request = serde_json::from_value(record(&project, "op", &[failed])).unwrap();
        let reply = daemon.client().exchange(&request, &payload).unwrap();
        assert!(matches!(reply.response, Response::Recorded { .. }));
        let kept = ask(&mut daemon.connection(), &json!({ "type": "GetResult", "project": project, "seed": 5 }));
        let strides = &kept["result"]["inputs"]["x"]["strides"];
        assert_eq!(strides == &json!([1, 5]), keeps, "{kept}");
    }
}

#[test]
fn verdicts_that_contradict_themselves_and_runs_that_are_not_the_clients_are_refused() {
    let daemon = RunningDaemon::start();
    let (project, mut connection) = (reference(&daemon), daemon.connection());
    let good = || verdict("op", 1, "passed");
    let spoilt = |field: &str, value: Value| {
        let mut result = good();
        result[field] = value;
        record(&project, "op", &[good(), result])
    };
    let with_run = |run: Value| {
        let mut request = record(&project, "op", &[good()]);
        request["run"] = run;
        request
    };
    let finding = verdict("op", 1, "failed")["failures"].clone();
    let mut failed_without = verdict("op", 1, "failed");
    failed_without["failures"] = json!([]);
    let mut bad_input = verdict("op", 1, "failed");
    bad_input["inputs"] = json!({ "x": { "dtype": "float32", "shape": [3], "data": "AAAA" } });
    let validated = crate::running_daemon::relu(&daemon.project());
    let own = ask(&mut connection, &validated)["result"]["run"].clone();
    for (request, code, part) in [
        (spoilt("op", json!("other")), "InvalidRequest", "'op' is 'other', but 'op_name' is 'op'"),
        (spoilt("passed", json!(false)), "InvalidRequest", "'passed' is false, but 'outcome' is 'passed'"),
        (spoilt("outcome", json!("error")), "InvalidRequest", "'passed' is true, but 'outcome' is 'error'"),
        (spoilt("failures", finding), "InvalidRequest", "'outcome' is 'passed', but 'failures' has 1"),
        (record(&project, "op", &[failed_without]), "InvalidRequest", "'outcome' is 'failed', but 'failures' is empty"),
        (record(&project, "op", &[bad_input]), "InvalidRequest", "tensor 'x'"),
        (record(&project, "op", &[]), "InvalidRequest", "'results' is empty"),
        (record(&project, " ", &[verdict(" ", 1, "passed")]), "InvalidRequest", "'op_name' is empty"),
        (record(&project, &"n".repeat(201), &[good()]), "InvalidRequest", "'op_name' has 201 bytes"),
        (with_run(json!("18446744073709551615")), "NotFound", "this project has no run 18446744073709551615"),
        (with_run(own), "InvalidRequest", "was made by the daemon"),
    ] {
        let answer = ask(&mut connection, &request);
        assert_eq!(answer["code"], code, "{answer}");
        assert!(answer["message"].as_str().unwrap().contains(part), "{part}: {answer}");
    }
    assert_eq!(stored(&mut connection, "ListResults", &project).len(), 1, "only the daemon's own");
    let longest = "n".repeat(200);
    recorded(&mut connection, &record(&project, &longest, &[verdict(&longest, 1, "passed")]));
}

#[test]
fn threads_that_record_into_one_run_do_not_write_over_each_other() {
    let daemon = RunningDaemon::start();
    let project = reference(&daemon);
    let run = recorded(&mut daemon.connection(), &record(&project, "op", &[verdict("op", 0, "passed")]));
    std::thread::scope(|scope| {
        for thread in 0..4u64 {
            let (daemon, project, run) = (&daemon, &project, &run);
            scope.spawn(move || {
                let mut connection = daemon.connection();
                for batch in 0..10u64 {
                    let seed = 1 + thread * 100 + batch;
                    let mut request = record(project, "op", &[verdict("op", seed, "passed")]);
                    request["run"] = json!(run);
                    recorded(&mut connection, &request);
                }
            });
        }
    });
    assert_eq!(stored(&mut daemon.connection(), "ListResults", &project).len(), 41);
}

/// A connection to the daemon of a project of the command line.
fn connect(project: &Project) -> (Connection, Value) {
    project.gpuemu(&["daemon", "start", "--background"]).assert().success();
    let socket = project.home.path().join("gpuemu.sock");
    drop(Client::connect(&socket, PATIENCE).unwrap());
    let root = project.folder.path();
    (Connection::open(&socket, 1 << 30, PATIENCE).unwrap(), json!({ "root": root, "config": root.join("gpuemu.toml") }))
}

#[test]
fn failures_of_a_client_are_skipped_with_their_own_words_and_are_no_pass() {
    let project = Project::without_python();
    project.write("gpuemu.toml", "[project]\nname = \"p\"\n");
    let (mut connection, reference) = connect(&project);
    let mut bare = verdict("my_op", 12, "failed");
    bare["case"] = json!({});
    let mut other = verdict("my_op", 11, "failed");
    other["case"] = json!({});
    recorded(&mut connection, &record(&reference, "my_op", &[other, bare]));
    recorded(&mut connection, &record(&reference, "my_op", &[verdict("my_op", 13, "passed")]));
    // A name that a built-in op has too: the daemon must not run that one in its place.
    recorded(&mut connection, &record(&reference, "relu", &[verdict("relu", 14, "failed")]));
    project.gpuemu(&["failures", "replay"]).assert().code(2).stdout_eq(str![[r#"
SKIPPED  relu  [..]seed 14  value [formula]
        runs in Python: python check.py --seed 14
SKIPPED  my_op  [..]seed 12  value [formula]
        runs in Python: python check.py --seed 12
SKIPPED  my_op  [..]seed 11  value [formula]
        runs in Python: python check.py --seed 11

0 fixed, 0 failed, 0 errors, 3 skipped

"#]]);
    for command in [&["reproduce", "12"][..], &["minimize", "12"], &["reproduce", "14", "--op", "relu"]] {
        let refused = project.gpuemu(command).assert().code(2);
        let text = text_of(&refused.get_output().stderr);
        assert!(text.contains("runs in Python, not in the daemon"), "{text}");
        assert!(text.contains(&format!("python check.py --seed {}", command[1])), "{text}");
    }
    let refused = project.gpuemu(&["reproduce", "13"]).assert().code(2);
    assert!(text_of(&refused.get_output().stderr).contains("runs in Python"));
    let listed = project.json(&["failures", "--format", "json"], 0);
    assert_eq!(listed.as_array().unwrap().len(), 3);
}

#[test]
fn what_the_daemon_can_run_is_replayed_beside_what_it_skips() {
    let Some(project) = Project::new() else { return };
    let config = "[project]\nname = \"p\"\nframework = \"numpy\"\n\n[[ops]]\nname = \"relu\"\nmodule = \"relu\"\n";
    project.write("gpuemu.toml", config);
    project.write("relu.py", "import numpy as np\n\n\ndef relu(input):\n    return np.maximum(input, 1)\n");
    let run = ["fuzz", "--op", "relu", "--iterations", "3", "--fail-fast", "--format", "json"];
    let report = project.json(&run, 1);
    let found = &report["ops"][0]["failures"][0];
    // The client found the same case of the same name to fail, with code of its own.
    let (mut connection, reference) = connect(&project);
    let mut same = verdict("relu", 0, "failed");
    same["seed"] = found["seed"].clone();
    same["case"] = found["case"].clone();
    recorded(&mut connection, &record(&reference, "relu", &[same]));
    let seed = found["seed"].as_str().unwrap();
    assert_eq!(project.json(&["reproduce", seed, "--format", "json"], 1)["case"], found["case"]);
    let text = project.stdout(&["failures", "replay"], 1);
    assert!(text.contains("0 fixed, 1 failed, 0 errors, 1 skipped"), "{text}");
    project.replace("relu.py", "np.maximum(input, 1)", "np.maximum(input, 0)");
    let text = project.stdout(&["failures", "replay"], 0);
    assert!(text.contains("1 fixed, 0 failed, 0 errors, 1 skipped"), "{text}");
    // The op passed where the daemon ran it last; what a client says of its own code is nothing to compare with.
    project.stdout(&["fuzz", "--op", "relu", "--iterations", "5"], 0);
    recorded(&mut connection, &record(&reference, "relu", &[verdict("relu", 1, "failed")]));
    let stored = project.gpuemu(&["baseline", "v1"]).assert().success();
    let text = text_of(&stored.get_output().stderr);
    assert!(!text.contains("fail"), "{text}");
    assert!(project.stdout(&["diff", "--baseline", "v1"], 0).contains("same"));
}
