//! Bringing a store of an older form to the newest one, all of it or nothing.
//!
//! Forms 1 and 2 kept records as `rkyv` wrote them, with JSON in them. Their types stand here as they were: what a field
//! is called does not matter, their order and types do.

use gpuemu_model::case::CaseDescriptor;
use gpuemu_model::finding::{LargestErrors, Outcome};
use gpuemu_model::json::FromJson;
use gpuemu_model::report::{CaseSummary, ValidationResult};
use gpuemu_model::{FuzzConfig, Strategy};
use gpuemu_tensor::DType;
use gpuemu_tensor::dtype::UnknownDType;
use redb::{ReadableTable, TableDefinition, TableHandle, WriteTransaction};
use rkyv::api::high::{HighDeserializer, HighValidator};
use rkyv::bytecheck::CheckBytes;
use rkyv::rancor::Error as ArchiveError;
use rkyv::{Archive, Deserialize, Portable};

use super::StoreError;
use super::error::Problem;
use super::key::result_key;
use super::record::{
    ArtifactBaselineRecord, ArtifactRecord, BaselineRecord, CampaignContent, CampaignRecord, FailureRecord, Record,
    ResultRecord, RunRecord, encode,
};
use super::run_clock::{META, RunClock};
use super::snapshot::{Snapshot, SnapshotTensor};
use super::tree::Tree;

/// What the runner of a result began with, where a client ran it in its own process.
const CLIENT_SIDE: &str = "client side: ";

#[derive(Archive, Deserialize)]
enum OldOutcome {
    Passed,
    Failed,
    Undetermined,
    Error,
}

impl From<OldOutcome> for Outcome {
    fn from(old: OldOutcome) -> Outcome {
        match old {
            OldOutcome::Passed => Outcome::Passed,
            OldOutcome::Failed => Outcome::Failed,
            OldOutcome::Undetermined => Outcome::Undetermined,
            OldOutcome::Error => Outcome::Error,
        }
    }
}

#[derive(Archive, Deserialize)]
struct ResultForm1 {
    project: String,
    run: u64,
    op: String,
    index: u64,
    seed: u64,
    dtype: String,
    sizes: String,
    outcome: OldOutcome,
    check: String,
    largest_share: f64,
    time: u64,
}

#[derive(Archive, Deserialize)]
struct FailureForm1 {
    result: ResultForm1,
    descriptor: String,
    verdict: String,
    /// Form 1 never said what these bytes are, and wrote none.
    snapshot: Vec<u8>,
}

#[derive(Archive, Deserialize)]
struct ResultForm2 {
    project: String,
    run: u64,
    op: String,
    index: u64,
    seed: u64,
    dtype: String,
    sizes: String,
    layout: String,
    strategy: String,
    outcome: OldOutcome,
    check: String,
    largest_share: f64,
    max_abs: f64,
    max_rel: f64,
    max_ulp: f64,
    runner: String,
    base_seed: u64,
    descriptor: String,
    time: u64,
}

#[derive(Archive, Deserialize)]
struct InputForm2 {
    name: String,
    dtype: String,
    shape: Vec<u64>,
    strides: Vec<i64>,
    offset: u64,
    storage_bytes: u64,
    compressed: Vec<u8>,
}

#[derive(Archive, Deserialize)]
struct SnapshotForm2 {
    inputs: Vec<InputForm2>,
}

#[derive(Archive, Deserialize)]
struct FailureForm2 {
    result: ResultForm2,
    verdict: String,
    snapshot: SnapshotForm2,
}

#[derive(Archive, Deserialize)]
struct BaselineCaseForm2 {
    descriptor: String,
    outcome: OldOutcome,
    max_abs: f64,
    max_ulp: f64,
}

#[derive(Archive, Deserialize)]
struct BaselineForm2 {
    project: String,
    tag: String,
    op: String,
    time: u64,
    run: u64,
    base_seed: u64,
    cases: Vec<BaselineCaseForm2>,
}

#[derive(Archive, Deserialize)]
struct RunForm2 {
    project: String,
    op: String,
    run: u64,
    time: u64,
    report: String,
}

#[derive(Archive, Deserialize)]
struct CampaignForm2 {
    project: String,
    run: u64,
    part: u64,
    time: u64,
    text: String,
}

#[derive(Archive, Deserialize)]
struct ArtifactForm2 {
    project: String,
    kernel: String,
    time: u64,
    metrics: String,
}

#[derive(Archive, Deserialize)]
struct ArtifactBaselineForm2 {
    project: String,
    tag: String,
    kernel: String,
    time: u64,
    metrics: String,
}

/// Rewrites every record of an older form. The caller sets the version and commits.
pub(super) fn migrate(transaction: &WriteTransaction, form: u64) -> Result<(), Problem> {
    let mut clock = RunClock::load(&transaction.open_table(META)?)?;
    if form == 1 {
        // Its keys were others, too.
        rewrite(transaction, Tree::Failures, |_, value| {
            let old: FailureForm1 = read(value, 1)?;
            let result = old.result.with_descriptor(old.descriptor).record(Some(&old.verdict))?;
            clock.include(&result);
            Ok((result_key(&result), FailureRecord { result, snapshot: Snapshot::default() }))
        })?;
        rewrite(transaction, Tree::Results, |_, value| {
            let result = read::<ResultForm1>(value, 1)?.with_descriptor(String::new()).record(None)?;
            clock.include(&result);
            Ok((result_key(&result), result))
        })?;
        return clock.save(&mut transaction.open_table(META)?);
    }
    rewrite(transaction, Tree::Failures, |key, value| {
        let old: FailureForm2 = read(value, 2)?;
        let inputs = old.snapshot.inputs.into_iter().map(InputForm2::input).collect();
        let result = old.result.record(Some(&old.verdict))?;
        Ok((key.to_vec(), FailureRecord { result, snapshot: Snapshot { inputs } }))
    })?;
    rewrite(transaction, Tree::Results, |key, value| Ok((key.to_vec(), read::<ResultForm2>(value, 2)?.record(None)?)))?;
    rewrite(transaction, Tree::Baselines, |key, value| {
        let BaselineForm2 { project, tag, op, time, run, base_seed, cases } = read(value, 2)?;
        let cases = cases.into_iter().map(BaselineCaseForm2::summary).collect::<Result<_, _>>()?;
        Ok((key.to_vec(), BaselineRecord { project, tag, op, time, run, base_seed, cases }))
    })?;
    rewrite(transaction, Tree::Runs, |key, value| {
        let RunForm2 { project, report, .. } = read(value, 2)?;
        Ok((key.to_vec(), RunRecord { project, run: parsed(&report)? }))
    })?;
    rewrite(transaction, Tree::Campaigns, |key, value| {
        let CampaignForm2 { project, run, part, time, text } = read(value, 2)?;
        let content = match u32::try_from(part) {
            Ok(0) => CampaignContent::Begun(Box::new(parsed(&text)?)),
            Ok(part) => CampaignContent::Part(part, Box::new(parsed(&text)?)),
            Err(_) => return Err(StoreError::Damaged(format!("a campaign has no part {part}"))),
        };
        Ok((key.to_vec(), CampaignRecord { project, run, time, content }))
    })?;
    rewrite(transaction, Tree::Artifacts, |key, value| {
        let ArtifactForm2 { project, kernel, time, metrics } = read(value, 2)?;
        Ok((key.to_vec(), ArtifactRecord { project, kernel, time, metrics: parsed(&metrics)? }))
    })?;
    rewrite(transaction, Tree::ArtifactBaselines, |key, value| {
        let ArtifactBaselineForm2 { project, tag, kernel, time, metrics } = read(value, 2)?;
        let artifact = ArtifactRecord { project, kernel, time, metrics: parsed(&metrics)? };
        Ok((key.to_vec(), ArtifactBaselineRecord { tag, artifact }))
    })
}

/// Reads every record of a tree and writes what becomes of it.
fn rewrite<T: Record>(
    transaction: &WriteTransaction,
    tree: Tree,
    mut renew: impl FnMut(&[u8], &[u8]) -> Result<(Vec<u8>, T), StoreError>,
) -> Result<(), Problem> {
    if !transaction.list_tables()?.any(|table| table.name() == tree.definition().name()) {
        return Ok(());
    }
    let old: TableDefinition<'static, &[u8], &[u8]> = TableDefinition::new("older_form");
    transaction.rename_table(tree.definition(), old)?;
    {
        let records = transaction.open_table(old)?;
        let mut renewed = tree.write(transaction)?;
        for entry in records.range::<&[u8]>(..)? {
            let (key, value) = entry?;
            let (key, record) = renew(key.value(), value.value())?;
            renewed.insert(key.as_slice(), encode(&record)?.as_slice())?;
        }
    }
    transaction.delete_table(old)?;
    Ok(())
}

/// Bytes whose form can be checked.
trait Checked: Portable + for<'a> CheckBytes<HighValidator<'a, ArchiveError>> {}
impl<T: Portable + for<'a> CheckBytes<HighValidator<'a, ArchiveError>>> Checked for T {}

/// Reads a record of an older form, every byte of it validated.
fn read<T>(value: &[u8], form: u16) -> Result<T, StoreError>
where
    T: Archive<Archived: Checked + Deserialize<T, HighDeserializer<ArchiveError>>>,
{
    let damaged = |error: ArchiveError| StoreError::Damaged(error.to_string());
    let (version, bytes) = value.split_first_chunk::<2>().ok_or(StoreError::Damaged("a value of no length".into()))?;
    let found = u16::from_le_bytes(*version);
    if found != form {
        return Err(StoreError::UnknownVersion { found: u64::from(found), known: u64::from(form) });
    }
    let archived = rkyv::access::<T::Archived, ArchiveError>(bytes).map_err(damaged)?;
    rkyv::deserialize::<T, ArchiveError>(archived).map_err(damaged)
}

fn parsed<T: FromJson>(text: &str) -> Result<T, StoreError> {
    T::from_json(text.as_bytes()).map_err(|error| StoreError::Damaged(error.to_string()))
}

impl ResultForm1 {
    fn with_descriptor(self, descriptor: String) -> ResultForm2 {
        ResultForm2 {
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

impl ResultForm2 {
    /// The result as it was reported, where that was kept; else what was kept of it.
    fn record(self, verdict: Option<&str>) -> Result<ResultRecord, StoreError> {
        let reported = verdict.and_then(|text| parsed::<ValidationResult>(text).ok());
        let (run, index, base_seed, project) = (self.run, self.index, self.base_seed, self.project.clone());
        let mut result = reported.map_or_else(|| self.result(), Ok)?;
        result.complete_case();
        result.run = Some(run);
        Ok(ResultRecord { project, run, index, base_seed, result })
    }

    fn result(self) -> Result<ValidationResult, StoreError> {
        let damaged =
            |error: UnknownDType| StoreError::Damaged(format!("result {} of op {:?}: {error}", self.index, self.op));
        let dtype: DType = self.dtype.parse().map_err(damaged)?;
        let case = parsed(&self.descriptor).unwrap_or_else(|_| CaseDescriptor {
            values: self.strategy.parse().unwrap_or(Strategy::Regular),
            ..CaseDescriptor::default()
        });
        let outcome = self.outcome.into();
        let runner = self.runner.strip_prefix(CLIENT_SIDE);
        let replay = match runner {
            Some(_) => format!("the client that judged '{}', with seed {}", self.op, self.seed),
            None => format!("gpuemu reproduce {} --op {}", self.seed, self.op),
        };
        Ok(ValidationResult {
            outcome,
            passed: outcome == Outcome::Passed,
            sizes: self.sizes,
            layout: self.layout,
            values: self.strategy,
            largest: LargestErrors {
                max_abs_diff: self.max_abs,
                max_rel_diff: self.max_rel,
                max_ulp_diff: self.max_ulp,
                tolerance_share: self.largest_share,
            },
            runner: runner.unwrap_or(&self.runner).to_string(),
            client_side: runner.is_some(),
            time: self.time,
            settings: FuzzConfig::default(),
            op: self.op,
            seed: self.seed,
            dtype,
            replay,
            ..ValidationResult::of(case)
        })
    }
}

impl InputForm2 {
    fn input(self) -> SnapshotTensor {
        let Self { name, dtype, shape, strides, offset, storage_bytes, compressed } = self;
        SnapshotTensor { name, dtype, shape, strides, offset, storage_bytes, compressed }
    }
}

impl BaselineCaseForm2 {
    fn summary(self) -> Result<CaseSummary, StoreError> {
        Ok(CaseSummary {
            outcome: self.outcome.into(),
            max_abs_diff: self.max_abs,
            max_ulp_diff: self.max_ulp,
            case: parsed(&self.descriptor)?,
        })
    }
}
