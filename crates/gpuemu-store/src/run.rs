//! What each op came to in each run: what the results of single cases do not say.

use super::key::{KeyRange, name_prefix, op_run_key, project_prefix};
use super::record::{RunRecord, decode};
use super::run_clock::RunClock;
use super::tree::{Tree, entries, names};
use super::{Store, StoreError, entry};

impl Store {
    /// Keeps what ops came to in a run, together or not at all.
    pub fn put_runs(&self, records: &[RunRecord]) -> Result<(), StoreError> {
        let mut clock = RunClock::default();
        let mut written = Vec::with_capacity(records.len());
        for record in records {
            clock.include_run(record.run.run);
            written.push(entry(Tree::Runs, op_run_key(record), record)?);
        }
        self.write(written, clock)
    }

    /// What a project's ops, or one of them, came to: of each op the newest runs first, at most so many.
    pub fn runs(&self, project: &str, op: Option<&str>, limit: usize) -> Result<Vec<RunRecord>, StoreError> {
        let project = project_prefix(project);
        self.file.read(|transaction| {
            let table = Tree::Runs.read(transaction)?;
            let ops = match op {
                Some(op) => vec![op.to_string()],
                None => names(&table, &project)?,
            };
            let mut found = Vec::new();
            for op in &ops {
                for record in entries(&table, &KeyRange::of_prefix(&name_prefix(&project, op)))?.rev().take(limit) {
                    found.push(decode::<RunRecord>(record?.1.value())?);
                }
            }
            Ok(found)
        })
    }
}

#[cfg(test)]
mod tests {
    use gpuemu_model::FuzzConfig;
    use gpuemu_model::report::{OpReport, StoredRun};

    use super::*;

    fn record(op: &str, run: u64) -> RunRecord {
        let run = StoredRun {
            gpuemu: "0".to_string(),
            run,
            time: run / 1000,
            mode: "thorough".to_string(),
            seed: 1,
            settings: FuzzConfig::default(),
            shard: None,
            config_digest: String::new(),
            op: OpReport::blank(op),
        };
        RunRecord { project: "/p".to_string(), run }
    }

    #[test]
    fn the_newest_runs_of_each_op_come_first() {
        let folder = tempfile::tempdir().unwrap();
        let store = Store::open(&folder.path().join("store")).unwrap();
        store.put_runs(&[record("softmax", 5), record("relu", 5)]).unwrap();
        store.put_runs(&[record("softmax", 9), record("softmax\0x", 7)]).unwrap();
        let of = |op: Option<&str>, limit| -> Vec<(String, u64)> {
            store.runs("/p", op, limit).unwrap().into_iter().map(|record| (record.run.op.op, record.run.run)).collect()
        };
        let named = |op: &str, run| (op.to_string(), run);
        assert_eq!(of(Some("softmax"), 9), [named("softmax", 9), named("softmax", 5)]);
        assert_eq!(of(None, 1), [named("relu", 5), named("softmax", 9), named("softmax\0x", 7)]);
        assert_eq!(store.runs("/other", None, 9).unwrap(), []);
        assert!(store.next_run() > 9);
    }

    #[test]
    fn a_store_from_before_runs_were_kept_gets_a_tree_for_them() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("store");
        drop(Store::open(&path).unwrap());
        let database = redb::Database::create(&path).unwrap();
        let transaction = database.begin_write().unwrap();
        assert!(transaction.delete_table(Tree::Runs.definition()).unwrap());
        transaction.commit().unwrap();
        drop(database);
        let store = Store::open(&path).unwrap();
        assert_eq!(store.runs("/p", None, 9).unwrap(), []);
        store.put_runs(&[record("relu", 5)]).unwrap();
        assert_eq!(store.runs("/p", None, 9).unwrap().len(), 1);
    }
}
