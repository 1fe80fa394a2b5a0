//! `gpuemu ops`, as a user sees it.
#![allow(clippy::unwrap_used, reason = "tests fail by panicking")]

use snapbox::cmd::{Command, cargo_bin};
use snapbox::str;

fn gpuemu(arguments: &[&str]) -> Command {
    Command::new(cargo_bin!("gpuemu")).args(arguments).env("NO_COLOR", "1")
}

#[test]
fn an_op_is_described_with_everything_that_judges_it() {
    gpuemu(&["ops", "softmax"]).assert().success().stderr_eq("").stdout_eq(str![[r#"
softmax: Exponentials normalised along the last dim; a row with NaN or Inf, or of nothing but -Inf, is NaN.
  formula        exp(x - max) / sum(exp(x - max))
  signature      input[...,H] -> out[...,H]
  family         normalisation
  input          input[...,H] (case dtype): any number, NaN and infinities included
  output         out[...,H] (case dtype)
  dim            H: 0..=4096, reduced
  dtypes         float32, float16, bfloat16, float64
  properties     row-stochastic, permutation-equivariant, batch-invariant, shift-invariant
  precision      accumulates in float32 (float64 for float64), any order of summation, exp and division within 2 ulp, rounds once to nearest
  declare        accumulate, order, intermediate, folded, fast_exp, fast_division, tensor_core
  bound          u*y*(F + a*(s + W) + 2*E + Q + 1) + tiny*(1 + (1 + y*H)/S) + u_mid*y*(s + W + 4) + eta_mid*(2 + y*H) with F of H terms, s = max - x, S = sum(exp(x - max)), W = sum(softmax*s); s and W grow by |max| where folded
  tolerance      bound (c = 1.25): distance from the fp64 reference to the output's rounding cell
  escalates to   regular, tiny
  usual bugs     padding enters the denominator; maximum not subtracted; -Inf tile gives NaN

"#]]);
}

#[test]
fn an_alias_finds_its_op() {
    let output = gpuemu(&["ops", "flash_attention"]).assert().success();
    let text = String::from_utf8(output.get_output().stdout.clone()).unwrap();
    assert!(text.starts_with("attention: softmax(q k^T * scale) v."), "{text}");
    assert!(text.contains("parameter      softcap = 0.0"), "{text}");
}

#[test]
fn the_list_names_every_op() {
    let output = gpuemu(&["ops"]).assert().success();
    let text = String::from_utf8(output.get_output().stdout.clone()).unwrap();
    for op in ["softmax", "layernorm", "matmul", "attention", "cross_entropy", "rope", "swiglu", "cumsum"] {
        assert!(text.lines().any(|line| line.trim_start().starts_with(op)), "{op} is missing:\n{text}");
    }
    let count = gpuemu_engine::ops::builtin().len();
    assert!(count > 90 && text.contains(&format!("{count} ops")), "{text}");
    for family in ["attention", "linear", "normalisation", "optimiser", "quantisation"] {
        assert!(text.lines().any(|line| line == family), "{family} is missing:\n{text}");
    }
}

#[test]
fn an_unknown_op_is_a_usage_error_with_the_nearest_name() {
    gpuemu(&["ops", "sofmax"]).assert().code(2).stdout_eq("").stderr_eq(str![[r#"
error: unknown op 'sofmax'
hint: did you mean 'softmax'? `gpuemu ops` lists all of them

"#]]);
}

#[test]
fn json_parses_with_nothing_around_it() {
    let output = gpuemu(&["ops", "--format", "json"]).assert().success();
    let list: serde_json::Value = serde_json::from_slice(&output.get_output().stdout).unwrap();
    assert_eq!(list.as_array().unwrap().len(), gpuemu_engine::ops::builtin().len());
    let output = gpuemu(&["ops", "matmul", "--format", "json"]).assert().success();
    let one: serde_json::Value = serde_json::from_slice(&output.get_output().stdout).unwrap();
    assert_eq!(one["schema"]["signature"], "a[M,K] b[K,N] -> out[M,N]");
}

fn names(output: &[u8]) -> Vec<String> {
    let list: serde_json::Value = serde_json::from_slice(output).unwrap();
    let name = |entry: &serde_json::Value| entry["schema"]["name"].as_str().unwrap().to_string();
    list.as_array().unwrap().iter().map(name).collect()
}

#[test]
fn ops_are_found_by_the_words_that_people_know_them_by() {
    for (words, expected) in [
        (&["paged"][..], "paged_attention"),
        (&["vllm", "cache"], "reshape_and_cache"),
        (&["Mamba"], "selective_scan"),
        (&["fp8"], "scaled_fp8_matmul"),
        (&["moe"], "fused_moe"),
        (&["optimizer"], "adamw"),
        (&["deepseek"], "block_scaled_fp8_matmul"),
    ] {
        let arguments = [&["ops", "--format", "json", "--search"], words].concat();
        let output = gpuemu(&arguments).assert().success();
        let found = names(&output.get_output().stdout);
        assert!(found.iter().any(|name| name == expected), "{words:?}: {found:?}");
        assert!(found.len() < gpuemu_engine::ops::builtin().len() / 2, "{words:?}: {found:?}");
    }
    gpuemu(&["ops", "--search", "zzz"]).assert().code(2).stdout_eq("").stderr_eq(str![[r#"
error: no op has 'zzz'
hint: `gpuemu ops` lists all of them

"#]]);
    let unknown = gpuemu(&["ops", "quantize"]).assert().code(2);
    let text = String::from_utf8(unknown.get_output().stderr.clone()).unwrap();
    assert!(text.contains("these have to do with it: "), "{text}");
}

#[test]
fn the_headroom_of_an_op_is_measured_and_printed() {
    let arguments = ["ops", "softmax", "adamw", "--headroom", "--cases", "40", "--mutant-cases", "20"];
    let output = gpuemu(&arguments).assert().success();
    let text = String::from_utf8(output.get_output().stdout.clone()).unwrap();
    assert!(text.contains("largest error over the tolerance"), "{text}");
    assert!(text.contains("2 ops") && text.contains("0 false alarms"), "{text}");
    let output = gpuemu(&[&arguments[..], &["--format", "json"]].concat()).assert().success();
    let rows: serde_json::Value = serde_json::from_slice(&output.get_output().stdout).unwrap();
    for row in rows.as_array().unwrap() {
        for dtype in ["float32", "float16", "bfloat16"] {
            let share = row["largest_error_over_tolerance"][dtype].as_f64().unwrap();
            assert!((0.0..1.0).contains(&share), "{row}");
        }
        assert!(row["mutants"].as_array().unwrap().len() >= 3, "{row}");
    }
}
