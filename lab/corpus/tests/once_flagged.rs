//! Cases on which correct kernels were once flagged: their bounds were mended, and must stay so.
#![allow(clippy::unwrap_used, reason = "tests fail by panicking")]

use gpuemu_corpus::detection::check_correct;
use gpuemu_corpus::implementations::families;

const CASES: [(&str, u64); 2] = [
    // Terms of 1e38 cancel in a score that softcap then saturates.
    ("attention", 14_633_902_886_138_689_876),
    // A subnormal output beside an upstream gradient of 1e38.
    ("attention_backward", 11_198_764_784_714_844_526),
];

#[test]
fn correct_kernels_are_not_flagged_any_more() {
    let families = families();
    for (op, seed) in CASES {
        let family = families.iter().find(|family| family.op == op).unwrap();
        let found = check_correct(family, seed);
        assert!(found.checks >= 2 && found.alarms.is_empty(), "{op}: {:?}", found.alarms);
    }
}
