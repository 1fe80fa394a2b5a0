//! Baselines: errors and compiled kernels of a good state, and how today's compare.

use gpuemu_config::OpSource;
use gpuemu_config::failure::Failure;
use gpuemu_engine::case::materialise;
use gpuemu_engine::judge;
use gpuemu_model::artifact::KernelReport;
use gpuemu_model::error_code::ErrorCode;
use gpuemu_model::finding::Outcome;
use gpuemu_model::report::{CaseSummary, ComparisonReport, ComparisonStatus, OpComparison, OpReport};
use gpuemu_model::settings::{FuzzConfig, ProjectReference};
use gpuemu_process::fault;
use gpuemu_run::configured_op::{ConfiguredOp, StartedOp};
use gpuemu_run::project::Project;
use gpuemu_run::result::{Context, now, result_of};
use gpuemu_run::tally::summary_of;
use gpuemu_store::{BaselineRecord, StoreError};
use gpuemu_wire::protocol::{BaselineReference, BaselineSummary, CompareBaseline, Response, StoreBaseline};

use super::Service;
use super::artifacts::{Kept, Look, compare_kernels, reported_kernels};
use crate::jobs::Job;

/// Cases of each op that a baseline keeps.
const MOST_CASES: usize = 1000;

/// The errors of one op in a baseline.
struct Before {
    op: String,
    cases: Vec<CaseSummary>,
}

impl Service {
    /// Keeps the last run of every op, and what is measured of every kernel, under a tag.
    pub(super) fn store_baseline(&self, request: &StoreBaseline, job: &Job) -> Result<Response, Failure> {
        if request.tag.trim().is_empty() {
            return Err(Failure::invalid("the tag of a baseline is empty"));
        }
        let project = self.project(&request.project)?;
        let time = now();
        let mut records = Vec::new();
        // What only a client can run cannot be compared again.
        let runnable = |op: &&gpuemu_config::Op| op.source != OpSource::Submitted;
        for op in project.config.ops.iter().filter(runnable) {
            let Some((run, results)) = self.last_own_run(&project, &op.name, None)? else { continue };
            let cases = results.iter().take(MOST_CASES).map(|record| summary_of(&record.result));
            records.push(BaselineRecord {
                project: project.key.clone(),
                tag: request.tag.clone(),
                op: op.name.clone(),
                time,
                run,
                base_seed: results.first().map_or(0, |record| record.base_seed),
                cases: cases.collect(),
            });
        }
        let look = Look { tools: request.tools.as_ref(), ..Look::default() };
        let reports = self.look_at_kernels(&project, &look, job)?;
        if job.is_cancelled() {
            return Err(Failure::new(ErrorCode::NotFound, "cancelled: nothing is kept"));
        }
        let (kernels, warnings) = self.kernels_for_baseline(&project, &request.tag, time, &reports)?;
        if records.is_empty() && kernels.is_empty() {
            let what = if warnings.is_empty() { String::new() } else { format!(" ({})", warnings.join("; ")) };
            let message = format!("no result of this project is stored{what}: there is nothing to keep");
            return Err(Failure::new(ErrorCode::NotFound, message).hint("run `gpuemu test` first"));
        }
        self.store.put_baseline(&records, &kernels)?;
        let cases = records.iter().map(|record| record.cases.len()).sum();
        let failing =
            |record: &BaselineRecord| record.cases.iter().filter(|case| case.outcome == Outcome::Failed).count();
        let failing = records.iter().map(failing).sum();
        let (tag, ops, kernels) = (request.tag.clone(), records.len(), kernels.len());
        let summary = BaselineSummary { tag, time, ops, cases, failing, kernels, warnings };
        Ok(Response::Baselines { baselines: vec![summary] })
    }

    pub(super) fn list_baselines(&self, project: &ProjectReference) -> Result<Response, Failure> {
        let project = self.project(project)?;
        let tags = self.store.baseline_tags(&project.key)?;
        let summary = |tag: gpuemu_store::BaselineTag| BaselineSummary {
            tag: tag.tag,
            time: tag.time,
            ops: tag.ops,
            cases: tag.cases,
            failing: 0,
            kernels: tag.kernels,
            warnings: Vec::new(),
        };
        Ok(Response::Baselines { baselines: tags.into_iter().map(summary).collect() })
    }

    pub(super) fn delete_baseline(&self, request: &StoreBaseline) -> Result<Response, Failure> {
        let project = self.project(&request.project)?;
        match self.store.delete_baseline(&project.key, &request.tag)? {
            0 => Err(self.no_baseline(&project, &request.tag)?),
            _ => Ok(Response::Ok),
        }
    }

    /// Runs the cases of a baseline again.
    pub(super) fn compare_baseline(&self, request: &CompareBaseline, job: &Job) -> Result<Response, Failure> {
        let project = self.project(&request.project)?;
        self.refuse_unknown(&project, &request.baseline)?;
        let only = request.op_name.clone().map(|name| vec![name]);
        let look = Look { tools: request.tools.as_ref(), ..Look::default() };
        let kernels = match only {
            None => Some(self.look_at_kernels(&project, &look, job)?),
            Some(_) => None,
        };
        let comparison = self.compare(&project, &request.baseline, only.as_deref(), kernels.as_deref(), job)?;
        let comparison = ComparisonReport { fails: comparison.regressed(), ..comparison };
        Ok(Response::Comparison { comparison: Box::new(comparison) })
    }

    /// A tag that there is not is refused before anything is compiled or run.
    pub(super) fn refuse_unknown(&self, project: &Project, baseline: &BaselineReference) -> Result<(), Failure> {
        let BaselineReference::Tag(tag) = baseline else { return Ok(()) };
        match self.store.baseline_tags(&project.key)?.iter().any(|known| known.tag == *tag) {
            true => Ok(()),
            false => Err(self.no_baseline(project, tag)?),
        }
    }

    /// Compares with a baseline: ops over its cases, all of them or only some; kernels where they were looked at.
    pub(super) fn compare(
        &self,
        project: &Project,
        baseline: &BaselineReference,
        only: Option<&[String]>,
        kernels: Option<&[KernelReport]>,
        job: &Job,
    ) -> Result<ComparisonReport, Failure> {
        let (name, mut before, kept) = match baseline {
            BaselineReference::Tag(tag) => {
                let (ops, kept) = self.stored(project, tag)?;
                (tag.clone(), ops, kept)
            }
            BaselineReference::Report { name, report } => {
                (name.clone(), reported(report), reported_kernels(&report.kernels))
            }
        };
        before.retain(|one| only.is_none_or(|only| only.contains(&one.op)));
        let threshold = project.config.policies.regression_threshold;
        let artifacts = kernels.map(|now| compare_kernels(&kept, now, threshold)).unwrap_or_default();
        // Kernels that only the project has are no comparison.
        let no_kernel = kernels.is_none() || kept.is_empty();
        if before.iter().all(|one| one.cases.is_empty()) && no_kernel {
            let what = if kernels.is_some() { "case or kernel" } else { "case" };
            let message = format!("the baseline '{name}' has no {what} to compare");
            return Err(Failure::new(ErrorCode::BaselineNotFound, message));
        }
        job.plan(before.iter().map(|one| one.cases.len() as u64).sum());
        let mut ops = Vec::new();
        for one in &before {
            job.say(&one.op);
            ops.push(self.compare_op(project, one, threshold, job));
        }
        Ok(ComparisonReport { baseline: name, threshold, fails: false, ops, artifacts })
    }

    fn stored(&self, project: &Project, tag: &str) -> Result<(Vec<Before>, Vec<Kept>), Failure> {
        let records = self.store.baseline(&project.key, tag);
        let records = fault!("compare.read", StoreError::Damaged("injected".to_string()), records)?;
        let kept = self.stored_kernels(project, tag)?;
        if records.is_empty() && kept.is_empty() {
            return Err(self.no_baseline(project, tag)?);
        }
        let before = |record: BaselineRecord| Before { op: record.op, cases: record.cases };
        Ok((records.into_iter().map(before).collect(), kept))
    }

    fn no_baseline(&self, project: &Project, tag: &str) -> Result<Failure, Failure> {
        let known: Vec<String> = self.store.baseline_tags(&project.key)?.into_iter().map(|known| known.tag).collect();
        let failure = Failure::new(ErrorCode::BaselineNotFound, format!("there is no baseline '{tag}'"));
        Ok(match known.as_slice() {
            [] => failure.hint(format!("store one with `gpuemu baseline {tag}` after a good run")),
            known => failure.hint(format!("stored are: {}", known.join(", "))),
        })
    }

    fn compare_op(&self, project: &Project, before: &Before, threshold: f64, job: &Job) -> OpComparison {
        let mut comparison = OpComparison::not_compared(&before.op);
        let defined = project.config.ops.iter().any(|op| op.name == before.op);
        if !defined {
            comparison.message = Some("the project no longer has this op".to_string());
            return comparison;
        }
        let opened = ConfiguredOp::open(project, &before.op, &FuzzConfig::default(), &self.pool);
        let mut started = match opened.and_then(ConfiguredOp::start) {
            Ok(started) => started,
            Err(failure) => {
                comparison.message = Some(failure.message);
                return comparison;
            }
        };
        for case in &before.cases {
            if job.is_cancelled() {
                comparison.message = Some("cancelled".to_string());
                return comparison;
            }
            let compared = compare_case(project, &mut started, case, &mut comparison);
            job.advance(compared.is_err());
            if let Err(message) = compared {
                comparison.message = Some(message);
                return comparison;
            }
        }
        if comparison.cases == 0 {
            comparison.message = Some("the baseline has no case of this op".to_string());
            return comparison;
        }
        fault!("compare.conclude");
        comparison.status = conclude(&comparison, threshold);
        comparison
    }
}

fn reported(report: &gpuemu_model::report::RunReport) -> Vec<Before> {
    let before = |op: &OpReport| Before { op: op.op.clone(), cases: op.case_results.clone() };
    report.ops.iter().map(before).collect()
}

fn compare_case(
    project: &Project,
    started: &mut StartedOp,
    before: &CaseSummary,
    comparison: &mut OpComparison,
) -> Result<(), String> {
    let StartedOp { op, runner } = started;
    let case = materialise(op.subject.schema(), &before.case).map_err(|error| error.to_string());
    let case = fault!("compare.materialise", "injected".to_string(), case)?;
    fault!("compare.judge");
    let verdict = judge(&op.subject, &case, runner);
    if let Some(error) = runner.error() {
        return Err(error.to_string());
    }
    let judged_before = before.outcome == Outcome::Passed && verdict.outcome == Outcome::Undetermined;
    if verdict.outcome == Outcome::Error || judged_before {
        return Err(verdict.result.message.unwrap_or_default());
    }
    comparison.cases += 1;
    comparison.before_abs = comparison.before_abs.max(before.max_abs_diff);
    comparison.before_ulp = comparison.before_ulp.max(before.max_ulp_diff);
    let newly_failing = before.outcome == Outcome::Passed && verdict.failed();
    let largest = verdict.largest.max_abs_diff > comparison.now_abs;
    comparison.now_abs = comparison.now_abs.max(verdict.largest.max_abs_diff);
    comparison.now_ulp = comparison.now_ulp.max(verdict.largest.max_ulp_diff);
    comparison.newly_failing += u64::from(newly_failing);
    comparison.failing += u64::from(verdict.failed());
    if (newly_failing && comparison.newly_failing == 1) || (largest && comparison.newly_failing == 0) {
        let settings = FuzzConfig::default();
        let warn_threshold = project.config.policies.warn_threshold;
        let context = Context::new(&op.name, None, &settings, warn_threshold);
        comparison.worst = Some(result_of(&op.subject, &case, verdict, context));
    }
    Ok(())
}

/// An error has to grow past the threshold, and to more than one unit of the last place: a baseline of 0 is
/// not left by a rounding.
fn conclude(comparison: &OpComparison, threshold: f64) -> ComparisonStatus {
    let grew = |before: f64, now: f64| now > before * (1.0 + threshold);
    let shrank = |before: f64, now: f64| now < before / (1.0 + threshold);
    let absolute = (comparison.before_abs, comparison.now_abs);
    let ulps = (comparison.before_ulp, comparison.now_ulp);
    let visible = comparison.now_ulp > 1.0;
    if comparison.newly_failing > 0 || (visible && (grew(absolute.0, absolute.1) || grew(ulps.0, ulps.1))) {
        ComparisonStatus::Regressed
    } else if comparison.before_ulp > 1.0 && shrank(absolute.0, absolute.1) && shrank(ulps.0, ulps.1) {
        ComparisonStatus::Improved
    } else {
        ComparisonStatus::Same
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn status(before: (f64, f64), now: (f64, f64), newly_failing: u64) -> ComparisonStatus {
        let comparison = OpComparison {
            op: "op".to_string(),
            status: ComparisonStatus::Same,
            cases: 1,
            newly_failing,
            failing: newly_failing,
            before_abs: before.0,
            now_abs: now.0,
            before_ulp: before.1,
            now_ulp: now.1,
            worst: None,
            message: None,
        };
        conclude(&comparison, 0.1)
    }

    #[test]
    fn an_error_regresses_past_the_threshold_and_past_one_ulp() {
        assert_eq!(status((1e-6, 4.0), (1.05e-6, 4.2), 0), ComparisonStatus::Same);
        assert_eq!(status((1e-6, 4.0), (1.2e-6, 4.0), 0), ComparisonStatus::Regressed);
        assert_eq!(status((0.0, 0.0), (1e-7, 0.9), 0), ComparisonStatus::Same);
        assert_eq!(status((0.0, 0.0), (1e-6, 9.0), 0), ComparisonStatus::Regressed);
        assert_eq!(status((1e-6, 4.0), (1e-7, 0.4), 0), ComparisonStatus::Improved);
        assert_eq!(status((1e-6, 4.0), (1e-7, 0.4), 1), ComparisonStatus::Regressed);
    }
}
