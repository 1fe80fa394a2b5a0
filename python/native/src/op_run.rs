//! Many cases of one op for one callable, in the process of the caller.

use std::ops::ControlFlow;
use std::time::{Duration, Instant};

use gpuemu_engine::case::materialise;
use gpuemu_engine::minimise::{Budget, MinimiseStrategy, minimise};
use gpuemu_engine::oracle::calibrate::calibrate;
use gpuemu_engine::oracle::judge;
use gpuemu_engine::runner::{Runner, RunnerDescription, RunnerKind};
use gpuemu_engine::{Case, Tolerance, Verdict};
use gpuemu_model::json::ToJson;
use gpuemu_model::report::OpReport;
use gpuemu_model::shard::Shard;
use gpuemu_run::case_loop::{self, Event, Limit, Repeats, Sink, Stop, run_cases};
use gpuemu_run::configured_op::ConfiguredOp;
use gpuemu_tensor::DType;
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
    /// The keyword by which it is given memory for its outputs.
    out: Option<String>,
    inputs_watched: bool,
    refills: bool,
    dictionary: bool,
}

impl Plan {
    /// As the loop has it. A reference in Python would wait for the callable: no case is made ahead of that.
    fn of_the_loop(self, ahead: usize) -> case_loop::Plan {
        let limit = self.seconds.and_then(|seconds| Duration::try_from_secs_f64(seconds).ok());
        let deadline = limit.and_then(|limit| Instant::now().checked_add(limit));
        case_loop::Plan {
            replayed: self.replayed,
            base_seed: self.base_seed,
            cases: self.cases,
            shard: self.shard,
            limit: deadline.map(|deadline| Limit { deadline, is_goal: true }),
            fail_fast: self.fail_fast,
            repeats: Repeats {
                calls: self.repeats,
                time: Duration::from_secs_f64(self.repeat_seconds.clamp(0.0, 1e9)),
            },
            ahead,
        }
    }
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
    /// What ended the run: an interrupt, or an exception of the sink.
    raised: Option<PyErr>,
}

impl Outlet {
    fn new(sink: Option<Py<PyAny>>, progress: Option<Py<PyAny>>) -> Self {
        let now = Instant::now();
        Self { sink, progress, results: Vec::new(), written: now, shown: now, raised: None }
    }

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
        let show = self.progress.as_ref().filter(|_| report.cases > 0 && self.shown.elapsed() >= PROGRESS_TIME);
        Python::attach(|py| {
            if let Some(progress) = show {
                progress.call1(py, (report.cases, total, report.failed))?;
                self.shown = Instant::now();
            }
            py.check_signals()
        })
    }
}

impl Sink for Outlet {
    fn take(&mut self, event: &Event<'_>) -> ControlFlow<Stop> {
        let taken = match event {
            Event::CaseDue { so_far, planned } => self.pause(so_far, *planned),
            Event::CaseJudged(judged) => self.keep(judged.verdict.result.to_json().unwrap_or_default()),
            Event::CasesEnded => self.flush(),
        };
        match taken {
            Ok(()) => ControlFlow::Continue(()),
            Err(error) => {
                self.raised.get_or_insert(error);
                ControlFlow::Break(Stop::Cancelled)
            }
        }
    }
}

#[pymethods]
impl OpRun {
    /// One op and one callable. `traits` and `accepted` are JSON about the callable inside of the bridge.
    #[new]
    fn new(py: Python<'_>, op: Py<ReadyOp>, bridge: Py<PyAny>, accepted: &str, traits: &str) -> PyResult<Self> {
        let traits: Traits =
            serde_json::from_str(traits).map_err(|error| invalid(py, &format!("traits cannot be read: {error}")))?;
        let accepted = accepted_of(py, accepted)?.without(traits.out.as_deref());
        let mut fitted = op.get().op.clone();
        let withheld = fitted.fit(Some(&accepted));
        let dictionary = traits.dictionary;
        let calling = Calling { bridge, accepted, withheld, extra: fitted.extra().clone(), dictionary };
        let description = RunnerDescription {
            name: traits.name,
            kind: RunnerKind::Callable,
            layouts: traits.layouts,
            writes_into_buffers: traits.out.is_some(),
            inputs_watched: traits.inputs_watched,
            refills: traits.refills,
            remembers: true,
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
        let report = py.detach(|| self.run_cases(plan, Outlet::new(sink, progress)))?;
        Ok(report.to_json().unwrap_or_default())
    }

    /// Judges the case of one seed; the result as JSON.
    fn judge(&mut self, py: Python<'_>, seed: u64) -> PyResult<String> {
        let judged = py.detach(|| self.judge_seed(seed));
        self.broken()?;
        let (case, verdict) = judged.map_err(|message| invalid(py, &message))?;
        Ok(self.op.get().result(verdict, &case).to_json().unwrap_or_default())
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
        let result = self.op.get().result(found.verdict, &found.case);
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

    fn run_cases(&mut self, plan: Plan, mut outlet: Outlet) -> PyResult<OpReport> {
        let op = self.op.get();
        let plan = plan.of_the_loop(if op.reference.is_none() { AHEAD } else { 0 });
        let mut report = run_cases(&self.fitted, &mut self.runner, &plan, op.context(), &mut outlet);
        outlet.raised.map_or(Ok(()), Err)?;
        self.broken()?;
        report.runner.clone_from(&self.runner.description().name);
        report.reference.clone_from(&self.fitted.reference);
        Ok(report)
    }
}
