//! Joins the reports on the shards of a run to the report on the whole run.

use gpuemu_config::Config;
use gpuemu_model::finding::Outcome;
use gpuemu_model::json::ToJson;
use gpuemu_model::report::{CaseSummary, Conclusion, OpReport, OpStatus, RunReport, ValidationResult};
use gpuemu_model::shard::{CaseFacts, OpPart, RunPart, Shard};
use gpuemu_tensor::rng::blake2b;
use thiserror::Error;

use super::expected;
use super::tally::Tally;

/// Why reports cannot be joined.
#[derive(Debug, Clone, PartialEq, Eq, Error)]
pub enum MergeError {
    /// There is nothing to join.
    #[error("there is no report to join")]
    Nothing,
    /// A report is on a whole run.
    #[error("the report {0} is no shard: it was written without --shard")]
    NoShard(String),
    /// Shards are missing: what they hold was not judged.
    #[error("of {count} shards {} is missing", list(.missing))]
    Missing {
        /// How many there are.
        count: u32,
        /// Those that are not there, the first ones if they are many.
        missing: Vec<u32>,
    },
    /// A shard is there twice.
    #[error("shard {0} is there twice")]
    Twice(u32),
    /// Reports are not on one run.
    #[error("the reports are not parts of one run: {what} is '{first}' in {first_name} and '{other}' in {name}")]
    Different { what: &'static str, first: String, first_name: String, other: String, name: String },
    /// A report contradicts itself.
    #[error("the report {name} counts {counted} cases of op '{op}', {failed} of them failed, and lists others")]
    Inconsistent {
        name: String,
        op: String,
        /// Cases that it counts.
        counted: u64,
        failed: u64,
    },
    /// A report says how an op ended, and lists no case of it.
    #[error("the report {name} judges op '{op}' and lists none of its cases")]
    NoCases { name: String, op: String },
    /// A report has not the cases that are its share of the run.
    #[error("in the report {name}, the cases of op '{op}' are not those of shard {shard} of {all} cases")]
    OtherCases {
        name: String,
        op: String,
        shard: Shard,
        /// Cases of all shards together.
        all: u64,
    },
    /// The project has changed.
    #[error("{0} has another configuration than the project has now")]
    Changed(String),
}

/// Missing shards that are named: a report may claim four thousand millions of them.
const MOST_NAMED: usize = 20;

fn list(numbers: &[u32]) -> String {
    let mut named: Vec<String> = numbers.iter().take(MOST_NAMED).map(ToString::to_string).collect();
    if numbers.len() > MOST_NAMED {
        named.push("...".to_string());
    }
    named.join(", ")
}

/// A report and where it comes from.
pub type NamedReport = (String, RunReport);

/// Joins the reports on all shards of one run. What comes out is what the run would have given in one piece, apart
/// from times and its number.
pub fn merge(config: &Config, reports: Vec<NamedReport>) -> Result<RunReport, MergeError> {
    let mut shards: Vec<(RunPart, NamedReport)> = Vec::new();
    for (name, mut report) in reports {
        let part = report.part.take().ok_or_else(|| MergeError::NoShard(name.clone()))?;
        shards.push((part, (name, report)));
    }
    shards.sort_by_key(|(part, _)| part.shard);
    refuse_other_runs(config, &shards)?;
    let Some((part, (_, first))) = shards.first() else { return Err(MergeError::Nothing) };
    let mut merged = RunReport { ops: Vec::new(), warnings: part.warnings.clone(), ..first.clone() };
    merged.seconds = shards.iter().map(|(_, (_, report))| report.seconds).fold(0.0, f64::max);
    merged.time = shards.iter().map(|(_, (_, report))| report.time).min().unwrap_or_default();
    merged.comparison = shards.last().and_then(|(_, (_, report))| report.comparison.clone());
    for place in 0..first.ops.len() {
        let parts = shards.iter().filter_map(|(_, (_, report))| report.ops.get(place)).collect();
        merged.ops.push(join(parts, config));
    }
    merged.warnings.extend(expected::apply(config, &mut merged.ops));
    merged.passed = merged.conclusion() == Conclusion::Passed;
    Ok(merged)
}

/// Shards of different runs, or not all of them, say nothing together.
fn refuse_other_runs(config: &Config, shards: &[(RunPart, NamedReport)]) -> Result<(), MergeError> {
    let Some((first_part, (first_name, first))) = shards.first() else { return Err(MergeError::Nothing) };
    let words = |part: &RunPart, report: &RunReport| {
        let sources: Vec<_> = report.ops.iter().map(|op| &op.sources).collect();
        let sources =
            blake2b(8).hash(serde_json::to_string(&sources).unwrap_or_default().as_bytes()).to_hex().to_string();
        let ops: Vec<&str> = report.ops.iter().map(|op| op.op.as_str()).collect();
        [
            ("the number of shards", part.shard.count().to_string()),
            ("the project", report.project.clone()),
            ("the configuration", report.config_digest.clone()),
            ("the version", report.gpuemu.clone()),
            ("the mode", report.mode.clone()),
            ("the seed", report.seed.to_string()),
            ("what cases are drawn from", report.settings.to_json().unwrap_or_default()),
            ("the list of ops", ops.join(", ")),
            ("what ops are made of", sources),
        ]
    };
    for (part, (name, report)) in shards {
        let both = words(first_part, first).into_iter().zip(words(part, report));
        if let Some(((what, first), (_, other))) = both.into_iter().find(|((_, first), (_, other))| first != other) {
            let (first_name, name) = (first_name.clone(), name.clone());
            return Err(MergeError::Different { what, first, first_name, other, name });
        }
    }
    let count = first_part.shard.count();
    let there: Vec<u32> = shards.iter().map(|(part, _)| part.shard.index()).collect();
    if let Some(pair) = there.windows(2).find(|pair| pair[0] == pair[1]) {
        return Err(MergeError::Twice(pair[0]));
    }
    let missing: Vec<u32> = (1..=count).filter(|index| !there.contains(index)).take(MOST_NAMED + 1).collect();
    if !missing.is_empty() {
        return Err(MergeError::Missing { count, missing });
    }
    for (place, op) in first.ops.iter().enumerate() {
        refuse_other_cases(shards, place, &op.op)?;
    }
    for (name, report) in shards.iter().map(|(_, named)| named) {
        for op in &report.ops {
            let Some(part) = &op.part else { continue };
            let failed = part.cases.iter().filter(|facts| facts.outcome == Outcome::Failed).count() as u64;
            if (op.cases, op.failed) != (part.cases.len() as u64, failed) {
                let (name, op, counted, failed) = (name.clone(), op.op.clone(), op.cases, op.failed);
                return Err(MergeError::Inconsistent { name, op, counted, failed });
            }
        }
    }
    if first.config_digest != config.digest {
        return Err(MergeError::Changed(first_name.clone()));
    }
    Ok(())
}

/// What a shard leaves out of an op would be missed by nobody: its share follows from that of all.
fn refuse_other_cases(shards: &[(RunPart, NamedReport)], place: usize, op: &str) -> Result<(), MergeError> {
    let mut parts = Vec::new();
    for (RunPart { shard, .. }, (name, report)) in shards {
        let Some(own) = report.ops.get(place) else { continue };
        match (&own.part, own.status) {
            (Some(part), _) => parts.push((*shard, name, own.planned, part)),
            // It could not be started there: no pass, whatever the others say.
            (None, OpStatus::Error | OpStatus::Unfinished) if own.cases == 0 => {}
            (None, _) => return Err(MergeError::NoCases { name: name.clone(), op: op.to_string() }),
        }
    }
    if parts.len() < shards.len() {
        return Ok(());
    }
    let all = parts.iter().map(|(_, _, planned, _)| *planned).fold(0, u64::saturating_add);
    for (shard, name, planned, part) in parts {
        let in_order = part.cases.is_sorted_by(|one, next| one.index < next.index);
        let is_own = |facts: &CaseFacts| shard.has(facts.index) && facts.index < all;
        if planned != shard.size(all) || !in_order || !part.cases.iter().all(is_own) {
            return Err(MergeError::OtherCases { name: name.clone(), op: op.to_string(), shard, all });
        }
    }
    Ok(())
}

/// One op: its cases added up again, in the order that they have in the whole run.
fn join(reports: Vec<&OpReport>, config: &Config) -> OpReport {
    let parts: Option<Vec<(&OpReport, &OpPart)>> =
        reports.iter().map(|report| report.part.as_ref().map(|part| (*report, part))).collect();
    let (Some(parts), Some(first)) = (parts, reports.first()) else {
        // An op that could not even be started in some shard was not judged.
        let broken = reports.iter().find(|report| report.part.is_none());
        return broken.map_or_else(|| OpReport::blank(""), |report| (*report).clone());
    };
    let mut tally = Tally::new(&first.op, parts.first().map_or(&[], |(_, part)| &part.warnings));
    tally.forgives = !config.validation.check_nan || !config.validation.check_inf;
    let mut cases: Vec<JoinedCase<'_>> = parts.iter().flat_map(|(report, part)| cases_of(report, part)).collect();
    cases.sort_by_key(|case| case.facts.index);
    for case in cases {
        tally.add_case(case.facts.clone(), case.summary.cloned(), case.failure);
    }
    if let Some(stopped) = parts.iter().find_map(|(_, part)| part.stopped.clone()) {
        tally.end(stopped);
    }
    let mut joined = tally.conclude(config.policies.warn_threshold);
    (joined.line, joined.runner, joined.reference) = (first.line, first.runner.clone(), first.reference.clone());
    joined.sources.clone_from(&first.sources);
    joined.planned = reports.iter().map(|report| report.planned).sum();
    joined.seconds = reports.iter().map(|report| report.seconds).fold(0.0, f64::max);
    joined.regressed = reports.iter().any(|report| report.regressed);
    if joined.status == OpStatus::Passed && joined.cases != joined.planned {
        joined.status = OpStatus::Unfinished;
        joined.message = Some(format!("only {} of {} cases are in the reports", joined.cases, joined.planned));
    }
    joined
}

struct JoinedCase<'a> {
    facts: &'a CaseFacts,
    summary: Option<&'a CaseSummary>,
    failure: Option<&'a ValidationResult>,
}

/// The cases of a shard with what its report lists of them. It lists the first ones of both kinds, and the whole run
/// lists no more of each shard than that.
fn cases_of<'a>(report: &'a OpReport, part: &'a OpPart) -> Vec<JoinedCase<'a>> {
    let (mut summaries, mut failures) = (report.case_results.iter(), report.failures.iter());
    let listed = part.cases.iter().map(|facts| {
        let failed = facts.outcome == Outcome::Failed;
        let failure = if failed { failures.next() } else { None };
        JoinedCase { facts, summary: summaries.next(), failure }
    });
    listed.collect()
}
