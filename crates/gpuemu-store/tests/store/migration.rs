//! A store that version 1 really wrote: `tests/data/store_v1.redb`.

use std::path::{Path, PathBuf};

use gpuemu_model::CaseDescriptor;
use gpuemu_model::finding::{LargestErrors, Outcome};
use gpuemu_model::report::ValidationResult;
use gpuemu_store::{ResultQuery, ResultRecord, SCHEMA_VERSION, Store, StoreCounts, StoreError};
use gpuemu_tensor::DType;
use redb::{Database, ReadableDatabase, ReadableTable, TableDefinition, TableHandle};
use tempfile::TempDir;

use crate::{everything, record, with};

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
fn a_store_of_version_1_is_brought_to_the_newest() {
    let folder = TempDir::new().unwrap();
    let path = old_store(&folder);
    assert_eq!((content(&path).0, content(&path).2.len()), (1, 3));
    let store = Store::open(&path).unwrap();
    let found = store.results(PROJECT, &everything()).unwrap();
    let places: Vec<(u64, &str, u64)> =
        found.iter().map(|found| (found.run, found.result.op.as_str(), found.index)).collect();
    assert_eq!(places, [(2, "softmax", 4), (1, "softmax", 0), (1, "matmul", 0)]);
    // Of the errors only the share was kept: zero would claim that there were none.
    let failed = &found[0];
    let largest = failed.result.largest;
    assert!(largest.max_abs_diff.is_nan() && largest.max_rel_diff.is_nan() && largest.max_ulp_diff.is_nan());
    assert_eq!(largest.tolerance_share, 17.5);
    let comparable = with(failed.clone(), |result| result.largest = LargestErrors::default());
    let wanted = ValidationResult {
        outcome: Outcome::Failed,
        passed: false,
        sizes: "M=3, N=1025".to_string(),
        values: String::new(),
        run: Some(2),
        time: 1_800_000_000_004,
        replay: "gpuemu reproduce 18446744073709551611 --op softmax".to_string(),
        ..ValidationResult::of(CaseDescriptor::of("softmax", DType::BF16, u64::MAX - 4))
    };
    assert_eq!(comparable, ResultRecord::of(&wanted, PROJECT, 2, 4, 0));
    assert_eq!((found[1].result.outcome, found[1].result.case.schema.as_str()), (Outcome::Passed, ""));
    let failures = store.failures(PROJECT, &everything()).unwrap();
    assert_eq!(failures.len(), 1);
    assert_eq!(failures[0].result.result.case, wanted.case);
    assert_eq!(failures[0].snapshot.tensors().unwrap(), []);

    // It is as good as a new one: sought by op and time, written to, and opened again.
    assert_eq!(store.last_run(PROJECT, "softmax", Some(2)).unwrap(), Some(1));
    let late = ResultQuery { since: Some(1_800_000_000_001), ..everything() };
    assert_eq!(store.results(PROJECT, &late).unwrap().len(), 1);
    store.append(&[record(PROJECT, 3, "softmax", 0, 0)], &[]).unwrap();
    drop(store);
    let (version, names, rows) = content(&path);
    assert_eq!((version, rows.len()), (u64::from(SCHEMA_VERSION), 4));
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
