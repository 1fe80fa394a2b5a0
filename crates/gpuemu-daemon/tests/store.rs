//! The store on a real disk: what was acknowledged is there, also after `kill -9`.
#![allow(clippy::unwrap_used, clippy::panic, clippy::print_stdout, reason = "tests fail by panicking")]

use std::collections::HashSet;
use std::io::{BufRead, BufReader, Write};
use std::path::Path;
use std::process::{Command, Stdio};
use std::time::Duration;

use gpuemu_daemon::store::{FailureRecord, ResultRecord, Store, StoreError, StoredOutcome};
use redb::{Database, TableDefinition};
use tempfile::TempDir;

fn record(project: &str, run: u64, op: &str, index: u64, seed: u64) -> ResultRecord {
    ResultRecord {
        project: project.to_string(),
        run,
        op: op.to_string(),
        index,
        seed,
        dtype: "float16".to_string(),
        sizes: "H=1025".to_string(),
        outcome: StoredOutcome::Passed,
        check: String::new(),
        largest_share: 0.25,
        time: 1_800_000_000_000 + index,
    }
}

#[test]
fn two_ops_with_one_seed_and_two_runs_of_one_op_are_all_kept_newest_first() {
    let folder = TempDir::new().unwrap();
    let path = folder.path().join("gpuemu.redb");
    let store = Store::open(&path).unwrap();
    store.append(&[record("p", 1, "softmax", 0, 7), record("p", 1, "matmul", 0, 7)], &[]).unwrap();
    store.append(&[record("p", 2, "softmax", 0, 7)], &[]).unwrap();
    drop(store);
    let store = Store::open(&path).unwrap();
    let found = store.results("p", None, 10).unwrap();
    let names: Vec<(u64, &str)> = found.iter().map(|record| (record.run, record.op.as_str())).collect();
    assert_eq!(names, [(2, "softmax"), (1, "softmax"), (1, "matmul")]);
    assert_eq!(store.results("p", Some("softmax"), 10).unwrap().len(), 2);
    assert_eq!(store.results("p", None, 1).unwrap(), [record("p", 2, "softmax", 0, 7)]);
}

#[test]
fn projects_do_not_see_each_other() {
    let folder = TempDir::new().unwrap();
    let store = Store::open(&folder.path().join("gpuemu.redb")).unwrap();
    store.append(&[record("/a", 1, "x", 0, 1), record("/a/b", 1, "y", 0, 1)], &[]).unwrap();
    assert_eq!(store.results("/a", None, 10).unwrap().len(), 1);
    assert_eq!(store.results("/a/b", None, 10).unwrap()[0].op, "y");
    assert!(store.results("/c", None, 10).unwrap().is_empty());
}

#[test]
fn a_failure_keeps_what_is_needed_to_run_it_again() {
    let folder = TempDir::new().unwrap();
    let store = Store::open(&folder.path().join("gpuemu.redb")).unwrap();
    let failure = FailureRecord {
        result: ResultRecord {
            outcome: StoredOutcome::Failed,
            check: "value".to_string(),
            ..record("p", 1, "x", 3, u64::MAX)
        },
        descriptor: "{\"seed\":\"18446744073709551615\"}".to_string(),
        verdict: "{}".to_string(),
        snapshot: vec![1, 2, 3],
    };
    store.append(std::slice::from_ref(&failure.result), std::slice::from_ref(&failure)).unwrap();
    assert_eq!(store.failures("p", Some("x"), 5).unwrap(), [failure]);
}

#[test]
fn a_store_has_one_owner() {
    let folder = TempDir::new().unwrap();
    let path = folder.path().join("gpuemu.redb");
    let _held = Store::open(&path).unwrap();
    assert_eq!(Store::open(&path).err(), Some(StoreError::InUse(path)));
}

#[test]
fn a_store_of_an_unknown_version_is_refused_and_left_as_it_is() {
    let folder = TempDir::new().unwrap();
    let path = folder.path().join("gpuemu.redb");
    drop(Store::open(&path).unwrap());
    let meta: TableDefinition<'_, &str, u64> = TableDefinition::new("meta");
    {
        let database = Database::create(&path).unwrap();
        let transaction = database.begin_write().unwrap();
        transaction.open_table(meta).unwrap().insert("schema_version", 99).unwrap();
        transaction.commit().unwrap();
    }
    assert_eq!(Store::open(&path).err(), Some(StoreError::UnknownVersion { found: 99, known: 1 }));
    assert_eq!(Store::open(&path).err(), Some(StoreError::UnknownVersion { found: 99, known: 1 }));
}

#[test]
fn a_file_that_is_no_store_is_an_error_and_stays() {
    let folder = TempDir::new().unwrap();
    let path = folder.path().join("gpuemu.redb");
    std::fs::write(&path, "this is not a database, but somebody's notes").unwrap();
    assert!(matches!(Store::open(&path).err(), Some(StoreError::Database(_))));
    assert!(std::fs::read_to_string(&path).unwrap().starts_with("this is not"));
}

#[test]
fn many_writers_at_once_lose_nothing() {
    let folder = TempDir::new().unwrap();
    let store = Store::open(&folder.path().join("gpuemu.redb")).unwrap();
    std::thread::scope(|scope| {
        for writer in 0..8 {
            let store = &store;
            scope.spawn(move || {
                for index in 0..50 {
                    store.append(&[record("p", writer, "x", index, 0)], &[]).unwrap();
                }
            });
        }
    });
    assert_eq!(store.results("p", None, 1000).unwrap().len(), 400);
}

/// The child of the test below: writes for ever, and says what was acknowledged.
fn write_until_killed(path: &Path, run: u64) {
    let store = Store::open(path).unwrap();
    let mut output = std::io::stdout().lock();
    for index in 0.. {
        store.append(&[record("p", run, "x", index, index)], &[]).unwrap();
        writeln!(output, "{index}").unwrap();
        output.flush().unwrap();
    }
}

#[test]
fn what_was_acknowledged_survives_kill_minus_nine() {
    if let (Some(path), Some(run)) = (std::env::var_os("GPUEMU_STORE_CHILD"), std::env::var_os("GPUEMU_STORE_RUN")) {
        return write_until_killed(Path::new(&path), run.to_str().unwrap().parse().unwrap());
    }
    let folder = TempDir::new().unwrap();
    let path = folder.path().join("gpuemu.redb");
    let mut acknowledged: HashSet<(u64, u64)> = HashSet::new();
    for run in 0..15u64 {
        let mut child = Command::new(std::env::current_exe().unwrap())
            .args(["what_was_acknowledged_survives_kill_minus_nine", "--exact", "--nocapture"])
            .env("GPUEMU_STORE_CHILD", &path)
            .env("GPUEMU_STORE_RUN", run.to_string())
            .stdout(Stdio::piped())
            .spawn()
            .unwrap();
        let output = BufReader::new(child.stdout.take().unwrap());
        let (first, begun) = std::sync::mpsc::channel();
        let reader = std::thread::spawn(move || {
            let numbers = output.lines().map_while(Result::ok).filter_map(|line| line.trim().parse::<u64>().ok());
            numbers
                .inspect(|index| {
                    if *index == 0 {
                        first.send(()).unwrap()
                    }
                })
                .collect::<Vec<u64>>()
        });
        // Once it writes, a moment that differs from run to run.
        begun.recv_timeout(Duration::from_secs(60)).unwrap();
        std::thread::sleep(Duration::from_millis((run * 37) % 110));
        child.kill().unwrap();
        child.wait().unwrap();
        acknowledged.extend(reader.join().unwrap().into_iter().map(|index| (run, index)));
    }
    assert!(acknowledged.len() > 15, "{}", acknowledged.len());
    let store = Store::open(&path).unwrap();
    let found = store.results("p", None, usize::MAX).unwrap();
    let kept: HashSet<(u64, u64)> = found.iter().map(|record| (record.run, record.index)).collect();
    let lost: Vec<_> = acknowledged.difference(&kept).collect();
    assert!(lost.is_empty(), "{} of {} acknowledged results are gone", lost.len(), acknowledged.len());
}
