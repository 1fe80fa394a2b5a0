//! The figures of the README are what its command prints.
#![allow(clippy::unwrap_used, reason = "tests fail by panicking")]

use snapbox::cmd::{Command, cargo_bin};

#[test]
fn the_readme_shows_what_the_corpus_command_prints() {
    let readme = std::fs::read_to_string(concat!(env!("CARGO_MANIFEST_DIR"), "/../../README.md")).unwrap();
    let output = Command::new(cargo_bin!("gpuemu")).arg("corpus").env("NO_COLOR", "1").assert().success();
    let text = String::from_utf8(output.get_output().stdout.clone()).unwrap();
    let start = text.find("gpuemu:").unwrap();
    let end = text.find("13000 cases").unwrap();
    assert!(readme.contains(&text[start..end]), "the README does not show:\n{}", &text[start..end]);
}

#[test]
fn the_readme_counts_the_built_in_ops() {
    let readme = std::fs::read_to_string(concat!(env!("CARGO_MANIFEST_DIR"), "/../../README.md")).unwrap();
    let count = gpuemu_engine::ops::builtin().len();
    assert_eq!(readme.matches(&format!("[{count} of them](docs/ops")).count(), 1, "there are {count} built-in ops");
    assert_eq!(
        readme.matches(&format!("[{count} built-in ops](docs/ops")).count(),
        1,
        "there are {count} built-in ops"
    );
}

#[test]
fn the_readme_shows_what_differs_between_two_compiled_kernels() {
    let readme = std::fs::read_to_string(concat!(env!("CARGO_MANIFEST_DIR"), "/../../README.md")).unwrap();
    let folder = concat!(env!("CARGO_MANIFEST_DIR"), "/../gpuemu-ptx/tests/data/ptx/pairs");
    let command = Command::new(cargo_bin!("gpuemu")).args(["diff", "--ptx", "softmax.ptx", "softmax_zero.ptx"]);
    let output = command.current_dir(folder).env("NO_COLOR", "1").assert().success();
    let text = String::from_utf8(output.get_output().stdout.clone()).unwrap();
    let shown = text.lines().skip(1).take(3).collect::<Vec<_>>().join("\n");
    assert!(shown.contains("2 constants differ") && readme.contains(&shown), "the README does not show:\n{text}");
}
