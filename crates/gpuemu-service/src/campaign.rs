//! Campaigns over many machines: begun here, their parts checked and kept as they come, joined at the end.

use std::collections::BTreeMap;

use gpuemu_config::failure::Failure;
use gpuemu_model::error_code::ErrorCode;
use gpuemu_model::finding::Outcome;
use gpuemu_model::json::ToJson;
use gpuemu_model::report::{OpReport, OpStatus, RunReport};
use gpuemu_model::settings::{FuzzConfig, Mode};
use gpuemu_model::tensor_data::NamedTensorData;
use gpuemu_process::fault;
use gpuemu_run::configured_op::ConfiguredOp;
use gpuemu_run::merge::merge;
use gpuemu_run::op_run::broken_off;
use gpuemu_run::project::Project;
use gpuemu_run::result::now;
use gpuemu_store::{CampaignContent, CampaignRecord, FailureRecord, ResultRecord, Snapshot, StoreError};
use gpuemu_wire::protocol::{
    BeginCampaign, CampaignReference, CampaignStatus, GetRun, KeepMinimized, KeepPart, Response,
};

use super::recording::{check, check_name};
use super::records::with_inputs;
use super::run::{base_seed, choose, drawn_from, mode_name};
use super::{Service, VERSION, read_tensors};

/// Parts that a campaign has at most: each is a record of its own.
const MOST_PARTS: u32 = 1 << 20;

impl Service {
    /// Everything that a run left of one op: what a part of a campaign is made of.
    pub(super) fn get_run(&self, request: &GetRun) -> Result<Response, Failure> {
        let project = self.project(&request.project)?;
        let (key, run, op) = (&project.key, request.run, &request.op_name);
        let failures = self.store.first_failures(key, run, op, usize::MAX)?;
        let failures: BTreeMap<u64, &FailureRecord> =
            failures.iter().map(|failure| (failure.result.index, failure)).collect();
        let results = self.store.run_results(key, run, Some(op));
        let results = fault!("campaign.results", injected(), results)?;
        let results = results.into_iter().map(|record| match failures.get(&record.index) {
            Some(failure) => with_inputs(failure),
            None => Ok(record.result),
        });
        Ok(Response::Results { results: results.collect::<Result<_, _>>()? })
    }

    /// Begins a run whose parts others make.
    pub(super) fn begin_campaign(&self, request: &BeginCampaign) -> Result<Response, Failure> {
        let project = self.project(&request.project)?;
        let config = &request.config;
        if config.seconds.is_some() {
            return Err(Failure::invalid("a campaign has a number of cases, no 'seconds': its parts would have none"));
        }
        let Some(iterations @ 1..) = config.iterations else {
            return Err(Failure::invalid("'iterations' is missing or 0: no case would be run"));
        };
        if !(1..=MOST_PARTS).contains(&request.parts) || u64::from(request.parts) > iterations {
            let most = iterations.min(u64::from(MOST_PARTS));
            return Err(Failure::invalid(format!("'parts' is {}; it goes from 1 to {most}", request.parts)));
        }
        let names = self.ops_of_campaign(&project, request)?;
        let seed = base_seed(&project, config);
        let settings = drawn_from(config);
        let (run, time) = (self.store.next_run(), now());
        let blank = project.config.blank_report(VERSION, mode_name(Mode::Fuzz));
        let report = RunReport { run, time, seed, settings, ..blank };
        // Results come before the end, and a campaign that is never ended must not look like one that passed.
        let planned = |op: &String| OpReport { planned: iterations, ..broken_off(op) };
        let begun = RunReport { ops: names.iter().map(planned).collect(), ..report.clone() };
        self.keep_runs(&project, &begun)?;
        let campaign = CampaignStatus {
            run,
            ops: request.ops.clone(),
            planned_ops: names,
            config: FuzzConfig { seed: Some(seed), ..config.clone() },
            parts: request.parts,
            kept: Vec::new(),
            client_side: request.client_side,
            report: Box::new(report),
        };
        let record = record(&project, run, CampaignContent::Begun(Box::new(campaign.clone())));
        fault!("campaign.begin", injected(), self.store.put_campaign(&record, &[], &[]))?;
        Ok(Response::Campaign { campaign })
    }

    /// The ops that a campaign will say something about.
    fn ops_of_campaign(&self, project: &Project, request: &BeginCampaign) -> Result<Vec<String>, Failure> {
        if request.client_side {
            if request.ops.is_empty() {
                return Err(Failure::invalid("'ops' is empty: nothing would be run"));
            }
            request.ops.iter().try_for_each(|name| check_name(name))?;
            return Ok(request.ops.clone());
        }
        let mut names = choose(project, &request.ops, false)?;
        let mut problem = None;
        names.retain(|name| match ConfiguredOp::open(project, name, &drawn_from(&request.config), &self.pool) {
            Ok(op) => op.is_runnable() || !request.ops.is_empty(),
            // Each part says so of the op, which is no reason to run nothing.
            Err(failure) if failure.code == ErrorCode::ConfigError => true,
            Err(failure) => {
                problem.get_or_insert(failure);
                false
            }
        });
        problem.map_or(Ok(names), Err)
    }

    /// Says how far a campaign is.
    pub(super) fn get_campaign(&self, request: &CampaignReference) -> Result<Response, Failure> {
        let project = self.project(&request.project)?;
        let mut campaign = self.campaign(&project, request.run)?;
        let kept = self.store.kept_parts(&project.key, campaign.run)?;
        campaign.kept = kept.into_iter().filter_map(|part| u32::try_from(part).ok()).collect();
        Ok(Response::Campaign { campaign })
    }

    fn campaign(&self, project: &Project, run: Option<u64>) -> Result<CampaignStatus, Failure> {
        let hint = "a campaign that has ended is a run like any other: `gpuemu report` shows it";
        let missing = |message: String| Failure::new(ErrorCode::NotFound, message).hint(hint);
        let run = match run {
            Some(run) => run,
            None => self
                .store
                .newest_campaign(&project.key)?
                .ok_or_else(|| missing("this project has no campaign that has not ended".to_string()))?,
        };
        let found = fault!("campaign.find", injected(), self.store.campaign(&project.key, run))?;
        match found.map(|found| found.content) {
            Some(CampaignContent::Begun(campaign)) => Ok(*campaign),
            _ => Err(missing(format!("this project has no unfinished campaign of run {run}"))),
        }
    }

    /// Keeps a part with everything in it, or nothing.
    pub(super) fn keep_part(&self, request: KeepPart, payload: &[u8]) -> Result<Response, Failure> {
        let project = self.project(&request.project)?;
        let campaign = self.campaign(&project, Some(request.run))?;
        let report = RunReport { run: campaign.run, ..*request.report };
        let Some(shard) = report.part.as_ref().map(|part| part.shard).filter(|shard| shard.count() == campaign.parts)
        else {
            return Err(Failure::invalid(format!("the report is on no part of {}", campaign.parts)));
        };
        refuse_other_run(&campaign.report, &report)?;
        let iterations = campaign.config.iterations.unwrap_or_default();
        // Fewer cases than are the part's, each of them passed, would be a pass of something else.
        if let Some(op) = report.ops.iter().find(|op| op.part.is_some() && op.planned != shard.size(iterations)) {
            let (planned, wanted) = (op.planned, shard.size(iterations));
            let message = format!("part {shard} has {planned} cases of op '{}', it should have {wanted}", op.op);
            return Err(Failure::invalid(message));
        }
        if let Some(op) = campaign.planned_ops.iter().find(|name| report.ops.iter().all(|op| op.op != **name)) {
            return Err(Failure::invalid(format!("part {shard} says nothing about op '{op}'")));
        }
        let mut results = request.results.into_iter().peekable();
        let (mut kept, mut failures) = (Vec::new(), Vec::new());
        for op in &report.ops {
            for facts in op.part.iter().flat_map(|part| &part.cases) {
                let Some(mut result) = results.next_if(|result| result.op == op.op) else {
                    let message = format!("the result of case {} of op '{}' is missing", facts.index, op.op);
                    return Err(Failure::invalid(message));
                };
                check(&result, &op.op)?;
                fault!("campaign.result");
                if result.outcome != facts.outcome {
                    let message = format!("case {} of op '{}' ended otherwise than its result", facts.index, op.op);
                    return Err(Failure::invalid(message));
                }
                (result.run, result.client_side) = (Some(campaign.run), campaign.client_side);
                result.settings.clone_from(&campaign.report.settings);
                let inputs = result.inputs.take();
                let record = ResultRecord::of(&result, &project.key, campaign.run, facts.index, campaign.report.seed);
                if result.outcome == Outcome::Failed {
                    let limit = project.config.storage.snapshot_bytes;
                    failures.push(failure(&record, inputs.as_ref(), payload, limit)?);
                }
                kept.push(record);
            }
        }
        if let Some(more) = results.next() {
            return Err(Failure::invalid(format!("the result with seed {} belongs to no case of the part", more.seed)));
        }
        let part = record(&project, campaign.run, CampaignContent::Part(shard.index(), Box::new(report)));
        fault!("campaign.keep_part", injected(), self.store.put_campaign(&part, &kept, &failures))?;
        fault!("campaign.part_kept");
        Ok(Response::Ok)
    }

    /// Keeps the smallest form of a failure.
    pub(super) fn keep_minimized(&self, request: &KeepMinimized, payload: &[u8]) -> Result<Response, Failure> {
        let project = self.project(&request.project)?;
        let mut result = request.minimized.clone();
        check_name(&result.op)?;
        check(&result, &result.op)?;
        if result.outcome != Outcome::Failed {
            return Err(Failure::invalid("the smallest form of a failure has to fail"));
        }
        let run = self.store.next_run();
        (result.run, result.minimized, result.inputs) = (Some(run), true, None);
        // Simplified values have no seed: however large they are, they are kept.
        let limit = if request.values_edited { u64::MAX } else { project.config.storage.snapshot_bytes };
        let record = ResultRecord::of(&result, &project.key, run, 0, 0);
        self.store.append(&[], &[failure(&record, Some(&request.inputs), payload, limit)?])?;
        Ok(Response::Recorded { run })
    }

    /// Joins the parts to the report on the run.
    pub(super) fn end_campaign(&self, request: &CampaignReference) -> Result<Response, Failure> {
        let project = self.project(&request.project)?;
        let campaign = self.campaign(&project, request.run)?;
        let mut parts = Vec::new();
        let kept = self.store.campaign_parts(&project.key, campaign.run);
        for part in fault!("campaign.parts", injected(), kept)? {
            if let CampaignContent::Part(number, report) = part.content {
                parts.push((format!("of part {number}"), *report));
            }
        }
        fault!("campaign.join");
        let joined = merge(&project.config, parts).map_err(|error| {
            Failure::invalid(format!("the campaign of run {} cannot be joined: {error}", campaign.run))
        })?;
        let seconds = now().saturating_sub(campaign.report.time) as f64 / 1000.0;
        let (time, config) = (campaign.report.time, campaign.report.config.clone());
        let mut report = RunReport { run: campaign.run, time, config, seconds, part: None, ..joined };
        for op in report.ops.iter_mut().filter(|op| op.status == OpStatus::Failed) {
            op.regressed = !campaign.client_side && self.passed_before(&project, &op.op, campaign.run)?;
        }
        fault!("campaign.keep");
        self.keep_runs(&project, &report)?;
        fault!("campaign.forget", injected(), self.store.forget_campaign(&project.key, campaign.run))?;
        Ok(Response::Report { report: Box::new(report) })
    }
}

fn injected() -> StoreError {
    StoreError::Damaged("injected".to_string())
}

/// A part that was made by another gpuemu, for another configuration or from other cases says nothing about this run.
fn refuse_other_run(ours: &RunReport, theirs: &RunReport) -> Result<(), Failure> {
    let words = |report: &RunReport| {
        [
            ("the version of gpuemu", report.gpuemu.clone()),
            ("the configuration", report.config_digest.clone()),
            ("the mode", report.mode.clone()),
            ("the seed", report.seed.to_string()),
            ("what cases are drawn from", report.settings.to_json().unwrap_or_default()),
        ]
    };
    match words(ours).into_iter().zip(words(theirs)).find(|(ours, theirs)| ours != theirs) {
        Some(((what, ours), (_, theirs))) => Err(Failure::invalid(format!(
            "the part is none of this campaign: {what} is '{theirs}' there and '{ours}' here"
        ))),
        None => Ok(()),
    }
}

fn failure(
    record: &ResultRecord,
    inputs: Option<&NamedTensorData>,
    payload: &[u8],
    limit: u64,
) -> Result<FailureRecord, Failure> {
    let inputs = inputs.map(|inputs| read_tensors(inputs, payload)).transpose()?.unwrap_or_default();
    Ok(FailureRecord { result: record.clone(), snapshot: Snapshot::of(&inputs, limit) })
}

fn record(project: &Project, run: u64, content: CampaignContent) -> CampaignRecord {
    CampaignRecord { project: project.key.clone(), run, time: now(), content }
}
