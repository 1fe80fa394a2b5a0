//! The published Triton kernels as PTX: complete, launchable as the table says, and what their sources give.
//!
//! `GPUEMU_TEST_KERNELS_PYTHON` names a Python with Triton; `cargo xtask test --only kernels` sets it. Without it, the
//! kernels are not compiled again.
#![allow(clippy::unwrap_used, clippy::panic, clippy::print_stderr, reason = "tests fail by panicking")]

use std::collections::BTreeSet;
use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;

use gpuemu_corpus::published;
use gpuemu_ptx::Source;
use toml::{Table, Value};

fn folder() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("ptx")
}

fn kernels() -> Vec<Value> {
    let text = fs::read_to_string(folder().join("kernels.toml")).unwrap();
    let table: Table = text.parse().unwrap();
    table["kernels"].as_array().unwrap().clone()
}

fn variants(kernel: &Value) -> &[Value] {
    kernel["variants"].as_array().unwrap()
}

fn ptx_of(variant: &Value) -> &str {
    variant["ptx"].as_str().unwrap()
}

#[test]
fn every_published_triton_kernel_is_there() {
    // The first four of the table are of NumPy.
    let published: BTreeSet<String> =
        published::KERNELS.iter().filter(|entry| entry.number > 4).map(|entry| entry.name.to_string()).collect();
    let compiled: BTreeSet<String> =
        kernels().iter().map(|kernel| kernel["name"].as_str().unwrap().to_string()).collect();
    assert_eq!(compiled, published);
    assert_eq!(compiled.len(), 22);
}

#[test]
fn the_table_and_the_files_belong_together() {
    let named: BTreeSet<String> =
        kernels().iter().flat_map(|kernel| variants(kernel).iter().map(|one| ptx_of(one).to_string())).collect();
    let mut there = BTreeSet::new();
    for entry in fs::read_dir(folder()).unwrap() {
        let name = entry.unwrap().file_name().into_string().unwrap();
        if name != "kernels.toml" {
            there.insert(name);
        }
    }
    assert_eq!(named, there);
}

#[test]
fn a_launch_fits_the_entry_that_it_names() {
    for kernel in kernels() {
        let name = kernel["name"].as_str().unwrap();
        let (file, function) = kernel["source"].as_str().unwrap().rsplit_once(':').unwrap();
        assert_eq!((function, kernel["entry"].as_str()), (name, Some(name)));
        let arguments = kernel["args"].as_array().unwrap().len();
        for variant in variants(&kernel) {
            let ptx = ptx_of(variant);
            let source = Source::new(ptx, fs::read_to_string(folder().join(ptx)).unwrap());
            let module = source.parse().unwrap_or_else(|error| panic!("{ptx}: {error}"));
            let entry = module.entries().next().unwrap();
            assert_eq!((entry.name, entry.parameters.len()), (name, arguments), "{ptx}");
            let block = variant.get("block").unwrap_or(&kernel["block"]).as_array().unwrap();
            let threads = u64::try_from(block[0].as_integer().unwrap()).unwrap();
            assert_eq!(entry.directive("reqntid").unwrap()[0], threads, "{ptx}");
            assert_eq!(module.target, ["sm_80"], "{ptx}");
            // Findings name lines of the Triton source; nothing names a folder of one machine.
            assert!(source.text.contains(&format!("\t.file\t1 \"{file}\"\n")), "{ptx}");
            assert!(source.text.contains("\t.loc\t1 ") && !source.text.contains("\"/"), "{ptx}");
        }
    }
}

#[test]
fn a_wrong_twin_is_another_code_than_the_right_one() {
    let mut texts = BTreeSet::new();
    for kernel in kernels() {
        for variant in variants(&kernel) {
            let text = fs::read_to_string(folder().join(ptx_of(variant))).unwrap();
            let name = kernel["name"].as_str().unwrap();
            // Without names and lines. One element a row needs no fill value: there, both softmaxes are the same.
            let code: String = text.replace(name, "k").lines().filter(|line| !line.contains(".loc")).collect();
            let alone = name.starts_with("softmax") && ptx_of(variant).ends_with("_1.ptx");
            assert!(texts.insert(code) || alone, "{} is that of another kernel", ptx_of(variant));
        }
    }
}

#[test]
fn the_files_are_what_their_sources_give() {
    let Some(python) = std::env::var_os("GPUEMU_TEST_KERNELS_PYTHON") else {
        eprintln!("skipped: GPUEMU_TEST_KERNELS_PYTHON is not set; `cargo xtask test --only kernels` sets it");
        return;
    };
    let script = folder().with_file_name("triton").join("compile.py");
    for (set, files) in [("published", "319 files"), ("grown", "262 files")] {
        let check = ["--set", set, "--check"];
        let output = Command::new(&python).arg("-B").arg(&script).args(check).output().unwrap();
        let text = String::from_utf8_lossy(&output.stdout).into_owned() + &String::from_utf8_lossy(&output.stderr);
        assert!(output.status.success(), "write them anew with lab/corpus/triton/compile.py --set {set}:\n{text}");
        assert!(text.contains(files) && text.contains("0 differ"), "{text}");
    }
}
