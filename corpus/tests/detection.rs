//! The short form of the detection table; `cargo xtask bench --only detection` prints the long one.

use gpuemu_corpus::detection::{Detection, TIGHT, measure};
use gpuemu_corpus::implementations::families;
use gpuemu_engine::ops::builtin;

#[test]
fn every_op_has_four_correct_kernels() {
    let families = families();
    for op in builtin() {
        let family = families.iter().find(|family| family.op == op.schema().name);
        assert!(family.is_some_and(|family| family.implementations.len() >= 4), "{}", op.schema().name);
    }
}

#[test]
fn the_tight_rule_finds_the_wrong_and_leaves_the_right_alone() {
    let mut all = Detection::default();
    for family in families() {
        let found = measure(&family, 20_261_115, 250, 40);
        assert!(found.alarms.is_empty(), "{}", found.alarms.join("\n"));
        assert!(found.headroom.iter().all(|largest| *largest < 1.0), "{}: {:?}", family.op, found.headroom);
        all = all.join(found);
    }
    assert!(all.checks > 25_000, "{}", all.checks);
    assert!(all.share(TIGHT) >= 0.96, "{} of {}", all.rules[TIGHT].beyond_ulp, all.beyond_ulp);
    assert!(all.share(TIGHT) > all.share(0) + 0.2, "the usual check sees {}", all.share(0));
}
