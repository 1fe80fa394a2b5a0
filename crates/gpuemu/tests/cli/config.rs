//! `gpuemu config`: what editors are told of a configuration, and how it is changed.
#![allow(clippy::unwrap_used, clippy::panic, clippy::print_stderr, reason = "tests fail by panicking")]

use serde_json::{Value, json};
use snapbox::str;

use crate::fixture::{Project, text_of};

const CONFIG: &str = r#"# Two ops.
[project]
name = "small"
framework = "numpy"

[[ops]]
name = "relu" # exact
module = "kernels.activations:relu"

# With a reference of its own.
[[ops]]
name = "double"
module = "kernels.double"
signature = "x[M,N] -> out[M,N]"
reference = "references/double.py"
tolerance = "fixed" # not measured yet

[ops.tolerances]
half = { atol = 1e-3, rtol = 1e-3 } # generous
"#;

fn small() -> Project {
    let project = Project::without_python();
    project.write("gpuemu.toml", CONFIG);
    project.write("kernels/__init__.py", "");
    project
        .write("kernels/activations.py", "import numpy as np\n\n\ndef relu(input):\n    return np.maximum(input, 0)\n");
    project.write("kernels/double.py", "from kernels.shared import twice\n\n\ndef run(x):\n    return twice(x)\n");
    project.write("kernels/shared.py", "def twice(x):\n    return x + x\n");
    project.write("references/double.py", "print('{}')\n");
    project
}

/// The checked configuration with this text, not saved, and whether the exit status is that of a valid one.
fn checked(project: &Project, text: &str) -> Value {
    let output = project.gpuemu(&["config", "check", "--stdin", "--format", "json"]).stdin(text).output().unwrap();
    let checked: Value = serde_json::from_slice(&output.stdout).unwrap_or_else(|error| panic!("{error}: {output:?}"));
    assert_eq!(output.status.code(), Some(if checked["valid"] == true { 0 } else { 2 }));
    checked
}

fn range(line: u64, from: u64, to: u64) -> Value {
    json!({ "start": { "line": line, "column": from }, "end": { "line": line, "column": to } })
}

#[test]
fn a_valid_configuration_says_what_is_defined_where() {
    let project = small();
    project.gpuemu(&["config", "check"]).assert().success().stdout_eq(str![[r#"
[..]gpuemu.toml is valid: 2 ops, 0 kernels

"#]]);
    let checked = project.json(&["config", "check", "--format", "json"], 0);
    let root = std::path::absolute(project.folder.path()).unwrap();
    let at = |file: &str, range: Value| json!({ "file": root.join(file), "range": range });
    let relu = &checked["ops"][0];
    assert_eq!(relu["place"], at("gpuemu.toml", range(7, 8, 14)));
    assert_eq!(relu["definition"], at("kernels/activations.py", range(4, 5, 9)));
    assert_eq!(relu["reference_definition"], Value::Null);
    assert_eq!((&relu["tolerance"], &relu["dtypes"]), (&json!("bound"), &json!(["float32"])));
    let double = &checked["ops"][1];
    // A module without a function: the one named like the op, or `run`.
    assert_eq!(double["definition"], at("kernels/double.py", range(4, 5, 8)));
    assert_eq!(double["reference_definition"], at("references/double.py", range(1, 1, 1)));
    let files = ["kernels/double.py", "kernels/shared.py", "references/double.py"];
    assert_eq!(double["files"], json!(files.map(|file| root.join(file))));
    assert_eq!(double["tolerances"], json!({ "float16": { "atol": 1e-3, "rtol": 1e-3 } }));
    // No daemon was needed for that.
    project.gpuemu(&["daemon", "status"]).assert().code(2);
}

#[test]
fn what_is_not_valid_is_pointed_at_by_its_characters() {
    let project = small();
    let problem = |from: &str, to: &str| {
        let checked = checked(&project, &CONFIG.replace(from, to));
        assert_eq!(checked["valid"], false);
        checked["problems"][0].clone()
    };
    let unknown = problem("module = \"kernels.double\"", "modul = \"kernels.double\"");
    assert_eq!(unknown["range"], range(13, 1, 6), "{unknown}");
    assert_eq!(unknown["hint"], "did you mean `module`?");
    let dtype = problem("half = ", "αhalf = ");
    assert_eq!(dtype["range"]["start"]["line"], 19, "{dtype}");
    // Found by those who know ops.
    let signature = problem("-> out[M,N]", "-> out[M,");
    assert_eq!(signature["range"], range(14, 13, 31), "{signature}");
    let missing = problem("references/double.py", "references/gone.py");
    assert_eq!(missing["range"], range(12, 8, 16), "{missing}");
    assert!(missing["message"].as_str().unwrap().contains("references/gone.py"), "{missing}");
}

#[test]
fn a_mistake_in_one_op_hides_neither_the_other_mistakes_nor_the_other_ops() {
    let project = small();
    let text = CONFIG.replace("name = \"relu\"", "name = \"reluu\"").replace("references/double.py", "gone.py");
    let checked = checked(&project, &text);
    assert_eq!(checked["problems"].as_array().unwrap().len(), 2, "{checked}");
    assert_eq!(checked["ops"].as_array().unwrap().len(), 2);
    project.write("gpuemu.toml", &text);
    project.gpuemu(&["config", "check"]).assert().code(2).stdout_eq(str![[r#"
op 'reluu' has no signature and is not built in
 --> [..]gpuemu.toml:7:8
  |
7 | name = "reluu" # exact
  |        ^^^^^^^
  |
  = hint: give it a signature such as "a[M,K] b[K,N] -> out[M,N]", or say op = "relu"
the reference script of op 'double' is not there: [..]gone.py
...

"#]]);
}

#[test]
fn a_tolerance_is_set_and_comments_stay() {
    let project = small();
    let set = |op: &str, dtype: &str, atol: &str| {
        project.gpuemu(&["config", "tolerance", "--op", op, "--dtype", dtype, "--atol", atol, "--rtol", "0"])
    };
    set("double", "float16", "0.005").assert().success();
    let expected = CONFIG.replace("{ atol = 1e-3, rtol = 1e-3 }", "{ atol = 5e-3, rtol = 0.0 }");
    assert_eq!(project.read("gpuemu.toml"), expected);
    set("double", "float32", "1e-5").assert().success();
    let text = project.read("gpuemu.toml");
    assert_eq!(text, format!("{expected}float32 = {{ atol = 1e-5, rtol = 0.0 }}\n"));
    set("relu", "float32", "1e-6").assert().success().stdout_eq(str![[r#"
relu is judged by atol = 1e-6, rtol = 0e0 in float32 from now on
wrote [..]gpuemu.toml

"#]]);
    let added = "module = \"kernels.activations:relu\"\n\n[ops.tolerances]\nfloat32 = { atol = 1e-6, rtol = 0.0 }\n";
    assert_eq!(project.read("gpuemu.toml"), text.replace("module = \"kernels.activations:relu\"\n", added));
    assert_eq!(project.json(&["config", "check", "--format", "json"], 0)["ops"][0]["tolerance"], "fixed");
}

#[test]
fn a_text_that_is_not_saved_is_changed_without_writing() {
    let project = small();
    let unsaved = CONFIG.replace("tolerance = \"fixed\"", "tolerance = \"calibrated\"");
    let arguments = ["config", "tolerance", "--op", "double", "--dtype", "half", "--atol", "1", "--rtol", "1"];
    let command = project.gpuemu(&arguments).args(["--stdin", "--format", "json"]).stdin(unsaved.as_str());
    let output: Value = serde_json::from_slice(&command.assert().success().get_output().stdout).unwrap();
    let expected = CONFIG.replace("{ atol = 1e-3, rtol = 1e-3 }", "{ atol = 1.0, rtol = 1.0 }");
    assert_eq!((output["text"].as_str(), output["written"].as_bool()), (Some(expected.as_str()), Some(false)));
    assert_eq!(project.read("gpuemu.toml"), CONFIG);
    for (wrong, words) in [("-1", "atol"), ("nan", "atol")] {
        let atol = format!("--atol={wrong}");
        let refused =
            project.gpuemu(&["config", "tolerance", "--op", "relu", "--dtype", "float32", &atol, "--rtol", "0"]);
        let output = refused.assert().code(2).get_output().clone();
        assert!(text_of(&output.stderr).contains(words), "{}", text_of(&output.stderr));
    }
    assert_eq!(project.read("gpuemu.toml"), CONFIG);
}

#[test]
fn a_case_is_run_again_with_a_picture_of_its_errors() {
    let Some(project) = Project::new() else { return };
    project.write("gpuemu.toml", &CONFIG.replace("module = \"kernels.double\"", "script = \"kernels/double.py\""));
    project.write("kernels/double.py", "");
    project.write("references/double.py", "");
    project.write("kernels/activations.py", "import numpy as np\n\n\ndef relu(input):\n    return np.abs(input)\n");
    let report = project.json(&["test", "--op", "relu", "--quick", "--base-seed", "1", "--format", "json"], 1);
    let seed = report["ops"][0]["failures"][0]["seed"].as_str().unwrap();
    let again = ["reproduce", seed, "--op", "relu", "--quick", "--picture"];
    let picture = project.json(&[&again[..], &["--format", "json"]].concat(), 1);
    assert_eq!((&picture["result"]["seed"], &picture["picture"]["tensor"]), (&json!(seed), &json!("out")));
    let map = &picture["picture"]["map"];
    let cells = |size: &str, step: &str| map[size].as_u64().unwrap().div_ceil(map[step].as_u64().unwrap());
    let expected = cells("rows", "row_step") * cells("columns", "column_step");
    assert_eq!(map["cells"].as_array().unwrap().len() as u64, expected, "{map}");
    let text = project.stdout(&again, 1);
    assert!(text.contains("are wrong, the worst at ["), "{text}");
}
