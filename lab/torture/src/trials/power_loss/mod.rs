//! The store on a disk that loses power at any write or sync, also while it recovers from the last loss.

mod disk;

use std::collections::{BTreeMap, BTreeSet};
use std::path::Path;
use std::time::Duration;

use disk::{Disk, Survivors};
use gpuemu_store::{FailureRecord, ResultQuery, ResultRecord, Snapshot, Store};
use gpuemu_tensor::Stream;

use crate::records::record;
use crate::trial::{Ended, Extent, Trial, grouped};

pub const TRIAL: Trial =
    Trial { name: "power-loss", about: "the store on a disk that drops, tears and reorders what was not synced", run };

/// Losses that one disk lives through.
const LOSSES_OF_A_DISK: u64 = 40;

/// Writes and syncs between two losses, at most: opening alone takes about ten, an append about as many.
const LONGEST_LIFE: u64 = 120;

/// Time without a write after which the store has made itself quick to open; once in so many appends it is given that.
const REST: Duration = Duration::from_millis(300);
const RESTS_ONCE_IN: u64 = 100;

/// Writes and syncs between an append before a rest and a loss, at most: about as many as it makes at rest.
const WRITES_AT_REST: u64 = 16;

const PROJECT: &str = "/project";

fn run(extent: &Extent) -> Ended {
    let losses = extent.count(10_000, 300);
    let mut choices = Stream::new(extent.seed, "torture/power-loss");
    let mut seen = Seen::default();
    while seen.losses < losses {
        let most = (losses - seen.losses).min(LOSSES_OF_A_DISK);
        if let Err(problem) = live(&Disk::default(), most, &mut choices, &mut seen) {
            return Ended::Broken(format!("loss {}: {problem}", seen.losses));
        }
    }
    Ended::Held(vec![
        format!("{} losses of power", grouped(seen.losses)),
        format!("{} of them while opening", grouped(seen.while_opening)),
        format!("{} at or soon after a rest", grouped(seen.at_rest)),
        format!("{} acknowledged appends", grouped(seen.acknowledged)),
        format!(
            "of writes not synced {} dropped, {} torn, {} kept",
            grouped(seen.survivors.dropped),
            grouped(seen.survivors.torn),
            grouped(seen.survivors.kept)
        ),
        "0 acknowledged lost, 0 half there".to_string(),
    ])
}

#[derive(Debug, Default)]
struct Seen {
    losses: u64,
    while_opening: u64,
    at_rest: u64,
    acknowledged: u64,
    survivors: Survivors,
}

/// Writes to a disk until it has lost power so many times; after each loss, everything acknowledged is there.
fn live(disk: &Disk, losses: u64, choices: &mut Stream, seen: &mut Seen) -> Result<(), String> {
    let mut acknowledged = BTreeSet::new();
    let mut next = 0;
    // A store is made beside its place and then put there: it has a first commit before anybody can find it.
    drop(open(disk)?);
    for _ in 0..losses {
        disk.fail_after(choices.below(LONGEST_LIFE));
        match open(disk) {
            Ok(store) => {
                while append(&store, next, choices).is_ok() {
                    acknowledged.insert(next);
                    seen.acknowledged += 1;
                    next += 1;
                    if choices.chance(1, RESTS_ONCE_IN) {
                        // What it writes at rest is as little as may be lost.
                        disk.fail_after(choices.below(WRITES_AT_REST));
                        std::thread::sleep(REST);
                        seen.at_rest += 1;
                    }
                }
                next += 1;
            }
            Err(_) => seen.while_opening += 1,
        }
        let survivors = disk.restart(choices);
        seen.losses += 1;
        seen.survivors.dropped += survivors.dropped;
        seen.survivors.torn += survivors.torn;
        seen.survivors.kept += survivors.kept;
        // What is found here is what a daemon would find, and the next loss comes upon what its opening left behind.
        let store = open(disk).map_err(|error| format!("the store cannot be opened: {error}"))?;
        check(&store, &acknowledged)?;
    }
    Ok(())
}

fn open(disk: &Disk) -> Result<Store, String> {
    Store::on_backend(disk.clone(), Path::new("disk")).map_err(|error| error.to_string())
}

/// Appends a group under a run of its own: results, and the failure of one, some of them large.
fn append(store: &Store, run: u64, choices: &mut Stream) -> Result<(), String> {
    let length = if choices.chance(1, 8) { 20_000 } else { 50 };
    let count = size_of_group(run);
    let results: Vec<ResultRecord> = (0..count)
        .map(|index| {
            let mut record = record(PROJECT, run, "relu", index);
            record.result.case.schema = "d".repeat(length);
            record
        })
        .collect();
    let failures: Vec<FailureRecord> = results
        .iter()
        .take(1)
        .map(|result| FailureRecord { result: result.clone(), snapshot: Snapshot::default() })
        .collect();
    store.append(&results, &failures).map_err(|error| error.to_string())
}

/// Results of the group of a run.
fn size_of_group(run: u64) -> u64 {
    1 + run % 5
}

/// Every acknowledged group is there, and every group that is there is whole.
fn check(store: &Store, acknowledged: &BTreeSet<u64>) -> Result<(), String> {
    let everything = ResultQuery::default();
    let mut groups: BTreeMap<u64, u64> = BTreeMap::new();
    for result in store.results(PROJECT, &everything).map_err(|error| format!("results cannot be read: {error}"))? {
        *groups.entry(result.run).or_default() += 1;
    }
    let failures = store.failures(PROJECT, &everything).map_err(|error| format!("failures cannot be read: {error}"))?;
    let with_failure: BTreeSet<u64> = failures.iter().map(|failure| failure.result.run).collect();
    if let Some(lost) = acknowledged.iter().find(|run| !groups.contains_key(run)) {
        return Err(format!("the acknowledged group {lost} is gone"));
    }
    let half = groups.iter().find(|(run, count)| **count != size_of_group(**run) || !with_failure.contains(run));
    match half {
        Some((run, count)) => Err(format!("{count} of {} results of group {run} are there", size_of_group(*run))),
        None if with_failure.len() == groups.len() => Ok(()),
        None => Err("a failure is there without its results".to_string()),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_disk_whose_syncs_do_nothing_is_found_out() {
        let mut choices = Stream::new(1, "lies");
        let found = (0..20).any(|_| live(&Disk::lying(), 20, &mut choices, &mut Seen::default()).is_err());
        assert!(found);
    }
}
