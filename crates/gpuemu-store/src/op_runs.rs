//! Which runs have results of an op: what is asked for by op is found without passing over other ops' runs.
//!
//! The tree follows from the results. How many of them it knows is written with it: where another gpuemu has
//! written or removed results without it, it is made anew.

use redb::{ReadTransaction, ReadableTable, ReadableTableMetadata, WriteTransaction};

use super::error::Problem;
use super::key::{KeyRange, key_number, name_prefix, op_run_of_result, project_prefix, results_of_op_run, with_number};
use super::run_clock::META;
use super::tree::{ReadTree, Tree, last_key, names};
use super::{Store, StoreError};

const KNOWN_RESULTS: &str = "results_in_op_runs";

impl Store {
    /// The names of a project's ops that have results.
    pub fn ops_with_results(&self, project: &str) -> Result<Vec<String>, StoreError> {
        let project = project_prefix(project);
        self.file.read(|transaction| names(&Tree::OpRuns.read(transaction)?, &project))
    }
}

/// The runs that have results of an op, from the newest to the oldest; each is found by one seek.
pub(super) struct OpRuns {
    op: Vec<u8>,
    range: KeyRange,
}

impl OpRuns {
    /// Those from `oldest` on, and below `before`, if given.
    pub(super) fn of(project: &[u8], op: &str, oldest: u64, before: Option<u64>) -> Self {
        let op = name_prefix(project, op);
        let end = match before {
            Some(before) => Some(with_number(&op, before)),
            None => KeyRange::of_prefix(&op).end,
        };
        Self { range: KeyRange { start: with_number(&op, oldest), end }, op }
    }

    pub(super) fn next_older(&mut self, table: &ReadTree) -> Result<Option<u64>, Problem> {
        let Some(key) = last_key(table, &self.range)? else { return Ok(None) };
        let run = key_number(&key, self.op.len())?;
        self.range.end = Some(key);
        Ok(Some(run))
    }
}

/// Whether the tree knows all results.
pub(super) fn is_complete(transaction: &ReadTransaction) -> Result<bool, Problem> {
    let known = transaction.open_table(META)?.get(KNOWN_RESULTS)?.map(|known| known.value());
    Ok(known == Some(Tree::Results.read(transaction)?.len()?))
}

/// Makes the tree anew from the results.
pub(super) fn rebuild(transaction: &WriteTransaction) -> Result<(), Problem> {
    transaction.delete_table(Tree::OpRuns.definition())?;
    {
        let results = Tree::Results.write(transaction)?;
        let mut op_runs = Tree::OpRuns.write(transaction)?;
        let mut last = Vec::new();
        for entry in results.range::<&[u8]>(..)? {
            let key = op_run_of_result(entry?.0.value())?;
            // The results of an op in a run are neighbours.
            if key != last {
                op_runs.insert(key.as_slice(), &[][..])?;
                last = key;
            }
        }
    }
    write_known(transaction)
}

/// Writes how many results the tree knows, after some were written or removed together with their runs.
pub(super) fn write_known(transaction: &WriteTransaction) -> Result<(), Problem> {
    let results = Tree::Results.write(transaction)?.len()?;
    transaction.open_table(META)?.insert(KNOWN_RESULTS, results)?;
    Ok(())
}

/// Forgets runs of ops whose last result was among those with these keys.
pub(super) fn forget(transaction: &WriteTransaction, removed: &[Vec<u8>]) -> Result<(), Problem> {
    {
        let results = Tree::Results.write(transaction)?;
        let mut op_runs = Tree::OpRuns.write(transaction)?;
        let mut last = Vec::new();
        for key in removed {
            let key = op_run_of_result(key)?;
            if key != last {
                let left = KeyRange::of_prefix(&results_of_op_run(&key)?);
                if results.range::<&[u8]>(left.bounds())?.next().is_none() {
                    op_runs.remove(key.as_slice())?;
                }
                last = key;
            }
        }
    }
    write_known(transaction)
}

#[cfg(test)]
mod tests {
    use std::path::Path;

    use gpuemu_model::finding::Outcome;

    use super::super::record::tests::record;
    use super::super::{ResultQuery, ResultRecord};
    use super::*;

    fn of(op: &str, run: u64) -> ResultRecord {
        let mut record = ResultRecord { project: "/p".to_string(), run, ..record() };
        (record.result.op, record.result.outcome) = (op.to_string(), Outcome::Passed);
        record
    }

    fn runs(store: &Store, op: &str) -> Vec<u64> {
        let query = ResultQuery { op: Some(op.to_string()), ..ResultQuery::default() };
        store.results("/p", &query).unwrap().into_iter().map(|record| record.run).collect()
    }

    /// Does to a store what another gpuemu may do.
    fn change(path: &Path, work: impl FnOnce(&WriteTransaction)) {
        let database = redb::Database::create(path).unwrap();
        let transaction = database.begin_write().unwrap();
        work(&transaction);
        transaction.commit().unwrap();
    }

    #[test]
    fn results_are_found_by_op_whoever_wrote_them() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("store");
        let store = Store::open(&path).unwrap();
        store.append(&[of("relu", 1), of("softmax", 2), of("relu", 3)], &[]).unwrap();
        assert_eq!((runs(&store, "relu"), runs(&store, "softmax")), (vec![3, 1], vec![2]));
        assert_eq!(store.ops_with_results("/p").unwrap(), ["relu", "softmax"]);
        drop(store);
        // A gpuemu from before this tree was kept leaves one that does not know all results, or none.
        change(&path, |transaction| {
            let (key, value) = (super::super::result_key(&of("matmul", 4)), super::super::encode(&of("matmul", 4)));
            let mut results = Tree::Results.write(transaction).unwrap();
            results.insert(key.as_slice(), value.unwrap().as_slice()).unwrap();
        });
        let store = Store::open(&path).unwrap();
        assert_eq!((runs(&store, "matmul"), store.last_run("/p", "matmul", None).unwrap()), (vec![4], Some(4)));
        drop(store);
        change(&path, |transaction| {
            assert!(transaction.delete_table(Tree::OpRuns.definition()).unwrap());
        });
        let store = Store::open(&path).unwrap();
        assert_eq!(store.ops_with_results("/p").unwrap(), ["matmul", "relu", "softmax"]);
        assert_eq!(store.last_run("/p", "relu", Some(3)).unwrap(), Some(1));
    }

    #[test]
    fn a_run_is_forgotten_with_the_last_of_its_results() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("store");
        let store = Store::open(&path).unwrap();
        let mut late = ResultRecord { index: 9, ..of("relu", 2) };
        late.result.time = 50;
        store.append(&[of("relu", 1), of("relu", 2), late, of("softmax", 2)], &[]).unwrap();
        assert_eq!(store.retain(None, 10).unwrap(), 3);
        let known = |store: &Store| {
            store.file.read(|transaction| {
                assert!(is_complete(transaction)?);
                Ok(Tree::OpRuns.read(transaction)?.len()?)
            })
        };
        assert_eq!((known(&store).unwrap(), runs(&store, "relu")), (1, vec![2]));
        assert_eq!(store.ops_with_results("/p").unwrap(), ["relu"]);
        drop(store);
        assert_eq!(known(&Store::open(&path).unwrap()).unwrap(), 1);
    }
}
