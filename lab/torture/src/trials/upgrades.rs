//! Stores of every earlier form: they open with everything that was in them, or say exactly why not.

use std::path::Path;

use gpuemu_store::{ResultQuery, SCHEMA_VERSION, Store, StoreCounts, StoreError};
use redb::{Database, TableDefinition};

use crate::records::record;
use crate::trial::{Ended, Extent, Trial};

pub const TRIAL: Trial =
    Trial { name: "upgrades", about: "stores that every earlier version wrote, and one of a later version", run };

/// A store that some version wrote, and what was in it.
struct Written {
    name: &'static str,
    bytes: &'static [u8],
    counts: StoreCounts,
    /// Runs of ops that it knows more of than their cases.
    runs: usize,
}

const PROJECT: &str = "/home/somebody/kernels";

macro_rules! written {
    ($name:literal, $counts:expr, $runs:literal) => {{
        let bytes = include_bytes!(concat!("../../../../crates/gpuemu-store/tests/data/", $name));
        Written { name: $name, bytes, counts: $counts, runs: $runs }
    }};
}

const NOTHING: StoreCounts = StoreCounts { results: 0, failures: 0, baselines: 0, artifacts: 0, artifact_baselines: 0 };
const FORM_2: StoreCounts = StoreCounts { results: 24, failures: 11, baselines: 2, ..NOTHING };

const WRITTEN: [Written; 4] = [
    written!("store_v1.redb", StoreCounts { results: 3, failures: 1, ..NOTHING }, 0),
    written!("store_v2_without_runs.redb", FORM_2, 0),
    written!("store_v2.redb", FORM_2, 2),
    written!("store_v3.redb", FORM_2, 2),
];

fn run(_extent: &Extent) -> Ended {
    if SCHEMA_VERSION != 3 {
        return Ended::Broken(format!("no store of form {SCHEMA_VERSION} is kept to be opened by later versions"));
    }
    let opened: Result<Vec<&str>, String> = WRITTEN.iter().map(open).collect();
    opened
        .and_then(|names| Ok(vec![format!("opened with all that was in them: {}", names.join(", ")), later()?]))
        .into()
}

/// Opens a store twice, with a write in between, and reads everything in it.
fn open(written: &Written) -> Result<&'static str, String> {
    let folder = tempfile::tempdir().map_err(|error| error.to_string())?;
    let path = folder.path().join("gpuemu.redb");
    std::fs::write(&path, written.bytes).map_err(|error| error.to_string())?;
    let mut counts = written.counts;
    for run in [u64::MAX - 2, u64::MAX - 1] {
        look(&path, written, counts, run).map_err(|problem| format!("{}: {problem}", written.name))?;
        counts.results += 1;
    }
    Ok(written.name)
}

fn look(path: &Path, written: &Written, counts: StoreCounts, run: u64) -> Result<(), String> {
    let text = |error: StoreError| error.to_string();
    let store = Store::open(path).map_err(text)?;
    let found = store.counts().map_err(text)?;
    if found != counts {
        return Err(format!("{found:?} where {counts:?} were"));
    }
    let everything = ResultQuery::default();
    let results = store.results(PROJECT, &everything).map_err(text)?;
    let failures = store.failures(PROJECT, &everything).map_err(text)?;
    if (results.len() as u64, failures.len() as u64) != (counts.results, counts.failures) {
        return Err(format!("{} results and {} failures can be read", results.len(), failures.len()));
    }
    failures.iter().try_for_each(|failure| failure.snapshot.tensors().map(|_| ())).map_err(text)?;
    let runs = store.runs(PROJECT, None, usize::MAX).map_err(text)?;
    if let Some(empty) = runs.iter().find(|kept| kept.run.op.cases == 0) {
        return Err(format!("the run of '{}' has no case", empty.run.op.op));
    }
    let tags = store.baseline_tags(PROJECT).map_err(text)?.len() as u64;
    if (runs.len(), tags) != (written.runs, u64::from(counts.baselines > 0)) {
        return Err(format!("{} runs and {tags} tags", runs.len()));
    }
    store.append(&[record(PROJECT, run, "relu", 0)], &[]).map_err(text)
}

/// A store of a later version is refused by its number and not touched.
fn later() -> Result<String, String> {
    let folder = tempfile::tempdir().map_err(|error| error.to_string())?;
    let path = folder.path().join("gpuemu.redb");
    drop(Store::open(&path).map_err(|error| error.to_string())?);
    let later = u64::from(SCHEMA_VERSION) + 1;
    let meta: TableDefinition<'_, &str, u64> = TableDefinition::new("meta");
    let raise = || -> Result<(), redb::Error> {
        let database = Database::create(&path)?;
        let transaction = database.begin_write()?;
        transaction.open_table(meta)?.insert("schema_version", later)?;
        Ok(transaction.commit()?)
    };
    raise().map_err(|error| error.to_string())?;
    let before = std::fs::read(&path).map_err(|error| error.to_string())?;
    let message = match Store::open(&path) {
        Err(StoreError::UnknownVersion { found, known }) if (found, known) == (later, later - 1) => {
            StoreError::UnknownVersion { found, known }.to_string()
        }
        Err(error) => return Err(format!("a later version: {error}")),
        Ok(_) => return Err("a store of a later version was opened".to_string()),
    };
    if std::fs::read(&path).ok() != Some(before) {
        return Err("a store of a later version was changed".to_string());
    }
    Ok(format!("a later one is refused: {message}"))
}
