//! Results that are on the disk, in groups and one by one.

use std::time::Instant;

use gpuemu_store::{ResultRecord, Store, StoredOutcome};

use crate::row::Row;

/// The rows of this group.
pub fn rows() -> Vec<Row> {
    let Ok(folder) = tempfile::tempdir() else { return Vec::new() };
    let store = match Store::open(&folder.path().join("store.redb")) {
        Ok(store) => store,
        Err(error) => {
            eprintln!("no store: {error}");
            return Vec::new();
        }
    };
    let (Some(groups), single) = (rate(&store, 200, 1000), rate(&store, 300, 1)) else { return Vec::new() };
    let note = "1,000 results a group, each with its case of about 400 bytes; aim 50,000";
    vec![Row::rate("durable results in groups", "1/s", groups, single, "one result a time, each durable", note)]
}

/// Results a second where so many are stored together.
fn rate(store: &Store, groups: u64, size: u64) -> Option<f64> {
    let start = Instant::now();
    for _ in 0..groups {
        let run = store.next_run();
        let records: Vec<ResultRecord> = (0..size).map(|index| record(run, index)).collect();
        store.append(&records, &[]).ok()?;
    }
    Some((groups * size) as f64 / start.elapsed().as_secs_f64())
}

fn record(run: u64, index: u64) -> ResultRecord {
    let descriptor = format!(
        r#"{{"generator":1,"op":"softmax","schema":"0123456789abcdef","seed":"{}","dtype":"float32","sizes":{{"batch":[3,8],"named":[["H",{index}]]}},"layouts":[["input","row_gap"]],"strategy":"sparse","parameters":[["scale",0.125],["causal",false]],"present":["mask"]{:80}}}"#,
        run ^ index,
        ""
    );
    ResultRecord {
        project: "/home/somebody/kernels".to_string(),
        run,
        op: "softmax".to_string(),
        index,
        seed: run ^ index,
        dtype: "float32".to_string(),
        sizes: format!("...=3x8 H={index}"),
        layout: "input:row_gap".to_string(),
        strategy: "sparse".to_string(),
        outcome: StoredOutcome::Passed,
        check: String::new(),
        largest_share: 0.25,
        max_abs: 1e-7,
        max_rel: 1e-6,
        max_ulp: 0.5,
        runner: "module softmax".to_string(),
        base_seed: 7,
        descriptor,
        time: run / 1000,
    }
}
