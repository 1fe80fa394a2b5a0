//! What is there: the daemon, ops, stored results.

use gpuemu_model::error_code::ErrorCode;
use gpuemu_model::finding::Outcome;
use gpuemu_model::report::{OpStatus, ValidationResult};
use gpuemu_model::settings::ProjectReference;
use gpuemu_wire::ClientError;
use gpuemu_wire::protocol::{GetTestCase, ListResults, ProjectOnly, ReportStored, Request, Response};

use super::{MixedClient, holds, other};
use crate::kernel_project::{RIGHT, WRONG};

/// Results that are asked for.
const LISTED: usize = 10;

impl MixedClient {
    pub(super) fn ping(&mut self) -> Result<(), String> {
        match self.call(&Request::Ping { protocol_version: None })? {
            Response::Pong { .. } => Ok(()),
            answer => other(&answer),
        }
    }

    /// Everything of this client that was acknowledged counts already.
    pub(super) fn status(&mut self) -> Result<(), String> {
        let kept = self.kept;
        match self.call(&Request::Status)? {
            Response::Status { status } => {
                let enough = status.stored.results >= kept.results && status.stored.failures >= kept.failures;
                holds(enough, || format!("{:?} are stored, {kept:?} were acknowledged", status.stored))
            }
            answer => other(&answer),
        }
    }

    pub(super) fn ops(&mut self) -> Result<(), String> {
        let project = self.projects.kernels.clone();
        match self.call(&Request::ListOps(ProjectOnly { project }))? {
            Response::Ops { ops } => {
                let names: Vec<&str> = ops.iter().map(|op| op.name.as_str()).collect();
                holds(names == [RIGHT, WRONG], || format!("its ops are {names:?}"))
            }
            answer => other(&answer),
        }
    }

    pub(super) fn results(&mut self, project: &ProjectReference) -> Result<(), String> {
        let op = if self.choices.chance(1, 2) { "relu" } else { "recorded" };
        let results = self.listed(Request::ListResults(newest(project, Some(op))))?;
        holds(results.iter().all(|result| result.op == op), || format!("not all of them are of {op}"))
    }

    pub(super) fn failures(&mut self, project: &ProjectReference) -> Result<(), String> {
        let failures = self.listed(Request::ListFailures(newest(project, None)))?;
        let failed = |one: &ValidationResult| one.outcome == Outcome::Failed && !one.failures.is_empty();
        holds(failures.iter().all(failed), || "one of them is no failure".to_string())
    }

    fn listed(&mut self, request: Request) -> Result<Vec<ValidationResult>, String> {
        match self.call(&request)? {
            Response::Results { results } => {
                holds(results.len() <= LISTED, || format!("{} were listed, not {LISTED}", results.len()))?;
                holds(results.is_sorted_by_key(|result| std::cmp::Reverse(result.run)), || "not by run".to_string())?;
                Ok(results)
            }
            answer => other(&answer),
        }
    }

    /// Whatever is counted, failures are never counted as passed.
    pub(super) fn report(&mut self, project: &ProjectReference) -> Result<(), String> {
        let request =
            ReportStored { project: project.clone(), op_name: Some("recorded".to_string()), since_hours: None };
        match self.call(&Request::ReportStored(request))? {
            Response::Report { report } => holds(
                report.ops.iter().all(|op| op.op == "recorded" && op.passed + op.failed == op.cases)
                    && report.ops.iter().all(|op| (op.status == OpStatus::Passed) == (op.failed == 0)),
                || "it does not add up".to_string(),
            ),
            answer => other(&answer),
        }
    }

    pub(super) fn unknown(&mut self, project: &ProjectReference) -> Result<(), String> {
        let request = GetTestCase {
            project: project.clone(),
            op_name: "no_such_op".to_string(),
            seed: Some(1),
            config: Default::default(),
            encoding: Default::default(),
        };
        let answer = self.client.call(&Request::GetTestCase(request));
        self.answered += 1;
        match answer {
            Err(ClientError::Refused { code: ErrorCode::OpNotFound, .. }) => Ok(()),
            Err(error) => Err(format!("another error: {error}")),
            Ok(answer) => other(&answer),
        }
    }
}

fn newest(project: &ProjectReference, op: Option<&str>) -> ListResults {
    let (project, op_name) = (project.clone(), op.map(ToString::to_string));
    ListResults { project, op_name, limit: Some(LISTED as u64), since_hours: None }
}
