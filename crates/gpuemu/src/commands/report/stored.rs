//! The report on stored results: of each op its newest run.

use gpuemu_model::report::{Conclusion, RunReport};
use gpuemu_process::fault;
use gpuemu_wire::client::unexpected;
use gpuemu_wire::protocol::{ReportStored, Request, Response};

use super::Arguments;
use crate::expected_error::ExpectedError;
use crate::options::kernels::{ProjectLook, look_at_kernels};
use crate::session::Session;

/// The report on what is stored.
pub fn report(session: &mut Session, arguments: &Arguments) -> Result<RunReport, ExpectedError> {
    let request =
        ReportStored { project: session.project(), op_name: arguments.op.clone(), since_hours: arguments.since_hours };
    let stored = match session.call(&Request::ReportStored(request))? {
        Response::Report { report } => *report,
        other => return Err(unexpected(&other).into()),
    };
    let with_kernels = arguments.include_lint || arguments.include_artifacts;
    let has_kernels = !session.config.kernels.is_empty();
    let kernels = match with_kernels && has_kernels {
        true => look_at_kernels(session, ProjectLook::default())?.kernels,
        false => Vec::new(),
    };
    if stored.ops.is_empty() && kernels.is_empty() {
        let hint = "run `gpuemu test` first, or ask for a longer time";
        return Err(ExpectedError::new("no result of this project is stored for that time", hint));
    }
    fault!("report.stored");
    let mut report = RunReport {
        time: stored.time,
        ops: stored.ops,
        kernels,
        ..session.config.blank_report(env!("CARGO_PKG_VERSION"), "stored")
    };
    if with_kernels && !has_kernels {
        report.warnings.push("this project has no compiled kernels".to_string());
    }
    report.passed = report.conclusion() == Conclusion::Passed;
    Ok(report)
}
