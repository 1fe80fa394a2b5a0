//! A store that version 1 really wrote: `tests/data/store_v1.redb`.

use std::path::{Path, PathBuf};

use gpuemu_store::{ResultQuery, ResultRecord, Store, StoreCounts, StoreError, StoredOutcome};
use redb::{Database, ReadableDatabase, ReadableTable, TableDefinition, TableHandle};
use tempfile::TempDir;

use crate::{everything, record};

const META: TableDefinition<'_, &str, u64> = TableDefinition::new("meta");
const RESULTS: TableDefinition<'_, &[u8], &[u8]> = TableDefinition::new("results");
const PROJECT: &str = "/home/somebody/kernels";

fn old_store(folder: &TempDir) -> PathBuf {
    let path = folder.path().join("gpuemu.redb");
    let written = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/data/store_v1.redb");
    std::fs::copy(written, &path).unwrap();
    path
}

/// The version, the names of the trees and the results' bytes.
type Content = (u64, Vec<String>, Vec<(Vec<u8>, Vec<u8>)>);

fn content(path: &Path) -> Content {
    let database = Database::create(path).unwrap();
    let transaction = database.begin_read().unwrap();
    let version = transaction.open_table(META).unwrap().get("schema_version").unwrap().unwrap().value();
    let mut names: Vec<String> = transaction.list_tables().unwrap().map(|table| table.name().to_string()).collect();
    names.sort();
    let results = transaction.open_table(RESULTS).unwrap();
    let rows = results.iter().unwrap().map(|row| row.unwrap());
    (version, names, rows.map(|(key, value)| (key.value().to_vec(), value.value().to_vec())).collect())
}

#[test]
fn a_store_of_version_1_is_brought_to_version_2() {
    let folder = TempDir::new().unwrap();
    let path = old_store(&folder);
    assert_eq!((content(&path).0, content(&path).2.len()), (1, 3));
    let store = Store::open(&path).unwrap();
    let found = store.results(PROJECT, &everything()).unwrap();
    let places: Vec<(u64, &str, u64)> = found.iter().map(|found| (found.run, found.op.as_str(), found.index)).collect();
    assert_eq!(places, [(2, "softmax", 4), (1, "softmax", 0), (1, "matmul", 0)]);
    let failed = &found[0];
    assert!(failed.max_abs.is_nan() && failed.max_rel.is_nan() && failed.max_ulp.is_nan());
    let comparable = ResultRecord { max_abs: 0.0, max_rel: 0.0, max_ulp: 0.0, ..failed.clone() };
    let wanted = ResultRecord {
        project: PROJECT.to_string(),
        run: 2,
        op: "softmax".to_string(),
        index: 4,
        seed: u64::MAX - 4,
        dtype: "bfloat16".to_string(),
        sizes: "M=3, N=1025".to_string(),
        layout: String::new(),
        strategy: String::new(),
        outcome: StoredOutcome::Failed,
        check: "value".to_string(),
        largest_share: 17.5,
        max_abs: 0.0,
        max_rel: 0.0,
        max_ulp: 0.0,
        runner: String::new(),
        base_seed: 0,
        descriptor: "{\"op\":\"softmax\",\"seed\":\"18446744073709551611\"}".to_string(),
        time: 1_800_000_000_004,
    };
    assert_eq!(comparable, wanted);
    assert_eq!((found[1].outcome, found[1].descriptor.as_str()), (StoredOutcome::Passed, ""));
    let failures = store.failures(PROJECT, &everything()).unwrap();
    assert_eq!(failures.len(), 1);
    assert_eq!(failures[0].result.descriptor, wanted.descriptor);
    assert_eq!(failures[0].verdict, "{\"verdict\":\"failed\"}");
    assert_eq!(failures[0].snapshot.tensors().unwrap(), []);

    // It is as good as a new one: sought by op and time, written to, and opened again.
    assert_eq!(store.last_run(PROJECT, "softmax", Some(2)).unwrap(), Some(1));
    let late = ResultQuery { since: Some(1_800_000_000_001), ..everything() };
    assert_eq!(store.results(PROJECT, &late).unwrap().len(), 1);
    store.append(&[record(PROJECT, 3, "softmax", 0, 0)], &[]).unwrap();
    drop(store);
    let (version, names, rows) = content(&path);
    assert_eq!((version, rows.len()), (2, 4));
    let all =
        ["artifact_baselines", "artifacts", "baselines", "campaigns", "failures", "meta", "op_runs", "results", "runs"];
    assert_eq!(names, all);
    let store = Store::open(&path).unwrap();
    let counts = StoreCounts { results: 4, failures: 1, ..StoreCounts::default() };
    assert_eq!(store.counts().unwrap(), counts);
}

#[test]
fn a_store_of_version_1_with_a_damaged_record_stays_at_version_1() {
    let folder = TempDir::new().unwrap();
    let path = old_store(&folder);
    let (key, value) = content(&path).2[1].clone();
    let database = Database::create(&path).unwrap();
    let transaction = database.begin_write().unwrap();
    transaction.open_table(RESULTS).unwrap().insert(&key[..], &value[..value.len() - 9]).unwrap();
    transaction.commit().unwrap();
    drop(database);
    let before = content(&path);
    assert!(matches!(Store::open(&path).err(), Some(StoreError::Damaged(_))));
    assert_eq!(content(&path), before);
    assert_eq!(before.0, 1);
}
