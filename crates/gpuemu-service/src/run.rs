//! A run over the ops of a project.

use std::collections::VecDeque;
use std::sync::{Mutex, PoisonError};
use std::time::{Duration, Instant};

use gpuemu_config::Seed;
use gpuemu_config::failure::Failure;
use gpuemu_model::error_code::ErrorCode;
use gpuemu_model::finding::Outcome;
use gpuemu_model::report::{ComparisonReport, Conclusion, OpComparison, OpReport, OpStatus, RunReport};
use gpuemu_model::settings::{FuzzConfig, Mode};
use gpuemu_model::shard::{RunPart, Shard};
use gpuemu_process::fault;
use gpuemu_run::case_loop::{Limit, Plan, Repeats};
use gpuemu_run::configured_op::ConfiguredOp;
use gpuemu_run::expected;
use gpuemu_run::op_run::{Run, broken, broken_off, not_run, run_op};
use gpuemu_run::project::Project;
use gpuemu_run::result::now;
use gpuemu_wire::protocol::{BaselineReference, FuzzOp, Response, RunCi};

use super::artifacts::Look;
use super::keeper::Keeper;
use super::{Service, VERSION};
use crate::jobs::Job;

/// A seed that nobody chose.
pub(super) fn random_seed() -> u64 {
    // The system's source has never failed where a process could start; a clock is another seed nobody chose.
    getrandom::u64().unwrap_or_else(|_| now())
}

/// The base seed that was asked for, that the project names, or that nobody chose.
pub(super) fn base_seed(project: &Project, config: &FuzzConfig) -> u64 {
    config.seed.unwrap_or(match project.config.validation.seed {
        Seed::Fixed(seed) => seed,
        Seed::Random => random_seed(),
    })
}

impl Service {
    /// Tries many cases of one op.
    pub(super) fn fuzz(&self, request: FuzzOp, job: &Job) -> Result<Response, Failure> {
        let run = RunCi {
            project: request.project,
            ops: vec![request.op_name],
            mode: Mode::Fuzz,
            config: request.config,
            parallel: None,
            fail_fast: request.fail_fast,
            shard: request.shard,
            baseline: None,
            fail_on_regression: false,
            kernels: Some(false),
            tools: None,
        };
        self.run(&run, job)
    }

    /// Tries cases of many ops.
    pub(super) fn run(&self, request: &RunCi, job: &Job) -> Result<Response, Failure> {
        let (time, started) = (now(), Instant::now());
        let injected = || Failure::new(ErrorCode::InternalError, "injected");
        let project = fault!("run.project", injected(), self.project(&request.project))?;
        let mut run = self.plan(&project, request)?;
        let mut warnings = Vec::new();
        let shard = request.shard.unwrap_or(Shard::WHOLE);
        let with_kernels = request.kernels.unwrap_or(request.ops.is_empty() && request.mode != Mode::Fuzz);
        let chosen = choose(&project, &request.ops, with_kernels)?;
        request.baseline.iter().try_for_each(|baseline| self.refuse_unknown(&project, baseline))?;
        // What is not made of cases is done once: kernels by the first shard, the comparison by the last.
        let with_kernels = with_kernels && shard.is_first();
        let baseline = request.baseline.as_ref().filter(|_| shard.is_last());
        let mut left_out = 0;
        // Wrong names and settings are found before the first op is run.
        let mut ready = VecDeque::new();
        let mut reports: Vec<(usize, OpReport)> = Vec::new();
        for (place, name) in chosen.iter().enumerate() {
            let opened = ConfiguredOp::open(&project, name, &run.settings, &self.pool);
            match fault!("op.open", injected(), opened) {
                Ok(op) if op.is_runnable() => ready.push_back((place, op)),
                Ok(op) if request.ops.is_empty() => {
                    left_out += 1;
                    warnings.push(format!("op '{name}' is left out: it is {}, no module or script runs it", op.source));
                }
                Ok(op) => {
                    let failure = op.start().err().unwrap_or_else(|| Failure::invalid("the op cannot be run"));
                    reports.push((place, broken(name, failure)));
                }
                Err(failure) if failure.code == ErrorCode::ConfigError => reports.push((place, broken(name, failure))),
                Err(failure) => return Err(failure),
            }
        }
        // Kernels come first: wrong names of rules are found before the first op is run, too.
        let look = Look { tools: request.tools.as_ref(), ..Look::default() };
        let looking = Instant::now();
        let kernels = if with_kernels { self.look_at_kernels(&project, &look, job)? } else { Vec::new() };
        // What compilers take is not taken from the ops.
        if let Some(limit) = &mut run.plan.limit {
            limit.deadline += looking.elapsed();
        }
        let part = request.shard.map(|shard| RunPart { shard, warnings: warnings.clone() });
        let planned = run.plan.total();
        job.plan(if run.plan.is_open_ended() { 0 } else { planned.saturating_mul(ready.len() as u64) });
        // A run that breaks off has results of cases that passed, and nobody to say that they are not all: this does.
        let begun = ready.iter().map(|(_, op)| OpReport { planned, ..broken_off(&op.name) }).collect();
        let blank = || project.config.blank_report(VERSION, mode_name(request.mode));
        self.keep_runs(
            &project,
            &RunReport { run: run.number, time, seed: run.plan.base_seed, ops: begun, ..blank() },
        )?;
        reports.extend(self.run_all(&project, ready, &run, request, job));
        reports.sort_by_key(|(place, _)| *place);
        let mut ops: Vec<OpReport> = reports.into_iter().map(|(_, report)| report).collect();
        for report in ops.iter_mut().filter(|report| report.status == OpStatus::Failed) {
            let before = self.passed_before(&project, &report.op, run.number);
            report.regressed = fault!("run.passed_before", injected(), before)?;
        }
        fault!("run.expected_failures");
        warnings.extend(expected::apply(&project.config, &mut ops));
        let comparison = match baseline {
            Some(baseline) if !job.is_cancelled() => {
                let only = (!request.ops.is_empty()).then_some(request.ops.as_slice());
                let kernels = with_kernels.then_some(kernels.as_slice());
                let comparison = self.compare(&project, baseline, only, kernels, job);
                let comparison = fault!("run.compare", injected(), comparison)?;
                let fails = request.fail_on_regression && comparison.regressed();
                Some(ComparisonReport { fails, ..comparison })
            }
            Some(baseline) => Some(cancelled(baseline)),
            None => None,
        };
        let mut report = RunReport {
            run: run.number,
            time,
            seconds: started.elapsed().as_secs_f64(),
            seed: run.plan.base_seed,
            settings: run.settings.clone(),
            part,
            ops,
            left_out,
            kernels,
            comparison,
            warnings,
            ..blank()
        };
        fault!("run.conclude");
        report.passed = report.conclusion() == Conclusion::Passed;
        fault!("run.keep", injected(), self.keep_runs(&project, &report))?;
        Ok(Response::Report { report: Box::new(report) })
    }

    fn plan(&self, project: &Project, request: &RunCi) -> Result<Run, Failure> {
        let (config, ci) = (&request.config, &project.config.ci);
        let seconds = config.seconds;
        if let Some(seconds) = seconds.filter(|seconds| !(*seconds > 0.0 && *seconds < 1e9)) {
            return Err(Failure::invalid(format!("'seconds' is {seconds}; it must be above 0")));
        }
        if config.iterations == Some(0) {
            return Err(Failure::invalid("'iterations' is 0: no case would be run"));
        }
        let standard = match request.mode {
            Mode::Quick => ci.quick_iterations,
            Mode::Thorough => ci.iterations,
            Mode::Fuzz => FuzzConfig::ITERATIONS,
        };
        let is_goal = seconds.is_some() && config.iterations.is_none();
        let cases = if is_goal { u64::MAX } else { config.iterations.unwrap_or(standard) };
        if let Some(shard) = request.shard {
            refuse_shard(shard, project, config, cases)?;
        }
        let most = match (seconds, request.mode) {
            (Some(seconds), _) => Some(Duration::from_secs_f64(seconds)),
            (None, Mode::Thorough) => Some(ci.thorough_timeout),
            (None, _) => None,
        };
        let deadline = most.and_then(|most| Instant::now().checked_add(most));
        let plan = Plan {
            shard: request.shard,
            limit: deadline.map(|deadline| Limit { deadline, is_goal }),
            fail_fast: request.fail_fast,
            repeats: Repeats::STANDARD,
            ..Plan::of(base_seed(project, config), cases)
        };
        let settings = FuzzConfig { quick: config.quick || request.mode == Mode::Quick, ..drawn_from(config) };
        Ok(Run { number: self.store.next_run(), settings, plan })
    }

    fn run_all(
        &self,
        project: &Project,
        ready: VecDeque<(usize, ConfiguredOp)>,
        run: &Run,
        request: &RunCi,
        job: &Job,
    ) -> Vec<(usize, OpReport)> {
        let cores = std::thread::available_parallelism().map_or(1, usize::from);
        let parallel = match request.parallel.unwrap_or(project.config.ci.parallel) {
            0 => cores,
            some => some,
        };
        let threads = parallel.clamp(1, ready.len().max(1));
        let count = ready.len().div_ceil(threads).max(1);
        let (queue, reports) = (Mutex::new(ready), Mutex::new(Vec::new()));
        let shared = run.plan.limit.filter(|limit| limit.is_goal);
        let shared = shared.map(|limit| limit.deadline.saturating_duration_since(Instant::now()));
        let work = || {
            loop {
                // Taken in a statement of its own: the lock must not be held while the op runs.
                let next = queue.lock().unwrap_or_else(PoisonError::into_inner).pop_front();
                let Some((place, op)) = next else { break };
                job.say(&op.name);
                let mut run = run.clone();
                if let Some(shared) = shared {
                    // Each op has its part of the time; none starves the others.
                    let deadline = Instant::now() + shared / count as u32;
                    run.plan.limit = Some(Limit { deadline, is_goal: true });
                }
                fault!("run.op");
                let report = run_op(project, op, &run, &mut Keeper::new(self, project, &run, job));
                let failed = report.status == OpStatus::Failed;
                reports.lock().unwrap_or_else(PoisonError::into_inner).push((place, report));
                if failed && run.plan.fail_fast {
                    let dropped = std::mem::take(&mut *queue.lock().unwrap_or_else(PoisonError::into_inner));
                    let unfinished = |(place, op): (usize, ConfiguredOp)| (place, not_run(&op.name));
                    reports.lock().unwrap_or_else(PoisonError::into_inner).extend(dropped.into_iter().map(unfinished));
                }
            }
        };
        std::thread::scope(|scope| {
            for _ in 1..threads {
                scope.spawn(work);
            }
            work();
        });
        reports.into_inner().unwrap_or_else(PoisonError::into_inner)
    }

    /// Whether an op passed in the last stored run before this one.
    pub(super) fn passed_before(&self, project: &Project, op: &str, run: u64) -> Result<bool, Failure> {
        let Some((_, results)) = self.last_own_run(project, op, Some(run))? else { return Ok(false) };
        let failed = results.iter().any(|result| result.result.outcome != Outcome::Passed);
        Ok(!failed && !results.is_empty())
    }
}

/// Shards are parts of one run: they need its seed, its number of cases, and a case each.
fn refuse_shard(shard: Shard, project: &Project, config: &FuzzConfig, iterations: u64) -> Result<(), Failure> {
    if config.seconds.is_some() {
        let message = format!("shard {shard} has no cases of its own where time decides how many there are");
        return Err(Failure::invalid(message).hint("give a number of cases in place of seconds"));
    }
    if config.seed.is_none() && project.config.validation.seed == Seed::Random {
        let message = format!("cannot run shard {shard} of a run with a random seed");
        return Err(Failure::invalid(message).hint("give all shards the same seed: --seed, or seed in [validation]"));
    }
    if u64::from(shard.count()) > iterations {
        let message = format!("there are {} shards, but only {iterations} cases of each op", shard.count());
        return Err(Failure::invalid(message).hint("use fewer shards, or more cases"));
    }
    Ok(())
}

/// A comparison that was asked for and not made.
fn cancelled(baseline: &BaselineReference) -> ComparisonReport {
    let name = match baseline {
        BaselineReference::Tag(tag) => tag,
        BaselineReference::Report { name, .. } => name,
    };
    let mut missing = OpComparison::not_compared("all ops");
    missing.message = Some("cancelled before it was compared".to_string());
    ComparisonReport { baseline: name.clone(), threshold: 0.0, fails: false, ops: vec![missing], artifacts: Vec::new() }
}

pub(super) fn mode_name(mode: Mode) -> &'static str {
    match mode {
        Mode::Quick => "quick",
        Mode::Thorough => "thorough",
        Mode::Fuzz => "fuzz",
    }
}

/// The part of the settings that decides which case a seed gives.
pub(super) fn drawn_from(config: &FuzzConfig) -> FuzzConfig {
    FuzzConfig { iterations: None, seconds: None, seed: None, ..config.clone() }
}

/// The names of the ops that a run is about; there may be none where there are kernels.
pub(super) fn choose(project: &Project, ops: &[String], with_kernels: bool) -> Result<Vec<String>, Failure> {
    if !ops.is_empty() {
        let mut names: Vec<String> = Vec::new();
        for name in ops {
            if !names.contains(name) {
                names.push(name.clone());
            }
        }
        return Ok(names);
    }
    let names: Vec<String> = project.config.ops.iter().map(|op| op.name.clone()).collect();
    let kernels = with_kernels && !project.config.kernels.is_empty();
    if names.is_empty() && !kernels {
        let message = format!("{} defines no op", project.config.file.display());
        let hint = "add an [[ops]] entry, or run `gpuemu init --with-examples` in an empty folder to see one";
        return Err(Failure::new(ErrorCode::ConfigError, message).hint(hint));
    }
    Ok(names)
}
