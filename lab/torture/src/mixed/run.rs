//! Cases that the daemon runs: of a kernel as a job, of a Python module at once.

use gpuemu_model::report::OpStatus;
use gpuemu_model::settings::{FuzzConfig, ProjectReference};
use gpuemu_wire::protocol::{FuzzOp, JobReference, JobState, Request, Response};

use super::{MixedClient, holds, other};
use crate::kernel_project::RIGHT;

/// Cases of each run.
const CASES: u64 = 3;

impl MixedClient {
    pub(super) fn job(&mut self) -> Result<(), String> {
        let project = self.projects.kernels.clone();
        let job = Box::new(Request::FuzzOp(self.fuzz(project, RIGHT)));
        let mut status = match self.call(&Request::SubmitJob { job })? {
            Response::Job { job } => job,
            answer => return other(&answer),
        };
        while status.state == JobState::Running {
            status = match self.call(&Request::JobStatus(JobReference { job: status.job, wait_ms: 10_000 }))? {
                Response::Job { job } => job,
                answer => return other(&answer),
            };
        }
        match status.result {
            Some(answer) => self.passed(&answer),
            None => Err("the job ended without a result".to_string()),
        }
    }

    pub(super) fn python(&mut self) -> Result<(), String> {
        let Some(project) = self.projects.python.clone() else { return self.ping() };
        let request = Request::FuzzOp(self.fuzz(project, "relu"));
        let answer = self.call(&request)?;
        self.passed(&answer)
    }

    fn fuzz(&mut self, project: ProjectReference, op: &str) -> FuzzOp {
        let seed = Some(self.choices.next_word());
        let config = FuzzConfig { iterations: Some(CASES), seed, quick: true, ..FuzzConfig::default() };
        FuzzOp { project, op_name: op.to_string(), config, fail_fast: false, shard: None }
    }

    /// A run in which every case was run and none failed.
    fn passed(&mut self, answer: &Response) -> Result<(), String> {
        let Response::Report { report } = answer else { return other(answer) };
        let [op] = report.ops.as_slice() else { return Err(format!("it has {} ops", report.ops.len())) };
        self.keeps(op.cases, op.failed);
        holds(op.cases == CASES && op.status == OpStatus::Passed && report.passed, || {
            format!("{} of {CASES} cases were run, {:?}: {:?}", op.cases, op.status, op.message)
        })
    }
}
