//! Bringing a store of an older form to the newest one, all of it or nothing.

use redb::{ReadableTable, TableDefinition, WriteTransaction};
use rkyv::{Archive, Deserialize};

use super::error::Problem;
use super::key::result_key;
use super::record::{FailureRecord, ResultRecord, StoredOutcome, copy_of, encode, view_form};
use super::run_clock::{META, RunClock};
use super::snapshot::Snapshot;
use super::tree::Tree;

const FORM_1: u16 = 1;

/// A result as form 1 kept it. What a field is called does not matter; their order and types do.
#[derive(Archive, Deserialize)]
struct ResultForm1 {
    project: String,
    run: u64,
    op: String,
    index: u64,
    seed: u64,
    dtype: String,
    sizes: String,
    outcome: StoredOutcome,
    check: String,
    largest_share: f64,
    time: u64,
}

/// A failure as form 1 kept it.
#[derive(Archive, Deserialize)]
struct FailureForm1 {
    result: ResultForm1,
    descriptor: String,
    verdict: String,
    /// Form 1 never said what these bytes are, and wrote none.
    snapshot: Vec<u8>,
}

impl ResultForm1 {
    fn with_descriptor(self, descriptor: String) -> ResultRecord {
        ResultRecord {
            project: self.project,
            run: self.run,
            op: self.op,
            index: self.index,
            seed: self.seed,
            dtype: self.dtype,
            sizes: self.sizes,
            layout: String::new(),
            strategy: String::new(),
            outcome: self.outcome,
            check: self.check,
            largest_share: self.largest_share,
            // Zero would claim that there was no error.
            max_abs: f64::NAN,
            max_rel: f64::NAN,
            max_ulp: f64::NAN,
            runner: String::new(),
            base_seed: 0,
            descriptor,
            time: self.time,
        }
    }
}

/// Rewrites every record of form 1. The caller sets the version and commits.
pub(super) fn from_form_1(transaction: &WriteTransaction) -> Result<(), Problem> {
    let old_results: TableDefinition<'static, &[u8], &[u8]> = TableDefinition::new("results_form_1");
    let old_failures: TableDefinition<'static, &[u8], &[u8]> = TableDefinition::new("failures_form_1");
    transaction.rename_table(Tree::Results.definition(), old_results)?;
    transaction.rename_table(Tree::Failures.definition(), old_failures)?;
    let mut clock = RunClock::default();
    {
        let failures = transaction.open_table(old_failures)?;
        let mut moved = Tree::Failures.write(transaction)?;
        for entry in failures.range::<&[u8]>(..)? {
            let old: FailureForm1 = copy_of::<FailureForm1>(view_form::<FailureForm1>(entry?.1.value(), FORM_1)?)?;
            let result = old.result.with_descriptor(old.descriptor);
            clock.include(&result);
            let record = FailureRecord { result, verdict: old.verdict, snapshot: Snapshot::default() };
            moved.insert(result_key(&record.result).as_slice(), encode(&record)?.as_slice())?;
        }
        let results = transaction.open_table(old_results)?;
        let mut moved = Tree::Results.write(transaction)?;
        for entry in results.range::<&[u8]>(..)? {
            let (key, value) = entry?;
            let old: ResultForm1 = copy_of::<ResultForm1>(view_form::<ResultForm1>(value.value(), FORM_1)?)?;
            // In form 1 only the failure of a result knew its descriptor.
            let descriptor = match failures.get(key.value())? {
                Some(failure) => view_form::<FailureForm1>(failure.value(), FORM_1)?.descriptor.to_string(),
                None => String::new(),
            };
            let record = old.with_descriptor(descriptor);
            clock.include(&record);
            moved.insert(result_key(&record).as_slice(), encode(&record)?.as_slice())?;
        }
    }
    transaction.delete_table(old_results)?;
    transaction.delete_table(old_failures)?;
    clock.save(&mut transaction.open_table(META)?)
}
