//! `gpuemu ci`: the gate of a pull request.

use std::path::Path;

use gpuemu_model::report::RunReport;
use gpuemu_model::settings::{FuzzConfig, Mode};
use gpuemu_model::shard::Shard;
use gpuemu_process::fault;
use gpuemu_wire::protocol::{BaselineReference, Request, RunCi};

use super::test::run_ops;
use crate::changed;
use crate::expected_error::ExpectedError;
use crate::format::ReportOutput;
use crate::options::cases::CaseOptions;
use crate::report;
use crate::session::{GlobalOptions, Session};

/// Arguments of `gpuemu ci`.
#[derive(Debug, Clone, clap::Args)]
pub struct Arguments {
    /// Few cases, small shapes, the quick dtypes.
    #[arg(long)]
    quick: bool,
    /// Only this op; may be given several times.
    #[arg(long, value_name = "NAME")]
    op: Vec<String>,
    /// Compare with a stored baseline, or with the JSON report of an earlier run.
    #[arg(long, value_name = "TAG|FILE")]
    baseline: Option<String>,
    /// Fail if an error grew past the threshold against the baseline.
    #[arg(long, requires = "baseline", alias = "fail_on_regression")]
    fail_on_regression: bool,
    /// Ops at once; 0 is all cores.
    #[arg(long, value_name = "N")]
    parallel: Option<usize>,
    /// Base seed, in place of the configured one.
    #[arg(long, value_name = "SEED")]
    seed: Option<u64>,
    /// Cases of each op, in place of the configured number.
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u64).range(1..))]
    iterations: Option<u64>,
    /// Only every n-th case of each op, from the i-th on; `gpuemu report --merge` joins the reports.
    #[arg(long, value_name = "I/N")]
    shard: Option<Shard>,
    /// Only ops whose sources, references or configuration changed since a git revision.
    #[arg(long, value_name = "REVISION", num_args = 0..=1, default_missing_value = "HEAD")]
    changed: Option<String>,
    #[command(flatten)]
    cases: CaseOptions,
    #[command(flatten)]
    output: ReportOutput,
}

pub fn run(arguments: &Arguments, options: &GlobalOptions) -> Result<u8, ExpectedError> {
    let baseline = arguments.baseline.as_deref().map(baseline).transpose()?;
    let mut session = Session::open(options)?;
    let chosen = changed::chosen(&mut session, &arguments.op, arguments.changed.as_ref())?;
    let Some(ops) = chosen.ops else {
        let first = arguments.shard.is_none_or(Shard::is_first);
        let kernels = if first { chosen.kernel_reports(&mut session)? } else { Vec::new() };
        return report::write_without_ops(&session, kernels, arguments.shard, &arguments.output);
    };
    let request = RunCi {
        project: session.project(),
        ops,
        mode: if arguments.quick { Mode::Quick } else { Mode::Thorough },
        config: FuzzConfig { seed: arguments.seed, iterations: arguments.iterations, ..arguments.cases.config()? },
        parallel: arguments.parallel,
        fail_fast: false,
        shard: arguments.shard,
        baseline,
        fail_on_regression: arguments.fail_on_regression,
        kernels: chosen.kernels,
        tools: Some(session.tools()),
    };
    let report = run_ops(&mut session, Request::RunCi(request))?;
    report::write_of(&mut session, &report, &arguments.output)
}

/// A baseline: a file where there is one of that name, else a stored tag.
pub fn baseline(text: &str) -> Result<BaselineReference, ExpectedError> {
    let path = Path::new(text);
    if !path.is_file() {
        if text.ends_with(".json") || text.contains('/') {
            let hint = "`gpuemu ci --format json --output FILE` writes one";
            return Err(ExpectedError::new(format!("there is no report {text}"), hint));
        }
        return Ok(BaselineReference::Tag(text.to_string()));
    }
    let report = read_report(path)?;
    Ok(BaselineReference::Report { name: text.to_string(), report: Box::new(report) })
}

/// Reads the JSON report of an earlier run.
pub fn read_report(path: &Path) -> Result<RunReport, ExpectedError> {
    let unreadable = |error: String| {
        ExpectedError::new(
            format!("{} is not a report of gpuemu: {error}", path.display()),
            "write one with `gpuemu ci --format json --output FILE`",
        )
    };
    let content = std::fs::read(path).map_err(|error| unreadable(error.to_string()))?;
    let report = RunReport::read(&content).map_err(unreadable);
    fault!("report.read", unreadable("injected".to_string()), report)
}
