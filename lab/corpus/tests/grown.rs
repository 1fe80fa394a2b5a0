//! The pairs of the grown corpus: enough of them, of every class, and nothing left lying about.
#![allow(clippy::unwrap_used, reason = "tests fail by panicking")]

use std::collections::BTreeSet;
use std::path::Path;

use gpuemu_corpus::grown::{CLASSES, Language, Project, Side, pairs, ptx_of};

fn corpus() -> &'static Path {
    Path::new(env!("CARGO_MANIFEST_DIR"))
}

#[test]
fn there_are_sixty_pairs_and_every_class_is_in_two_kernels() {
    let pairs = pairs().unwrap();
    assert!(pairs.len() >= 60, "{} pairs", pairs.len());
    let front = std::fs::read_to_string(corpus().join("../../README.md")).unwrap();
    let claim = format!("[{} pairs](lab/corpus/README.md) in {} classes of bugs", pairs.len(), CLASSES.len());
    assert!(front.contains(&claim), "README.md does not say: {claim}");
    let readme = std::fs::read_to_string(corpus().join("README.md")).unwrap();
    let claim = format!("There are {} pairs, in {} classes of bugs.", pairs.len(), CLASSES.len());
    assert!(readme.contains(&claim), "lab/corpus/README.md does not say: {claim}");
    let open = readme.split("## Open cases").nth(1).unwrap();
    for class in CLASSES {
        let kernels: BTreeSet<&str> =
            pairs.iter().filter(|pair| pair.class == *class).map(|pair| pair.wrong.as_str()).collect();
        assert!(kernels.len() >= 2 || open.contains(class), "'{class}' is in {} kernels", kernels.len());
        let names: Vec<String> =
            pairs.iter().filter(|pair| pair.class == *class).map(|pair| format!("`{}`", pair.name)).collect();
        let row = format!("| {class} | {} |", names.join(", "));
        assert!(readme.contains(&row), "lab/corpus/README.md lacks the row\n{row}");
    }
}

#[test]
fn twins_are_not_the_same() {
    for pair in pairs().unwrap() {
        assert_ne!(pair.right, pair.wrong, "{}", pair.name);
        let right = ptx_of(&pair, Side::Right).unwrap();
        assert_eq!(right.is_empty(), pair.language == Language::Python, "{}", pair.name);
        let text = |files: Vec<String>| -> Vec<String> {
            files.iter().map(|file| std::fs::read_to_string(corpus().join("grown").join(file)).unwrap()).collect()
        };
        if !right.is_empty() {
            assert_ne!(text(right), text(ptx_of(&pair, Side::Wrong).unwrap()), "{}", pair.name);
        }
    }
}

#[test]
fn all_that_is_compiled_is_run() {
    let mut used: BTreeSet<String> = BTreeSet::new();
    for pair in pairs().unwrap() {
        used.extend(ptx_of(&pair, Side::Right).unwrap());
        used.extend(ptx_of(&pair, Side::Wrong).unwrap());
    }
    for language in ["triton", "cuda"] {
        for file in std::fs::read_dir(corpus().join("grown").join(language).join("ptx")).unwrap() {
            let name = format!("{language}/ptx/{}", file.unwrap().file_name().to_str().unwrap());
            assert!(used.contains(&name), "{name} belongs to no pair");
        }
    }
}

#[test]
fn the_project_of_all_pairs_can_be_read() {
    let folder = tempfile::tempdir().unwrap();
    let pairs = pairs().unwrap();
    Project::of(&pairs).unwrap().write(folder.path()).unwrap();
    let environment = gpuemu_config::Environment::default();
    let config = gpuemu_config::load(folder.path(), &environment).unwrap();
    assert!(config.ops.len() > pairs.len(), "{} ops of {} pairs", config.ops.len(), pairs.len());
    assert!(config.ops.len() <= 2 * pairs.len());
}
