//! The real daemon, as its clients see it.
#![allow(clippy::unwrap_used, clippy::panic, clippy::print_stderr, reason = "tests fail by panicking")]

use std::process::Command;
use std::time::{Duration, Instant};

use gpuemu_model::error_code::ErrorCode;
use gpuemu_model::report::ValidationResult;
use gpuemu_model::settings::{FuzzConfig, ProjectReference};
use gpuemu_model::tensor_data::{NamedTensorData, Payload, TensorData};
use gpuemu_tensor::{DType, Tensor};
use gpuemu_wire::protocol::{
    Encoding, FuzzOp, GetTestCase, JobReference, JobState, ListResults, Request, Response, SubmitOutput, ValidateOp,
};
use gpuemu_wire::{ClientError, shared_memory};
use serde_json::json;

use crate::running_daemon::{PATIENCE, RunningDaemon, ask, python, relu};

const NUMPY_PROJECT: &str =
    "[project]\nname = \"p\"\nframework = \"numpy\"\n\n[[ops]]\nname = \"relu\"\nmodule = \"relu\"\n";
const RELU: &str = "import numpy as np\n\ndef relu(input):\n    return np.maximum(input, 0)\n";

fn list(daemon: &RunningDaemon, project: &ProjectReference) -> Vec<ValidationResult> {
    let request = ListResults { project: project.clone(), op_name: None, limit: Some(100_000), since_hours: None };
    match daemon.client().call(&Request::ListResults(request)).unwrap() {
        Response::Results { results } => results,
        other => panic!("{other:?}"),
    }
}

fn fuzz(project: &ProjectReference, iterations: u64, seed: u64) -> Request {
    Request::FuzzOp(FuzzOp {
        project: project.clone(),
        op_name: "relu".to_string(),
        config: FuzzConfig { iterations: Some(iterations), seed: Some(seed), ..FuzzConfig::default() },
        fail_fast: false,
        shard: None,
    })
}

#[test]
fn nng_clients_ping_validate_and_send_64_mebibytes() {
    let Some(python) = python() else { return };
    let daemon = RunningDaemon::start();
    let program = r#"
import base64, json, sys
import numpy as np
import pynng

def encoded(array):
    data = base64.b64encode(array.tobytes()).decode()
    return {"dtype": str(array.dtype), "shape": list(array.shape), "data": data}

with pynng.Req0(dial="ipc://" + sys.argv[1], recv_timeout=60000, send_timeout=60000) as socket:
    socket.recv_max_size = 0
    def ask(message):
        socket.send(json.dumps(message).encode())
        return json.loads(socket.recv())
    pong = ask({"type": "Ping"})
    assert pong["type"] == "Pong" and pong["protocol_version"] == 1, pong
    def validate(array, output):
        return ask({"type": "ValidateOp", "project": {"root": sys.argv[2]}, "op_name": "relu",
                    "inputs": {"input": encoded(array)}, "output": encoded(output)})
    array = np.linspace(-1, 1, 100, dtype=np.float32)
    assert validate(array, np.maximum(array, 0))["result"]["passed"]
    wrong = validate(array, array)
    assert not wrong["result"]["passed"] and wrong["result"]["failures"][0]["check"] == "value", wrong
    # 24 MiB of input and 24 of output are 64 MiB of base64.
    large = np.random.default_rng(0).standard_normal(6 << 20).astype(np.float32)
    answer = validate(large, np.maximum(large, 0))
    assert answer["result"]["passed"] and answer["result"]["elements"]["compared"] == 6 << 20, answer
print("done")
"#;
    let project = daemon.project().root;
    let output = Command::new(python).args(["-c", program]).arg(daemon.socket()).arg(&project).output().unwrap();
    assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
}

#[test]
fn nngcat_pings_validates_and_sends_64_mebibytes() {
    let in_ci = std::env::var_os("CI").is_some_and(|value| value == "true");
    if Command::new("nngcat").arg("--version").output().is_err() {
        assert!(!in_ci, "nngcat is not there; in CI `cargo xtask test` installs nng-utils");
        eprintln!("skipped: nngcat is not installed (Debian: nng-utils)");
        return;
    }
    let daemon = RunningDaemon::start();
    let address = format!("ipc://{}", daemon.socket().display());
    let ask = |message: &std::path::Path| {
        let command = ["--req", "--dial", &address, "--recv-timeout", "60", "--recv-maxsz", "0", "--raw", "--file"];
        let output = Command::new("nngcat").args(command).arg(message).output().unwrap();
        assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
        serde_json::from_slice::<serde_json::Value>(&output.stdout).unwrap()
    };
    let file = daemon.folder.path().join("message");
    std::fs::write(&file, json!({ "type": "Ping" }).to_string()).unwrap();
    assert_eq!(ask(&file)["type"], "Pong");
    std::fs::write(&file, relu(&daemon.project()).to_string()).unwrap();
    assert_eq!(ask(&file)["result"]["outcome"], "passed");
    // JSON may be followed by as much blank as one likes.
    let mut large = relu(&daemon.project()).to_string();
    large.push_str(&" ".repeat((64 << 20) - large.len()));
    std::fs::write(&file, &large).unwrap();
    assert_eq!(ask(&file)["result"]["outcome"], "passed");
}

#[test]
fn tensors_travel_as_text_as_bytes_and_in_shared_memory() {
    let daemon = RunningDaemon::start();
    let mut client = daemon.client();
    let values: Vec<f64> = (0..1000).map(|value| f64::from(value) - 500.0).collect();
    let input = Tensor::from_f64(DType::F32, vec![10, 100], &values).unwrap();
    let clipped: Vec<f64> = values.iter().map(|value| value.max(0.0)).collect();
    let output = Tensor::from_f64(DType::F32, vec![10, 100], &clipped).unwrap();
    let request = |input: TensorData, output: TensorData| {
        Request::ValidateOp(ValidateOp {
            project: daemon.project(),
            op_name: "relu".to_string(),
            inputs: NamedTensorData { 0: vec![("input".to_string(), input)] },
            output: Some(output),
            outputs: None,
            kwargs: Default::default(),
        })
    };
    let mut verdicts = Vec::new();
    verdicts.push(client.call(&request(TensorData::base64(&input), TensorData::base64(&output))).unwrap());
    let mut payload = Payload::default();
    let (first, second) = (payload.push(&input), payload.push(&output));
    verdicts.push(client.exchange(&request(first, second), &payload).unwrap().response);
    let mut segment = shared_memory::Segment::create().unwrap();
    let mut share = |tensor: &Tensor| {
        let place = segment.push(&tensor.to_contiguous_bytes()).unwrap();
        TensorData::in_shared_memory(DType::F32, tensor.shape(), place)
    };
    let shared = request(share(&input), share(&output));
    verdicts.push(client.call(&shared).unwrap());
    let seeds: Vec<u64> = verdicts
        .iter()
        .map(|verdict| match verdict {
            Response::ValidationResult { result } if result.passed => result.seed,
            other => panic!("{other:?}"),
        })
        .collect();
    // The same inputs are the same case, however they came.
    assert!(seeds.iter().all(|seed| *seed == seeds[0]), "{seeds:?}");
}

#[test]
fn a_generated_case_is_fetched_run_and_submitted() {
    let daemon = RunningDaemon::start();
    let mut client = daemon.client();
    let config = FuzzConfig { dtypes: Some(vec![DType::F16]), ..FuzzConfig::default() };
    for seed in 0..40 {
        let get = GetTestCase {
            project: daemon.project(),
            op_name: "relu".to_string(),
            seed: Some(seed),
            config: config.clone(),
            encoding: Encoding::Binary,
        };
        let reply = client.exchange(&Request::GetTestCase(get), &Payload::default()).unwrap();
        let Response::TestCase { case } = &reply.response else { panic!("{:?}", reply.response) };
        let (_, data) = &case.inputs.0[0];
        let input = data.tensor(reply.payload(), |_| Err(String::new())).unwrap();
        let clip = |value: f64| if value.is_nan() { value } else { value.max(0.0) };
        let values: Vec<f64> = input.to_f64().into_iter().map(clip).collect();
        let output = Tensor::from_f64(DType::F16, input.shape().to_vec(), &values).unwrap();
        let submit = |output: &Tensor, inputs: Option<NamedTensorData>| SubmitOutput {
            project: daemon.project(),
            op_name: "relu".to_string(),
            seed,
            config: config.clone(),
            inputs,
            output: Some(TensorData::base64(output)),
            outputs: None,
        };
        let inputs = NamedTensorData { 0: vec![("input".to_string(), TensorData::base64(&input))] };
        let answer = client.call(&Request::SubmitOutput(submit(&output, Some(inputs)))).unwrap();
        let Response::ValidationResult { result } = answer else { panic!("{answer:?}") };
        // Of nothing there is nothing to judge.
        assert!(result.passed != output.is_empty() && result.seed == seed, "{result:?}");
        if !output.is_empty() {
            let changed = NamedTensorData { 0: vec![("input".to_string(), TensorData::base64(&shifted(&input)))] };
            let refused = client.call(&Request::SubmitOutput(submit(&output, Some(changed))));
            assert!(
                matches!(refused, Err(ClientError::Refused { code: ErrorCode::InvalidRequest, .. })),
                "{refused:?}"
            );
        }
    }
}

fn shifted(tensor: &Tensor) -> Tensor {
    let mut values = tensor.to_f64();
    values[0] = if values[0] == 1.0 { 2.0 } else { 1.0 };
    Tensor::from_f64(tensor.dtype(), tensor.shape().to_vec(), &values).unwrap()
}

#[test]
fn pings_are_answered_and_a_job_is_cancelled_while_a_reference_hangs() {
    let Some(_) = python() else { return };
    let daemon = RunningDaemon::start();
    let hanging = daemon.project_with(
        "hanging",
        &[
            (
                "gpuemu.toml",
                "[project]\nname = \"h\"\nframework = \"numpy\"\n\n[[ops]]\nname = \"relu\"\nmodule = \"relu\"\nreference = \"hang.py\"\ntimeout = 4.0\n",
            ),
            ("relu.py", RELU),
            ("hang.py", "import time\ntime.sleep(600)\n"),
        ],
    );
    let busy = daemon.project_with("busy", &[("gpuemu.toml", NUMPY_PROJECT), ("relu.py", RELU)]);
    let mut client = daemon.client();
    let mut submit = |request: Request| match client.call(&Request::SubmitJob { job: Box::new(request) }).unwrap() {
        Response::Job { job } => job.job,
        other => panic!("{other:?}"),
    };
    let (hung, long) = (submit(fuzz(&hanging, 5, 1)), submit(fuzz(&busy, 10_000_000, 1)));
    let mut pings = daemon.client();
    let mut slowest = Duration::ZERO;
    for _ in 0..500 {
        let start = Instant::now();
        pings.call(&Request::Ping { protocol_version: None }).unwrap();
        slowest = slowest.max(start.elapsed());
    }
    // Two cores are shared by the tests of a whole suite: this is no measurement, only a bound.
    assert!(slowest < Duration::from_secs(2), "{slowest:?}");
    let status = |job: u64, wait_ms: u64| match daemon
        .client()
        .call(&Request::JobStatus(JobReference { job, wait_ms }))
        .unwrap()
    {
        Response::Job { job } => job,
        other => panic!("{other:?}"),
    };
    assert_eq!(status(long, 0).state, JobState::Running);
    daemon.client().call(&Request::CancelJob(JobReference { job: long, wait_ms: 0 })).unwrap();
    let ended = status(long, 20_000);
    assert_eq!(ended.state, JobState::Cancelled);
    let Some(Response::Report { report }) = ended.result.map(|result| *result) else { panic!("no report") };
    assert!(!report.passed && report.ops[0].message.as_deref().unwrap().starts_with("cancelled after"), "{report:?}");
    // The hung reference is stopped by its timeout: an error, never a pass, and its process is gone.
    let ended = status(hung, 20_000);
    let Some(Response::Report { report }) = ended.result.map(|result| *result) else { panic!("no report") };
    assert_eq!((report.ops[0].passed, report.ops[0].errors), (0, 1), "{report:?}");
    let processes = Command::new("ps").args(["-eo", "args"]).output();
    if let Ok(processes) = processes {
        let listed = String::from_utf8_lossy(&processes.stdout).into_owned();
        let script = hanging.root.join("hang.py").display().to_string();
        assert!(!listed.contains(&script), "{listed}");
    }
}

#[test]
fn a_script_that_hangs_does_not_outlive_the_daemon() {
    let Some(_) = python() else { return };
    let mut daemon = RunningDaemon::start();
    let config = "[project]\nname = \"h\"\nframework = \"numpy\"\n\n[[ops]]\nname = \"relu\"\nmodule = \"relu\"\nreference = \"hang.py\"\nexecution_mode = \"MODE\"\ntimeout = 500.0\n";
    let hang = "import os\nimport time\n\nwith open(\"number.new\", \"w\") as file:\n    file.write(str(os.getpid()))\nos.rename(\"number.new\", \"number\")\ntime.sleep(600)\n";
    let mut processes = Vec::new();
    for mode in ["script_based", "daemon_orchestrated"] {
        let files = [("gpuemu.toml", &*config.replace("MODE", mode)), ("relu.py", RELU), ("hang.py", hang)];
        let project = daemon.project_with(mode, &files);
        let job = Request::SubmitJob { job: Box::new(fuzz(&project, 1, 1)) };
        daemon.client().call(&job).unwrap();
        let started = Instant::now();
        while !project.root.join("number").exists() {
            assert!(started.elapsed() < PATIENCE, "the script did not start");
            std::thread::sleep(Duration::from_millis(5));
        }
        processes.push(std::fs::read_to_string(project.root.join("number")).unwrap());
    }
    ask(&mut daemon.connection(), &json!({ "type": "Shutdown" }));
    assert!(daemon.ended().success());
    for process in processes {
        let alive = || {
            let state = std::fs::read_to_string(format!("/proc/{process}/stat")).unwrap_or_default();
            // A process that nobody has waited for yet is dead all the same.
            !state.is_empty() && !state.contains(") Z ")
        };
        let started = Instant::now();
        while cfg!(target_os = "linux") && alive() {
            assert!(started.elapsed() < Duration::from_secs(10), "process {process} outlives the daemon");
            std::thread::sleep(Duration::from_millis(5));
        }
    }
}

#[test]
fn a_reference_that_fails_is_named_by_its_code_and_nothing_is_stored() {
    let Some(_) = python() else { return };
    let daemon = RunningDaemon::start();
    let config = format!("{NUMPY_PROJECT}reference = \"raises.py\"\n");
    let raises = "raise ValueError('not today')\n";
    let project = daemon.project_with("p", &[("gpuemu.toml", &config), ("relu.py", RELU), ("raises.py", raises)]);
    let reproduce = json!({ "type": "Reproduce", "project": project, "op_name": "relu", "seed": 1 });
    for request in [relu(&project), reproduce] {
        let answer = ask(&mut daemon.connection(), &request);
        assert_eq!(answer["code"], "ReferenceScriptFailed", "{answer}");
        assert!(answer["message"].as_str().unwrap().contains("ValueError: not today"), "{answer}");
    }
    assert!(list(&daemon, &project).is_empty());
}

#[test]
fn inputs_of_a_client_that_were_not_kept_are_not_made_up() {
    let Some(_) = python() else { return };
    let daemon = RunningDaemon::start();
    let config = format!("{NUMPY_PROJECT}\n[storage]\nsnapshot_bytes = 4\n");
    let project = daemon.project_with("p", &[("gpuemu.toml", &config), ("relu.py", RELU)]);
    let mut wrong = relu(&project);
    wrong["output"] = crate::running_daemon::tensor(&[2, 3], 5.0);
    let answer = ask(&mut daemon.connection(), &wrong);
    assert_eq!(answer["result"]["outcome"], "failed", "{answer}");
    // The op is right; what was submitted was not. Other inputs would pass, and say nothing.
    let seed = &answer["result"]["seed"];
    let again = ask(&mut daemon.connection(), &json!({ "type": "Reproduce", "project": project, "seed": seed }));
    assert!(again["message"].as_str().unwrap().contains("given by a client and not kept"), "{again}");
    let replayed = ask(&mut daemon.connection(), &json!({ "type": "ReplayFailures", "project": project }));
    assert_eq!(replayed["failures"][0]["status"], "ERROR", "{replayed}");
}

#[test]
fn two_projects_share_a_daemon_and_see_only_their_own() {
    let Some(_) = python() else { return };
    let daemon = RunningDaemon::start();
    let one = daemon.project_with("one", &[("gpuemu.toml", NUMPY_PROJECT), ("relu.py", RELU)]);
    let broken = RELU.replace("np.maximum(input, 0)", "np.maximum(input, 1)");
    let two = daemon.project_with("two", &[("gpuemu.toml", NUMPY_PROJECT), ("relu.py", &broken)]);
    let other_op = NUMPY_PROJECT
        .replace("name = \"relu\"", "name = \"tanh\"")
        .replace("module = \"relu\"", "module = \"relu:relu\"");
    let three = daemon.project_with("three", &[("gpuemu.toml", &other_op), ("relu.py", RELU)]);
    let run = |project: &ProjectReference| {
        let answer = daemon.client().call(&fuzz(project, 20, 9)).unwrap();
        let Response::Report { report } = answer else { panic!("{answer:?}") };
        report
    };
    assert!(run(&one).passed);
    assert!(!run(&two).passed);
    assert!(run(&one).passed);
    assert_eq!((list(&daemon, &one).len(), list(&daemon, &two).len(), list(&daemon, &three).len()), (40, 20, 0));
    assert!(list(&daemon, &one).iter().all(|result| result.passed));
    let ops = |project: &ProjectReference| {
        let answer = ask(&mut daemon.connection(), &json!({ "type": "ListOps", "project": project }));
        answer["ops"].as_array().unwrap().iter().map(|op| op["name"].as_str().unwrap().to_string()).collect::<Vec<_>>()
    };
    assert_eq!((ops(&one), ops(&three)), (vec!["relu".to_string()], vec!["tanh".to_string()]));
    // A client that read another configuration than the daemon reads is told so.
    let stale = ProjectReference { digest: Some("0123".to_string()), ..one };
    let refused = daemon.client().call(&fuzz(&stale, 1, 1));
    assert!(matches!(refused, Err(ClientError::Refused { code: ErrorCode::ConfigError, .. })), "{refused:?}");
}

#[test]
fn every_run_is_kept_and_listed_newest_first() {
    let Some(_) = python() else { return };
    let daemon = RunningDaemon::start();
    let both = format!("{NUMPY_PROJECT}\n[[ops]]\nname = \"tanh\"\nmodule = \"tanh\"\n");
    let tanh =
        "import numpy as np\n\ndef tanh(input):\n    return np.tanh(input.astype(np.float64)).astype(input.dtype)\n";
    let project = daemon.project_with("p", &[("gpuemu.toml", &both), ("relu.py", RELU), ("tanh.py", tanh)]);
    let mut request =
        json!({ "type": "RunCi", "project": project, "config": { "iterations": 5, "seed": "18446744073709551615" } });
    request["mode"] = json!("fuzz");
    for _ in 0..2 {
        let answer = ask(&mut daemon.connection(), &request);
        assert_eq!(answer["report"]["passed"], true, "{answer}");
        assert_eq!(answer["report"]["seed"], "18446744073709551615");
    }
    let results = list(&daemon, &project);
    assert_eq!(results.len(), 20);
    let runs: Vec<u64> = results.iter().map(|result| result.run.unwrap()).collect();
    assert!(runs.is_sorted_by(|left, right| left >= right), "{runs:?}");
    let of = |op: &str, run: u64| {
        let mut seeds: Vec<u64> = results
            .iter()
            .filter(|result| result.op == op && result.run == Some(run))
            .map(|result| result.seed)
            .collect();
        seeds.sort_unstable();
        seeds
    };
    // The same seeds for both ops in both runs: four lists, all kept.
    assert_eq!(of("relu", runs[0]).len(), 5);
    for (op, run) in [("tanh", runs[0]), ("relu", runs[19]), ("tanh", runs[19])] {
        assert_eq!(of(op, run), of("relu", runs[0]));
    }
}

#[test]
fn an_idle_daemon_ends_and_one_that_is_told_to_ends_at_once() {
    let mut idle = RunningDaemon::start_with("[daemon]\nidle_timeout = 1\n");
    assert!(idle.ended().success());
    assert!(!idle.socket().exists());
    let mut told = RunningDaemon::start();
    assert_eq!(ask(&mut told.connection(), &json!({ "type": "Shutdown" }))["type"], "Ok");
    assert!(told.ended().success());
    let log = std::fs::read_to_string(told.folder.path().join("home/logs/daemon.log")).unwrap();
    assert!(log.contains("listens on") && log.contains("asked to end"), "{log}");
}

#[test]
fn a_second_daemon_over_one_folder_is_refused_and_names_the_first() {
    let daemon = RunningDaemon::start();
    let second = Command::new(env!("CARGO_BIN_EXE_gpuemu-daemon"))
        .env("GPUEMU_HOME", daemon.folder.path().join("home"))
        .env("XDG_CONFIG_HOME", daemon.folder.path().join("config"))
        .output()
        .unwrap();
    assert_eq!(second.status.code(), Some(2));
    let words = String::from_utf8_lossy(&second.stderr).into_owned();
    assert!(words.contains("is in use by the daemon (process "), "{words}");
}
