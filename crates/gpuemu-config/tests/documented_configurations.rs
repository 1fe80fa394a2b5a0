//! What the documentation shows of `gpuemu.toml` can be written there.
#![allow(clippy::unwrap_used, clippy::panic, reason = "tests fail by panicking")]

use std::path::{Path, PathBuf};

use gpuemu_config::{Environment, load_text};

/// Pages below a folder.
fn pages(folder: &Path, found: &mut Vec<PathBuf>) {
    for entry in std::fs::read_dir(folder).unwrap() {
        let path = entry.unwrap().path();
        if path.is_dir() {
            pages(&path, found);
        } else if path.extension().is_some_and(|extension| extension == "md") {
            found.push(path);
        }
    }
}

/// The blocks of TOML, whatever their fences say besides.
fn blocks(page: &str) -> Vec<&str> {
    let after = page.split("\n```toml").skip(1);
    after.map(|rest| rest.split_once('\n').unwrap().1.split("\n```").next().unwrap()).collect()
}

/// A part of a configuration, as a whole one.
fn completed(block: &str) -> String {
    let project = if block.contains("[project]") { "" } else { "[project]\nname = \"p\"\n\n" };
    let op = if block.starts_with("[ops.") { "[[ops]]\nname = \"softmax\"\nmodule = \"m\"\n\n" } else { "" };
    format!("{project}{op}{block}\n")
}

#[test]
fn every_block_can_be_read() {
    let docs = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../docs");
    let mut found = Vec::new();
    pages(&docs, &mut found);
    let environment = Environment::of(&[("HOME", "/nowhere")]);
    let mut read = 0;
    for page in found {
        let text = std::fs::read_to_string(&page).unwrap();
        // Rules of a project are a file of their own.
        for block in blocks(&text).into_iter().filter(|block| !block.contains("[[rules]]")) {
            let config = load_text(PathBuf::from("/nowhere/gpuemu.toml"), completed(block), &environment);
            assert!(config.is_ok(), "{}: {}\n{block}", page.display(), config.unwrap_err());
            read += 1;
        }
    }
    assert!(read > 150, "{read}");
}

#[test]
fn a_key_that_nobody_knows_is_seen() {
    let environment = Environment::of(&[("HOME", "/nowhere")]);
    let page = "words\n```toml { .file title=\"gpuemu.toml\" }\n[[ops]]\nname = \"softmax\"\nmodul = \"m\"\n```\n";
    let text = completed(blocks(page)[0]);
    assert!(load_text(PathBuf::from("/nowhere/gpuemu.toml"), text, &environment).is_err());
}
