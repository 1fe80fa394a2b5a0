//! The report on stored results, over more of them than anybody lists.
#![allow(clippy::unwrap_used, clippy::panic, reason = "tests fail by panicking")]

use std::sync::Arc;

use gpuemu_config::Environment;
use gpuemu_model::CaseDescriptor;
use gpuemu_model::finding::Outcome;
use gpuemu_model::report::{OpReport, OpStatus, StoredRun, ValidationResult};
use gpuemu_model::settings::{FuzzConfig, ProjectReference};
use gpuemu_service::Service;
use gpuemu_store::{FailureRecord, ResultRecord, RunRecord, Snapshot, Store};
use gpuemu_tensor::DType;
use gpuemu_wire::protocol::{ReportStored, Request, Response};
use tempfile::TempDir;

/// What produced the results that a client made in its own process.
const OWN: &str = "mine";

struct Stored {
    folder: TempDir,
    store: Store,
    key: String,
}

impl Stored {
    fn new() -> Self {
        let folder = tempfile::tempdir().unwrap();
        std::fs::create_dir_all(folder.path().join("home/db")).unwrap();
        std::fs::create_dir_all(folder.path().join("project")).unwrap();
        let store = Store::open(&folder.path().join("home/db/gpuemu.redb")).unwrap();
        let key = folder.path().join("project").canonicalize().unwrap().display().to_string();
        Self { folder, store, key }
    }

    fn append(&self, op: &str, run: u64, cases: std::ops::Range<u64>, runner: &str, failing: &[u64]) {
        let record = |index: u64| {
            let mut result = ValidationResult::of(CaseDescriptor::of(op, DType::F32, index));
            if failing.contains(&index) {
                (result.outcome, result.passed) = (Outcome::Failed, false);
            }
            result.largest.max_abs_diff = index as f64;
            (result.runner, result.client_side) = (runner.to_string(), runner == OWN);
            result.time = 1000 + run;
            ResultRecord::of(&result, &self.key, run, index, 0)
        };
        let results: Vec<ResultRecord> = cases.map(record).collect();
        let failed = results.iter().filter(|one| one.result.failed()).cloned();
        let failures = failed.map(|result| FailureRecord { result, snapshot: Snapshot::default() });
        self.store.append(&results, &failures.collect::<Vec<_>>()).unwrap();
    }

    fn conclude(&self, op: &str, run: u64, cases: u64) {
        let run = StoredRun {
            gpuemu: "0".to_string(),
            run,
            time: 1000 + run,
            mode: "thorough".to_string(),
            seed: 1,
            settings: FuzzConfig::default(),
            shard: None,
            config_digest: String::new(),
            op: OpReport { cases, planned: cases, passed: cases, ..OpReport::blank(op) },
        };
        self.store.put_runs(&[RunRecord { project: self.key.clone(), run }]).unwrap();
    }

    /// Gives the store to a service.
    fn serve(self) -> (Arc<Service>, TempDir) {
        drop(self.store);
        let service = Service::open(&self.folder.path().join("home"), "a test", Environment::of(&[])).unwrap();
        (service, self.folder)
    }
}

fn report(service: &Arc<Service>, folder: &TempDir, op: Option<&str>, since_hours: Option<f64>) -> Vec<OpReport> {
    let project = ProjectReference { root: folder.path().join("project"), ..ProjectReference::default() };
    let request = ReportStored { project, op_name: op.map(ToString::to_string), since_hours };
    match service.answer(Request::ReportStored(request), &[]).response {
        Response::Report { report } => report.ops,
        other => panic!("{other:?}"),
    }
}

#[test]
fn a_run_is_whole_however_many_results_are_newer() {
    let stored = Stored::new();
    stored.append("old", 1, 0..1200, "kernel", &[3, 700]);
    stored.conclude("old", 1, 1200);
    for part in 0..11 {
        stored.append("new", 2, part * 10_000..(part + 1) * 10_000, "kernel", &[]);
    }
    stored.conclude("new", 2, 110_000);
    let (service, folder) = stored.serve();
    let ops = report(&service, &folder, None, None);
    assert_eq!(ops.iter().map(|op| (op.op.as_str(), op.cases)).collect::<Vec<_>>(), [("new", 110_000), ("old", 1200)]);
    assert!(ops.iter().all(|op| op.warnings.is_empty()), "{:?}", ops[1].warnings);
    let shown: Vec<u64> = ops[1].case_results.iter().map(|case| case.case.seed).collect();
    assert_eq!(shown, (0..OpReport::MOST_CASES as u64).collect::<Vec<_>>());
    assert_eq!(ops[1].failures.iter().map(|failure| failure.seed).collect::<Vec<_>>(), [3, 700]);
    assert_eq!(report(&service, &folder, Some("old"), None).len(), 1);
    assert!(report(&service, &folder, Some("none"), None).is_empty());
    assert!(report(&service, &folder, None, Some(1.0)).is_empty());
}

#[test]
fn results_that_are_gone_are_said_to_be() {
    let stored = Stored::new();
    stored.append("op", 1, 0..3, "kernel", &[]);
    stored.conclude("op", 1, 5);
    let (service, folder) = stored.serve();
    let ops = report(&service, &folder, None, None);
    assert_eq!(ops[0].warnings, ["3 of the 5 results of its run are still stored"]);
}

#[test]
fn what_clients_recorded_since_stands_in_place_of_a_run() {
    let stored = Stored::new();
    stored.append("op", 1, 0..4, "kernel", &[]);
    stored.conclude("op", 1, 4);
    stored.append("op", 2, 0..6, OWN, &[]);
    stored.append("op", 3, 0..5, OWN, &[2]);
    for run in 10..20 {
        stored.append("submitted", run, 0..1, "submitted output", if run == 12 { &[0] } else { &[] });
    }
    let (service, folder) = stored.serve();
    let ops = report(&service, &folder, None, None);
    let [op, submitted] = ops.as_slice() else { panic!("{ops:?}") };
    assert_eq!((op.cases, op.passed, op.failed, op.status), (5, 4, 1, OpStatus::Failed));
    assert_eq!((op.runner.as_str(), op.largest.max_abs_diff, op.failures.len()), ("mine", 4.0, 1));
    // Each output is a run of its own: they count together.
    assert_eq!((submitted.cases, submitted.failed, submitted.failures.len()), (10, 1, 1));
}
