//! Many cases of one op for one callable: the next ones are made while the callable runs.

use std::sync::mpsc::{Receiver, sync_channel};
use std::time::{Duration, Instant};

use gpuemu_engine::case::materialise;
use gpuemu_engine::minimise::{Budget, MinimiseStrategy, minimise};
use gpuemu_engine::ops::{Expectation, OpError};
use gpuemu_engine::oracle::calibrate::calibrate;
use gpuemu_engine::oracle::state::repeat;
use gpuemu_engine::oracle::{judge, judge_expected};
use gpuemu_engine::runner::{RunnerDescription, RunnerKind};
use gpuemu_engine::{Case, Tolerance, Verdict};
use gpuemu_model::finding::{BugClass, Outcome};
use gpuemu_model::json::ToJson;
use gpuemu_model::report::OpReport;
use gpuemu_model::shard::Shard;
use gpuemu_run::configured_op::ConfiguredOp;
use gpuemu_run::tally::Tally;
use gpuemu_tensor::DType;
use gpuemu_tensor::rng::case_seed;
use pyo3::prelude::*;
use serde::Deserialize;
use serde_json::json;

use crate::callable::{CallableRunner, Calling};
use crate::ready_op::{ReadyOp, accepted_of};
use crate::refusal::invalid;

/// Cases made ahead of the callable.
const AHEAD: usize = 8;

/// Results handed over together, unless this long has passed.
const BATCH: usize = 256;
const BATCH_TIME: Duration = Duration::from_millis(250);

/// How often progress is shown.
const PROGRESS_TIME: Duration = Duration::from_millis(100);

/// What is run.
#[derive(Debug, Clone, Deserialize)]
#[serde(deny_unknown_fields)]
struct Plan {
    /// Case seeds that come first: failures of earlier runs.
    #[serde(with = "gpuemu_model::seed_text::list")]
    replayed: Vec<u64>,
    /// Base seed of the others.
    #[serde(with = "gpuemu_model::seed_text")]
    base_seed: u64,
    /// Cases in all, those replayed not counted.
    cases: u64,
    /// Only the cases of one shard, and what joining it with the others takes.
    #[serde(default)]
    shard: Option<Shard>,
    /// Seconds after which no new case is begun.
    seconds: Option<f64>,
    /// Stop at the first failure.
    fail_fast: bool,
    /// Calls of the first case after all others, and the seconds they may take.
    repeats: usize,
    repeat_seconds: f64,
}

/// What a callable can be checked for.
#[derive(Debug, Clone, Deserialize)]
#[serde(deny_unknown_fields)]
struct Traits {
    name: String,
    layouts: bool,
    writes_into_buffers: bool,
    inputs_watched: bool,
    refills: bool,
    dictionary: bool,
}

/// A case made ahead.
struct Prepared {
    case: Result<Case, String>,
    expected: Option<Result<Vec<Expectation>, OpError>>,
    seed: u64,
    /// Its place among the cases of the run.
    index: u64,
}

/// The cases of one op for one callable.
#[pyclass]
pub struct OpRun {
    op: Py<ReadyOp>,
    fitted: ConfiguredOp,
    runner: CallableRunner,
}

/// What happens between two cases: results leave, progress is shown, interrupts are seen.
struct Outlet {
    sink: Option<Py<PyAny>>,
    progress: Option<Py<PyAny>>,
    results: Vec<String>,
    written: Instant,
    shown: Instant,
}

impl Outlet {
    fn keep(&mut self, text: String) -> PyResult<()> {
        self.results.push(text);
        let due = self.results.len() >= BATCH || self.written.elapsed() >= BATCH_TIME;
        if due { self.flush() } else { Ok(()) }
    }

    fn flush(&mut self) -> PyResult<()> {
        let results = std::mem::take(&mut self.results);
        self.written = Instant::now();
        match &self.sink {
            Some(sink) if !results.is_empty() => Python::attach(|py| sink.call1(py, (results,))).map(|_| ()),
            _ => Ok(()),
        }
    }

    fn pause(&mut self, report: &OpReport, total: u64) -> PyResult<()> {
        let show = self.progress.as_ref().filter(|_| self.shown.elapsed() >= PROGRESS_TIME);
        Python::attach(|py| {
            if let Some(progress) = show {
                progress.call1(py, (report.cases, total, report.failed))?;
                self.shown = Instant::now();
            }
            py.check_signals()
        })
    }
}

#[pymethods]
impl OpRun {
    /// One op and one callable. `traits` and `accepted` are JSON about the callable inside of the bridge.
    #[new]
    fn new(py: Python<'_>, op: Py<ReadyOp>, bridge: Py<PyAny>, accepted: &str, traits: &str) -> PyResult<Self> {
        let accepted = accepted_of(py, accepted)?;
        let traits: Traits =
            serde_json::from_str(traits).map_err(|error| invalid(py, &format!("traits cannot be read: {error}")))?;
        let mut fitted = op.get().op.clone();
        let withheld = fitted.fit(Some(&accepted));
        let dictionary = traits.dictionary;
        let calling = Calling { bridge, accepted, withheld, extra: fitted.extra().clone(), dictionary };
        let description = RunnerDescription {
            name: traits.name,
            kind: RunnerKind::Callable,
            layouts: traits.layouts,
            writes_into_buffers: traits.writes_into_buffers,
            inputs_watched: traits.inputs_watched,
            refills: traits.refills,
        };
        Ok(Self { op, fitted, runner: CallableRunner::new(description, calling) })
    }

    /// Runs the cases of a plan; the report as JSON. `sink` is given the results as JSON texts.
    #[pyo3(signature = (plan, sink=None, progress=None))]
    fn run(
        &mut self,
        py: Python<'_>,
        plan: &str,
        sink: Option<Py<PyAny>>,
        progress: Option<Py<PyAny>>,
    ) -> PyResult<String> {
        let plan: Plan =
            serde_json::from_str(plan).map_err(|error| invalid(py, &format!("the plan cannot be read: {error}")))?;
        let now = Instant::now();
        let outlet = Outlet { sink, progress, results: Vec::new(), written: now, shown: now };
        let report = py.detach(|| self.run_cases(&plan, outlet))?;
        Ok(report.to_json().unwrap_or_default())
    }

    /// Judges the case of one seed; the result as JSON.
    fn judge(&mut self, py: Python<'_>, seed: u64) -> PyResult<String> {
        let judged = py.detach(|| self.judge_seed(seed));
        self.broken()?;
        let (case, verdict) = judged.map_err(|message| invalid(py, &message))?;
        Ok(self.op.get().result(&verdict, &case).to_json().unwrap_or_default())
    }

    /// Shrinks the failing case of a seed; JSON, or nothing where it does not fail.
    fn minimise(&mut self, py: Python<'_>, seed: u64, runs: usize, seconds: f64) -> PyResult<Option<String>> {
        let descriptor = self.fitted.subject.describe(&self.fitted.sampler, seed);
        let budget = Budget { runs, time: Duration::from_secs_f64(seconds.clamp(0.0, 1e9)) };
        // A dtype that nobody asked for says nothing about the callable.
        let dtypes = self.fitted.sampler.dtypes.clone();
        let subject = self
            .fitted
            .subject
            .clone()
            .reshaped(|schema| schema.dtypes.retain(|dtype| dtypes.is_empty() || dtypes.contains(dtype)));
        let found = py.detach(|| minimise(&subject, &descriptor, &mut self.runner, MinimiseStrategy::Combined, budget));
        self.broken()?;
        let Some(found) = found else { return Ok(None) };
        let result = self.op.get().result(&found.verdict, &found.case);
        let neighbour = found
            .neighbour
            .map(|near| json!({"dimension": near.dimension, "fails": near.fails, "passes": near.passes}));
        let answer = json!({
            "minimized": result, "neighbour": neighbour, "runs": found.runs, "values_edited": found.edited,
        });
        Ok(Some(answer.to_string()))
    }

    /// Measures the callable as a trusted control: p95 and tightest tolerance, as JSON.
    fn calibrate(&mut self, py: Python<'_>, dtype: &str, base_seed: u64, cases: usize) -> PyResult<String> {
        let dtype: DType = dtype.parse().map_err(|error| invalid(py, &format!("{error}")))?;
        let subject = &self.fitted.subject;
        let runner = &mut self.runner;
        let measured = py.detach(|| calibrate(subject, runner, &self.fitted.sampler, dtype, base_seed, cases));
        self.broken()?;
        let measured = measured.map_err(|error| invalid(py, &error.to_string()))?;
        let pair = |tolerance: Tolerance| match tolerance {
            Tolerance::Fixed { atol, rtol } | Tolerance::Calibrated { atol, rtol } => json!([atol, rtol]),
            Tolerance::Bound => json!(null),
        };
        let answer = json!({
            "envelope": pair(measured.envelope), "tightest": pair(measured.tightest), "errors": measured.errors,
        });
        Ok(answer.to_string())
    }

    /// What is not exercised, and why.
    fn warnings(&self) -> Vec<String> {
        self.fitted.warnings.clone()
    }

    /// Calls made so far.
    fn calls(&self) -> u64 {
        self.runner.calls()
    }
}

impl OpRun {
    /// An exception that says nothing about the callable ends everything.
    fn broken(&mut self) -> PyResult<()> {
        self.op.get().interrupted()?;
        self.runner.take_broken().map_or(Ok(()), Err)
    }

    fn judge_seed(&mut self, seed: u64) -> Result<(Case, Verdict), String> {
        let subject = &self.fitted.subject;
        let descriptor = subject.describe(&self.fitted.sampler, seed);
        let case = materialise(subject.schema(), &descriptor).map_err(|error| error.to_string())?;
        let verdict = judge(subject, &case, &mut self.runner);
        Ok((case, verdict))
    }

    fn run_cases(&mut self, plan: &Plan, mut outlet: Outlet) -> PyResult<OpReport> {
        let started = Instant::now();
        let limit = plan.seconds.and_then(|seconds| Duration::try_from_secs_f64(seconds).ok());
        let deadline = limit.and_then(|limit| started.checked_add(limit));
        let shard = plan.shard.unwrap_or(Shard::WHOLE);
        let total = plan.replayed.len() as u64 + shard.size(plan.cases);
        let tally = Tally::new(&self.fitted.name, &self.fitted.warnings);
        let mut tally = if plan.shard.is_some() { tally.keep_part() } else { tally };
        // A reference in Python would wait for the callable and may not be made for two threads.
        let (subject, sampler) = (self.fitted.subject.clone(), self.fitted.sampler.clone());
        let ahead = self.op.get().reference.is_none();
        let first = std::thread::scope(|scope| {
            let (sender, receiver) = sync_channel::<Prepared>(AHEAD);
            let replayed = (0..).zip(plan.replayed.iter().copied());
            let (before, base_seed) = (plan.replayed.len() as u64, plan.base_seed);
            let drawn = shard.cases(plan.cases).map(move |index| (before + index, case_seed(base_seed, index)));
            let seeds = replayed.chain(drawn);
            scope.spawn(move || {
                for (index, seed) in seeds {
                    let descriptor = subject.describe(&sampler, seed);
                    let case = materialise(subject.schema(), &descriptor).map_err(|error| error.to_string());
                    let expected = case.as_ref().ok().filter(|_| ahead).map(|case| subject.expect(case));
                    if sender.send(Prepared { case, expected, seed, index }).is_err() {
                        break;
                    }
                }
            });
            self.consume(&receiver, plan, deadline, total, &mut tally, &mut outlet)
        })?;
        if let Some((index, case, verdict)) = first.filter(|_| tally.report.failed == 0 && plan.repeats > 0) {
            self.repeat(index, &case, verdict, plan, &mut tally, &mut outlet)?;
        }
        outlet.flush()?;
        let mut report = tally.conclude(self.op.get().warn_threshold);
        if self.runner.surplus() {
            report.not_checked.push("optional outputs".to_string());
            // Joined, it is what the cases say.
            let last = report.part.as_mut().and_then(|part| part.cases.last_mut());
            last.into_iter().for_each(|facts| facts.not_checked.push("optional outputs".to_string()));
        }
        report.planned = if plan.seconds.is_some() { report.cases } else { total };
        report.runner.clone_from(&gpuemu_engine::Runner::description(&self.runner).name);
        report.reference.clone_from(&self.fitted.reference);
        report.seconds = started.elapsed().as_secs_f64();
        Ok(report)
    }

    /// Judges the cases as they come; the first that passed, to come back to.
    fn consume(
        &mut self,
        receiver: &Receiver<Prepared>,
        plan: &Plan,
        deadline: Option<Instant>,
        total: u64,
        tally: &mut Tally,
        outlet: &mut Outlet,
    ) -> PyResult<Option<(u64, Case, Verdict)>> {
        let mut first: Option<(u64, Case, Verdict)> = None;
        let mut explained = false;
        for Prepared { case, expected, seed, index } in receiver.iter() {
            if deadline.is_some_and(|deadline| Instant::now() >= deadline) {
                break;
            }
            let case = match case {
                Ok(case) => case,
                Err(error) => {
                    tally.stop(format!("the case with seed {seed} cannot be made: {error}"));
                    break;
                }
            };
            let subject = &self.fitted.subject;
            let expected = expected.unwrap_or_else(|| subject.expect(&case));
            let mut verdict = judge_expected(subject, &case, expected, &mut self.runner);
            if let (true, false, Some((_, earlier, _))) = (verdict.failed(), explained, &first) {
                explained = true;
                let (_, again) = repeat(subject, earlier, &mut self.runner, 1, Duration::ZERO);
                if let (Some(_), Some(finding)) = (again, verdict.findings.first_mut()) {
                    finding.bug_class = BugClass::FirstCallsOnly;
                    finding.explanation.push_str(&format!(
                        "; the case with seed {}, which passed before, fails now too: right in the first calls only",
                        earlier.descriptor.seed
                    ));
                }
            }
            self.broken()?;
            let result = self.op.get().result(&verdict, &case);
            outlet.keep(result.to_json().unwrap_or_default())?;
            tally.add(index, &verdict, &result);
            if verdict.outcome == Outcome::Error {
                tally.stop(verdict.undetermined.unwrap_or_default());
                break;
            }
            let failed = verdict.failed();
            if first.is_none() && verdict.outcome == Outcome::Passed && verdict.elements.compared > 0 {
                first = Some((index, case, verdict));
            }
            outlet.pause(&tally.report, total)?;
            if failed && plan.fail_fast {
                break;
            }
        }
        Ok(first)
    }

    /// The first case again, many times: what was right in the first calls must stay right.
    fn repeat(
        &mut self,
        index: u64,
        case: &Case,
        mut verdict: Verdict,
        plan: &Plan,
        tally: &mut Tally,
        outlet: &mut Outlet,
    ) -> PyResult<()> {
        let time = Duration::from_secs_f64(plan.repeat_seconds.clamp(0.0, 1e9));
        let (_, finding) = repeat(&self.fitted.subject, case, &mut self.runner, plan.repeats, time);
        self.broken()?;
        if let Some(finding) = finding {
            verdict.outcome = Outcome::Failed;
            verdict.findings = vec![finding];
            let result = self.op.get().result(&verdict, case);
            outlet.keep(result.to_json().unwrap_or_default())?;
            tally.fail(index, &verdict, &result);
        }
        Ok(())
    }
}
