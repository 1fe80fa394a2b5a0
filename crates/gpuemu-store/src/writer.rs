//! The one thread that writes: whatever waits is written in one durable transaction.

use std::sync::Arc;
use std::sync::mpsc::{Receiver, RecvTimeoutError, SyncSender, sync_channel};
use std::thread::JoinHandle;
use std::time::Duration;

use gpuemu_process::fault;
use redb::WriteTransaction;

use super::StoreError;
use super::error::Problem;
use super::file::DatabaseFile;
use super::op_runs;
use super::run_clock::{META, RunClock};
use super::tree::Tree;

/// Batches that are written together at most.
const MOST_BATCHES: usize = 4096;

/// Bytes that are written together at most.
const MOST_BYTES: usize = 64 << 20;

/// Time without a write after which the file is made quick to open after a crash. This takes a sync or two, which
/// nobody should wait for.
const SETTLED_AFTER: Duration = Duration::from_millis(200);

pub(super) struct Entry {
    pub tree: Tree,
    pub key: Vec<u8>,
    pub value: Vec<u8>,
}

/// Entries that are acknowledged together.
pub(super) struct Batch {
    pub entries: Vec<Entry>,
    pub clock: RunClock,
    pub acknowledge: SyncSender<Result<(), StoreError>>,
}

/// Starts the thread. It ends when the last sender is gone.
pub(super) fn start(file: Arc<DatabaseFile>, clock: RunClock) -> std::io::Result<(SyncSender<Batch>, JoinHandle<()>)> {
    let (sender, receiver) = sync_channel(MOST_BATCHES);
    let thread =
        std::thread::Builder::new().name("gpuemu-store".to_string()).spawn(move || run(&file, clock, &receiver))?;
    Ok((sender, thread))
}

fn run(file: &DatabaseFile, mut known: RunClock, receiver: &Receiver<Batch>) {
    let mut settled = true;
    while let Some(first) = next_batch(file, receiver, &mut settled) {
        let mut entries = Vec::new();
        let mut clock = known;
        let mut waiting = Vec::new();
        let mut bytes = 0;
        let mut next = Some(first);
        while let Some(batch) = next {
            bytes += batch.entries.iter().map(|entry| entry.key.len() + entry.value.len()).sum::<usize>();
            entries.extend(batch.entries);
            clock = clock.merged(batch.clock);
            waiting.push(batch.acknowledge);
            let has_room = waiting.len() < MOST_BATCHES && bytes < MOST_BYTES;
            next = if has_room { receiver.try_recv().ok() } else { None };
        }
        // Neighbours share pages. The order of equal keys stays: the later one counts.
        entries.sort_by(|one, other| (one.tree, &one.key).cmp(&(other.tree, &other.key)));
        let written = file.write(|transaction| insert(transaction, &entries, (clock != known).then_some(clock)));
        if written.is_ok() {
            known = clock;
            settled = false;
        }
        fault!("store.acknowledge");
        for acknowledge in waiting {
            // Whoever no longer waits does not need the answer.
            let _ = acknowledge.send(written.clone());
        }
    }
}

/// Waits for the next batch; none comes once the last sender is gone.
fn next_batch(file: &DatabaseFile, receiver: &Receiver<Batch>, settled: &mut bool) -> Option<Batch> {
    if !*settled {
        match receiver.recv_timeout(SETTLED_AFTER) {
            Ok(batch) => return Some(batch),
            Err(RecvTimeoutError::Disconnected) => return None,
            Err(RecvTimeoutError::Timeout) => {
                *settled = true;
                // Everything is on the disk already: without this it only takes longer to open after a crash.
                let _ = file.settle();
            }
        }
    }
    receiver.recv().ok()
}

fn insert(transaction: &WriteTransaction, entries: &[Entry], clock: Option<RunClock>) -> Result<(), Problem> {
    for neighbours in entries.chunk_by(|one, other| one.tree == other.tree) {
        let Some(first) = neighbours.first() else { continue };
        let mut table = first.tree.write(transaction)?;
        for entry in neighbours {
            table.insert(entry.key.as_slice(), entry.value.as_slice())?;
        }
    }
    if entries.iter().any(|entry| entry.tree == Tree::Results) {
        op_runs::write_known(transaction)?;
    }
    if let Some(clock) = clock {
        clock.save(&mut transaction.open_table(META)?)?;
    }
    Ok(())
}
