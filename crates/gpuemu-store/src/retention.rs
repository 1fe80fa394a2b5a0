//! Forgetting results that passed long ago, a little at a time so that nobody waits long to write.

use gpuemu_model::finding::Outcome;
use redb::{ReadTransaction, ReadableTable, WriteTransaction};

use super::error::Problem;
use super::key::{KeyRange, after_prefix, key_project, project_prefix, run_prefix};
use super::op_runs;
use super::record::{ResultRecord, head};
use super::run_clock::{META, RunClock};
use super::tree::{Tree, entries, first_key};
use super::{Store, StoreError};

/// Results that are removed in one transaction at most.
const MOST_REMOVED: usize = 10_000;

impl Store {
    /// Removes results that passed and are from before a time (in milliseconds since 1970), of one
    /// project if named. Whatever did not pass stays, and so do baselines. Returns how many went.
    pub fn retain(&self, project: Option<&str>, oldest_time: u64) -> Result<usize, StoreError> {
        let mut rest = match project {
            Some(project) => KeyRange::of_prefix(&project_prefix(project)),
            None => KeyRange { start: Vec::new(), end: None },
        };
        let mut removed = 0;
        loop {
            // Looking takes longer than removing, and only removing keeps others from writing.
            let expired = self.file.read(|transaction| expired(transaction, &rest, oldest_time))?;
            let Some(last) = expired.last() else { return Ok(removed) };
            rest.start = [last, &[0][..]].concat();
            removed += self.file.write(|transaction| remove(transaction, &expired, oldest_time))?;
            if expired.len() < MOST_REMOVED {
                return Ok(removed);
            }
        }
    }
}

/// The next keys, in order, of results that may go.
fn expired(transaction: &ReadTransaction, range: &KeyRange, oldest_time: u64) -> Result<Vec<Vec<u8>>, Problem> {
    let clock = RunClock::load(&transaction.open_table(META)?)?;
    let end_run = clock.last_run_before(oldest_time).checked_add(1);
    let table = Tree::Results.read(transaction)?;
    let mut found = Vec::new();
    let mut rest = range.clone();
    while let Some(first) = first_key(&table, &rest)? {
        let project = key_project(&first)?;
        let project_end = after_prefix(project);
        let old =
            KeyRange { start: first.clone(), end: end_run.map(|run| run_prefix(project, run)).or(project_end.clone()) };
        for entry in entries(&table, &old)? {
            let (key, value) = entry?;
            if is_expired(value.value(), oldest_time)? {
                found.push(key.value().to_vec());
                if found.len() == MOST_REMOVED {
                    return Ok(found);
                }
            }
        }
        let Some(next) = project_end else { break };
        rest.start = next;
    }
    Ok(found)
}

fn is_expired(value: &[u8], oldest_time: u64) -> Result<bool, StoreError> {
    let head = head::<ResultRecord>(value)?;
    Ok(head.outcome == Outcome::Passed && head.time < oldest_time)
}

fn remove(transaction: &WriteTransaction, keys: &[Vec<u8>], oldest_time: u64) -> Result<usize, Problem> {
    let mut removed = Vec::new();
    let mut table = Tree::Results.write(transaction)?;
    for key in keys {
        // It may have been written again since it was looked at.
        let still = match table.get(key.as_slice())? {
            Some(value) => is_expired(value.value(), oldest_time)?,
            None => false,
        };
        if still {
            table.remove(key.as_slice())?;
            removed.push(key.clone());
        }
    }
    drop(table);
    op_runs::forget(transaction, &removed)?;
    Ok(removed.len())
}
