//! What the verdicts of stored runs rest on, for a report that is signed.

use gpuemu_common::config::Op as ConfiguredEntry;
use gpuemu_common::evidence::{CaseEvidence, OpEvidence};
use gpuemu_common::protocol::{GatherEvidence, Response};
use gpuemu_common::report::StoredRun;
use gpuemu_engine::CaseDescriptor;
use gpuemu_engine::case::materialise;
use gpuemu_engine::schema::Schema;
use sha2::{Digest, Sha256};

use super::Service;
use super::result::outcome_of;
use crate::configured_op::ConfiguredOp;
use crate::failure::Failure;
use crate::jobs::Job;
use crate::project::Project;
use crate::sources;
use crate::store::{ResultQuery, ResultRecord, StoredOutcome};

impl Service {
    /// Gathers what the newest run of each op rests on, and what stands against calling it passed.
    pub(super) fn gather_evidence(&self, request: &GatherEvidence, job: &Job) -> Result<Response, Failure> {
        let project = self.project(&request.project)?;
        let (mut ops, mut reservations) = (Vec::new(), Vec::new());
        for entry in &project.config.ops {
            if job.is_cancelled() {
                return Err(Failure::invalid("cancelled: nothing was gathered"));
            }
            job.say(&entry.name);
            let Some(run) = self.newest_run(&project, &entry.name)? else {
                reservations.push(format!("{}: no run of it is stored; `gpuemu test` makes one", entry.name));
                continue;
            };
            // One case that was run again, or what a client recorded, is no run; where it did not pass, it counts.
            let query = ResultQuery { op: Some(entry.name.clone()), ..ResultQuery::default() };
            let newer = self.store.results(&project.key, &query)?.into_iter().take_while(|record| record.run > run.run);
            let against = newer.into_iter().find(|record| record.outcome != StoredOutcome::Passed);
            reservations.extend(against.map(|record| {
                format!("{}: a newer result, of the case with seed {}, did not pass", entry.name, record.seed)
            }));
            let records = self.store.run_results(&project.key, run.run, Some(&entry.name))?;
            reservations.extend(objections(&project, entry, &run, &records));
            let op = ConfiguredOp::open(&project, &entry.name, &run.settings, &self.pool)?;
            let schema = op.subject.schema();
            let verdicts = records.iter().map(|record| verdict_of(record, schema)).collect();
            ops.push(OpEvidence {
                op: entry.name.clone(),
                gpuemu: run.gpuemu,
                run: run.run,
                time: run.time,
                mode: run.mode,
                seed: run.seed,
                runner: run.op.runner,
                reference: run.op.reference,
                sources: run.op.sources,
                not_checked: run.op.not_checked,
                verdicts,
            });
        }
        Ok(Response::Evidence { ops, reservations })
    }

    fn newest_run(&self, project: &Project, op: &str) -> Result<Option<StoredRun>, Failure> {
        let Some(record) = self.store.runs(&project.key, Some(op), 1)?.into_iter().next() else { return Ok(None) };
        Ok(Some(super::records::stored_run(&record)?))
    }
}

/// What stands against calling the run of an op passed, beside failures: these are counted anyway.
fn objections(project: &Project, entry: &ConfiguredEntry, run: &StoredRun, records: &[ResultRecord]) -> Vec<String> {
    let (name, op) = (&entry.name, &run.op);
    let mut found = Vec::new();
    if run.config_digest != project.config.digest {
        found.push(format!("{name}: the configuration has changed since it ran"));
    }
    if run.gpuemu != super::VERSION {
        found.push(format!("{name}: it was judged by gpuemu {}, this is {}", run.gpuemu, super::VERSION));
    }
    if let Some(shard) = run.shard {
        found.push(format!("{name}: only shard {shard} of its run is stored"));
    }
    for source in &op.sources {
        let now = sources::sha256_of(&project.config.root.join(&source.path));
        if now != source.sha256 {
            found.push(format!("{name}: {} has changed since it ran", source.path));
        } else if now.is_none() {
            found.push(format!("{name}: {} cannot be read", source.path));
        }
    }
    if records.len() as u64 != op.cases {
        found.push(format!("{name}: {} of {} results are still stored", records.len(), op.cases));
    }
    if op.cases < op.planned {
        found.push(format!("{name}: {} of {} cases were run", op.cases, op.planned));
    }
    for dtype in &op.weak {
        found.push(format!("{name}: its cases of {dtype} are weak, they would have passed a wrong output"));
    }
    found
}

fn verdict_of(record: &ResultRecord, schema: &Schema) -> CaseEvidence {
    let inputs = serde_json::from_str::<CaseDescriptor>(&record.descriptor).ok();
    CaseEvidence {
        seed: record.seed,
        outcome: outcome_of(record.outcome),
        dtype: record.dtype.parse().unwrap_or(gpuemu_common::DType::F32),
        sizes: record.sizes.clone(),
        layout: record.layout.clone(),
        values: record.strategy.clone(),
        check: (!record.check.is_empty()).then(|| record.check.clone()),
        max_abs_diff: record.max_abs,
        tolerance_share: record.largest_share,
        inputs_sha256: inputs.and_then(|descriptor| digest_of(&descriptor, schema)),
    }
}

/// SHA-256 of the inputs that a description gives.
fn digest_of(descriptor: &CaseDescriptor, schema: &Schema) -> Option<String> {
    let case = materialise(schema, descriptor).ok()?;
    let mut digest = Sha256::new();
    for tensor in case.inputs.iter().flatten() {
        digest.update(tensor.to_contiguous_bytes());
    }
    Some(digest.finalize().iter().map(|byte| format!("{byte:02x}")).collect())
}
