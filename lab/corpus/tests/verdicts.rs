//! Properties of verdicts: functions of the case alone, blind to layout, honest about weakness.
#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic, reason = "tests fail by panicking")]

use gpuemu_corpus::kernel_run::Row;
use gpuemu_corpus::mutation::Mutation;
use gpuemu_corpus::published::{Entry, KERNELS, RunnerChoice, find};
use gpuemu_engine::Sampler;
use gpuemu_engine::case::materialise;
use gpuemu_engine::minimise::{Budget, MinimiseStrategy, minimise};
use gpuemu_engine::oracle::decoy::Decoy;
use gpuemu_engine::oracle::{Subject, Tolerance, judge};
use gpuemu_engine::verdict::{Outcome, Verdict};
use gpuemu_tensor::rng::case_seed;
use gpuemu_tensor::{DType, Stream, Tensor};
use rayon::prelude::*;

fn verdict_of(entry: &Entry, subject: &Subject, seed: u64) -> Verdict {
    let case = materialise(subject.schema(), &subject.describe(&entry.sampler(RunnerChoice::Native), seed)).unwrap();
    judge(subject, &case, &mut entry.stand_in())
}

fn text(verdict: &Verdict) -> String {
    serde_json::to_string(&verdict.result).unwrap()
}

#[test]
fn a_verdict_does_not_depend_on_what_ran_before() {
    for entry in [5, 6, 22, 25, 26].map(|number: usize| &KERNELS[number - 1]) {
        let subject = entry.subject(RunnerChoice::Native).unwrap();
        let seeds: Vec<u64> = (0..40).map(|index| case_seed(11, index)).collect();
        let alone: Vec<String> = seeds.iter().map(|seed| text(&verdict_of(entry, &subject, *seed))).collect();
        // One runner for a whole shuffled batch.
        let mut shuffled: Vec<usize> = (0..seeds.len()).collect();
        let mut stream = Stream::new(1, "shuffle");
        for last in (1..shuffled.len()).rev() {
            shuffled.swap(last, stream.below(last as u64 + 1) as usize);
        }
        let mut runner = entry.stand_in();
        for index in shuffled {
            let case =
                materialise(subject.schema(), &subject.describe(&entry.sampler(RunnerChoice::Native), seeds[index]))
                    .unwrap();
            assert_eq!(text(&judge(&subject, &case, &mut runner)), alone[index], "{} {index}", entry.name);
        }
        // Batches on several threads.
        let together: Vec<String> = seeds.par_iter().map(|seed| text(&verdict_of(entry, &subject, *seed))).collect();
        assert_eq!(together, alone, "{}", entry.name);
    }
}

#[test]
fn any_layout_gives_the_verdict_of_its_contiguous_copy() {
    for entry in &KERNELS {
        let subject = entry.subject(RunnerChoice::Native).unwrap();
        for index in 0..60 {
            let descriptor = subject.describe(&entry.sampler(RunnerChoice::Native), case_seed(21, index));
            let case = materialise(subject.schema(), &descriptor).unwrap();
            let mut plain = case.clone();
            plain.inputs = case.inputs.iter().map(|tensor| tensor.as_ref().map(Tensor::to_contiguous)).collect();
            let strided = judge(&subject, &case, &mut entry.stand_in());
            let contiguous = judge(&subject, &plain, &mut entry.stand_in());
            assert_eq!(text(&strided), text(&contiguous), "{} {index}", entry.name);
        }
    }
}

#[test]
fn what_the_minimiser_returns_still_fails_for_the_same_reason() {
    for entry in KERNELS.iter().filter(|entry| !entry.bug.is_empty()) {
        let subject = entry.subject(RunnerChoice::Native).unwrap();
        let mut shrunk = 0;
        for index in 0..12 {
            let verdict = verdict_of(entry, &subject, case_seed(31, index));
            if !verdict.failed() || verdict.failing_case.is_some() {
                continue;
            }
            let strategy =
                [MinimiseStrategy::Combined, MinimiseStrategy::Dims, MinimiseStrategy::Values][index as usize % 3];
            let budget = Budget { runs: 150, ..Budget::default() };
            let smallest = minimise(&subject, &verdict.case, &mut entry.stand_in(), strategy, budget).unwrap();
            let again = judge(&subject, &smallest.case, &mut entry.stand_in());
            assert_eq!(again.reason(), verdict.reason(), "{} {index}", entry.name);
            assert_eq!(text(&again), text(&smallest.verdict), "{} {index}", entry.name);
            assert!(smallest.runs <= 151);
            let size = |sizes: &gpuemu_engine::schema::Sizes| {
                sizes.batch_count().max(1) * sizes.named.iter().map(|(_, size)| size).product::<usize>()
            };
            assert!(size(&smallest.case.descriptor.sizes) <= size(&verdict.case.sizes));
            shrunk += 1;
        }
        assert!(shrunk > 0, "{}", entry.name);
    }
}

#[test]
fn a_tolerance_of_one_is_reported_as_weak() {
    let entry = find("softmax").unwrap();
    let loose = entry.subject(RunnerChoice::Native).unwrap().tolerance(Tolerance::Fixed { atol: 1.0, rtol: 1.0 });
    let row: Row = gpuemu_corpus::kernel_run::run(entry, RunnerChoice::Native, &loose, 0, 80, &|_| {}).unwrap();
    let dtypes: Vec<DType> = row.weak.iter().map(|weakness| weakness.dtype).collect();
    assert_eq!(dtypes, [DType::F16, DType::BF16, DType::F32]);
    assert!(row.weak.iter().all(|weakness| weakness.never_rejected.contains(&Decoy::Zeros)), "{:?}", row.weak);
    assert!(row.weak.iter().all(|weakness| weakness.reason.contains("too loose")));
    // And it is no use: the wrong twin passes.
    let wrong = find("softmax_other_zero").unwrap();
    let subject = wrong.subject(RunnerChoice::Native).unwrap().tolerance(Tolerance::Fixed { atol: 1.0, rtol: 1.0 });
    let finite = Sampler { strategy: gpuemu_engine::case::Strategy::Regular, ..wrong.sampler(RunnerChoice::Native) };
    for index in 0..20 {
        let case = materialise(subject.schema(), &subject.describe(&finite, case_seed(0, index))).unwrap();
        assert_ne!(judge(&subject, &case, &mut wrong.stand_in()).outcome, Outcome::Failed);
    }
}

#[test]
fn calibration_on_a_control_accepts_it_and_catches_a_gross_bug() {
    use gpuemu_engine::case::Strategy;
    use gpuemu_engine::oracle::calibrate::calibrate;
    let entry = find("softmax").unwrap();
    let subject = entry.subject(RunnerChoice::Native).unwrap();
    let sampler = Sampler { strategy: Strategy::Regular, ..entry.sampler(RunnerChoice::Native) };
    let measured = calibrate(&subject, &mut entry.stand_in(), &sampler, DType::F32, 0, 200).unwrap();
    assert!(measured.errors.windows(2).all(|pair| pair[0] <= pair[1]));
    let (Tolerance::Calibrated { atol, .. }, Tolerance::Calibrated { atol: tightest, .. }) =
        (measured.envelope, measured.tightest)
    else {
        panic!("a calibration gives calibrated tolerances");
    };
    assert!(atol > 0.0 && atol < 1e-5, "{atol}");
    assert!(tightest >= atol / 1.5);
    let calibrated = subject.tolerance(measured.tightest);
    let wrong = entry.mutated(Some(Mutation::PadZero(0)));
    let only_float32 = Sampler { dtypes: vec![DType::F32], ..sampler };
    let failures = |runner: &gpuemu_corpus::stand_in::StandIn| {
        (0..200)
            .filter(|index| {
                let case = materialise(calibrated.schema(), &calibrated.describe(&only_float32, case_seed(0, *index)))
                    .unwrap();
                judge(&calibrated, &case, &mut runner.clone()).failed()
            })
            .count()
    };
    assert_eq!(failures(&entry.stand_in()), 0);
    assert!(failures(&wrong) > 50);
}
