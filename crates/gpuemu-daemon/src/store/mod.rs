//! Results and failures on disk: nothing acknowledged is lost, nothing is overwritten.

mod key;
mod record;
mod writer;

use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::sync::mpsc::{SyncSender, sync_channel};
use std::thread::JoinHandle;

use redb::{Database, DatabaseError, ReadableDatabase, ReadableTable, TableDefinition};
use thiserror::Error;

use key::{after_prefix, project_prefix, result_key};
pub use record::{FailureRecord, ResultRecord, SCHEMA_VERSION, StoredOutcome};
use record::{decode, encode};
use writer::{Batch, Entry, Tree};

const RESULTS: TableDefinition<'_, &[u8], &[u8]> = TableDefinition::new("results");
const FAILURES: TableDefinition<'_, &[u8], &[u8]> = TableDefinition::new("failures");
const META: TableDefinition<'_, &str, u64> = TableDefinition::new("meta");
const VERSION_KEY: &str = "schema_version";

/// What goes wrong with a store.
#[derive(Debug, Clone, PartialEq, Eq, Error)]
pub enum StoreError {
    /// Another process has it.
    #[error("the store {} is in use by another process; stop that daemon, or use it", .0.display())]
    InUse(PathBuf),
    /// It was written by a version that this one does not know.
    #[error("the store has schema version {found}, this gpuemu knows up to {known}; nothing was changed")]
    UnknownVersion {
        /// Its version.
        found: u64,
        /// The newest known.
        known: u64,
    },
    /// A record cannot be read.
    #[error("a record of the store is damaged: {0}")]
    Damaged(String),
    /// A record cannot be written.
    #[error("a record cannot be encoded: {0}")]
    Encode(String),
    /// The disk or the database failed.
    #[error("the store failed: {0}")]
    Database(String),
}

impl StoreError {
    fn from_redb(error: impl Into<redb::Error>) -> Self {
        StoreError::Database(error.into().to_string())
    }
}

/// The store of all projects of one home.
pub struct Store {
    database: Arc<Database>,
    writer: Option<SyncSender<Batch>>,
    thread: Option<JoinHandle<()>>,
}

impl Store {
    /// Opens a store, or makes one. Only one process has it at a time.
    pub fn open(path: &Path) -> Result<Self, StoreError> {
        let database = Database::create(path).map_err(|error| match error {
            DatabaseError::DatabaseAlreadyOpen => StoreError::InUse(path.to_path_buf()),
            other => StoreError::from_redb(other),
        })?;
        prepare(&database)?;
        let database = Arc::new(database);
        let started = writer::start(database.clone());
        let (writer, thread) = started.map_err(|error| StoreError::Database(error.to_string()))?;
        Ok(Self { database, writer: Some(writer), thread: Some(thread) })
    }

    /// Keeps results and failures. Returns when they are on the disk: together or not at all.
    pub fn append(&self, results: &[ResultRecord], failures: &[FailureRecord]) -> Result<(), StoreError> {
        let mut entries: Vec<Entry> = Vec::with_capacity(results.len() + failures.len());
        for record in results {
            entries.push((Tree::Results, result_key(record), encode(record)?));
        }
        for record in failures {
            entries.push((Tree::Failures, result_key(&record.result), encode(record)?));
        }
        let gone = || StoreError::Database("the writing thread is gone".to_string());
        let (acknowledge, acknowledged) = sync_channel(1);
        let writer = self.writer.as_ref().ok_or_else(gone)?;
        writer.send(Batch { entries, acknowledge }).map_err(|_| gone())?;
        acknowledged.recv().map_err(|_| gone())?
    }

    /// A project's results, newest run first, at most `limit` of them; of one op, if named.
    pub fn results(&self, project: &str, op: Option<&str>, limit: usize) -> Result<Vec<ResultRecord>, StoreError> {
        let wanted = |record: &ResultRecord| op.is_none_or(|op| record.op == op);
        self.newest(RESULTS, project, limit, decode, wanted)
    }

    /// A project's failures, newest run first, at most `limit` of them; of one op, if named.
    pub fn failures(&self, project: &str, op: Option<&str>, limit: usize) -> Result<Vec<FailureRecord>, StoreError> {
        let wanted = |record: &FailureRecord| op.is_none_or(|op| record.result.op == op);
        self.newest(FAILURES, project, limit, decode, wanted)
    }

    fn newest<T>(
        &self,
        table: TableDefinition<'_, &'static [u8], &'static [u8]>,
        project: &str,
        limit: usize,
        decode: impl Fn(&[u8]) -> Result<T, StoreError>,
        wanted: impl Fn(&T) -> bool,
    ) -> Result<Vec<T>, StoreError> {
        let transaction = self.database.begin_read().map_err(StoreError::from_redb)?;
        let table = transaction.open_table(table).map_err(StoreError::from_redb)?;
        let start = project_prefix(project);
        let range = match after_prefix(&start) {
            Some(end) => table.range(start.as_slice()..end.as_slice()),
            None => table.range(start.as_slice()..),
        };
        let mut found = Vec::new();
        for entry in range.map_err(StoreError::from_redb)?.rev() {
            if found.len() >= limit {
                break;
            }
            let (_, value) = entry.map_err(StoreError::from_redb)?;
            let record = decode(value.value())?;
            if wanted(&record) {
                found.push(record);
            }
        }
        Ok(found)
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

/// Checks the version of a store, or gives a new one its version and trees.
fn prepare(database: &Database) -> Result<(), StoreError> {
    let transaction = database.begin_write().map_err(StoreError::from_redb)?;
    {
        let mut meta = transaction.open_table(META).map_err(StoreError::from_redb)?;
        let found = meta.get(VERSION_KEY).map_err(StoreError::from_redb)?.map(|version| version.value());
        let known = u64::from(SCHEMA_VERSION);
        match found {
            Some(version) if version == known => {}
            Some(found) => return Err(StoreError::UnknownVersion { found, known }),
            None => {
                meta.insert(VERSION_KEY, known).map_err(StoreError::from_redb)?;
            }
        }
        transaction.open_table(RESULTS).map_err(StoreError::from_redb)?;
        transaction.open_table(FAILURES).map_err(StoreError::from_redb)?;
    }
    transaction.commit().map_err(StoreError::from_redb)
}
