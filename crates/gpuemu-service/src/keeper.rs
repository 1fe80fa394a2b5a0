//! Keeps the cases of one op in the store as they are judged, and tells the job how far it is.

use std::ops::ControlFlow;
use std::time::{Duration, Instant};

use gpuemu_config::failure::Failure;
use gpuemu_process::fault;
use gpuemu_run::case_loop::{Event, Judged, Sink, Stop};
use gpuemu_run::op_run::Run;
use gpuemu_run::project::Project;
use gpuemu_store::{FailureRecord, ResultRecord};

use super::Service;
use super::validate::snapshot_of;
use crate::jobs::Job;

/// Results that are written together, unless this long has passed.
const BATCH: usize = 256;
const BATCH_TIME: Duration = Duration::from_millis(250);

/// What takes the cases of one op.
pub(super) struct Keeper<'a> {
    service: &'a Service,
    project: &'a Project,
    run: &'a Run,
    job: &'a Job,
    results: Vec<ResultRecord>,
    failures: Vec<FailureRecord>,
    written: Instant,
}

impl<'a> Keeper<'a> {
    pub(super) fn new(service: &'a Service, project: &'a Project, run: &'a Run, job: &'a Job) -> Self {
        Self { service, project, run, job, results: Vec::new(), failures: Vec::new(), written: Instant::now() }
    }

    fn keep(&mut self, judged: &Judged<'_>) {
        fault!("case.record");
        let Judged { op, index, case, verdict, .. } = *judged;
        let (key, run) = (&self.project.key, self.run);
        let record = ResultRecord::of(&verdict.result, key, run.number, index, run.plan.base_seed);
        if verdict.failed() {
            fault!("case.snapshot");
            let snapshot = snapshot_of(op, case, self.project.config.storage.snapshot_bytes);
            self.failures.push(FailureRecord { result: record.clone(), snapshot });
        }
        self.results.push(record);
    }

    fn write(&mut self) -> Result<(), Failure> {
        self.service.store.append(&self.results, &self.failures)?;
        self.results.clear();
        self.failures.clear();
        self.written = Instant::now();
        Ok(())
    }
}

impl Sink for Keeper<'_> {
    fn take(&mut self, event: &Event<'_>) -> ControlFlow<Stop> {
        let due = match event {
            Event::CaseDue { .. } if self.job.is_cancelled() => return ControlFlow::Break(Stop::Cancelled),
            Event::CaseDue { .. } => false,
            Event::CaseJudged(judged) => {
                self.keep(judged);
                if !judged.again {
                    self.job.advance(judged.verdict.failed());
                }
                self.results.len() >= BATCH || self.written.elapsed() >= BATCH_TIME
            }
            Event::CasesEnded => true,
        };
        match if due { self.write() } else { Ok(()) } {
            Ok(()) => ControlFlow::Continue(()),
            Err(failure) => ControlFlow::Break(Stop::Failed(failure.message)),
        }
    }
}
