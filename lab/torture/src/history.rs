//! Months of work, written into a store: copies of results that gpuemu itself made.

use std::path::Path;

use gpuemu_model::finding::Outcome;
use gpuemu_model::report::ValidationResult;
use gpuemu_store::{FailureRecord, ResultQuery, ResultRecord, RunRecord, Store};
use serde_json::Value;

use crate::kernel_project::{RIGHT, WRONG};

/// Cases of each op in a run of the daemon, and of a client's run.
const CASES: u64 = 500;

/// One in so many results is a failure.
const FAILURE_EVERY: u64 = 100;

/// Microseconds between two runs: they lie within the days that results are kept for.
const BETWEEN_RUNS: u64 = 5_000_000;

/// Results that are written together.
const BATCH: usize = 20_000;

/// An op that only clients judged, in their own processes.
const RECORDED: &str = "recorded";

/// An op whose outputs clients submitted, each a run of its own.
const SUBMITTED: &str = "submitted";

pub struct History {
    pub results: u64,
    pub failures: u64,
    /// Runs that they belong to.
    pub runs: u64,
    /// Size of the store.
    pub bytes: u64,
    /// The seed of the oldest failure.
    pub oldest_failure: u64,
    submitted: u64,
}

struct Originals {
    passed: Vec<ResultRecord>,
    failed: Vec<FailureRecord>,
    runs: Vec<RunRecord>,
}

impl History {
    /// Writes so many results from before those that are there, which they are copies of.
    pub fn write(store: &Path, project: &Path, count: u64) -> Result<Self, String> {
        let key = std::fs::canonicalize(project).map_err(|error| error.to_string())?;
        let written = {
            let store = Store::open(store).map_err(|error| error.to_string())?;
            let originals = Originals::read(&store, &key.to_string_lossy())?;
            Writer { store, originals, history: Self::none(), results: Vec::new(), failed: Vec::new() }.write(count)?
        };
        let bytes = std::fs::metadata(store).map_err(|error| error.to_string())?.len();
        Ok(Self { bytes, ..written })
    }

    fn none() -> Self {
        Self { results: 0, failures: 0, runs: 0, bytes: 0, oldest_failure: 0, submitted: 0 }
    }

    /// The report has every op: that of the daemon by its newest run, that of clients by what they recorded.
    pub fn check(&self, report: &str) -> Result<(), String> {
        let report: Value = serde_json::from_str(report).map_err(|error| error.to_string())?;
        let cases = |name: &str| {
            let op = report["ops"].as_array().into_iter().flatten().find(|op| op["op"] == name);
            op.map(|op| (op["cases"].as_u64().unwrap_or(0), op["warnings"].to_string()))
        };
        for (name, expected) in [(RECORDED, Some(CASES)), (SUBMITTED, Some(self.submitted)), (RIGHT, None)] {
            let Some((found, warnings)) = cases(name) else {
                return Err(format!("the report has no op '{name}'"));
            };
            if expected.is_some_and(|expected| expected != found) || found == 0 {
                return Err(format!("the report on '{name}' has {found} cases, not {expected:?}"));
            }
            if warnings.contains("still stored") {
                return Err(format!("the report on '{name}' misses results that are there: {warnings}"));
            }
        }
        Ok(())
    }
}

impl Originals {
    fn read(store: &Store, project: &str) -> Result<Self, String> {
        let words = |error: gpuemu_store::StoreError| error.to_string();
        let of = |outcome| ResultQuery { outcome: Some(outcome), ..ResultQuery::default() };
        let passed = store.results(project, &of(Outcome::Passed)).map_err(words)?;
        let failed = store.failures(project, &of(Outcome::Failed)).map_err(words)?;
        let runs = store.runs(project, None, 1).map_err(words)?;
        match passed.is_empty() || failed.is_empty() || runs.is_empty() {
            true => Err("the runs that are to be copied left nothing".to_string()),
            false => Ok(Self { passed, failed, runs }),
        }
    }
}

struct Writer {
    store: Store,
    originals: Originals,
    history: History,
    results: Vec<ResultRecord>,
    failed: Vec<FailureRecord>,
}

impl Writer {
    /// Of ten results seven are of the daemon's own runs, two were recorded by clients, one was submitted.
    fn write(mut self, count: u64) -> Result<History, String> {
        let newest = self.originals.runs.iter().map(|record| record.run.run).min().unwrap_or_default();
        let submitted = count / 10;
        let runs = submitted + count / CASES;
        let mut run = newest - (runs + 2) * BETWEEN_RUNS / 10;
        let mut next_run = || {
            run += BETWEEN_RUNS / 10;
            run
        };
        while self.history.results < count {
            for (op, cases, runner) in [
                (RIGHT, CASES, None),
                (WRONG, CASES, None),
                (RECORDED, CASES, Some("recorded")),
                (SUBMITTED, 1, Some("submitted output")),
            ] {
                let rounds = if cases == 1 { CASES / 3 } else { 1 };
                for _ in 0..rounds {
                    let run = next_run();
                    self.history.runs += 1;
                    for index in 0..cases {
                        self.add(op, run, index, runner)?;
                    }
                    if runner.is_none() {
                        self.summarise(op, run)?;
                    }
                }
            }
        }
        self.flush()?;
        Ok(self.history)
    }

    fn add(&mut self, op: &str, run: u64, index: u64, runner: Option<&str>) -> Result<(), String> {
        let number = self.history.results;
        self.history.results += 1;
        self.history.submitted += u64::from(op == SUBMITTED);
        let seed = number.wrapping_mul(0x9e37_79b9_7f4a_7c15);
        let fails = op != RIGHT && number.is_multiple_of(FAILURE_EVERY);
        let place = number as usize;
        let failed = &self.originals.failed[place % self.originals.failed.len()];
        let like = if fails { &failed.result } else { &self.originals.passed[place % self.originals.passed.len()] };
        let mut result = ValidationResult { op: op.to_string(), seed, time: run / 1000, ..like.result.clone() };
        if let Some(runner) = runner {
            (result.runner, result.client_side) = (runner.to_string(), op == RECORDED);
        }
        let record = ResultRecord::of(&result, &like.project, run, index, like.base_seed);
        if fails {
            self.failed.push(FailureRecord { result: record.clone(), snapshot: failed.snapshot.clone() });
            self.history.oldest_failure = if self.history.failures == 0 { seed } else { self.history.oldest_failure };
            self.history.failures += 1;
        }
        self.results.push(record);
        if self.results.len() >= BATCH { self.flush() } else { Ok(()) }
    }

    /// What the op came to in the run.
    fn summarise(&self, op: &str, run: u64) -> Result<(), String> {
        let Some(like) = self.originals.runs.iter().find(|record| record.run.op.op == op) else { return Ok(()) };
        let mut record = like.clone();
        (record.run.run, record.run.time) = (run, run / 1000);
        self.store.put_runs(&[record]).map_err(|error| error.to_string())
    }

    fn flush(&mut self) -> Result<(), String> {
        self.store.append(&self.results, &self.failed).map_err(|error| error.to_string())?;
        self.results.clear();
        self.failed.clear();
        Ok(())
    }
}
