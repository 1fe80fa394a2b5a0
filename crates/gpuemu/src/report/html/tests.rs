#![allow(clippy::unwrap_used, reason = "tests fail by panicking")]

use gpuemu_model::picture::{ElementError, ErrorPicture, HeatMap, Tile, TileEvidence, Window, WindowElement};
use gpuemu_model::report::ValidationResult;
use gpuemu_wire::protocol::Illustration;
use serde_json::{Value, json};

use super::super::illustrations::{Illustrations, Shown, most_telling};
use super::*;

const HOSTILE: &str = "\"><script>alert(1)</script><img src=x onerror=alert(2)>&amp;";

fn failure(op: &str, share: f64, class: &str) -> Value {
    json!({
        "op": op, "outcome": "failed", "passed": false, "seed": "7", "dtype": "float32", "sizes": HOSTILE,
        "shapes": [[HOSTILE, [2, 143]]], "layout": HOSTILE, "values": "regular", "parameters": HOSTILE,
        "failures": [{"check": "value", "tensor": HOSTILE, "mismatched": 30, "elements": 286, "bug_class": class,
                      "worst": {"index": [0, 128], "actual": "NaN", "expected": 1.0, "error": share, "allowed": 1.0},
                      "explanation": HOSTILE}],
        "message": HOSTILE, "warnings": [HOSTILE], "max_abs_diff": 1.0, "max_rel_diff": 1.0, "max_ulp_diff": 1.0,
        "tolerance_share": share, "tolerance": HOSTILE,
        "elements": {"compared": 286, "mismatched": 30, "undetermined": 0, "excused": 0},
        "runner": HOSTILE, "not_checked": [HOSTILE], "case": {}, "time": 1_700_000_000_000u64, "replay": HOSTILE
    })
}

fn report(op: &str, failures: Vec<Value>) -> RunReport {
    let value = json!({
        "version": 1, "gpuemu": "0", "project": HOSTILE, "config": "gpuemu.toml", "run": "3",
        "time": 1_700_000_000_000u64, "seconds": 1.5, "mode": "thorough", "seed": "1", "settings": {}, "passed": failures.is_empty(),
        "warnings": [HOSTILE],
        "ops": [{
            "op": op, "status": if failures.is_empty() { "passed" } else { "failed" }, "line": 1, "runner": HOSTILE,
            "reference": HOSTILE, "planned": 9, "cases": 9, "passed": 9 - failures.len(), "failed": failures.len() + 4,
            "undetermined": 0, "errors": 0, "dtypes": [{"dtype": "float32", "cases": 9, "failed": 1, "max_abs_diff": 1.0}],
            "max_abs_diff": 1.0, "max_rel_diff": 1.0, "max_ulp_diff": 1.0, "tolerance_share": 2.0,
            "failures": failures, "message": HOSTILE, "warnings": [HOSTILE], "not_checked": [HOSTILE],
            "regressed": true, "seconds": 1.0, "case_results": []
        }]
    });
    serde_json::from_value(value).unwrap()
}

/// A picture of [2, 143] whose columns from 128 on are wrong.
fn picture() -> ErrorPicture {
    let wrong = |place: usize| place % 72 >= 64;
    let error = |wrong: bool| ElementError::Share(if wrong { 9.0 } else { 0.0 });
    ErrorPicture {
        tensor: HOSTILE.to_string(),
        dtype: gpuemu_tensor::DType::F32,
        shape: vec![2, 143],
        mismatched: 30,
        elements: 286,
        map: HeatMap {
            rows: 2,
            columns: 143,
            entries: 1,
            row_step: 1,
            column_step: 2,
            cells: (0..144).map(|place| error(wrong(place))).collect(),
            ratios: (0..144).map(|place| if wrong(place) { 0.0 } else { f64::NAN }).collect(),
        },
        row_tile: None,
        column_tile: Some(Tile { size: 64, seen_by: TileEvidence::Neighbour }),
        histogram: Default::default(),
        profiles: Vec::new(),
        window: Window {
            worst: vec![0, 128],
            first_row: 0,
            first_column: 127,
            rows: vec![vec![WindowElement { actual: f64::NAN, expected: 1.0, error: ElementError::Special }]],
        },
    }
}

fn illustrated(op: &str, picture: Option<ErrorPicture>) -> (RunReport, Illustrations) {
    let report = report(op, vec![failure(op, 9.0, "tail_tile")]);
    let result: ValidationResult = report.ops[0].failures[0].clone();
    let illustration = Illustration { result, picture, without_picture: Some(HOSTILE.to_string()), smallest: None };
    let failures = vec![(op.to_string(), 0, Shown::Again(Box::new(illustration)))];
    (report, Illustrations { failures, runs: Vec::new() })
}

#[test]
fn nothing_that_a_user_can_name_becomes_markup() {
    for picture in [None, Some(picture())] {
        let (report, illustrations) = illustrated(HOSTILE, picture);
        let page = page(&report, &illustrations);
        assert_eq!(page.matches("<script").count(), 1, "only the page's own script");
        assert!(!page.contains("<img") && !page.contains("&amp;amp;amp;"), "{page}");
        assert!(page.contains("&quot;&gt;&lt;script&gt;alert(1)&lt;/script&gt;"), "{page}");
    }
}

#[test]
fn the_page_allows_its_own_style_and_script_and_nothing_else() {
    let page = page(&report("softmax", Vec::new()), &Illustrations::default());
    let policy = page.split("Content-Security-Policy\" content=\"").nth(1).unwrap().split('"').next().unwrap();
    assert!(policy.starts_with("default-src 'none'; style-src 'sha256-"), "{policy}");
    assert!(!policy.contains("unsafe"), "{policy}");
    // Attributes that style or run something are refused by that policy.
    let own = page.replace(&crate::markup::escape(HOSTILE), "");
    for attribute in [" style=", " onclick=", " src=", "http:", "https:"] {
        assert!(!own.contains(attribute), "{attribute}");
    }
    assert!(page.contains("Passed"), "{page}");
}

#[test]
fn the_map_has_every_cell_and_the_tiles_that_meet_in_it() {
    let (report, illustrations) = illustrated("softmax", Some(picture()));
    let page = page(&report, &illustrations);
    let map = page.split("<svg class=\"map\"").nth(1).unwrap().split("</svg>").next().unwrap();
    let area_of = |class: &str| -> usize {
        let path = map.split(&format!("<path class=\"{class}\" d=\"")).nth(1).unwrap().split('"').next().unwrap();
        let run = |part: &str| part.split('h').nth(1).unwrap().split('v').next().unwrap().parse::<usize>().unwrap();
        path.split('M').skip(1).map(run).sum()
    };
    // 72 cells across are 6 pixels wide: 64 of them right and 8 wrong, in each of 2 rows.
    assert_eq!((area_of("l0"), area_of("l4")), (2 * 64 * 6, 2 * 8 * 6));
    let lines = map.split("<path class=\"tile\" d=\"").nth(1).unwrap().split('"').next().unwrap();
    assert_eq!(lines, "M238.0 26V90M430.0 26V90", "at 64 and 128 of 143 columns");
    assert!(map.contains("partial tile: 128–142"), "{map}");
    assert!(map.contains("along the last dim they lie in 128–142, along the one before in 0–1"), "{map}");
    let ratios = page.split("<svg class=\"map ratios\"").nth(1).unwrap().split("</svg>").next().unwrap();
    assert!(ratios.contains("128 of 144 cells right, 16 of 144 cells next to nothing"), "{ratios}");
    assert!(page.contains("Lines: tiles of 64 along dim 1, guessed because the smallest failing case"), "{page}");
}

#[test]
fn what_could_not_be_run_again_says_so_and_shows_what_is_stored() {
    let report = report("softmax", vec![failure("softmax", 9.0, "scale")]);
    let shown = Shown::Not("the kernel is gone".to_string());
    let illustrations = Illustrations { failures: vec![("softmax".to_string(), 0, shown)], runs: Vec::new() };
    let page = page(&report, &illustrations);
    assert!(page.contains("<strong>No picture: </strong>the kernel is gone."), "{page}");
    assert!(page.contains("Worst at [0, 128]: NaN, expected 1") && !page.contains("<svg class=\"map\""), "{page}");
    assert!(page.contains("4 more failed: "), "{page}");
}

#[test]
fn the_most_telling_failure_of_each_kind_is_chosen() {
    let failures = [(2.0, "scale"), (5.0, "stride"), (3.0, "scale"), (1.5, "formula"), (1.1, "precision")];
    let failures = failures.map(|(share, class)| failure("softmax", share, class));
    let mut report = report("softmax", failures.to_vec());
    assert_eq!(most_telling(&report.ops[0].failures), [2, 1, 3], "the most frequent kind first");
    // More wrong elements show more.
    report.ops[0].failures[0].failures[0].mismatched = 31;
    assert_eq!(most_telling(&report.ops[0].failures), [0, 1, 3]);
}

#[test]
fn an_op_of_which_nothing_is_to_be_said_has_a_line_only() {
    let mut report = report("softmax", Vec::new());
    assert!(page(&report, &Illustrations::default()).contains("<a href=\"#op-0\">softmax</a>"), "it has a warning");
    let op = &mut report.ops[0];
    (op.message, op.regressed, op.failed) = (None, false, 0);
    op.warnings.clear();
    let page = page(&report, &Illustrations::default());
    assert!(page.contains("<th scope=\"row\">softmax</th>") && !page.contains("<section"), "{page}");
    assert!(page.contains("No finding."), "{page}");
}

#[test]
fn times_are_dates() {
    assert_eq!(time_words(1_700_000_000_000), "2023-11-14 22:13 UTC");
    assert_eq!(time_words(0), "1970-01-01 00:00 UTC");
}
