//! Compiled kernels, run as a user runs them: from files, without a project and without the daemon.
#![allow(clippy::unwrap_used, clippy::panic, reason = "tests fail by panicking")]

use gpuemu_tensor::DType;
use gpuemu_tensor::npy::{self, Npy};
use snapbox::str;

use crate::fixture::Project;
use crate::fixture::kernels::{LEAKY_RELU, TRITON_VADD, TWO_KERNELS, gpuemu, json, stderr, stdout};

/// Five elements, and the kernels.
fn files() -> Project {
    let project = Project::without_python();
    project.write("leaky_relu.ptx", LEAKY_RELU);
    project.write("two.ptx", TWO_KERNELS);
    project.write("vadd.ptx", TRITON_VADD);
    let values = [1.0f32, -2.0, 0.0, f32::NAN, 3.5];
    let bytes: Vec<u8> = values.iter().flat_map(|value| value.to_le_bytes()).collect();
    std::fs::write(project.path("in.npy"), npy::write(DType::F32, &[5], &bytes)).unwrap();
    project
}

const LAUNCH: [&str; 9] =
    ["leaky_relu.ptx", "--block", "32", "--arg", "x=f32:in.npy", "--arg", "y=f32:out:5", "--arg", "i32:5"];

fn command<'a>(name: &'a str, more: &[&'a str]) -> Vec<&'a str> {
    [&[name], &LAUNCH[..], more].concat()
}

#[test]
fn a_kernel_is_run_and_its_output_shown() {
    let project = files();
    gpuemu(&project, &command("emulate", &[])).assert().success().stderr_eq("").stdout_eq(str![[r#"
leaky_relu of leaky_relu.ptx (as written, PTX for sm_80)
  grid 1 x 1 x 1, block 32 x 1 x 1, 0 bytes of dynamic shared memory
  y  float32[5]  from -0.02 to 3.5, 1 NaN, fingerprint [..]
     1 -0.02 0 NaN 3.5
PASS  nothing found in 1 blocks, [..] instructions of warps, [..] of lanes; bounds checked

"#]]);
    let report = json(&project, &command("emulate", &["--save", "y=y.npy", "--output", "all"]), 0);
    assert_eq!(report["outputs"][0]["first"], serde_json::json!([1.0, -0.02f32, 0.0, "NaN", 3.5]));
    assert_eq!((&report["entry"], &report["target"]), (&"leaky_relu".into(), &"sm_80".into()));
    assert_eq!(report["statistics"]["blocks"], 1);
    let saved = std::fs::read(project.path("y.npy")).unwrap();
    assert_eq!(saved, std::fs::read(project.path("all/y.npy")).unwrap());
    let array = Npy::read(&saved).unwrap();
    assert_eq!(array.shape, [5]);
    assert_eq!(array.bits_of(DType::F32).unwrap()[4..8], (-2.0f32 * 0.01).to_le_bytes());
}

#[test]
fn a_clean_kernel_passes_every_check() {
    let project = files();
    let report = json(&project, &command("sanitize", &[]), 0);
    assert_eq!(report["checks"], serde_json::json!(["memory", "init", "race", "sync"]));
    assert_eq!(report["findings"], serde_json::json!([]));
    let report = json(&project, &command("sanitize", &["--check", "sync,race"]), 0);
    assert_eq!(report["checks"], serde_json::json!(["race", "sync"]));
    assert!(stdout(&project, &command("sanitize", &[]), 0).contains("; checked: memory, init, race, sync\n"));
}

#[test]
fn a_store_past_the_end_is_found_with_its_place() {
    let project = files();
    let launch = ["leaky_relu.ptx", "--block", "32", "--arg", "f32:in.npy", "--arg", "y=f32:out:4", "--arg", "i32:5"];
    gpuemu(&project, &[&["sanitize"], &launch[..]].concat()).assert().code(1).stdout_eq(str![[r#"
leaky_relu of leaky_relu.ptx (as written, PTX for sm_80)
  grid 1 x 1 x 1, block 32 x 1 x 1, 0 bytes of dynamic shared memory
  y  float32[4]  [..]
     1 -0.02 0 NaN
error[out_of_bounds] [..]
  at PTX line 38: st.global.f32 [..]
  by block (0, 0, 0), thread (4, 0, 0), warp 0, lane 4
  address 0x[..], y + 16, just past the end of its 16
FAIL  1 finding in 1 blocks, [..]

"#]]);
    let report = json(&project, &[&["emulate"], &launch[..]].concat(), 1);
    let finding = &report["findings"][0];
    assert_eq!((&finding["check"], &finding["fault"]), (&"memory".into(), &"out_of_bounds".into()));
    assert_eq!((&finding["place"]["ptx_line"], &finding["thread"]["lane"]), (&38.into(), &4.into()));
    assert_eq!((&finding["offset"], &finding["buffer_bytes"]), (&16.into(), &16.into()));
}

#[test]
fn an_output_that_is_only_half_written_is_found() {
    let project = files();
    let launch = ["leaky_relu.ptx", "--block", "32", "--arg", "f32:in.npy", "--arg", "y=f32:out:8", "--arg", "i32:5"];
    let report = json(&project, &[&["sanitize"], &launch[..]].concat(), 1);
    assert_eq!(report["findings"][0]["fault"], "never_written");
    assert_eq!(report["outputs"][0]["poison"], 3);
    // Without the check it is only shown.
    let text = stdout(&project, &[&["emulate"], &launch[..]].concat(), 0);
    assert!(text.contains(", 3 still poison, "), "{text}");
}

#[test]
fn a_kernel_that_stops_itself_fails() {
    let project = files();
    project.write("trap.ptx", &LEAKY_RELU.replace("mul.f32", "trap;\n\tmul.f32"));
    let launch =
        ["emulate", "trap.ptx", "--block", "32", "--arg", "f32:in.npy", "--arg", "f32:out:5", "--arg", "i32:5"];
    let text = stdout(&project, &launch, 1);
    assert!(text.contains("FAIL  trap at PTX line 33"), "{text}");
    let failure = json(&project, &launch, 1)["failure"].to_string();
    assert!(failure.contains("trap at PTX line 33"), "{failure}");
}

#[test]
fn a_thread_can_be_traced() {
    let project = files();
    let report = json(&project, &command("emulate", &["--trace", "0:1", "--trace-lines", "3"]), 0);
    assert_eq!(report["trace"].as_array().unwrap().len(), 3);
    assert!(stdout(&project, &command("emulate", &["--trace", "0:1"]), 0).contains("\ntrace:\n  "));
}

#[test]
fn an_output_may_be_larger_than_memory() {
    let project = files();
    let launch =
        ["leaky_relu.ptx", "--block", "32", "--arg", "f32:in.npy", "--arg", "y=f32:out:2200000000", "--arg", "i32:5"];
    let report = json(&project, &[&["emulate"], &launch[..]].concat(), 0);
    assert_eq!(report["outputs"][0]["shape"], serde_json::json!([2_200_000_000u64]));
    // Nothing is said of what is not kept.
    assert_eq!(report["outputs"][0].get("first"), None);
}

#[test]
fn launches_that_cannot_be_are_refused() {
    let project = files();
    project.write("endless.ptx", &LEAKY_RELU.replace("$L__end:", "$L__again:\n\tbra $L__again;\n$L__end:"));
    let with = |changes: &[&'static str]| [&["emulate", "leaky_relu.ptx"], changes].concat();
    let rest = ["--arg", "f32:in.npy", "--arg", "f32:out:5", "--arg", "i32:5"];
    for (arguments, words) in [
        (with(&["--block", "32"]), "leaky_relu takes 3 arguments, but 0 were given"),
        (with(&["--block", "32"]), "leaky_relu_param_0 (.u64), leaky_relu_param_1 (.u64), leaky_relu_param_2 (.u32)"),
        (with(&[&["--block", "32", "--grid", "0,1,1"], &rest[..]].concat()), "grid"),
        (with(&[&["--block", "2048"], &rest[..]].concat()), "2048"),
        (with(&[&["--block", "32", "--shared", "1000000000"], &rest[..]].concat()), "shared memory"),
        (with(&["--block", "32", "--arg", "ptr:null", "--arg", "f32:out:5", "--arg", "i32:5"]), "null pointer"),
        (with(&["--block", "32", "--arg", "f32:in.npy", "--arg", "f32:out:5", "--arg", "i64:5"]), "has 8 bytes"),
        (with(&[&["--block", "32", "--save", "z=z.npy"], &rest[..]].concat()), "there is no buffer 'z' to save"),
        ([&["emulate", "endless.ptx", "--block", "32", "--max-steps", "10000"], &rest[..]].concat(), "10000"),
        ([&["emulate", "vadd.ptx", "--arg", "f32:in.npy"], &rest[..]].concat(), "Triton adds the last two"),
    ] {
        let errors = stderr(&project, &arguments, 2);
        assert!(errors.contains(words), "{arguments:?}\n{errors}");
    }
}

#[test]
fn usage_errors_are_2_and_say_what_to_do() {
    let project = files();
    project.write("broken.npy", "nothing");
    for (arguments, words) in [
        (&["emulate"][..], "<FILE>"),
        (&["emulate", "gone.ptx"], "gone.ptx is not there"),
        (&["emulate", "in.npy"], "write it as x.ptx, x.cu or file.py:kernel"),
        (
            &["emulate", "leaky_relu.ptx", "--arg", "f32:out:1", "--arg", "f32:out:1", "--arg", "i32:1"],
            "say it, as in --block 128,1,1",
        ),
        (&["emulate", "two.ptx"], "name one with --entry: block_sum, fill"),
        (&["emulate", "two.ptx", "--entry", "fil"], "did you mean 'fill'?"),
        (&["emulate", "leaky_relu.ptx", "--arg", "5"], "it has no type; write it as f32:in.npy"),
        (&["emulate", "leaky_relu.ptx", "--arg", "f99:5"], "'f99' is no type"),
        (&["emulate", "leaky_relu.ptx", "--grid", "1,2,3,4"], "one to three numbers"),
        (&["emulate", "leaky_relu.ptx", "--trace", "5"], "as in 0,0,0:5,0,0"),
        (&["emulate", "leaky_relu.ptx", "--order", "random"], "ascending, descending or a seed"),
        (&["emulate", "leaky_relu.ptx", "--conformance", "x"], "cannot be used with"),
        (&["emulate", "--conformance", "gone"], "gone/manifest.json"),
        (&["sanitize", "leaky_relu.ptx", "--check", "races"], "race"),
        (&["sanitize"], "<FILE>"),
    ] {
        let errors = stderr(&project, arguments, 2);
        assert!(errors.contains(words), "{arguments:?}\n{errors}");
    }
}

#[test]
fn inputs_that_are_no_arrays_are_refused() {
    let project = files();
    project.write("broken.npy", "nothing");
    for (argument, words) in [
        ("f32:broken.npy", "broken.npy: it is no .npy file"),
        ("f32:gone.npy", "gone.npy: cannot be read"),
        ("f16:in.npy", "in.npy: its elements are 'f4', which is not float16"),
    ] {
        let errors = stderr(
            &project,
            &["emulate", "leaky_relu.ptx", "--block", "32", "--arg", argument, "--arg", "f32:out:5", "--arg", "i32:5"],
            2,
        );
        assert!(errors.contains(words), "{argument}\n{errors}");
    }
}
