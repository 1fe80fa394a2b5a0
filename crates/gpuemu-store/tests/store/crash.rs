//! `kill -9` at many moments: what was acknowledged is there, and what was written together is there together.

use std::collections::HashSet;
use std::io::{BufRead, BufReader, Write};
use std::path::Path;
use std::process::{Command, Stdio};
use std::time::Duration;

use gpuemu_store::Store;
use tempfile::TempDir;

use crate::{everything, failure, record};

/// Moments at which the child is killed; `cargo xtask torture crash` kills the whole daemon at many more.
const MOMENTS: u64 = 20;

/// The child of the test below: writes for ever, and says what was acknowledged.
fn write_until_killed(path: &Path, run: u64) {
    let store = Store::open(path).unwrap();
    let mut output = std::io::stdout().lock();
    for index in 0.. {
        let (first, second) = (record("p", run, "x", index, index), record("p", run, "y", index, index));
        store.append(&[first.clone(), second], &[failure(first)]).unwrap();
        writeln!(output, "{index}").unwrap();
        output.flush().unwrap();
    }
}

#[test]
fn what_was_acknowledged_survives_kill_minus_nine() {
    if let (Some(path), Some(run)) = (std::env::var_os("GPUEMU_STORE_CHILD"), std::env::var_os("GPUEMU_STORE_RUN")) {
        return write_until_killed(Path::new(&path), run.to_str().unwrap().parse().unwrap());
    }
    let folder = TempDir::new().unwrap();
    let path = folder.path().join("gpuemu.redb");
    let mut acknowledged: HashSet<(u64, u64)> = HashSet::new();
    for run in 0..MOMENTS {
        let mut child = Command::new(std::env::current_exe().unwrap())
            .args(["crash::what_was_acknowledged_survives_kill_minus_nine", "--exact", "--nocapture"])
            .env("GPUEMU_STORE_CHILD", &path)
            .env("GPUEMU_STORE_RUN", run.to_string())
            .stdout(Stdio::piped())
            .spawn()
            .unwrap();
        let output = BufReader::new(child.stdout.take().unwrap());
        let (first, begun) = std::sync::mpsc::channel();
        let reader = std::thread::spawn(move || {
            let numbers = output.lines().map_while(Result::ok).filter_map(|line| line.trim().parse::<u64>().ok());
            numbers
                .inspect(|index| {
                    if *index == 0 {
                        first.send(()).unwrap()
                    }
                })
                .collect::<Vec<u64>>()
        });
        // Once it writes, a moment that differs from run to run.
        begun.recv_timeout(Duration::from_secs(60)).unwrap();
        std::thread::sleep(Duration::from_millis((run * 37) % 110));
        child.kill().unwrap();
        child.wait().unwrap();
        acknowledged.extend(reader.join().unwrap().into_iter().map(|index| (run, index)));
    }
    assert!(acknowledged.len() as u64 > MOMENTS, "{}", acknowledged.len());
    let store = Store::open(&path).unwrap();
    let found = store.results("p", &everything()).unwrap();
    let kept = |op: &str| {
        let of_op = found.iter().filter(|record| record.result.op == op);
        of_op.map(|record| (record.run, record.index)).collect::<HashSet<(u64, u64)>>()
    };
    let lost: Vec<_> = acknowledged.difference(&kept("x")).copied().collect();
    assert!(lost.is_empty(), "{} of {} acknowledged results are gone", lost.len(), acknowledged.len());
    assert_eq!(kept("x"), kept("y"));
    let failures = store.failures("p", &everything()).unwrap();
    assert_eq!(failures.iter().map(|found| (found.result.run, found.result.index)).collect::<HashSet<_>>(), kept("x"));
}

/// The child of the test below: makes a store, and waits.
fn create_until_killed(path: &Path) {
    println!("begun");
    let _store = Store::open(path).unwrap();
    std::thread::sleep(Duration::from_secs(60));
}

#[test]
fn a_store_whose_making_was_killed_can_still_be_made() {
    if let Some(path) = std::env::var_os("GPUEMU_STORE_CREATED") {
        return create_until_killed(Path::new(&path));
    }
    for moment in 0..MOMENTS {
        let folder = TempDir::new().unwrap();
        let path = folder.path().join("gpuemu.redb");
        let mut child = Command::new(std::env::current_exe().unwrap())
            .args(["crash::a_store_whose_making_was_killed_can_still_be_made", "--exact", "--nocapture"])
            .env("GPUEMU_STORE_CREATED", &path)
            .stdout(Stdio::piped())
            .spawn()
            .unwrap();
        let mut lines = BufReader::new(child.stdout.take().unwrap()).lines().map_while(Result::ok);
        assert!(lines.any(|line| line.ends_with("begun")));
        std::thread::sleep(Duration::from_micros((moment * 331) % 9000));
        child.kill().unwrap();
        child.wait().unwrap();
        Store::open(&path).unwrap().append(&[record("p", 1, "x", 0, 0)], &[]).unwrap();
    }
}
