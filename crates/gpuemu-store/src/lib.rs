//! What a home remembers, on disk: nothing acknowledged is lost, nothing is overwritten.

mod artifact;
mod baseline;
mod campaign;
mod error;
mod file;
mod key;
mod migration;
mod op_runs;
mod packed;
pub mod private_file;
mod query;
mod record;
mod retention;
mod run;
mod run_clock;
mod snapshot;
mod tree;
mod writer;

use std::path::Path;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::mpsc::{SyncSender, sync_channel};
use std::thread::JoinHandle;
use std::time::{SystemTime, UNIX_EPOCH};

use redb::ReadableTableMetadata;

pub use baseline::BaselineTag;
pub use error::StoreError;
use file::DatabaseFile;
use key::{op_run_of_result, result_key};
pub use query::ResultQuery;
pub use record::{
    ArtifactBaselineRecord, ArtifactRecord, BaselineRecord, CampaignContent, CampaignRecord, FailureRecord, ResultHead,
    ResultRecord, RunRecord, SCHEMA_VERSION,
};
use record::{Record, encode};
use run_clock::{META, RunClock};
pub use snapshot::{Snapshot, SnapshotTensor};
use tree::Tree;
use writer::{Batch, Entry};

/// The store of all projects of one home.
pub struct Store {
    file: Arc<DatabaseFile>,
    /// Largest number of a run that is in the store or was given out.
    last_run: AtomicU64,
    writer: Option<SyncSender<Batch>>,
    thread: Option<JoinHandle<()>>,
}

/// How many records each tree has.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct StoreCounts {
    pub results: u64,
    pub failures: u64,
    /// Ops of baselines, older storings included.
    pub baselines: u64,
    pub artifacts: u64,
    /// Kernels of baselines of artifacts, older storings included.
    pub artifact_baselines: u64,
}

impl Store {
    /// Opens a store, or makes one. Only one process has it at a time.
    ///
    /// A store of an older form is brought to the newest one first. What is no store, or one of a
    /// form that is not known, is an error and stays as it is.
    pub fn open(path: &Path) -> Result<Self, StoreError> {
        Self::over(DatabaseFile::open(path)?)
    }

    /// The same on something else than a file, such as a disk that loses power. The path is what errors name.
    pub fn on_backend(backend: impl redb::StorageBackend, path: &Path) -> Result<Self, StoreError> {
        Self::over(DatabaseFile::on_backend(backend, path)?)
    }

    fn over(file: DatabaseFile) -> Result<Self, StoreError> {
        let file = Arc::new(file);
        let clock = file.read(|transaction| RunClock::load(&transaction.open_table(META)?))?;
        let started = writer::start(file.clone(), clock);
        let (writer, thread) = started.map_err(|error| file.failure(&error.to_string()))?;
        let last_run = AtomicU64::new(clock.largest_run);
        Ok(Self { file, last_run, writer: Some(writer), thread: Some(thread) })
    }

    /// Keeps results and failures. Returns when they are on the disk: together or not at all.
    pub fn append(&self, results: &[ResultRecord], failures: &[FailureRecord]) -> Result<(), StoreError> {
        let (entries, clock) = appended(results, failures)?;
        self.write(entries, clock)
    }

    /// A number for a new run: larger than every one in the store or given out, over all projects,
    /// and at least the microseconds since 1970.
    pub fn next_run(&self) -> u64 {
        let now = SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default().as_micros();
        let now = u64::try_from(now).unwrap_or(u64::MAX);
        let after = |last: u64| now.max(last.saturating_add(1));
        let last = self.last_run.fetch_update(Ordering::Relaxed, Ordering::Relaxed, |last| Some(after(last)));
        after(last.unwrap_or_else(|last| last))
    }

    /// How much there is.
    pub fn counts(&self) -> Result<StoreCounts, StoreError> {
        self.file.read(|transaction| {
            let count = |tree: Tree| Ok::<u64, error::Problem>(tree.read(transaction)?.len()?);
            Ok(StoreCounts {
                results: count(Tree::Results)?,
                failures: count(Tree::Failures)?,
                baselines: count(Tree::Baselines)?,
                artifacts: count(Tree::Artifacts)?,
                artifact_baselines: count(Tree::ArtifactBaselines)?,
            })
        })
    }

    /// Hands entries to the writing thread, and waits until they are on the disk.
    fn write(&self, entries: Vec<Entry>, clock: RunClock) -> Result<(), StoreError> {
        self.last_run.fetch_max(clock.largest_run, Ordering::Relaxed);
        let gone = || self.file.failure("the writing thread is gone; start the daemon again");
        let (acknowledge, acknowledged) = sync_channel(1);
        let writer = self.writer.as_ref().ok_or_else(gone)?;
        writer.send(Batch { entries, clock, acknowledge }).map_err(|_| gone())?;
        acknowledged.recv().map_err(|_| gone())?
    }
}

impl Drop for Store {
    fn drop(&mut self) {
        // The thread ends with its last sender; the database closes after it.
        self.writer = None;
        if let Some(thread) = self.thread.take() {
            let _ = thread.join();
        }
    }
}

/// What keeping results and failures writes.
fn appended(results: &[ResultRecord], failures: &[FailureRecord]) -> Result<(Vec<Entry>, RunClock), StoreError> {
    let mut entries: Vec<Entry> = Vec::with_capacity(results.len() + failures.len());
    let mut clock = RunClock::default();
    let mut op_runs: Vec<Vec<u8>> = Vec::new();
    for record in results {
        clock.include(record);
        let key = result_key(record);
        let op_run = op_run_of_result(&key)?;
        // The results of an op in a run mostly come one after the other.
        if op_runs.last() != Some(&op_run) {
            op_runs.push(op_run);
        }
        entries.push(entry(Tree::Results, key, record)?);
    }
    for record in failures {
        clock.include(&record.result);
        entries.push(entry(Tree::Failures, result_key(&record.result), record)?);
    }
    entries.extend(op_runs.into_iter().map(|key| Entry { tree: Tree::OpRuns, key, value: Vec::new() }));
    Ok((entries, clock))
}

fn entry(tree: Tree, key: Vec<u8>, record: &impl Record) -> Result<Entry, StoreError> {
    Ok(Entry { tree, key, value: encode(record)? })
}
