//! The comment on a pull request: short, the worst first, and nobody's markup but its own.

use serde_json::Value;

use super::corpus_run::{report, rewritten};

const MARKER: &str = "<!-- gpuemu-report -->\n";

/// The report with an op that failed so many times over, each further off than the one before.
fn with_failing_ops(count: usize) -> Value {
    let mut report = report();
    let ops = report["ops"].as_array_mut().unwrap();
    let failed = ops.iter().find(|op| op["op"] == "layernorm_tail_in_variance").unwrap().clone();
    ops.clear();
    for number in 0..count {
        let mut op = failed.clone();
        let name = format!("layernorm_{number:02}");
        op["op"] = name.clone().into();
        for failure in op["failures"].as_array_mut().unwrap() {
            failure["op"] = name.clone().into();
            failure["replay"] = format!("gpuemu reproduce {} --op {name}", failure["seed"].as_str().unwrap()).into();
            failure["tolerance_share"] = (2.0 + number as f64).into();
        }
        ops.push(op);
    }
    report
}

#[test]
fn fifty_failures_fit_with_the_worst_first() {
    let comment = rewritten(&with_failing_ops(50), "markdown");
    assert!(comment.len() < 60_000, "{}", comment.len());
    assert!(comment.starts_with(MARKER), "{comment}");
    let rows: Vec<&str> = comment.lines().filter(|line| line.starts_with("| FAIL | `")).collect();
    let named: Vec<String> = (0..50).rev().map(|number| format!("`layernorm_{number:02}`")).collect();
    assert_eq!(rows.len(), 50, "{comment}");
    for (row, name) in rows.iter().zip(&named) {
        assert!(row.contains(name.as_str()), "{row} is not {name}");
        assert!(row.contains("| `gpuemu reproduce "), "{row}");
    }
    // The gravest check is worse than any distance: a race comes first.
    let mut mixed = with_failing_ops(50);
    mixed["ops"][3]["failures"][0]["failures"][0]["check"] = "race".into();
    let comment = rewritten(&mixed, "markdown");
    let first = comment.lines().find(|line| line.starts_with("| FAIL | `")).unwrap();
    assert!(first.contains("`layernorm_03`") && first.contains("race in"), "{first}");
}

#[test]
fn what_does_not_fit_is_counted() {
    let count = 2_000;
    let comment = rewritten(&with_failing_ops(count), "markdown");
    assert!(comment.len() < 60_000, "{}", comment.len());
    let rows = comment.lines().filter(|line| line.starts_with("| FAIL | `")).count();
    assert!(comment.contains(&format!("and {} more, none of them worse", count - rows)), "{rows}");
    assert!(rows >= 50, "{rows}");
}

#[test]
fn a_run_that_passed_takes_a_line() {
    let mut report = report();
    let right = |op: &Value| op["status"] == "passed";
    report["ops"].as_array_mut().unwrap().retain(right);
    report["ops"].as_array_mut().unwrap().iter_mut().for_each(|op| {
        op["warnings"] = serde_json::json!([]);
        op["not_checked"] = serde_json::json!([]);
    });
    report["kernels"] = serde_json::json!([]);
    report["passed"] = true.into();
    let comment = rewritten(&report, "markdown");
    assert!(
        comment.starts_with(&format!("{MARKER}**gpuemu `grown corpus`: passed.** 5 of 5 ops passed; ")),
        "{comment}"
    );
    assert_eq!(comment.lines().count(), 2, "{comment}");
}

#[test]
fn nothing_that_a_kernel_says_is_markup() {
    let mut report = with_failing_ops(1);
    let evil = "x|y `z` @everyone <script>alert(1)</script>\n| a | ![i](http://e.vil) --> </details>";
    report["project"] = "a`b|<i>".into();
    report["ops"][0]["op"] = "op`|<b>@you".into();
    for failure in report["ops"][0]["failures"].as_array_mut().unwrap() {
        failure["replay"] = "gpuemu reproduce 1 --op 'a`b|c'".into();
        for finding in failure["failures"].as_array_mut().unwrap() {
            finding["explanation"] = evil.into();
        }
    }
    report["warnings"] = serde_json::json!([evil]);
    let comment = rewritten(&report, "markdown");
    // Outside of code nothing of it is left as it was.
    let mut fence: Option<&str> = None;
    for line in comment.lines() {
        match fence {
            Some(open) if line == open => fence = None,
            Some(_) => continue,
            None if line.starts_with("```") => fence = line.strip_suffix("text"),
            None => {
                let prose: Vec<&str> = line.split('`').collect();
                for markup in ["<script", "<b>", "<i>", "@everyone", "![i](", "http://"] {
                    let in_code = |text: &str| prose.iter().any(|part| part.contains(text));
                    let escaped = !line.contains(markup) || (markup == "<b>" || markup == "<i>") && in_code(markup);
                    assert!(escaped, "{markup} in {line}");
                }
            }
        }
    }
    assert!(fence.is_none(), "{comment}");
    let row = comment.lines().find(|line| line.starts_with("| FAIL |")).unwrap();
    let bars = row.replace("\\|", "").matches('|').count();
    assert_eq!(bars, 5, "{row}");
    assert_eq!(comment.matches("<details>").count(), comment.matches("\n</details>\n").count());
}
