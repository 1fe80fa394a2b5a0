//! Exit status 2, never 0 or 1, for everything that is the user's to mend before anything can be judged.
#![allow(clippy::unwrap_used, clippy::panic, clippy::print_stderr, reason = "tests fail by panicking")]

use crate::fixture::{Project, text_of};

const CONFIG: &str = "[project]\nname = \"p\"\nframework = \"numpy\"\n\n[[ops]]\nname = \"relu\"\nmodule = \"relu\"\n";
const RELU: &str = "import numpy as np\n\ndef relu(input):\n    return np.maximum(input, 0)\n";

/// What a call that cannot work says on stderr; stdout stays empty.
#[track_caller]
fn refused(project: &Project, arguments: &[&str]) -> String {
    let output = project.gpuemu(arguments).output().unwrap();
    let (words, result) = (text_of(&output.stderr), text_of(&output.stdout));
    assert_eq!(output.status.code(), Some(2), "{arguments:?}: {words}{result}");
    assert!(result.is_empty(), "{result}");
    words
}

#[test]
fn without_a_configuration() {
    let project = Project::without_python();
    for command in [&["test"][..], &["fuzz"], &["ci"], &["failures"], &["report"], &["status"], &["reproduce", "1"]] {
        let words = refused(&project, command);
        assert!(words.contains("gpuemu.toml") && words.contains("hint: `gpuemu init` makes one"), "{words}");
    }
}

#[test]
fn with_a_bad_configuration() {
    let project = Project::without_python();
    for (text, part) in [
        ("[project]\nname = \"p\"\n[validaton]\n", "did you mean `validation`?"),
        ("[project]\nname = 7\n", "line 2"),
        ("[project\n", "gpuemu.toml"),
        ("[project]\nname = \"p\"\n[daemon]\nscript_timeout = 1e300\n", "at most 2592000"),
        ("[project]\nname = \"p\"\n[validation]\ndtypes = [\"float31\"]\n", "float31"),
    ] {
        project.write("gpuemu.toml", text);
        let words = refused(&project, &["test"]);
        assert!(words.contains(part) || (part == "line 2" && words.contains(":2:")), "{words}");
        assert!(words.contains('^'), "{words}");
    }
}

#[test]
fn when_the_daemon_cannot_be_reached() {
    let project = Project::without_python();
    project.write("gpuemu.toml", CONFIG);
    // A folder that cannot be one.
    let output = project.gpuemu(&["test"]).env("GPUEMU_HOME", "/dev/null/home").output().unwrap();
    let words = text_of(&output.stderr);
    assert_eq!(output.status.code(), Some(2), "{words}");
    assert!(words.contains("error:"), "{words}");
    // A file where the socket should be.
    project.write("not_a_socket", "");
    let output = project.gpuemu(&["test"]).env("GPUEMU_SOCKET", project.path("not_a_socket")).output().unwrap();
    let words = text_of(&output.stderr);
    assert_eq!(output.status.code(), Some(2), "{words}");
    assert!(words.contains("not a socket"), "{words}");
    assert_eq!(project.read("not_a_socket"), "");
}

#[test]
fn when_an_op_cannot_be_run() {
    let Some(project) = Project::new() else { return };
    let with = |text: &str| project.write("gpuemu.toml", &format!("{CONFIG}{text}"));
    project.write("relu.py", RELU);
    let error = |arguments: &[&str], part: &str| {
        let output = project.gpuemu(arguments).output().unwrap();
        let all = text_of(&output.stderr) + &text_of(&output.stdout);
        assert_eq!(output.status.code(), Some(2), "{all}");
        assert!(all.contains(part), "{all}");
    };
    with("reference = \"missing.py\"\n");
    error(&["test"], "missing.py");
    with("");
    error(&["test", "--op", "rellu"], "did you mean 'relu'?");
    error(&["fuzz", "--op", "nothing_like_it"], "there is no op 'nothing_like_it'");
    error(&["reproduce", "7", "--op", "rellu"], "did you mean 'relu'?");
    with("\n[[ops]]\nname = \"my_op\"\nmodule = \"relu\"\n");
    error(&["test", "--op", "my_op"], "has no signature");
    with("\n[[ops]]\nname = \"my_op\"\nmodule = \"relu\"\nsignature = \"x[M;N] -> o[M]\"\nreference = \"relu:relu\"\n");
    error(&["test", "--op", "my_op"], "';' has no meaning here");
    with("dims = { Q = 3 }\n");
    error(&["test"], "has no dim 'Q'");
    project.write("gpuemu.toml", &CONFIG.replace("module = \"relu\"", "module = \"no_such_module\""));
    error(&["test"], "no_such_module");
    project.write("gpuemu.toml", &CONFIG.replace("module = \"relu\"", "module = \"relu:gelu\""));
    error(&["test"], "relu");
    // A script that is there and a reference that raises: an error, not a failure of the op.
    project.write("gpuemu.toml", &format!("{CONFIG}reference = \"raises.py\"\n"));
    project.write("raises.py", "raise ValueError('not today')\n");
    error(&["test"], "not today");
    let output = project.gpuemu(&["test"]).env("GPUEMU_PYTHON", "/no/such/python").output().unwrap();
    assert_eq!(output.status.code(), Some(2), "{}", text_of(&output.stdout));
}

#[test]
fn when_no_case_is_run() {
    let Some(project) = Project::new() else { return };
    project.write("gpuemu.toml", "[project]\nname = \"p\"\nframework = \"numpy\"\n");
    assert!(refused(&project, &["test"]).contains("defines no op"));
    // Ops that only a client can run.
    project.write("gpuemu.toml", "[project]\nname = \"p\"\n\n[[ops]]\nname = \"relu\"\n");
    let output = project.gpuemu(&["test"]).output().unwrap();
    assert_eq!(output.status.code(), Some(2), "{}", text_of(&output.stdout));
    assert!(text_of(&output.stdout).contains("op 'relu' is left out"), "{}", text_of(&output.stdout));
    project.write("gpuemu.toml", CONFIG);
    project.write("relu.py", RELU);
    for wrong in
        [["--iterations", "0"], ["--seconds", "0"], ["--seconds", "-1"], ["--seconds", "nan"], ["--dtypes", "float33"]]
    {
        refused(&project, &["fuzz", wrong[0], wrong[1]]);
    }
    assert!(refused(&project, &["report"]).contains("no result"));
    assert!(refused(&project, &["baseline", "v1"]).contains("run `gpuemu test` first"));
    assert!(refused(&project, &["diff", "--baseline", "v1"]).contains("there is no baseline 'v1'"));
    assert!(refused(&project, &["ci", "--baseline", "old.json"]).contains("there is no report old.json"));
    assert!(refused(&project, &["failures", "show", "12"]).contains("seed 12"));
    assert!(refused(&project, &["ci", "--fail-on-regression"]).contains("--baseline"));
}

#[test]
fn when_the_store_is_in_use() {
    let Some(project) = Project::new() else { return };
    project.write("gpuemu.toml", CONFIG);
    project.write("relu.py", RELU);
    project.gpuemu(&["daemon", "start", "--background"]).assert().success();
    let words = refused(&project, &["--no-daemon", "test"]);
    assert!(words.contains("in use by the daemon (process ") && words.contains("gpuemu daemon stop"), "{words}");
    project.gpuemu(&["daemon", "stop"]).assert().success();
    project.gpuemu(&["--no-daemon", "test", "--iterations", "5"]).assert().success();
    project.gpuemu(&["daemon", "status"]).assert().code(2);
}

#[test]
fn a_store_of_another_version_is_an_error_and_stays() {
    let project = Project::without_python();
    project.write("gpuemu.toml", CONFIG);
    let file = project.home.path().join("db/gpuemu.redb");
    std::fs::create_dir_all(file.parent().unwrap()).unwrap();
    std::fs::write(&file, b"not a store at all").unwrap();
    let words = refused(&project, &["test"]);
    assert!(words.contains("is not a gpuemu store"), "{words}");
    assert_eq!(std::fs::read(&file).unwrap(), b"not a store at all");
    let words = refused(&project, &["--no-daemon", "test"]);
    assert!(words.contains("is not a gpuemu store") && !words.contains("daemon stop"), "{words}");
}

#[test]
fn a_damaged_store_is_an_error_and_stays() {
    let Some(project) = Project::new() else { return };
    project.write("gpuemu.toml", CONFIG);
    project.write("relu.py", RELU);
    project.gpuemu(&["--no-daemon", "test"]).assert().success();
    let file = project.home.path().join("db/gpuemu.redb");
    let mut bytes = std::fs::read(&file).unwrap();
    let length = bytes.len();
    // Everything behind the page that says what the file is.
    bytes[4096..].fill(0xff);
    std::fs::write(&file, &bytes).unwrap();
    let output = project.gpuemu(&["--no-daemon", "report"]).output().unwrap();
    assert_eq!(output.status.code(), Some(2), "{}", text_of(&output.stderr));
    assert_eq!(std::fs::metadata(&file).unwrap().len(), length as u64);
}

#[test]
fn usage_errors_are_2_as_well() {
    let project = Project::without_python();
    for wrong in [&["tset"][..], &["test", "--quick", "--thorough"], &["minimize"], &["test", "--format", "yaml"]] {
        refused(&project, wrong);
    }
}
