//! The first quarter of an hour with gpuemu, as a new user types it in an empty folder.
#![allow(clippy::unwrap_used, clippy::panic, clippy::print_stderr, reason = "tests fail by panicking")]

use snapbox::str;

use crate::fixture::{Project, text_of};
use crate::picture::Terminal;

#[test]
fn from_an_empty_folder_to_a_green_gate() {
    let Some(project) = Project::new() else { return };
    project.gpuemu(&["init", "--with-examples"]).assert().success();
    project.gpuemu(&["test"]).assert().success().stdout_eq(str![[r#"
PASS   softmax          200 cases, float16 float32, largest error [..] of the tolerance), module kernels.softmax
PASS   scale_bias_relu  200 cases, float16 float32, largest error [..] of the tolerance), module kernels.scale_bias_relu
not checked, because of how the ops run: unwritten outputs, stores out of bounds

2 of 2 ops passed; 400 cases, thorough, base seed [..]

"#]]);

    // Break the op: the columns after the last whole tile are forgotten.
    let right = project.read("kernels/softmax.py");
    break_softmax(&project);
    let mut terminal = Terminal::new();
    terminal.remark("in kernels/softmax.py, the loop now ends before the last, partial tile");
    let text = terminal.run(&project, &["test", "--base-seed", "1"], 1);
    assert!(text.contains("FAIL   softmax "), "{text}");
    assert!(text.contains("it passed in the run before"), "{text}");
    assert!(text.contains("PASS   scale_bias_relu"), "{text}");
    // Op, dtype, shape and seed are named, and how to see it again.
    let report = project.json(&["test", "--op", "softmax", "--base-seed", "1", "--format", "json"], 1);
    let failure = &report["ops"][0]["failures"][0];
    let (seed, dtype) = (failure["seed"].as_str().unwrap(), failure["dtype"].as_str().unwrap());
    let shape: Vec<u64> =
        failure["shapes"][0][1].as_array().unwrap().iter().map(|size| size.as_u64().unwrap()).collect();
    assert!(text.contains(&format!("{dtype}, input{shape:?}, ")), "{text}");
    assert!(text.contains(&format!("gpuemu reproduce {seed} --op softmax\n")), "{text}");

    // It re-executes and still fails, the same way.
    let reproduced = project.json(&["reproduce", seed, "--format", "json"], 1);
    assert_eq!(reproduced["failures"], failure["failures"]);
    project.gpuemu(&["test", "--seed", seed]).assert().code(1);
    let minimized = terminal.run(&project, &["minimize", seed], 1);
    assert!(minimized.contains("fails at H=65, passes at H=64"), "{minimized}");
    // The README shows this failure.
    terminal.assert_drawn("failure.svg");

    // Mend it.
    project.write("kernels/softmax.py", &right);
    let replayed = project.stdout(&["failures", "replay"], 0);
    assert!(replayed.contains("FIXED ") && !replayed.contains("FAILED"), "{replayed}");
    assert!(replayed.contains(" fixed, 0 failed, 0 errors"), "{replayed}");
    project.gpuemu(&["reproduce", seed]).assert().success();
    project.gpuemu(&["test", "--quick"]).assert().success();

    // Keep the good state, and let CI hold it.
    project.gpuemu(&["baseline", "v1"]).assert().success().stdout_eq("v1  2 ops, 20 cases\n");
    project.gpuemu(&["diff", "--baseline", "v1"]).assert().success().stdout_eq(str![[r#"
against baseline v1 (threshold 10 %)
  same       scale_bias_relu  [..], 10 cases
  same       softmax          [..], 10 cases

"#]]);
    let gate = ["ci", "--quick", "--format", "junit", "--output", "results.xml"];
    project.gpuemu(&gate).assert().success().stdout_eq("");
    check_junit(&project, "results.xml", 0);

    // The gate is red when the op is broken again: by its verdict, and against the baseline.
    break_softmax(&project);
    project.gpuemu(&["ci", "--format", "junit", "--output", "results.xml"]).assert().code(1);
    check_junit(&project, "results.xml", 1);
    project.gpuemu(&["ci", "--format", "json", "--output", "broken.json"]).assert().code(1);
    project.write("kernels/softmax.py", &right);
    project.gpuemu(&["ci", "--quick", "--baseline", "v1", "--fail-on-regression"]).assert().success();
    project.gpuemu(&["ci", "--quick", "--baseline", "broken.json", "--fail-on-regression"]).assert().success();
    project.gpuemu(&["report"]).assert().success();
}

/// Only whole tiles are looked at.
fn break_softmax(project: &Project) {
    let text = project.read("kernels/softmax.py");
    let broken =
        text.replace("range(0, input.shape[-1], TILE)", "range(0, max(input.shape[-1] // TILE, 1) * TILE, TILE)");
    assert_ne!(text, broken, "{text}");
    project.write("kernels/softmax.py", &broken);
}

/// The XML follows the schema that CI systems read, and counts what failed.
fn check_junit(project: &Project, file: &str, failures: u64) {
    let schema = concat!(env!("CARGO_MANIFEST_DIR"), "/tests/data/junit.xsd");
    let program = "import sys, xmlschema\nschema = xmlschema.XMLSchema(sys.argv[1])\nschema.validate(sys.argv[2])\nprint(schema.to_dict(sys.argv[2]).get('@failures'))\n";
    let output = project.python(&["-c", program, schema, file]).output().unwrap();
    assert!(output.status.success(), "{}", text_of(&output.stderr));
    let counted: u64 = text_of(&output.stdout).trim().parse().unwrap();
    assert_eq!(counted > 0, failures > 0, "{}", project.read(file));
}

#[test]
fn a_regression_against_a_baseline_fails_the_gate_even_within_the_tolerance() {
    let Some(project) = Project::new() else { return };
    project.write(
        "gpuemu.toml",
        "[project]\nname = \"p\"\nframework = \"numpy\"\n\n[[ops]]\nname = \"add\"\nmodule = \"add\"\nsignature = \"x[N] y[N] -> out[N]\"\nreference = \"add:exact\"\nvalues = \"regular\"\n",
    );
    let code = "def exact(x, y):\n    return x + y\n\n\ndef add(x, y):\n    return x + y\n";
    project.write("add.py", code);
    project.gpuemu(&["test"]).assert().success();
    project.gpuemu(&["baseline", "good"]).assert().success();
    project.gpuemu(&["ci", "--format", "json", "--output", "good.json"]).assert().success();
    // A few ulp more: still within atol and rtol, and still a regression.
    project.write(
        "add.py",
        &code
            .replace("def add(x, y):\n    return x + y", "def add(x, y):\n    return (x + y) * x.dtype.type(1.000001)"),
    );
    project.gpuemu(&["test"]).assert().success();
    project.gpuemu(&["diff", "--baseline", "good"]).assert().code(1).stdout_eq(str![[r#"
against baseline good (threshold 10 %)
  REGRESSED  add  largest error [..]
...
"#]]);
    project.gpuemu(&["ci", "--baseline", "good.json", "--fail-on-regression"]).assert().code(1);
    project.gpuemu(&["ci", "--baseline", "good"]).assert().success();
    // An op of the baseline that is gone is an error, not a pass.
    project.write("add.py", code);
    project.replace("gpuemu.toml", "name = \"add\"", "name = \"plus\"");
    project.replace("gpuemu.toml", "module = \"add\"", "module = \"add:add\"");
    project.gpuemu(&["ci", "--baseline", "good"]).assert().code(2);
    project.gpuemu(&["diff", "--baseline", "good"]).assert().code(2);
}

#[test]
fn the_complete_example_of_the_configuration_document_is_understood() {
    let project = Project::without_python();
    project.write("gpuemu.toml", include_str!("../../../gpuemu-config/tests/data/complete.toml"));
    // Its files are not there: the first thing that is missed is a reference script, not a key.
    let output = project.gpuemu(&["status"]).output().unwrap();
    assert_eq!(output.status.code(), Some(2));
    let words = text_of(&output.stderr);
    assert!(words.contains("the reference script of op 'matmul' is not there"), "{words}");
}
