//! Asking for results and failures: runs are sought by key, and only what is asked for is copied.

use gpuemu_model::finding::Outcome;
use redb::ReadTransaction;

use super::error::Problem;
use super::key::{KeyRange, PROJECT_BYTES, after_prefix, key_number, op_prefix, project_prefix, run_prefix};
use super::op_runs::OpRuns;
use super::record::{FailureRecord, ResultHead, ResultRecord, decode, head};
use super::run_clock::{META, RunClock};
use super::tree::{ReadTree, Tree, entries, last_key};
use super::{Store, StoreError};

/// Which results, or failures, are asked for: those that meet all of it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ResultQuery {
    pub op: Option<String>,
    /// Of this time or later, in milliseconds since 1970.
    pub since: Option<u64>,
    pub outcome: Option<Outcome>,
    /// Of one seed of a case.
    pub seed: Option<u64>,
    pub run: Option<u64>,
    /// That this produced the outputs of.
    pub runner: Option<String>,
    /// At most so many.
    pub limit: usize,
}

impl Default for ResultQuery {
    fn default() -> Self {
        Self { op: None, since: None, outcome: None, seed: None, run: None, runner: None, limit: usize::MAX }
    }
}

impl ResultQuery {
    /// Whether a result is asked for, as far as its key does not say.
    fn wants(&self, record: &ResultHead) -> bool {
        self.since.is_none_or(|since| record.time >= since)
            && self.outcome.is_none_or(|outcome| record.outcome == outcome)
            && self.seed.is_none_or(|seed| record.seed == seed)
            && self.runner.as_ref().is_none_or(|runner| record.runner == *runner)
    }
}

impl Store {
    /// A project's results: the newest run first, and its last op and case first.
    pub fn results(&self, project: &str, query: &ResultQuery) -> Result<Vec<ResultRecord>, StoreError> {
        self.newest(Tree::Results, project, query, |value| {
            query.wants(&head::<ResultRecord>(value)?).then(|| decode(value)).transpose()
        })
    }

    /// What adding up a project's results needs: the newest run first, and its last op and case first.
    pub fn result_heads(&self, project: &str, query: &ResultQuery) -> Result<Vec<ResultHead>, StoreError> {
        self.newest(Tree::Results, project, query, |value| {
            let head = head::<ResultRecord>(value)?;
            Ok(query.wants(&head).then_some(head))
        })
    }

    /// A project's failures: the newest run first, and its last op and case first.
    pub fn failures(&self, project: &str, query: &ResultQuery) -> Result<Vec<FailureRecord>, StoreError> {
        self.newest(Tree::Failures, project, query, |value| {
            query.wants(&head::<FailureRecord>(value)?.result).then(|| decode(value)).transpose()
        })
    }

    /// The newest run (below `before`, if given) that has results of an op.
    pub fn last_run(&self, project: &str, op: &str, before: Option<u64>) -> Result<Option<u64>, StoreError> {
        self.file.read(|transaction| {
            OpRuns::of(&project_prefix(project), op, 0, before).next_older(&Tree::OpRuns.read(transaction)?)
        })
    }

    /// The results of a run, of one op if named, in the order of their cases.
    pub fn run_results(&self, project: &str, run: u64, op: Option<&str>) -> Result<Vec<ResultRecord>, StoreError> {
        let project = project_prefix(project);
        let prefix = match op {
            Some(op) => op_prefix(&project, run, op),
            None => run_prefix(&project, run),
        };
        let mut found: Vec<ResultRecord> = self.file.read(|transaction| {
            let table = Tree::Results.read(transaction)?;
            let range = entries(&table, &KeyRange::of_prefix(&prefix))?;
            range.map(|entry| Ok(decode::<ResultRecord>(entry?.1.value())?)).collect()
        })?;
        found.sort_by_key(|record| record.index);
        Ok(found)
    }

    /// The first results of an op in a run, at most so many, and how many there are.
    pub fn first_results(
        &self,
        project: &str,
        run: u64,
        op: &str,
        limit: usize,
    ) -> Result<(Vec<ResultRecord>, u64), StoreError> {
        let range = KeyRange::of_prefix(&op_prefix(&project_prefix(project), run, op));
        self.file.read(|transaction| {
            let table = Tree::Results.read(transaction)?;
            let (mut found, mut count) = (Vec::new(), 0);
            for entry in entries(&table, &range)? {
                let (_, value) = entry?;
                if found.len() < limit {
                    found.push(decode::<ResultRecord>(value.value())?);
                }
                count += 1;
            }
            Ok((found, count))
        })
    }

    /// The first failures of an op in a run, at most so many.
    pub fn first_failures(
        &self,
        project: &str,
        run: u64,
        op: &str,
        limit: usize,
    ) -> Result<Vec<FailureRecord>, StoreError> {
        let range = KeyRange::of_prefix(&op_prefix(&project_prefix(project), run, op));
        self.file.read(|transaction| {
            let found = entries(&Tree::Failures.read(transaction)?, &range)?.take(limit);
            found.map(|entry| Ok(decode::<FailureRecord>(entry?.1.value())?)).collect()
        })
    }

    /// Some result of a run of a project, if it has one.
    pub fn any_of_run(&self, project: &str, run: u64) -> Result<Option<ResultRecord>, StoreError> {
        self.file.read(|transaction| {
            let table = Tree::Results.read(transaction)?;
            let first = entries(&table, &KeyRange::of_prefix(&run_prefix(&project_prefix(project), run)))?.next();
            Ok(first.transpose()?.map(|(_, value)| decode::<ResultRecord>(value.value())).transpose()?)
        })
    }

    /// The number of the case that comes after those of an op in a run.
    pub fn next_index(&self, project: &str, run: u64, op: &str) -> Result<u64, StoreError> {
        self.file.read(|transaction| {
            let table = Tree::Results.read(transaction)?;
            let prefix = op_prefix(&project_prefix(project), run, op);
            match last_key(&table, &KeyRange::of_prefix(&prefix))? {
                Some(key) => Ok(key_number(&key, prefix.len())?.saturating_add(1)),
                None => Ok(0),
            }
        })
    }

    fn newest<T>(
        &self,
        tree: Tree,
        project: &str,
        query: &ResultQuery,
        read: impl Fn(&[u8]) -> Result<Option<T>, StoreError>,
    ) -> Result<Vec<T>, StoreError> {
        self.file.read(|transaction| {
            let table = tree.read(transaction)?;
            let project = project_prefix(project);
            let oldest = oldest_run(transaction, query)?;
            let mut found = Vec::new();
            let mut collect = |range: &KeyRange| {
                for entry in entries(&table, range)?.rev() {
                    if found.len() >= query.limit {
                        return Ok(false);
                    }
                    found.extend(read(entry?.1.value())?);
                }
                Ok::<bool, Problem>(true)
            };
            let of_op = |run: u64, op: &str| KeyRange::of_prefix(&op_prefix(&project, run, op));
            match (&query.op, query.run) {
                (Some(op), Some(run)) => {
                    collect(&of_op(run, op))?;
                }
                (None, Some(run)) => {
                    collect(&KeyRange::of_prefix(&run_prefix(&project, run)))?;
                }
                (None, None) => {
                    collect(&KeyRange { start: run_prefix(&project, oldest), end: after_prefix(&project) })?;
                }
                (Some(op), None) if tree == Tree::Results => {
                    let op_runs = Tree::OpRuns.read(transaction)?;
                    let mut runs = OpRuns::of(&project, op, oldest, None);
                    while let Some(run) = runs.next_older(&op_runs)? {
                        if !collect(&of_op(run, op))? {
                            break;
                        }
                    }
                }
                // There are far fewer of these: their runs are passed over one by one.
                (Some(op), None) => {
                    let mut runs = Runs::of(&project, oldest);
                    while let Some(run) = runs.next_older(&table)? {
                        if !collect(&of_op(run, op))? {
                            break;
                        }
                    }
                }
            }
            Ok(found)
        })
    }
}

/// The first run that a query may reach.
fn oldest_run(transaction: &ReadTransaction, query: &ResultQuery) -> Result<u64, Problem> {
    match query.since {
        Some(since) => Ok(RunClock::load(&transaction.open_table(META)?)?.first_run_since(since)),
        None => Ok(0),
    }
}

/// A project's runs, from the newest to the oldest; each is found by one seek.
struct Runs {
    project: Vec<u8>,
    range: KeyRange,
}

impl Runs {
    fn of(project: &[u8], oldest: u64) -> Self {
        let range = KeyRange { start: run_prefix(project, oldest), end: after_prefix(project) };
        Self { range, project: project.to_vec() }
    }

    fn next_older(&mut self, table: &ReadTree) -> Result<Option<u64>, Problem> {
        let Some(key) = last_key(table, &self.range)? else { return Ok(None) };
        let run = key_number(&key, PROJECT_BYTES)?;
        self.range.end = Some(run_prefix(&self.project, run));
        Ok(Some(run))
    }
}
