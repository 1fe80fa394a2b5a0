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
    // The table of what was measured repeats two of these lines.
    let counts = |line: &str, what: &str| {
        let line = text.lines().find(|one| one.starts_with(line)).unwrap();
        let words: Vec<&str> = line[..line.find(what).unwrap()].trim_end().rsplit(' ').take(3).collect();
        words.into_iter().rev().collect::<Vec<_>>().join(" ")
    };
    for (row, what) in [
        ("wrong kernels of the published corpus caught", " wrong kernels caught"),
        ("right ones flagged", " right ones flagged"),
    ] {
        let row = format!("| {row} | {} | {} | `gpuemu corpus` |", counts("allclose:", what), counts("gpuemu:", what));
        assert!(readme.contains(&row), "the README does not have:\n{row}");
    }
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
