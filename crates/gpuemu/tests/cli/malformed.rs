//! Messages that are wrong in every way there is: each gets an error with a code, and the daemon lives.
#![allow(clippy::unwrap_used, clippy::panic, reason = "tests fail by panicking")]

use gpuemu_tensor::Stream;
use gpuemu_wire::protocol::{Frame, MAGIC};
use serde_json::{Value, json};

use crate::running_daemon::{RunningDaemon, ask, ask_bytes, relu, tensor};

const ROUNDS: u64 = 1_000;

/// One wrong message of each kind.
fn wrong_messages(stream: &mut Stream, daemon: &RunningDaemon) -> Vec<(&'static str, Vec<u8>)> {
    let project = daemon.project();
    let right = relu(&project);
    let changed = |pointer: &str, value: Value| {
        let mut message = right.clone();
        *message.pointer_mut(pointer).unwrap() = value;
        message.to_string().into_bytes()
    };
    let with = |name: &str, value: Value| {
        let mut message = right.clone();
        message[name] = value;
        message.to_string().into_bytes()
    };
    let nonsense = [json!(null), json!(7), json!(-1), json!(1.5), json!("text"), json!([]), json!({}), json!([[]])];
    let any = |stream: &mut Stream| nonsense[stream.below(nonsense.len() as u64) as usize].clone();
    let huge = || json!([u64::MAX, 1u64 << (40 + 3), 9]);
    let text: String = (0..stream.below(40)).map(|_| char::from(32 + stream.below(90) as u8)).collect();
    let mut bytes: Vec<u8> = (0..stream.below(60)).map(|_| stream.below(256) as u8).collect();
    if bytes.first() == Some(&b'{') {
        bytes[0] = 0;
    }
    let whole = right.to_string().into_bytes();
    let mut without = right.as_object().unwrap().clone();
    let fields = ["project", "op_name", "inputs", "output"];
    without.remove(fields[stream.below(4) as usize]);
    let long_header = [&MAGIC[..], &stream.next_word().to_le_bytes(), b"{}"].concat();
    let length = 1 + 4 * stream.below(20) as usize + stream.below(3) as usize;
    let odd = base64_of(length);
    let mut fuzz = json!({ "type": "FuzzOp", "project": project, "op_name": "relu" });
    let settings = [
        json!({ "dtypes": [] }),
        json!({ "dtypes": ["float99"] }),
        json!({ "iterations": 0 }),
        json!({ "iterations": -3 }),
        json!({ "seconds": -1.0 }),
        json!({ "min_shape": [1, 2, 3, 4, 5, 6, 7, 8, 9] }),
        json!({ "layouts": ["sideways"] }),
        json!({ "layouts": [] }),
        json!({ "values": "purple" }),
        json!({ "seed": "twelve" }),
        json!({ "itterations": 3 }),
    ];
    fuzz["config"] = settings[stream.below(settings.len() as u64) as usize].clone();
    vec![
        ("bytes", bytes),
        ("text", text.into_bytes()),
        ("cut short", whole[..stream.below(whole.len() as u64) as usize].to_vec()),
        ("type", with("type", any(stream))),
        ("unknown type", with("type", json!(format!("Type{}", stream.below(99))))),
        ("missing field", Value::Object(without).to_string().into_bytes()),
        ("unknown field", with(&format!("field{}", stream.below(99)), any(stream))),
        ("field's type", with("inputs", json!([1, 2, 3]))),
        ("project", with("project", any(stream))),
        ("op", with("op_name", json!(format!("op{}", stream.below(99))))),
        ("base64", changed("/inputs/input/data", json!(format!("*{}", stream.next_word())))),
        ("odd bytes", changed("/inputs/input/data", json!(odd))),
        ("huge shape", changed("/inputs/input/shape", huge())),
        ("negative shape", changed("/inputs/input/shape", json!([-1, 2]))),
        ("wrong shape", changed("/inputs/input/shape", json!([2 + stream.below(9), 3 + stream.below(9) + 1]))),
        ("zero size, but bytes", changed("/inputs/input/shape", json!([0, stream.below(1 << 50)]))),
        ("rank", changed("/inputs/input/shape", json!(vec![1; 65 + stream.below(40) as usize]))),
        ("dtype", changed("/inputs/input/dtype", json!(format!("float{}", stream.below(999) * 7 + 1)))),
        ("strides", changed("/inputs/input", strided(&right, stream.below(1 << 40)))),
        ("kwargs", with("kwargs", json!({ "no_such": 1 }))),
        ("two outputs", with("outputs", json!({ "out": tensor(&[2, 3], 1.0) }))),
        ("unknown input", with("inputs", json!({ "input": tensor(&[2, 3], 1.0), "other": tensor(&[1], 0.0) }))),
        ("span", changed("/inputs/input", spanned(stream.next_word()))),
        ("shared memory", changed("/inputs/input", shared(stream.next_word()))),
        ("frame header", long_header),
        ("frame of nothing", Frame::build(b"", &[1; 64])),
        ("settings", fuzz.to_string().into_bytes()),
        ("job in a job", json!({ "type": "SubmitJob", "job": { "type": "Ping" } }).to_string().into_bytes()),
        ("no such job", json!({ "type": "CancelJob", "job": stream.next_word() }).to_string().into_bytes()),
        ("version", json!({ "type": "Ping", "protocol_version": 2 + stream.below(1 << 20) }).to_string().into_bytes()),
    ]
}

fn base64_of(length: usize) -> String {
    let data = gpuemu_tensor::Tensor::from_f64(gpuemu_tensor::DType::U8, vec![length], &vec![1.0; length]).unwrap();
    gpuemu_model::tensor_data::TensorData::base64(&data).data.unwrap()
}

fn strided(right: &Value, stride: u64) -> Value {
    let mut tensor = right["inputs"]["input"].clone();
    tensor["strides"] = json!([stride + 7, 1]);
    tensor
}

fn spanned(offset: u64) -> Value {
    json!({ "dtype": "float32", "shape": [2, 3], "binary": { "offset": offset, "length": 24 } })
}

fn shared(word: u64) -> Value {
    let name = if word.is_multiple_of(2) { format!("gpuemu-{word}") } else { format!("../{word}") };
    json!({ "dtype": "float32", "shape": [2, 3], "shared": { "name": name, "offset": 0, "length": 24 } })
}

#[test]
fn every_malformed_message_gets_an_error_and_the_daemon_lives() {
    let mut daemon = RunningDaemon::start();
    let mut connection = daemon.connection();
    let mut sent = 0;
    for round in 0..ROUNDS {
        for (kind, message) in wrong_messages(&mut Stream::new(round, "malformed"), &daemon) {
            let answer = ask_bytes(&mut connection, &message);
            let shown = String::from_utf8_lossy(&message);
            assert_eq!(answer["type"], "Error", "{kind}: {shown} gave {answer}");
            assert!(answer["code"].is_string() && !answer["message"].as_str().unwrap().is_empty(), "{kind}: {answer}");
            assert_ne!(answer["code"], "InternalError", "{kind}: {shown} gave {answer}");
            sent += 1;
        }
    }
    assert!(sent >= 10_000, "{sent}");
    assert!(daemon.lives());
    assert_eq!(ask(&mut connection, &json!({ "type": "Ping" }))["type"], "Pong");
    let right = ask(&mut connection, &relu(&daemon.project()));
    assert_eq!(right["result"]["outcome"], "passed", "{right}");
}

#[test]
fn changed_bytes_of_a_right_message_never_end_the_daemon() {
    let mut daemon = RunningDaemon::start();
    let mut connection = daemon.connection();
    let right = relu(&daemon.project()).to_string().into_bytes();
    for round in 0..2_000 {
        let mut stream = Stream::new(round, "changed");
        let mut message = right.clone();
        for _ in 0..1 + stream.below(4) {
            let place = stream.below(message.len() as u64) as usize;
            match stream.below(3) {
                0 => message[place] = stream.below(256) as u8,
                1 => {
                    message.remove(place);
                }
                _ => message.insert(place, b"{}[]\",:0-9e"[stream.below(11) as usize]),
            }
        }
        let answer = ask_bytes(&mut connection, &message);
        assert!(answer["type"].is_string(), "{answer}");
        assert_ne!(answer["code"], "InternalError", "{}: {answer}", String::from_utf8_lossy(&message));
    }
    assert!(daemon.lives());
}

#[test]
fn zero_size_tensors_are_neither_refused_nor_a_pass() {
    let daemon = RunningDaemon::start();
    let mut request = relu(&daemon.project());
    request["inputs"]["input"] = tensor(&[0, 3], 0.0);
    request["output"] = tensor(&[0, 3], 0.0);
    let answer = ask(&mut daemon.connection(), &request);
    assert_eq!(answer["result"]["outcome"], "undetermined", "{answer}");
    request["output"] = tensor(&[3, 0], 0.0);
    let answer = ask(&mut daemon.connection(), &request);
    assert_eq!(answer["result"]["failures"][0]["check"], "shape", "{answer}");
}

#[test]
fn rows_of_nothing_are_refused_before_anybody_counts_them() {
    let mut daemon = RunningDaemon::start();
    let empty = |shape: &[u64]| json!({ "dtype": "float32", "shape": shape, "data": "" });
    let request = |op: &str, input: &[u64], output: &[u64]| {
        json!({
            "type": "ValidateOp", "project": daemon.project(), "op_name": op,
            "inputs": { "input": empty(input) }, "output": empty(output),
        })
    };
    let requests = [
        request("sum", &[1 << 40, 0], &[0]),
        request("softmax", &[1 << 40, 0], &[1 << 40, 0]),
        request("relu", &[1 << 40, 0], &[1 << 40, 0]),
        request("max", &[1 << 20, 1 << 20, 0], &[0]),
    ];
    for request in requests {
        let answer = ask(&mut daemon.connection(), &request);
        assert_eq!(answer["code"], "InvalidRequest", "{request}: {answer}");
    }
    assert!(daemon.lives());
}

#[test]
fn a_message_beyond_the_limit_is_refused_by_name() {
    let daemon = RunningDaemon::start_with("[daemon]\nmessage_megabytes = 1\n");
    let answer = ask_bytes(&mut daemon.connection(), &vec![b' '; 2 << 20]);
    assert_eq!((answer["type"].as_str(), answer["code"].as_str()), (Some("Error"), Some("InvalidRequest")));
    assert!(answer["message"].as_str().unwrap().contains("2097156 bytes; at most 1048576"), "{answer}");
    let answer = ask(&mut daemon.connection(), &json!({ "type": "Ping" }));
    assert_eq!(answer["type"], "Pong");
}
