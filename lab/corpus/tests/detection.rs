//! The short form of the detection table; `gpuemu ops --headroom` and `cargo xtask bench --only detection` print the
//! long one.
#![allow(clippy::panic, reason = "tests fail by panicking")]

use gpuemu_corpus::detection::{Detection, TIGHT, measure};
use gpuemu_corpus::implementations::families;
use gpuemu_engine::ops::{builtin, classes};

#[test]
fn every_op_has_correct_kernels_in_two_styles_and_three_mutants() {
    let families = families();
    for op in builtin() {
        let schema = op.schema();
        let Some(family) = families.iter().find(|family| family.op == schema.name) else {
            panic!("{} has no kernels", schema.name)
        };
        assert!(family.implementations.len() >= 2, "{}", schema.name);
        assert!(family.mutants.len() >= 3, "{}", schema.name);
        let mut orders: Vec<String> = Vec::new();
        for implementation in &family.implementations {
            let order = format!("{:?}", implementation.style.order);
            if !orders.contains(&order) {
                orders.push(order);
            }
        }
        let sums = classes(op.as_ref()).contains(&"order");
        assert!(!sums || orders.len() >= 2, "{}: {orders:?}", schema.name);
    }
    assert_eq!(families.len(), builtin().len());
}

#[test]
fn the_tight_rule_finds_the_wrong_and_leaves_the_right_alone() {
    let mut all = Detection::default();
    for family in families() {
        let found = measure(&family, 20_261_115, 150, 40);
        assert!(found.alarms.is_empty(), "{}", found.alarms.join("\n"));
        assert!(found.headroom.iter().all(|largest| *largest < 1.0), "{}: {:?}", family.op, found.headroom);
        let caught = found.by_mutant.iter().filter(|mutant| mutant.is_caught()).count();
        assert!(caught >= 3, "{}: {:?}", family.op, found.by_mutant);
        for mutant in &found.by_mutant {
            let (seen, of): (usize, usize) = (mutant.caught.iter().sum(), mutant.observable.iter().sum());
            assert!(100 * seen >= 99 * of, "{}: {mutant:?}", family.op);
        }
        all = all.join(found);
    }
    assert!(all.checks > 25_000, "{}", all.checks);
    assert!(all.share(TIGHT) >= 0.96, "{} of {}", all.rules[TIGHT].beyond_ulp, all.beyond_ulp);
    // Where results are exact (indices, copies, whole numbers) the usual check sees the same.
    assert!(all.share(TIGHT) > all.share(0) + 0.15, "the usual check sees {}", all.share(0));
}
