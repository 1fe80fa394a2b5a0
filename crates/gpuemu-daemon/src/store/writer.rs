//! The one thread that writes: whatever waits is written in one durable transaction.

use std::sync::Arc;
use std::sync::mpsc::{Receiver, SyncSender, TryRecvError, sync_channel};
use std::thread::JoinHandle;

use redb::Database;

use super::{FAILURES, RESULTS, StoreError};

/// Batches that are written together at most.
const MOST_BATCHES: usize = 4096;

/// Bytes that are written together at most.
const MOST_BYTES: usize = 64 << 20;

/// Which tree an entry belongs to.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Tree {
    Results,
    Failures,
}

/// One entry.
pub(super) type Entry = (Tree, Vec<u8>, Vec<u8>);

/// Entries that are acknowledged together.
pub(super) struct Batch {
    pub entries: Vec<Entry>,
    pub acknowledge: SyncSender<Result<(), StoreError>>,
}

/// Starts the thread. It ends when the last sender is gone.
pub(super) fn start(database: Arc<Database>) -> std::io::Result<(SyncSender<Batch>, JoinHandle<()>)> {
    let (sender, receiver) = sync_channel(MOST_BATCHES);
    let thread =
        std::thread::Builder::new().name("gpuemu-store".to_string()).spawn(move || run(&database, &receiver))?;
    Ok((sender, thread))
}

fn run(database: &Database, receiver: &Receiver<Batch>) {
    while let Ok(first) = receiver.recv() {
        let mut group = vec![first];
        let mut bytes = size(&group[0]);
        while group.len() < MOST_BATCHES && bytes < MOST_BYTES {
            match receiver.try_recv() {
                Ok(batch) => {
                    bytes += size(&batch);
                    group.push(batch);
                }
                Err(TryRecvError::Empty | TryRecvError::Disconnected) => break,
            }
        }
        let written = write(database, &group);
        for batch in group {
            // Whoever no longer waits does not need the answer.
            let _ = batch.acknowledge.send(written.clone());
        }
    }
}

fn size(batch: &Batch) -> usize {
    batch.entries.iter().map(|(_, key, value)| key.len() + value.len()).sum()
}

/// One transaction for all of them. `commit` returns when the data is on the disk.
fn write(database: &Database, group: &[Batch]) -> Result<(), StoreError> {
    let transaction = database.begin_write().map_err(StoreError::from_redb)?;
    {
        let mut results = transaction.open_table(RESULTS).map_err(StoreError::from_redb)?;
        let mut failures = transaction.open_table(FAILURES).map_err(StoreError::from_redb)?;
        for (tree, key, value) in group.iter().flat_map(|batch| &batch.entries) {
            let table = if *tree == Tree::Results { &mut results } else { &mut failures };
            table.insert(key.as_slice(), value.as_slice()).map_err(StoreError::from_redb)?;
        }
    }
    transaction.commit().map_err(StoreError::from_redb)
}
