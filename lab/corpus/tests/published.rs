//! The published corpus: what must be caught is, what is right passes.
#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic, reason = "tests fail by panicking")]

use gpuemu_corpus::kernel_run;
use gpuemu_corpus::mutation::Mutation;
use gpuemu_corpus::published::{KERNELS, Role, RunnerChoice};
use gpuemu_engine::Sampler;
use gpuemu_engine::case::{Strategy, materialise};
use gpuemu_engine::oracle::judge;
use gpuemu_tensor::DType;
use gpuemu_tensor::rng::case_seed;

#[test]
fn there_are_sixteen_controls_and_ten_bugs() {
    let bugs = KERNELS.iter().filter(|entry| entry.role() == Role::Bug).count();
    assert_eq!((KERNELS.len(), bugs), (26, 10));
    for (index, entry) in KERNELS.iter().enumerate() {
        assert_eq!(entry.number as usize, index + 1);
        assert!(entry.subject(RunnerChoice::Native).is_some(), "{}", entry.name);
    }
}

#[test]
fn every_verdict_is_right_for_ten_base_seeds() {
    for base_seed in 0..10 {
        for entry in &KERNELS {
            let subject = entry.subject(RunnerChoice::Native).unwrap();
            let row = kernel_run::run(entry, RunnerChoice::Native, &subject, base_seed, 60, &|_| {}).unwrap();
            assert!(row.verdict_is_right(), "seed {base_seed}, {}: {:?}", entry.name, row.first);
            assert_eq!(row.counts.observable_detected, row.counts.observable, "seed {base_seed}, {}", entry.name);
            assert!(row.weak.is_empty(), "{}: weak in {:?}", entry.name, row.weak);
        }
    }
}

#[test]
fn no_strategy_raises_a_false_alarm_on_a_control() {
    for entry in KERNELS.iter().filter(|entry| entry.role() == Role::Control) {
        let subject = entry.subject(RunnerChoice::Native).unwrap();
        for strategy in Strategy::ALL {
            let sampler = Sampler { strategy, ..entry.sampler(RunnerChoice::Native) };
            for index in 0..40 {
                let descriptor = subject.describe(&sampler, case_seed(77, index));
                let case = materialise(subject.schema(), &descriptor).unwrap();
                let verdict = judge(&subject, &case, &mut entry.stand_in());
                assert!(!verdict.failed(), "{} {strategy}: {:?}", entry.name, verdict.failures);
            }
        }
    }
}

/// The first of `cases` cases in which a mutated kernel fails, if any.
fn caught(entry: &gpuemu_corpus::published::Entry, mutation: Mutation, cases: u64) -> bool {
    let subject = entry.subject(RunnerChoice::Native).unwrap();
    (0..cases).any(|index| {
        let descriptor = subject.describe(&entry.sampler(RunnerChoice::Native), case_seed(5, index));
        let case = materialise(subject.schema(), &descriptor).unwrap();
        judge(&subject, &case, &mut entry.mutated(Some(mutation))).failed()
    })
}

#[test]
fn a_changed_constant_is_caught_in_every_stand_in() {
    for entry in &KERNELS {
        // A matmul has no constant but the factor of one on its result.
        let mutation = if entry.op() == "matmul" { Mutation::ScaleOutput(1.01) } else { Mutation::Constant(1.5) };
        assert!(caught(entry, mutation, 400), "{}", entry.name);
    }
}

#[test]
fn a_dropped_mask_is_caught_in_every_stand_in() {
    for entry in &KERNELS {
        assert!(caught(entry, Mutation::DropMask, 400), "{}", entry.name);
    }
}

#[test]
fn the_smallest_failing_softmax_is_three_wide_and_four_passes() {
    let entry = gpuemu_corpus::published::find("softmax_other_zero").unwrap();
    let row =
        kernel_run::run(entry, RunnerChoice::Native, &entry.subject(RunnerChoice::Native).unwrap(), 0, 60, &|_| {})
            .unwrap();
    let smallest = row.smallest.unwrap();
    assert_eq!(smallest.case.descriptor.sizes.to_string(), "H=3");
    assert_eq!(smallest.case.descriptor.dtype, DType::F32);
    let neighbour = smallest.neighbour.unwrap();
    assert_eq!((neighbour.dimension.as_str(), neighbour.fails, neighbour.passes), ("H", 3, 4));
}

#[test]
fn a_replayed_seed_gives_the_same_verdict() {
    let entry = gpuemu_corpus::published::find("matmul_overwrite").unwrap();
    let subject = entry.subject(RunnerChoice::Native).unwrap();
    let (_, first) = kernel_run::run(entry, RunnerChoice::Native, &subject, 3, 100, &|_| {}).unwrap().first.unwrap();
    let again = kernel_run::replay(entry, RunnerChoice::Native, &subject, first.case.seed).unwrap();
    assert_eq!(serde_json::to_string(&first.result).unwrap(), serde_json::to_string(&again.result).unwrap());
}
