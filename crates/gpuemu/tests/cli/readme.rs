//! The figures of the README and of the pages it links to are what its commands print.
#![allow(clippy::unwrap_used, reason = "tests fail by panicking")]

use snapbox::cmd::{Command, cargo_bin};

use crate::pages::assert_shown;

#[test]
fn the_readme_and_the_studies_show_what_the_corpus_command_prints() {
    let output = Command::new(cargo_bin!("gpuemu")).arg("corpus").env("NO_COLOR", "1").assert().success();
    let text = String::from_utf8(output.get_output().stdout.clone()).unwrap();
    let start = text.find("gpuemu:").unwrap();
    let end = text.find("13000 cases").unwrap();
    assert_shown("docs/studies.md", &text[start..end]);
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
        assert_shown("README.md", &row);
    }
}

#[test]
fn the_readme_and_the_home_page_count_the_built_in_ops() {
    let count = gpuemu_engine::ops::builtin().len();
    assert_shown("README.md", &format!("[{count} built-in ops](docs/ops/README.md)"));
    assert_shown("docs/index.md", &format!("[{count} built-in ops](ops/README.md)"));
}
