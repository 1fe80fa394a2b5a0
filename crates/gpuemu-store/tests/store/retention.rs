//! Forgetting: only what passed, only what is old, and never so long that writers wait.

use gpuemu_model::finding::Outcome;
use gpuemu_store::{BaselineRecord, ResultRecord};

use crate::{Home, everything, failure, record, with};

const OUTCOMES: [Outcome; 4] = [Outcome::Passed, Outcome::Failed, Outcome::Undetermined, Outcome::Error];

#[test]
fn only_old_results_that_passed_are_removed() {
    let home = Home::new();
    let store = &home.store;
    let mut results = Vec::new();
    for project in ["p", "q"] {
        // Numbers of runs that are times, that are not, and that are of a clock far ahead.
        for run in [1, 1_800_000_000_000_000, u64::MAX] {
            for (index, outcome) in OUTCOMES.into_iter().cycle().take(40).enumerate() {
                let index = index as u64;
                let time = 1_800_000_000_000 + index;
                let record = record(project, run, "x", index, 0);
                results.push(with(record, |result| (result.outcome, result.time) = (outcome, time)));
            }
        }
    }
    let kept = failure(results[0].clone());
    store.append(&results, std::slice::from_ref(&kept)).unwrap();
    let (project, tag, op) = ("p".to_string(), "main".to_string(), "x".to_string());
    store
        .put_baseline(&[BaselineRecord { project, tag, op, time: 1, run: 1, base_seed: 0, cases: vec![] }], &[])
        .unwrap();

    let oldest = 1_800_000_000_020;
    let stays = |record: &&ResultRecord| record.result.outcome != Outcome::Passed || record.result.time >= oldest;
    assert_eq!(store.retain(Some("none"), u64::MAX).unwrap(), 0);
    assert_eq!(store.retain(Some("p"), 1_800_000_000_000).unwrap(), 0);
    assert_eq!(store.retain(Some("p"), oldest).unwrap(), 15);
    assert_eq!(store.retain(Some("p"), oldest).unwrap(), 0);
    assert_eq!(store.results("q", &everything()).unwrap().len(), 120);
    assert_eq!(store.retain(None, oldest).unwrap(), 15);
    let home = home.reopened();
    let store = &home.store;
    for project in ["p", "q"] {
        let wanted: Vec<ResultRecord> =
            results.iter().filter(|record| record.project == project).filter(stays).rev().cloned().collect();
        assert_eq!(store.results(project, &everything()).unwrap(), wanted);
    }
    assert_eq!(store.retain(None, u64::MAX).unwrap(), 30);
    assert_eq!(store.failures("p", &everything()).unwrap(), [kept]);
    assert_eq!(store.baseline("p", "main").unwrap().len(), 1);
    assert_eq!(store.counts().unwrap().results, 180);
}

#[test]
fn more_than_one_transaction_of_them_are_removed_while_others_write() {
    let home = Home::new();
    let store = &home.store;
    let old: Vec<ResultRecord> = (0..25_000)
        .map(|index| with(record(["p", "q"][index as usize % 2], 5_000, "x", index, 0), |result| result.time = 5))
        .collect();
    store.append(&old, &[]).unwrap();
    std::thread::scope(|scope| {
        scope.spawn(|| {
            for index in 0..50 {
                store.append(&[record("p", 1_800_000_000_000_000, "y", index, 0)], &[]).unwrap();
            }
        });
        assert_eq!(store.retain(None, 1_000_000).unwrap(), 25_000);
    });
    assert_eq!(store.results("p", &everything()).unwrap().len(), 50);
    assert_eq!(store.counts().unwrap().results, 50);
}
