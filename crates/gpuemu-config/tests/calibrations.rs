//! Calibrations in `gpuemu.toml`: read, refused where they are wrong, and written without touching anything else.
#![allow(clippy::unwrap_used, clippy::panic, reason = "tests fail by panicking")]

use std::collections::BTreeMap;
use std::fs;
use std::path::Path;

use gpuemu_config::{Calibration, Config, Environment, load, with_calibrations};
use gpuemu_model::Strategy;
use gpuemu_tensor::DType;
use tempfile::TempDir;

/// A file as people write it: comments everywhere, odd spaces, two ops and what follows them.
const WRITTEN: &str = r#"# What we test.
[project]
name = "p"   # short

[[ops]]
# The fast one.
name = "softmax"
module   =   "kernels:softmax"
tolerance = "calibrated" # measured

[ops.tolerances]
float64 = { atol = 1e-12, rtol = 1e-12 }

[[ops]]
name = "relu" # the last op

# Settings of CI.
[ci]
parallel = 2
"#;

fn measured(seed: u64) -> Calibration {
    Calibration {
        atol: 1.5e-7,
        rtol: 2.4e-7,
        control: "module refs:softmax".to_string(),
        cases: 197,
        seed,
        values: Strategy::Adversarial,
    }
}

fn one(dtype: DType, seed: u64) -> BTreeMap<DType, Calibration> {
    BTreeMap::from([(dtype, measured(seed))])
}

fn edited(text: &str, op: &str, calibrations: &BTreeMap<DType, Calibration>) -> String {
    with_calibrations(Path::new("gpuemu.toml"), text, op, calibrations).unwrap()
}

fn read(text: &str) -> Config {
    let folder = TempDir::new().unwrap();
    fs::write(folder.path().join("gpuemu.toml"), text).unwrap();
    load(folder.path(), &Environment::of(&[("HOME", folder.path().to_str().unwrap())])).unwrap()
}

fn refused(table: &str) -> String {
    let folder = TempDir::new().unwrap();
    let text = format!("[project]\nname = \"p\"\n\n[[ops]]\nname = \"relu\"\n\n{table}");
    fs::write(folder.path().join("gpuemu.toml"), text).unwrap();
    let environment = Environment::of(&[("HOME", folder.path().to_str().unwrap())]);
    load(folder.path(), &environment).unwrap_err().to_string()
}

/// The lines of `whole` that are not in `part`, which must be all there in its order.
fn added(whole: &str, part: &str) -> Vec<String> {
    let mut old = part.lines().peekable();
    let new = whole.lines().filter(|line| old.next_if_eq(line).is_none()).map(ToString::to_string).collect();
    assert_eq!(old.next(), None, "{whole}");
    new
}

#[test]
fn a_calibration_is_added_and_nothing_else_changes() {
    let text = edited(WRITTEN, "softmax", &one(DType::F32, 7));
    let table = [
        "[ops.calibration.float32]",
        "atol = 1.5e-7",
        "rtol = 2.4e-7",
        "control = \"module refs:softmax\"",
        "cases = 197",
        "seed = 7",
        "values = \"adversarial\"",
    ];
    let new = added(&text, WRITTEN);
    assert_eq!(new.iter().filter(|line| !line.is_empty()).collect::<Vec<_>>(), table, "{text}");
    let config = read(&text);
    assert_eq!(config.ops[0].calibration, one(DType::F32, 7));
    assert!(config.ops[1].calibration.is_empty());
}

#[test]
fn a_calibration_is_replaced_and_others_are_kept() {
    let seed = u64::MAX;
    let first = edited(WRITTEN, "softmax", &one(DType::F32, seed));
    assert!(first.contains("seed = \"18446744073709551615\""), "{first}");
    let second = edited(&first, "softmax", &one(DType::F16, 2)).replace("cases = 197", "cases = 197 # not many");
    let third = edited(&second, "softmax", &BTreeMap::from([(DType::F16, Calibration { cases: 500, ..measured(3) })]));
    let config = read(&third);
    assert_eq!(config.ops[0].calibration[&DType::F32].seed, seed);
    assert_eq!((config.ops[0].calibration[&DType::F16].cases, config.ops[0].calibration[&DType::F16].seed), (500, 3));
    assert!(third.contains("cases = 500 # not many"), "{third}");
    // The same again is the same text.
    assert_eq!(edited(&third, "softmax", &config.ops[0].calibration), third);
    added(&third, WRITTEN);
}

#[test]
fn other_ways_to_write_an_op_are_edited_too() {
    let array = "ops = [{ name = \"a\" }, { name = \"b\" }] # two\n\n[project]\nname = \"p\"\n";
    let text = edited(array, "b", &one(DType::F32, 1));
    assert_eq!(read(&text).ops[1].calibration, one(DType::F32, 1));
    assert!(text.contains("# two"), "{text}");
    let inline = format!("{WRITTEN}\n[[ops]]\nname = \"c\"\ncalibration = {{}} # none yet\n");
    let text = edited(&inline, "c", &one(DType::F32, 1));
    assert_eq!(read(&text).ops[2].calibration, one(DType::F32, 1));
    assert!(text.contains("# none yet"), "{text}");
    let windows = WRITTEN.replace('\n', "\r\n");
    let text = edited(&windows, "relu", &one(DType::F32, 1));
    assert_eq!(text.matches('\n').count(), text.matches("\r\n").count(), "{text}");
    assert_eq!(read(&text).ops[1].calibration, one(DType::F32, 1));
    added(&text, &windows);
}

#[test]
fn an_op_that_is_not_in_the_file_cannot_be_edited() {
    for text in [WRITTEN, "[project]\nname = \"p\"\n"] {
        let error = with_calibrations(Path::new("gpuemu.toml"), text, "gelu", &one(DType::F32, 1)).unwrap_err();
        assert!(error.to_string().contains("there is no [[ops]] entry 'gelu'"), "{error}");
    }
    let error = with_calibrations(Path::new("gpuemu.toml"), "ops = 3", "gelu", &one(DType::F32, 1)).unwrap_err();
    assert!(error.to_string().contains("gpuemu.toml:1:7"), "{error}");
}

#[test]
fn wrong_calibrations_are_refused() {
    let whole = "atol = 1e-5\nrtol = 1e-5\ncontrol = \"c\"\ncases = 20\nseed = 1\nvalues = \"regular\"\n";
    let table = |dtype: &str, from: &str, to: &str| {
        refused(&format!("[ops.calibration.{dtype}]\n{}", whole.replacen(from, to, 1)))
    };
    assert!(table("float32", "1e-5", "-1.0").contains("calibrated atol of float32 is -1"));
    assert!(table("float32", "rtol = 1e-5", "rtol = inf").contains("calibrated rtol of float32 is inf"));
    assert!(table("int32", "1", "1").contains("calibration of int32, which must be exact"));
    assert!(table("float32", "seed = 1", "seed = -1").contains("'-1' is not a seed"));
    assert!(table("float32", "control = \"c\"\n", "").contains("missing field `control`"));
    assert!(table("float32", "cases", "case").contains("did you mean `cases`"));
}
