//! The CUDA pairs as PTX: complete, launchable as the table says, and what their sources give.
//!
//! `GPUEMU_TEST_KERNELS_PYTHON` names a Python with NVRTC; `cargo xtask test --only kernels` sets it. Without it, the
//! kernels are not compiled again.
#![allow(clippy::unwrap_used, clippy::panic, clippy::print_stderr, reason = "tests fail by panicking")]

use std::collections::BTreeSet;
use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;

use gpuemu_config::ArtifactChecks;
use gpuemu_model::artifact::OccupancyLaunch;
use gpuemu_model::artifact::{Severity, ToolSearch};
use gpuemu_ptx::Source;
use gpuemu_ptx::inspect::Inspector;
use gpuemu_ptx::tools::Toolchain;
use toml::{Table, Value};

fn folder() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("grown/cuda")
}

fn tables(file: &str, name: &str) -> Vec<Value> {
    let table: Table = fs::read_to_string(folder().join(file)).unwrap().parse().unwrap();
    table[name].as_array().unwrap().clone()
}

fn kernels() -> Vec<Value> {
    tables("kernels.toml", "kernels")
}

fn pairs() -> Vec<Value> {
    tables("pairs.toml", "pairs")
}

fn text_of<'a>(table: &'a Value, key: &str) -> &'a str {
    table[key].as_str().unwrap()
}

fn names(tables: &[Value], key: &str) -> BTreeSet<String> {
    tables.iter().map(|table| text_of(table, key).to_string()).collect()
}

fn ptx(kernel: &str) -> String {
    fs::read_to_string(folder().join(format!("ptx/{kernel}.ptx"))).unwrap()
}

/// The file that a kernel was compiled of, from the root of the repository.
fn source_of(kernel: &str) -> String {
    let text = ptx(kernel);
    let file = text.lines().last().unwrap().strip_prefix("\t.file\t1 \"").unwrap_or_else(|| panic!("{kernel}"));
    file.strip_suffix('"').unwrap().to_string()
}

#[test]
fn pairs_kernels_and_files_belong_together() {
    let (pairs, kernels) = (pairs(), kernels());
    let in_pairs: BTreeSet<String> = names(&pairs, "right").union(&names(&pairs, "wrong")).cloned().collect();
    let files = fs::read_dir(folder().join("ptx")).unwrap();
    let files = files.map(|entry| entry.unwrap().file_name().into_string().unwrap()).collect::<BTreeSet<_>>();
    let compiled: BTreeSet<String> = in_pairs.iter().map(|name| format!("{name}.ptx")).collect();
    assert_eq!(names(&kernels, "name"), in_pairs);
    assert_eq!(files, compiled);
    // A wrong kernel is wrong in one way, and no pair stands there twice.
    assert_eq!((names(&pairs, "wrong").len(), names(&pairs, "name").len()), (pairs.len(), pairs.len()));
    assert!(names(&pairs, "right").is_disjoint(&names(&pairs, "wrong")));
    assert!(pairs.len() >= 16, "{} pairs", pairs.len());
}

#[test]
fn a_launch_fits_the_kernel_that_it_names() {
    for kernel in kernels() {
        let name = text_of(&kernel, "name");
        let file = format!("ptx/{name}.ptx");
        let [variant] = kernel["variants"].as_array().unwrap().as_slice() else { panic!("{name} has variants") };
        assert_eq!((text_of(&kernel, "source"), text_of(variant, "ptx")), (file.as_str(), file.as_str()));
        let source = Source::new(&file, ptx(name));
        let module = source.parse().unwrap_or_else(|error| panic!("{file}: {error}"));
        let entries: Vec<_> = module.entries().map(|entry| (entry.name, entry.parameters.len())).collect();
        assert_eq!(entries, [(name, kernel["args"].as_array().unwrap().len())]);
        assert_eq!(module.target, ["sm_80"], "{file}");
        // Findings name lines of the source; nothing names a folder of one machine.
        assert!(source_of(name).starts_with("lab/corpus/grown/cuda/"), "{file}");
        assert!(source.text.contains("\t.loc\t1 ") && !source.text.contains("\"/"), "{file}");
    }
}

#[test]
fn a_comment_says_what_is_wrong_and_the_code_differs() {
    for pair in pairs() {
        let (right, wrong) = (text_of(&pair, "right"), text_of(&pair, "wrong"));
        for (name, is_wrong) in [(right, false), (wrong, true)] {
            let path = Path::new(env!("CARGO_MANIFEST_DIR")).join("../..").join(source_of(name));
            let text = fs::read_to_string(&path).unwrap_or_else(|error| panic!("{}: {error}", path.display()));
            let (before, _) = text.split_once(&format!("extern \"C\" __global__ void {name}(")).unwrap();
            let comment = before.trim_end().rsplit("\n\n").next().unwrap();
            assert_eq!(comment.starts_with("// WRONG: "), is_wrong, "{name}: {comment}");
            assert!(is_wrong || comment.starts_with("// Right"), "{name}: {comment}");
        }
        let code = |name: &str| -> Vec<String> {
            let lines = ptx(name).replace(name, "k");
            lines.lines().filter(|line| !line.contains(".loc")).map(ToString::to_string).collect()
        };
        assert_ne!(code(right), code(wrong), "{wrong}");
    }
}

#[test]
fn what_only_a_linter_sees_is_seen_in_the_wrong_twins_alone() {
    let toolchain = Toolchain::find(&ToolSearch::default());
    let inspector =
        Inspector { toolchain: &toolchain, architectures: &[], rules: &[], launch: OccupancyLaunch::default() };
    let found = |kernel: &str, rule: &str| {
        let report = inspector.file(&folder().join(format!("ptx/{kernel}.ptx")), &ArtifactChecks::default());
        assert_eq!(report.message, None, "{kernel}");
        report.lint.findings.iter().any(|finding| finding.rule == rule && finding.severity >= Severity::Warning)
    };
    let mut linted = 0;
    for pair in pairs() {
        let (right, wrong) = (text_of(&pair, "right"), text_of(&pair, "wrong"));
        for check in pair["caught_by"].as_array().unwrap() {
            let Some(rule) = check.as_str().unwrap().strip_prefix("lint/") else { continue };
            assert!(found(wrong, rule) && !found(right, rule), "{rule} in {wrong}, not in {right}");
            linted += 1;
        }
        // No right kernel has the bug that the others are there for.
        assert!(!found(right, "address-overflow") && !found(right, "divergent-barrier"), "{right}");
    }
    assert!(linted >= 2, "{linted} pairs");
}

#[test]
fn the_files_are_what_their_sources_give() {
    let Some(python) = std::env::var_os("GPUEMU_TEST_KERNELS_PYTHON") else {
        eprintln!("skipped: GPUEMU_TEST_KERNELS_PYTHON is not set; `cargo xtask test --only kernels` sets it");
        return;
    };
    let output = Command::new(python).arg("-B").arg(folder().join("compile.py")).arg("--check").output().unwrap();
    let text = String::from_utf8_lossy(&output.stdout).into_owned() + &String::from_utf8_lossy(&output.stderr);
    assert!(output.status.success(), "write them anew with lab/corpus/grown/cuda/compile.py:\n{text}");
    assert!(text.contains(&format!("{} files", kernels().len())) && text.contains("0 differ"), "{text}");
}
