//! `gpuemu coverage`: what stored cases exercised, and what never was.
#![allow(clippy::unwrap_used, reason = "tests fail by panicking")]

use serde_json::Value;

use crate::fixture::Project;
use crate::fixture::kernels::{gpuemu, json, softmax_kernel, stderr, stdout};

fn project() -> Project {
    let project = Project::without_python();
    let kernel = softmax_kernel(&project, "compiled", "softmax");
    let op = "kernel = \"compiled\"\ndtypes = [\"float32\"]\n";
    project.write(
        "gpuemu.toml",
        &format!(
            "[project]\nname = \"covered\"\nframework = \"numpy\"\n\n[validation]\nseed = 7\n\n{kernel}\
             [[ops]]\nname = \"softmax\"\n{op}\n[[ops]]\nname = \"other\"\nop = \"softmax\"\n{op}"
        ),
    );
    project
}

#[test]
fn what_was_tried_is_counted_and_what_was_not_is_named() {
    let project = project();
    let text = stdout(&project, &["coverage"], 0);
    assert!(text.contains("no case of it is stored") && text.contains("0 of 2 ops have a case"), "{text}");

    stdout(
        &project,
        &["fuzz", "--op", "softmax", "--iterations", "60", "--values", "regular", "--layouts", "contiguous"],
        0,
    );
    let document = json(&project, &["coverage"], 0);
    let ops = document["ops"].as_array().unwrap();
    let of = |name: &str| ops.iter().find(|op| op["op"] == name).unwrap();
    assert_eq!((&of("other")["cases"], &of("softmax")["cases"]), (&0.into(), &60.into()));
    let softmax = of("softmax");
    assert_eq!(softmax["values"]["regular"], 60);
    assert_eq!((&softmax["values"]["special"], &softmax["layouts"]["transposed"]), (&0.into(), &0.into()));
    assert_eq!(softmax["layouts"]["contiguous"], 60);
    let sum: u64 =
        ["power_of_two", "one", "zero"].iter().map(|class| softmax["dims"]["H"][class].as_u64().unwrap()).sum();
    assert!(sum > 0 && sum < 60, "{softmax}");
    assert_eq!(softmax["dims"]["H"]["long"], 0, "the kernel covers rows of up to 64 elements");
    let uncovered = |what: &Value| what.as_str().unwrap().contains("cases that no variant of the kernel");
    assert!(softmax["not_checked"].as_array().unwrap().iter().any(uncovered), "{softmax}");

    let text = stdout(&project, &["coverage", "--op", "softmax"], 0);
    assert!(text.contains("softmax: ") && text.contains("regular 60; never: "), "{text}");
    assert!(text.contains("not checked: ") && text.contains("1 of 1 ops have a case that was judged"), "{text}");
    let said = stderr(&project, &["coverage", "--op", "softmaxx"], 2);
    assert!(said.contains("there is no op 'softmaxx'"), "{said}");
    // Other values and layouts fill the gaps.
    gpuemu(&project, &["fuzz", "--op", "softmax", "--iterations", "60", "--values", "special"]).assert().code(0);
    assert_eq!(json(&project, &["coverage"], 0)["ops"][1]["values"]["special"], 60);
}
