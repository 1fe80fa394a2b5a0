//! Ops that are compiled kernels: tried in the PTX machine over generated shapes, with no Python and no GPU.
#![allow(clippy::unwrap_used, clippy::panic, clippy::print_stderr, reason = "tests fail by panicking")]

use std::path::Path;

use crate::fixture::Project;
use crate::fixture::kernels::{gpuemu, json, stderr, stdout};

/// The softmax of the corpus for rows of up to 64 elements, right or with masked lanes loaded as 0.
fn softmax(kernel: &str) -> Project {
    let project = Project::without_python();
    let corpus = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../lab/corpus/ptx");
    let mut variants = String::new();
    for (block, shared) in [(8, 0), (16, 0), (32, 0), (64, 8)] {
        let name = format!("{kernel}_float32_{block}.ptx");
        project.write(&format!("kernels/{name}"), &std::fs::read_to_string(corpus.join(&name)).unwrap());
        let when = format!("dtype == 'float32' && next_pow2(H) == {block} && numel(out) > 0");
        variants.push_str(&format!("  {{ when = \"{when}\", ptx = \"kernels/{name}\", shared = {shared} }},\n"));
    }
    project.write(
        "gpuemu.toml",
        &format!(
            "[project]\nname = \"compiled\"\nframework = \"numpy\"\n\n[[kernels]]\nname = \"row_softmax\"\nsource = \"kernels/{kernel}_float32_64.ptx\"\n\
             grid = [\"rows(input)\"]\nblock = [128]\nargs = [\"out\", \"input\", \"H\", \"null\", \"null\"]\nvariants = [\n{variants}]\n\n\
             [[ops]]\nname = \"softmax\"\nkernel = \"row_softmax\"\ndtypes = [\"float32\"]\n"
        ),
    );
    project
}

#[test]
fn a_right_kernel_passes_on_the_shapes_that_it_covers() {
    let project = softmax("softmax");
    let report = json(&project, &["test", "--base-seed", "1"], 0);
    let op = &report["ops"][0];
    assert_eq!((op["op"].as_str(), op["status"].as_str()), (Some("softmax"), Some("passed")), "{report:#}");
    assert!(op["runner"].as_str().unwrap().contains("row_softmax"), "{report:#}");
    let not_checked = op["not_checked"].as_array().unwrap().last().unwrap().as_str().unwrap();
    assert!(
        not_checked.starts_with("cases that no variant of the kernel of 'softmax' covers (")
            && not_checked.contains("H="),
        "{not_checked}"
    );
    gpuemu(&project, &["ci"]).assert().code(0);
    gpuemu(&project, &["daemon", "stop"]).assert().success();
    assert_eq!(json(&project, &["--no-daemon", "test", "--base-seed", "1"], 0)["ops"][0]["status"], "passed");
}

#[test]
fn a_wrong_kernel_is_found_replayed_and_shrunk() {
    let project = softmax("softmax_other_zero");
    let report = json(&project, &["test", "--base-seed", "1"], 1);
    let failure = &report["ops"][0]["failures"][0];
    let seed = failure["seed"].as_str().unwrap().to_string();
    assert!(stdout(&project, &["reproduce", &seed], 1).contains("softmax"));
    let smallest = stdout(&project, &["minimize", &seed], 1);
    // One element more than half of the smallest block: the shortest row that a variant covers and that has lanes beyond it.
    assert!(smallest.contains("minimized: float32, input[5]"), "{smallest}");
    gpuemu(&project, &["fuzz", "--op", "softmax", "--iterations", "50", "--seed", "2"]).assert().code(1);
}

#[test]
fn a_case_without_rows_needs_no_launch() {
    let project = softmax("softmax");
    project.write("gpuemu.toml", &project.read("gpuemu.toml").replace(" && numel(out) > 0", ""));
    let report = json(&project, &["fuzz", "--iterations", "300", "--seed", "1"], 0);
    let cases = report["ops"][0]["case_results"].as_array().unwrap();
    let without_rows = |case: &&serde_json::Value| case["case"]["sizes"].to_string().contains("[0");
    assert!(cases.iter().any(|case| without_rows(&case)), "{:#}", cases[0]);
}

#[test]
fn a_kernel_that_cannot_be_run_is_no_pass() {
    let project = softmax("softmax");
    project.replace("kernels/softmax_float32_64.ptx", "bar.sync", "wgmma.fence.sync.aligned; bar.sync");
    let text = stdout(&project, &["test", "--base-seed", "1"], 2);
    assert!(text.contains("wgmma.fence.sync.aligned"), "{text}");
    let project = softmax("softmax");
    std::fs::remove_file(project.path("kernels/softmax_float32_32.ptx")).unwrap();
    let said = stdout(&project, &["test"], 2) + &stderr(&project, &["test"], 2);
    assert!(said.contains("softmax_float32_32.ptx"), "{said}");
}

#[test]
fn a_project_may_have_several_of_one_op() {
    let project = softmax("softmax");
    let second = "\n[[ops]]\nname = \"rows\"\nop = \"softmax\"\nkernel = \"row_softmax\"\ndtypes = [\"float32\"]\n";
    let whole = std::fs::read_to_string(project.path("gpuemu.toml")).unwrap() + second;
    project.write("gpuemu.toml", &whole);
    let report = json(&project, &["test", "--base-seed", "1"], 0);
    let names: Vec<_> = report["ops"].as_array().unwrap().iter().map(|op| (&op["op"], &op["status"])).collect();
    assert_eq!(serde_json::json!(names), serde_json::json!([["softmax", "passed"], ["rows", "passed"]]));
    project.write("gpuemu.toml", &whole.replace("op = \"softmax\"", "op = \"softmx\""));
    let said = stdout(&project, &["test"], 2) + &stderr(&project, &["test"], 2);
    assert!(said.contains("op 'rows' is said to be 'softmx', which is not built in"), "{said}");
    assert!(said.contains("did you mean `softmax`"), "{said}");
}
