//! Baselines and artifacts: the last storing of a tag counts, whatever the names are.

use gpuemu_model::CaseDescriptor;
use gpuemu_model::finding::Outcome;
use gpuemu_model::report::CaseSummary;
use gpuemu_store::{ArtifactBaselineRecord, ArtifactRecord, BaselineRecord, BaselineTag};
use gpuemu_tensor::DType;

use crate::{Home, measures};

/// Names that begin with, end with or contain each other, and what ends a name in a key.
const ODD_NAMES: [&str; 9] = ["", "a", "ab", "a\0", "a\0\0", "a\0\0b", "\0", "a\0\u{ff}", "tag with spaces/ä"];

fn baseline(tag: &str, op: &str, time: u64, cases: u64) -> BaselineRecord {
    let case = |number| CaseSummary {
        outcome: Outcome::Passed,
        max_abs_diff: 0.5,
        max_ulp_diff: 1.0,
        case: CaseDescriptor::of(op, DType::F32, number),
    };
    let cases = (0..cases).map(case).collect();
    let (project, tag, op) = ("p".to_string(), tag.to_string(), op.to_string());
    BaselineRecord { project, tag, op, time, run: 1, base_seed: 42, cases }
}

fn artifact(kernel: &str, time: u64, registers: u64) -> ArtifactRecord {
    ArtifactRecord { project: "p".to_string(), kernel: kernel.to_string(), time, metrics: measures(registers) }
}

fn pinned(tag: &str, artifact: ArtifactRecord) -> ArtifactBaselineRecord {
    ArtifactBaselineRecord { tag: tag.to_string(), artifact }
}

#[test]
fn the_last_storing_of_a_tag_counts_and_older_ones_stay() {
    let home = Home::new();
    let store = &home.store;
    assert!(store.baseline("p", "main").unwrap().is_empty());
    store.put_baseline(&[baseline("main", "softmax", 10, 3), baseline("main", "matmul", 10, 2)], &[]).unwrap();
    store.put_baseline(&[baseline("other", "softmax", 11, 1)], &[]).unwrap();
    assert_eq!(
        store.baseline("p", "main").unwrap(),
        [baseline("main", "matmul", 10, 2), baseline("main", "softmax", 10, 3)]
    );
    store.put_baseline(&[baseline("main", "softmax", 256, 4)], &[]).unwrap();
    assert_eq!(store.baseline("p", "main").unwrap(), [baseline("main", "softmax", 256, 4)]);
    // Stored late, but from an earlier moment: it does not count.
    store.put_baseline(&[baseline("main", "relu", 12, 9)], &[]).unwrap();
    let home = home.reopened();
    let store = &home.store;
    assert_eq!(store.baseline("p", "main").unwrap(), [baseline("main", "softmax", 256, 4)]);
    assert_eq!(store.counts().unwrap().baselines, 5);
    let tag = |tag: &str, time, ops, cases| BaselineTag { tag: tag.to_string(), time, ops, cases, kernels: 0 };
    assert_eq!(store.baseline_tags("p").unwrap(), [tag("main", 256, 1, 4), tag("other", 11, 1, 1)]);
    assert_eq!(store.delete_baseline("p", "main").unwrap(), 4);
    assert_eq!(store.delete_baseline("p", "main").unwrap(), 0);
    assert!(store.baseline("p", "main").unwrap().is_empty());
    assert_eq!(store.baseline_tags("p").unwrap(), [tag("other", 11, 1, 1)]);
    assert_eq!(home.reopened().store.counts().unwrap().baselines, 1);
}

#[test]
fn no_tag_or_kernel_is_taken_for_another() {
    let home = Home::new();
    let store = &home.store;
    for (number, name) in (0..).zip(ODD_NAMES) {
        let time = 100 + number;
        let pinned = |kernel: &str| pinned(name, artifact(kernel, time, number));
        let ops: Vec<BaselineRecord> = ODD_NAMES.iter().map(|op| baseline(name, op, time, number)).collect();
        store.put_baseline(&ops, &ODD_NAMES.map(pinned)).unwrap();
        store.put_artifact(&artifact(name, time, 1)).unwrap();
    }
    for (number, name) in (0..).zip(ODD_NAMES) {
        let found = store.baseline("p", name).unwrap();
        assert_eq!(found.len(), ODD_NAMES.len());
        assert!(found.iter().all(|found| found.tag == name && found.cases.len() as u64 == number), "{name:?}");
        let kernels = store.artifact_baseline("p", name).unwrap();
        assert_eq!(kernels.len(), ODD_NAMES.len());
        assert!(
            kernels.iter().all(|found| found.tag == name && found.artifact.metrics == measures(number)),
            "{name:?}"
        );
        assert_eq!(store.artifacts("p", Some(name), 9).unwrap(), [artifact(name, 100 + number, 1)]);
    }
    let tags: Vec<String> = store.baseline_tags("p").unwrap().into_iter().map(|found| found.tag).collect();
    assert!(tags.iter().eq(ODD_NAMES.iter().rev()), "{tags:?}");
    assert_eq!(store.delete_baseline("p", "a").unwrap(), 2 * ODD_NAMES.len());
    assert_eq!(store.baseline_tags("p").unwrap().len(), ODD_NAMES.len() - 1);
}

#[test]
fn ops_and_kernels_of_one_tag_count_together() {
    let home = Home::new();
    let store = &home.store;
    let pinned = |time: u64| pinned("main", artifact("softmax_kernel", time, 1));
    let tag = |time, ops, cases, kernels| BaselineTag { tag: "main".to_string(), time, ops, cases, kernels };
    // Kernels alone are a baseline.
    store.put_baseline(&[], &[pinned(5)]).unwrap();
    assert_eq!(store.baseline_tags("p").unwrap(), [tag(5, 0, 0, 1)]);
    store.put_baseline(&[baseline("main", "softmax", 10, 3)], &[pinned(10)]).unwrap();
    assert_eq!(store.baseline_tags("p").unwrap(), [tag(10, 1, 3, 1)]);
    // What the last storing does not have is no longer part of the tag.
    store.put_baseline(&[baseline("main", "softmax", 20, 2)], &[]).unwrap();
    assert_eq!(store.artifact_baseline("p", "main").unwrap(), []);
    assert_eq!(store.baseline_tags("p").unwrap(), [tag(20, 1, 2, 0)]);
    store.put_baseline(&[], &[pinned(30)]).unwrap();
    assert_eq!(store.baseline("p", "main").unwrap(), []);
    assert_eq!(store.artifact_baseline("p", "main").unwrap(), [pinned(30)]);
    assert_eq!(store.delete_baseline("p", "main").unwrap(), 5);
    assert_eq!(store.counts().unwrap().artifact_baselines, 0);
}

#[test]
fn artifacts_are_listed_newest_first_over_all_kernels() {
    let home = Home::new();
    let store = &home.store;
    for (kernel, time) in [("b", 5), ("a", 1), ("a", 300), ("c", 5), ("b", 299), ("a", 5)] {
        store.put_artifact(&artifact(kernel, time, 1)).unwrap();
    }
    let listed = |kernel, limit| {
        let found = store.artifacts("p", kernel, limit).unwrap();
        found.into_iter().map(|found| (found.kernel, found.time)).collect::<Vec<(String, u64)>>()
    };
    let named =
        |pairs: &[(&str, u64)]| pairs.iter().map(|(kernel, time)| (kernel.to_string(), *time)).collect::<Vec<_>>();
    let all = named(&[("a", 300), ("b", 299), ("a", 5), ("b", 5), ("c", 5), ("a", 1)]);
    assert_eq!(listed(None, 100), all);
    assert_eq!(listed(None, 3), all[..3]);
    assert_eq!(listed(None, 0), []);
    assert_eq!(listed(Some("a"), 2), named(&[("a", 300), ("a", 5)]));
    assert_eq!(listed(Some("d"), 2), []);
    // Two of one kernel and one moment are both kept.
    store.put_artifact(&artifact("c", 5, 64)).unwrap();
    assert_eq!(listed(Some("c"), 9).len(), 2);
}
