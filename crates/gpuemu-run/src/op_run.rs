//! One op of a project in one run: started, tried case by case, put down in a report.

use std::time::Instant;

use gpuemu_config::failure::Failure;
use gpuemu_model::error_code::ErrorCode;
use gpuemu_model::report::{OpReport, OpStatus};
use gpuemu_model::settings::FuzzConfig;
use gpuemu_process::fault;

use crate::case_loop::{Plan, Sink, run_cases};
use crate::configured_op::{ConfiguredOp, StartedOp};
use crate::project::Project;
use crate::result::Context;
use crate::sources::digests;

/// The run that an op is tried in.
#[derive(Debug, Clone)]
pub struct Run {
    pub number: u64,
    /// What cases are drawn from.
    pub settings: FuzzConfig,
    /// The same for every op.
    pub plan: Plan,
}

/// Starts an op and tries its cases.
pub fn run_op(project: &Project, op: ConfiguredOp, run: &Run, sink: &mut dyn Sink) -> OpReport {
    let started = Instant::now();
    let (name, line, source, reference) = (op.name.clone(), op.line, op.source.clone(), op.reference.clone());
    // Before anything of it runs: what is edited meanwhile is not what was tried.
    let sources = digests(&project.config.root, &op.files());
    let injected = || Failure::new(ErrorCode::InternalError, "injected");
    let mut report = match fault!("op.start", injected(), op.start()) {
        Ok(StartedOp { op, mut runner }) => {
            let warn_threshold = project.config.policies.warn_threshold;
            let context = Context::new(&op.name, Some(run.number), &run.settings, warn_threshold);
            run_cases(&op, &mut runner, &run.plan, context, sink)
        }
        Err(failure) => OpReport { planned: run.plan.planned(0), ..broken(&name, failure) },
    };
    (report.line, report.runner, report.reference, report.sources) = (line, source, reference, sources);
    report.seconds = started.elapsed().as_secs_f64();
    report
}

/// The report on an op that cannot be tried.
pub fn broken(op: &str, failure: Failure) -> OpReport {
    let message = match failure.hint {
        Some(hint) => format!("{}\nhint: {hint}", failure.message),
        None => failure.message,
    };
    OpReport { status: OpStatus::Error, message: Some(message), ..OpReport::blank(op) }
}

/// The report on an op whose run has not come to its end.
pub fn broken_off(op: &str) -> OpReport {
    let message = Some("its run ended early".to_string());
    OpReport { status: OpStatus::Unfinished, message, ..OpReport::blank(op) }
}

/// The report on an op that another one's failure kept from being tried.
pub fn not_run(op: &str) -> OpReport {
    let message = Some("not run: another op failed before".to_string());
    OpReport { status: OpStatus::Unfinished, message, ..OpReport::blank(op) }
}
