//! The store on a real disk: what was acknowledged is there, also after `kill -9`.
#![allow(clippy::unwrap_used, clippy::panic, clippy::print_stdout, reason = "tests fail by panicking")]

#[path = "store/baselines.rs"]
mod baselines;
#[path = "store/crash.rs"]
mod crash;
#[path = "store/migration.rs"]
mod migration;
#[path = "store/queries.rs"]
mod queries;
#[path = "store/refusal.rs"]
mod refusal;
#[path = "store/retention.rs"]
mod retention;

use std::time::{SystemTime, UNIX_EPOCH};

use gpuemu_model::CaseDescriptor;
use gpuemu_model::artifact::{EntryMetrics, KernelArtifact};
use gpuemu_model::finding::Outcome;
use gpuemu_model::report::ValidationResult;
use gpuemu_store::{
    ArtifactBaselineRecord, ArtifactRecord, BaselineRecord, FailureRecord, ResultQuery, ResultRecord, Snapshot, Store,
    StoreCounts,
};
use gpuemu_tensor::{DType, Layout, Tensor};
use tempfile::TempDir;

/// A store in a folder of its own, which goes with it.
struct Home {
    store: Store,
    folder: TempDir,
}

impl Home {
    fn new() -> Self {
        let folder = TempDir::new().unwrap();
        Self { store: Store::open(&folder.path().join("gpuemu.redb")).unwrap(), folder }
    }

    fn reopened(self) -> Self {
        let Self { store, folder } = self;
        drop(store);
        Self { store: Store::open(&folder.path().join("gpuemu.redb")).unwrap(), folder }
    }
}

fn record(project: &str, run: u64, op: &str, index: u64, seed: u64) -> ResultRecord {
    let mut case = CaseDescriptor::of(op, DType::F16, seed);
    case.sizes.set("H", 1025);
    let mut result = ValidationResult::of(case);
    result.largest.max_abs_diff = 1e-3;
    result.runner = "script".to_string();
    result.time = 1_800_000_000_000 + index;
    ResultRecord::of(&result, project, run, index, 42)
}

/// A record whose result differs.
fn with(mut record: ResultRecord, change: impl FnOnce(&mut ValidationResult)) -> ResultRecord {
    change(&mut record.result);
    record
}

/// What was measured of a kernel.
fn measures(local_loads: u64) -> KernelArtifact {
    KernelArtifact {
        kernel: "k".to_string(),
        source: "k.ptx".to_string(),
        producer: "as written".to_string(),
        target: "sm_80".to_string(),
        ptx_version: "8.4".to_string(),
        digest: String::new(),
        entries: vec![EntryMetrics { local_loads, ..EntryMetrics::default() }],
        tools: Vec::new(),
        not_measured: Vec::new(),
    }
}

fn failure(result: ResultRecord) -> FailureRecord {
    let elements: Vec<u8> = (0..24).collect();
    let input = Layout::RowGap.place(DType::F16, &[3, 4], &elements).unwrap();
    let result = with(result, |result| (result.outcome, result.passed) = (Outcome::Failed, false));
    let snapshot = Snapshot::of(&[("input".to_string(), input)], 1 << 20);
    FailureRecord { result, snapshot }
}

fn everything() -> ResultQuery {
    ResultQuery::default()
}

#[test]
fn two_ops_with_one_seed_and_two_runs_of_one_op_are_all_kept_newest_first() {
    let home = Home::new();
    let store = &home.store;
    store.append(&[record("p", 1, "softmax", 0, 7), record("p", 1, "matmul", 0, 7)], &[]).unwrap();
    store.append(&[record("p", 2, "softmax", 0, 7), record("p", 2, "softmax", 1, 7)], &[]).unwrap();
    let home = home.reopened();
    let found = home.store.results("p", &everything()).unwrap();
    let names: Vec<(u64, &str, u64)> =
        found.iter().map(|found| (found.run, found.result.op.as_str(), found.index)).collect();
    assert_eq!(names, [(2, "softmax", 1), (2, "softmax", 0), (1, "softmax", 0), (1, "matmul", 0)]);
    let of_seed = ResultQuery { seed: Some(7), ..everything() };
    assert_eq!(home.store.results("p", &of_seed).unwrap().len(), 4);
    assert_eq!(found[1], record("p", 2, "softmax", 0, 7));
}

#[test]
fn projects_do_not_see_each_other() {
    let home = Home::new();
    let store = &home.store;
    for (project, op) in [("/a", "x"), ("/a/b", "y"), ("", "z")] {
        let result = record(project, 1, op, 0, 1);
        store.append(std::slice::from_ref(&result), &[failure(result.clone())]).unwrap();
        let (project, tag, kernel, time) = (project.to_string(), "main".to_string(), op.to_string(), 5);
        let artifact = ArtifactRecord { project: project.clone(), kernel, time, metrics: measures(1) };
        store.put_artifact(&artifact).unwrap();
        let pinned = ArtifactBaselineRecord { tag: tag.clone(), artifact };
        store.put_baseline(&[], &[pinned]).unwrap();
        let op = op.to_string();
        store
            .put_baseline(&[BaselineRecord { project, tag, op, time, run: 1, base_seed: 42, cases: vec![] }], &[])
            .unwrap();
    }
    for (project, op) in [("/a", "x"), ("/a/b", "y"), ("", "z")] {
        let results = store.results(project, &everything()).unwrap();
        assert_eq!(results.iter().map(|found| found.result.op.as_str()).collect::<Vec<_>>(), [op]);
        let failures = store.failures(project, &everything()).unwrap();
        assert_eq!(failures.iter().map(|found| found.result.result.op.as_str()).collect::<Vec<_>>(), [op]);
        assert_eq!(store.run_results(project, 1, None).unwrap().len(), 1);
        assert_eq!(store.last_run(project, op, None).unwrap(), Some(1));
        let baseline = store.baseline(project, "main").unwrap();
        assert_eq!(baseline.iter().map(|found| found.op.as_str()).collect::<Vec<_>>(), [op]);
        assert_eq!(store.baseline_tags(project).unwrap().len(), 1);
        let artifacts = store.artifacts(project, None, 9).unwrap();
        assert_eq!(artifacts.iter().map(|found| found.kernel.as_str()).collect::<Vec<_>>(), [op]);
        assert_eq!(store.artifact_baseline(project, "main").unwrap()[0].artifact.kernel, op);
    }
    assert!(store.results("/c", &everything()).unwrap().is_empty());
    assert_eq!(store.last_run("/a", "y", None).unwrap(), None);
    let counts = StoreCounts { results: 3, failures: 3, baselines: 3, artifacts: 3, artifact_baselines: 3 };
    assert_eq!(store.counts().unwrap(), counts);
}

#[test]
fn a_failure_keeps_what_is_needed_to_run_it_again() {
    let home = Home::new();
    let kept = failure(record("p", 1, "x", 3, u64::MAX));
    home.store.append(std::slice::from_ref(&kept.result), std::slice::from_ref(&kept)).unwrap();
    let home = home.reopened();
    let found = home.store.failures("p", &ResultQuery { op: Some("x".to_string()), ..everything() }).unwrap();
    assert_eq!(found, [kept]);
    let inputs: Vec<(String, Tensor)> = found[0].snapshot.tensors().unwrap();
    assert_eq!((inputs[0].0.as_str(), inputs[0].1.shape()), ("input", &[3, 4][..]));
    assert_eq!(inputs[0].1.to_contiguous_bytes(), (0..24).collect::<Vec<u8>>());
    assert!(!inputs[0].1.is_contiguous());
}

#[test]
fn of_two_results_of_one_case_the_later_counts() {
    let home = Home::new();
    let twice: Vec<ResultRecord> = (0..100u32)
        .map(|number| {
            let record = record("p", 1, "x", u64::from(number % 5), 0);
            with(record, |result| result.largest.max_abs_diff = f64::from(number))
        })
        .collect();
    home.store.append(&twice, &[]).unwrap();
    let found = home.store.run_results("p", 1, None).unwrap();
    assert_eq!(found, twice[95..]);
}

#[test]
fn runs_get_numbers_of_their_own_above_all_that_are_there() {
    let home = Home::new();
    let store = &home.store;
    let now = u64::try_from(SystemTime::now().duration_since(UNIX_EPOCH).unwrap().as_micros()).unwrap();
    let first = store.next_run();
    assert!(first >= now);
    let mut given: Vec<u64> = std::thread::scope(|scope| {
        let threads = [0; 4].map(|_| scope.spawn(|| (0..1000).map(|_| store.next_run()).collect::<Vec<u64>>()));
        threads.into_iter().flat_map(|thread| thread.join().unwrap()).collect()
    });
    given.sort_unstable();
    assert!(given.is_sorted_by(|one, next| one < next) && given[0] > first);
    // A run of another project, and a baseline's whose results were never here, from a clock that was ahead.
    let ahead = first + 3_600_000_000;
    store.append(&[record("q", ahead, "x", 0, 0)], &[]).unwrap();
    assert_eq!(store.next_run(), ahead + 1);
    let (project, tag, op) = ("r".to_string(), "t".to_string(), "x".to_string());
    let baseline = BaselineRecord { project, tag, op, time: 1, run: 2 * ahead, base_seed: 0, cases: vec![] };
    store.put_baseline(&[baseline], &[]).unwrap();
    let home = home.reopened();
    assert_eq!(home.store.next_run(), 2 * ahead + 1);
    assert_eq!(home.store.next_run(), 2 * ahead + 2);
}

#[test]
fn many_writers_at_once_lose_nothing() {
    let home = Home::new();
    let store = &home.store;
    std::thread::scope(|scope| {
        for writer in 0..8 {
            scope.spawn(move || {
                for index in 0..50 {
                    store.append(&[record("p", writer, "x", index, 0)], &[]).unwrap();
                }
            });
        }
    });
    assert_eq!(store.results("p", &everything()).unwrap().len(), 400);
}
