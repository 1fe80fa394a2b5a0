//! `gpuemu init`, as a user sees it: what it writes works as it is written.
#![allow(clippy::unwrap_used, reason = "tests fail by panicking")]

use gpuemu_config::{Environment, load_file};
use snapbox::str;

use crate::fixture::{Project, text_of};

const FRAMEWORKS: [&str; 4] = ["pytorch", "jax", "tensorflow", "numpy"];

const EXAMPLES: [&str; 5] = [
    "gpuemu.toml",
    "kernels/__init__.py",
    "kernels/scale_bias_relu.py",
    "kernels/softmax.py",
    "references/scale_bias_relu.py",
];

#[test]
fn the_files_are_named_and_the_next_commands_too() {
    let project = Project::without_python();
    project.gpuemu(&["init", "demo", "--with-examples"]).assert().success().stderr_eq("").stdout_eq(str![[r#"
wrote demo/gpuemu.toml
wrote demo/kernels/__init__.py
wrote demo/kernels/softmax.py
wrote demo/kernels/scale_bias_relu.py
wrote demo/references/scale_bias_relu.py

next:
  cd demo
  gpuemu test              both ops pass
  edit kernels/softmax.py  break it: fill the lanes beyond the end with 0 in place of -inf
  gpuemu test              now it fails, with a seed that replays
  gpuemu debug             look at the failing tensors

"#]]);
    assert_eq!(project.files(), EXAMPLES.map(|file| format!("demo/{file}")));
    project.gpuemu(&["init"]).assert().success().stderr_eq("").stdout_eq(str![[r#"
wrote gpuemu.toml

next:
  edit gpuemu.toml  add an [[ops]] entry that names your function; it has an example
  gpuemu test       try cases of every op

"#]]);
}

#[test]
fn json_has_what_was_written_and_what_is_next() {
    let project = Project::without_python();
    let result = project.json(&["init", "my demo", "--format", "json"], 0);
    let expected = serde_json::json!({
        "written": ["my demo/gpuemu.toml"],
        "next": ["cd 'my demo'", "edit gpuemu.toml", "gpuemu test"],
    });
    assert_eq!(result, expected);
}

#[test]
fn the_examples_pass_for_every_seed() {
    let Some(project) = Project::new() else { return };
    project.gpuemu(&["init", "--with-examples"]).assert().success();
    for seed in ["1", "2", "3", "4", "5"] {
        let report = project.json(&["test", "--base-seed", seed, "--iterations", "60", "--format", "json"], 0);
        let ops = report["ops"].as_array().unwrap();
        assert_eq!(ops.len(), 2);
        for op in ops {
            assert_eq!((&op["status"], &op["passed"]), (&"passed".into(), &60.into()), "{op}");
            assert!(op["warnings"].as_array().unwrap().is_empty(), "{}", op["warnings"]);
            let dtypes: Vec<&str> =
                op["dtypes"].as_array().unwrap().iter().flat_map(|one| one["dtype"].as_str()).collect();
            assert_eq!(dtypes, ["float16", "float32"]);
        }
        assert_eq!(ops[0]["reference"], "built-in fp64 reference");
        assert_eq!(ops[1]["reference"], "warm script references/scale_bias_relu.py");
    }
    project.gpuemu(&["test", "--quick", "--base-seed", "1"]).assert().success();
}

#[test]
fn an_example_that_is_broken_as_told_fails() {
    let Some(project) = Project::new() else { return };
    project.gpuemu(&["init", "--with-examples"]).assert().success();
    project.replace("kernels/softmax.py", "(TILE,), -np.inf", "(TILE,), 0");
    let text = project.stdout(&["test", "--op", "softmax", "--base-seed", "1", "--iterations", "30"], 1);
    assert!(text.contains("[padding in a denominator]") && text.contains("gpuemu reproduce "), "{text}");
    project.replace("references/scale_bias_relu.py", "+ bias, 0)", "- bias, 0)");
    let text = project.stdout(&["test", "--op", "scale_bias_relu", "--base-seed", "1", "--iterations", "30"], 1);
    assert!(text.contains("elements of 'out' differ"), "{text}");
}

#[test]
fn every_template_is_python() {
    let Some(project) = Project::new() else { return };
    for framework in FRAMEWORKS {
        project.gpuemu(&["init", framework, "--framework", framework, "--with-examples"]).assert().success();
    }
    let scripts: Vec<String> = project.files().into_iter().filter(|file| file.ends_with(".py")).collect();
    assert_eq!(scripts.len(), 4 * 4);
    let mut arguments = vec!["-m", "py_compile"];
    arguments.extend(scripts.iter().map(String::as_str));
    project.python(&arguments).assert().success();
}

/// The configuration with every setting that is commented out: prose has a space after its `#`.
fn uncommented(text: &str) -> String {
    let lines = text.lines().map(|line| match line.strip_prefix('#') {
        Some(setting) if !setting.starts_with(' ') && !setting.is_empty() => setting,
        _ => line,
    });
    lines.map(|line| format!("{line}\n")).collect()
}

#[test]
fn settings_that_are_commented_out_are_valid_and_the_defaults() {
    for framework in FRAMEWORKS {
        for examples in [&[][..], &["--with-examples"]] {
            let project = Project::without_python();
            let arguments = ["init", "--framework", framework];
            project.gpuemu(&[&arguments[..], examples].concat()).assert().success();
            let environment = Environment::of(&[]);
            let written = load_file(project.path("gpuemu.toml"), &environment).unwrap();
            let text = project.read("gpuemu.toml");
            assert!(text.lines().all(|line| line.len() <= 120), "{text}");
            project.write("gpuemu.toml", &uncommented(&text));
            let full = load_file(project.path("gpuemu.toml"), &environment).unwrap_or_else(|error| panic!("{error}"));
            assert_eq!((full.ops.len(), full.kernels.len(), full.expected_failures.len()), (2, 1, 1));
            assert_eq!((&full.project, &full.policies), (&written.project, &written.policies));
            assert_eq!((&full.ci, &full.daemon), (&written.ci, &written.daemon));
            assert_eq!(full.storage, written.storage);
            let (mut full, written) = (full.validation, written.validation);
            assert!(!full.tolerances.is_empty());
            full.tolerances.clear();
            assert_eq!(full, written);
            // What a daemon makes of the ops is valid too.
            project.gpuemu(&["status", "--no-daemon"]).assert().success();
        }
    }
}

#[test]
fn nothing_is_written_over_unless_it_is_wanted() {
    let project = Project::without_python();
    project.write("kernels/softmax.py", "mine\n");
    project.gpuemu(&["init", "--with-examples"]).assert().code(2).stdout_eq("").stderr_eq(str![[r#"
error: kernels/softmax.py already exists; nothing was written
hint: name another folder, or write over it with --force

"#]]);
    assert_eq!(project.files(), ["kernels/softmax.py"]);
    assert_eq!(project.read("kernels/softmax.py"), "mine\n");
    project.gpuemu(&["init", "--with-examples", "--force"]).assert().success();
    assert_eq!(project.files(), EXAMPLES);
    assert!(project.read("kernels/softmax.py").contains("def softmax"));
    let output = project.gpuemu(&["init", ".", "--with-examples"]).assert().code(2);
    let error = text_of(&output.get_output().stderr);
    assert!(EXAMPLES.iter().all(|file| error.contains(file)), "{error}");
}

#[test]
fn a_name_is_the_folders_or_any_text() {
    let project = Project::without_python();
    let name = |folder: &str| {
        let file = project.path(folder).join("gpuemu.toml");
        load_file(file, &Environment::of(&[])).unwrap().project.name
    };
    project.gpuemu(&["init", "a/my (new) project!"]).assert().success();
    assert_eq!(name("a/my (new) project!"), "my--new--project");
    project.gpuemu(&["init", "b", "--name", "it's \"new\" \\ \u{e9}"]).assert().success();
    assert_eq!(name("b"), "it's \"new\" \\ \u{e9}");
    project.gpuemu(&["init", "..."]).assert().success();
    assert_eq!(name("..."), "my-project");
    project.gpuemu(&["init", "c", "--name", " "]).assert().code(2).stdout_eq("").stderr_eq(str![[r#"
error: the project's name is empty
hint: leave --name out to use the folder's name

"#]]);
    assert!(!project.path("c").exists());
}

#[test]
fn what_cannot_be_is_an_error_with_status_2() {
    let project = Project::without_python();
    project.write("file", "");
    let output = project.gpuemu(&["init", "file"]).assert().code(2).stdout_eq("");
    assert!(text_of(&output.get_output().stderr).starts_with("error: cannot write file/gpuemu.toml: "));
    let output = project.gpuemu(&["init", "--framework", "caffe"]).assert().code(2).stdout_eq("");
    assert!(text_of(&output.get_output().stderr).contains("[possible values: pytorch, jax, tensorflow, numpy]"));
    assert_eq!(project.files(), ["file"]);
}
