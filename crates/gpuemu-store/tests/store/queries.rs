//! What can be asked of results and failures.

use gpuemu_model::finding::Outcome;
use gpuemu_store::{FailureRecord, ResultQuery, ResultRecord};

use crate::{Home, everything, failure, record, with};

/// Three runs of three ops: run 10 has no `b`, run 300 (above a byte's range) only `b` and its neighbours in name.
fn home() -> Home {
    let home = Home::new();
    let mut results = Vec::new();
    for (run, ops) in [(10, &["a", "c"][..]), (20, &["a", "b", "c"]), (300, &["", "a\0", "b", "bb"])] {
        for (place, op) in ops.iter().enumerate() {
            for index in 0..4 {
                let outcome = if index == 2 { Outcome::Failed } else { Outcome::Passed };
                let index = index + 4 * place as u64;
                let time = 1_000_000 + run * 10 + index;
                let record = record("p", run, op, index, index % 4);
                results.push(with(record, |result| (result.outcome, result.time) = (outcome, time)));
            }
        }
    }
    let failed = results.iter().filter(|record| record.result.outcome == Outcome::Failed);
    let failures: Vec<FailureRecord> = failed.cloned().map(failure).collect();
    home.store.append(&results, &failures).unwrap();
    home
}

fn places(results: &[ResultRecord]) -> Vec<(u64, &str, u64)> {
    results.iter().map(|record| (record.run, record.result.op.as_str(), record.index)).collect()
}

#[test]
fn results_are_found_by_op_time_outcome_and_seed_newest_first() {
    let home = home();
    let ask = |query: &ResultQuery| home.store.results("p", query).unwrap();
    let all = ask(&everything());
    assert_eq!(all.len(), 36);
    assert!(
        all.is_sorted_by(|one, next| (one.run, &one.result.op, one.index) > (next.run, &next.result.op, next.index))
    );
    let queries = [
        ResultQuery { op: Some("b".to_string()), ..everything() },
        ResultQuery { op: Some("a".to_string()), limit: 5, ..everything() },
        ResultQuery { op: Some(String::new()), ..everything() },
        ResultQuery { op: Some("a\0".to_string()), ..everything() },
        ResultQuery { op: Some("none".to_string()), ..everything() },
        ResultQuery { since: Some(1_000_203), ..everything() },
        ResultQuery { since: Some(0), limit: 7, ..everything() },
        ResultQuery { since: Some(u64::MAX), ..everything() },
        ResultQuery { outcome: Some(Outcome::Failed), ..everything() },
        ResultQuery { outcome: Some(Outcome::Error), ..everything() },
        ResultQuery { seed: Some(3), ..everything() },
        ResultQuery { limit: 0, ..everything() },
        ResultQuery {
            op: Some("b".to_string()),
            since: Some(1_000_205),
            outcome: Some(Outcome::Passed),
            seed: Some(1),
            limit: 2,
            ..everything()
        },
        ResultQuery { run: Some(2), ..everything() },
        ResultQuery { op: Some("a".to_string()), run: Some(3), limit: 2, ..everything() },
        ResultQuery { runner: Some("script".to_string()), limit: 9, ..everything() },
        ResultQuery { runner: Some("callable".to_string()), ..everything() },
    ];
    for query in queries {
        let meets = |record: &&ResultRecord| {
            let result = &record.result;
            query.op.as_ref().is_none_or(|op| *op == result.op)
                && query.since.is_none_or(|since| result.time >= since)
                && query.outcome.is_none_or(|outcome| result.outcome == outcome)
                && query.seed.is_none_or(|seed| result.seed == seed)
                && query.run.is_none_or(|run| record.run == run)
                && query.runner.as_ref().is_none_or(|runner| *runner == result.runner)
        };
        let wanted: Vec<ResultRecord> = all.iter().filter(meets).take(query.limit).cloned().collect();
        assert_eq!(ask(&query), wanted, "{query:?}");
        let failures = home.store.failures("p", &query).unwrap();
        let failed = |record: &&ResultRecord| record.result.outcome == Outcome::Failed;
        let wanted: Vec<ResultRecord> = all.iter().filter(meets).filter(failed).take(query.limit).cloned().collect();
        let found: Vec<ResultRecord> = failures.into_iter().map(|failure| failure.result).collect();
        assert_eq!(places(&found), places(&wanted), "{query:?}");
    }
}

#[test]
fn the_number_of_a_run_is_not_taken_for_the_time_of_its_records() {
    let home = Home::new();
    let run = home.store.next_run();
    let now = run / 1000;
    // A run of chosen number with a new record, and one numbered far ahead with an old record.
    let odd = [(now, 5), (now + 3, run), (now - 100_000, run + 1_000_000_000)];
    let odd = odd.map(|(time, run)| with(record("p", run, "x", 0, 0), |result| result.time = time));
    home.store.append(&odd, &[]).unwrap();
    let since = |since| {
        let found = home.store.results("p", &ResultQuery { since: Some(since), ..everything() }).unwrap();
        found.iter().map(|record| record.run).collect::<Vec<u64>>()
    };
    assert_eq!(since(now), [run, 5]);
    assert_eq!(since(now + 1), [run]);
    assert_eq!(since(now - 100_000), [run + 1_000_000_000, run, 5]);
}

#[test]
fn the_last_run_of_an_op_is_found_among_runs_of_others() {
    let home = home();
    let last = |op, before| home.store.last_run("p", op, before).unwrap();
    assert_eq!(last("b", None), Some(300));
    assert_eq!(last("b", Some(301)), Some(300));
    assert_eq!(last("b", Some(300)), Some(20));
    assert_eq!(last("b", Some(20)), None);
    assert_eq!(last("a", None), Some(20));
    assert_eq!(last("c", Some(20)), Some(10));
    assert_eq!(last("a\0", None), Some(300));
    assert_eq!(last("", None), Some(300));
    assert_eq!(last("", Some(0)), None);
    assert_eq!(last("d", None), None);
    home.store.append(&[record("p", u64::MAX, "b", 0, 0)], &[]).unwrap();
    assert_eq!(last("b", None), Some(u64::MAX));
    assert_eq!(last("b", Some(u64::MAX)), Some(300));
}

#[test]
fn the_results_of_a_run_come_in_the_order_of_their_cases() {
    let home = Home::new();
    let shuffled = [("z", 1), ("a", 4), ("z", 256), ("a", 0), ("m", 3), ("z", 2)];
    let results = shuffled.map(|(op, index)| record("p", 7, op, index, 0));
    home.store.append(&results, &[]).unwrap();
    home.store.append(&[record("p", 6, "z", 0, 0), record("p", 8, "z", 0, 0)], &[]).unwrap();
    let all = home.store.run_results("p", 7, None).unwrap();
    assert_eq!(places(&all), [(7, "a", 0), (7, "z", 1), (7, "z", 2), (7, "m", 3), (7, "a", 4), (7, "z", 256)]);
    let of_one = home.store.run_results("p", 7, Some("z")).unwrap();
    assert_eq!(places(&of_one), [(7, "z", 1), (7, "z", 2), (7, "z", 256)]);
    assert!(home.store.run_results("p", 9, None).unwrap().is_empty());
}
