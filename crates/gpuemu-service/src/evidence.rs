//! What the verdicts of stored runs rest on, for a report that is signed.

use gpuemu_config::Op as ConfiguredEntry;
use gpuemu_config::failure::Failure;
use gpuemu_engine::CaseDescriptor;
use gpuemu_engine::case::materialise;
use gpuemu_engine::schema::Schema;
use gpuemu_model::evidence::{CaseEvidence, OpEvidence};
use gpuemu_model::finding::Outcome;
use gpuemu_model::report::{StoredRun, ValidationResult};
use gpuemu_process::fault;
use gpuemu_run::configured_op::ConfiguredOp;
use gpuemu_run::project::Project;
use gpuemu_run::sources;
use gpuemu_store::{ResultQuery, ResultRecord, StoreError};
use gpuemu_wire::protocol::{GatherEvidence, Response};
use sha2::{Digest, Sha256};

use super::Service;
use crate::jobs::Job;

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
            reservations.extend(self.newer_objection(&project, &run)?);
            let records = self.store.run_results(&project.key, run.run, Some(&entry.name));
            let records = fault!("evidence.results", StoreError::Damaged("injected".to_string()), records)?;
            reservations.extend(objections(&project, entry, &run, &records));
            let op = ConfiguredOp::open(&project, &entry.name, &run.settings, &self.pool)?;
            let schema = op.subject.schema();
            let inputs: Vec<Result<String, String>> =
                records.iter().map(|record| inputs_of(&record.result.case, schema)).collect();
            reservations.extend(unknown_inputs(&entry.name, &inputs));
            let verdicts = records.iter().zip(inputs);
            let verdicts = verdicts.map(|(record, inputs)| verdict_of(&record.result, inputs.ok())).collect();
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
        Ok(Some(record.run))
    }

    /// One case that was run again, or what a client recorded, is no run; where it did not pass, it counts.
    fn newer_objection(&self, project: &Project, run: &StoredRun) -> Result<Option<String>, Failure> {
        let name = &run.op.op;
        for outcome in [Outcome::Failed, Outcome::Undetermined, Outcome::Error] {
            let query =
                ResultQuery { op: Some(name.clone()), outcome: Some(outcome), limit: 1, ..ResultQuery::default() };
            let newest = self.store.results(&project.key, &query)?.pop();
            if let Some(record) = newest.filter(|record| record.run > run.run) {
                let seed = record.result.seed;
                return Ok(Some(format!("{name}: a newer result, of the case with seed {seed}, did not pass")));
            }
        }
        Ok(None)
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
    if op.sources.is_empty() {
        found.push(format!("{name}: no file is known that it is made of, so there is no hash of its kernel"));
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

fn verdict_of(result: &ValidationResult, inputs_sha256: Option<String>) -> CaseEvidence {
    CaseEvidence {
        seed: result.seed,
        outcome: result.outcome,
        dtype: result.dtype,
        sizes: result.sizes.clone(),
        layout: result.layout.clone(),
        values: result.values.clone(),
        check: result.reason().map(|check| check.to_string()),
        max_abs_diff: result.largest.max_abs_diff,
        tolerance_share: result.largest.tolerance_share,
        inputs_sha256,
    }
}

/// SHA-256 of the inputs of a case, made again; else why they cannot be.
fn inputs_of(descriptor: &CaseDescriptor, schema: &Schema) -> Result<String, String> {
    let made = materialise(schema, descriptor).map_err(|error| error.to_string());
    let case = fault!("evidence.inputs", "injected".to_string(), made)?;
    let mut digest = Sha256::new();
    for tensor in case.inputs.iter().flatten() {
        digest.update(tensor.to_contiguous_bytes());
    }
    Ok(digest.finalize().iter().map(|byte| format!("{byte:02x}")).collect())
}

/// That the inputs of some cases are not known, and why those of the first are not.
fn unknown_inputs(op: &str, inputs: &[Result<String, String>]) -> Option<String> {
    let unknown = inputs.iter().filter(|inputs| inputs.is_err()).count();
    let why = inputs.iter().find_map(|inputs| inputs.as_ref().err())?;
    Some(format!("{op}: there is no hash of the inputs of {unknown} of {} cases: {why}", inputs.len()))
}
