//! `gpuemu test`: try the cases of a project's ops.

use clap::ValueEnum;
use gpuemu_model::report::RunReport;
use gpuemu_model::settings::{FuzzConfig, Mode};
use gpuemu_wire::client::unexpected;
use gpuemu_wire::protocol::{ReplayCase, Request, Response, RunCi};

use super::reproduce;
use crate::changed;
use crate::expected_error::ExpectedError;
use crate::format::{Format, ReportFormat, ReportOutput};
use crate::options::cases::CaseOptions;
use crate::report;
use crate::session::{GlobalOptions, Session};
use crate::watch;

/// Arguments of `gpuemu test`.
#[derive(Debug, Clone, clap::Args)]
pub struct Arguments {
    /// Only this op; may be given several times.
    #[arg(long, value_name = "NAME")]
    pub op: Vec<String>,
    /// Few cases, small shapes, the quick dtypes.
    #[arg(long, conflicts_with = "thorough")]
    pub quick: bool,
    /// All dtypes and the full number of cases; the default.
    #[arg(long)]
    pub thorough: bool,
    /// Run the one case with this seed again, in place of new ones.
    #[arg(long, value_name = "SEED")]
    pub seed: Option<u64>,
    /// Cases of each op, in place of the configured number.
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u64).range(1..))]
    pub iterations: Option<u64>,
    /// Base seed, in place of the configured one.
    #[arg(long, value_name = "SEED")]
    pub base_seed: Option<u64>,
    /// Ops at once; 0 is all cores.
    #[arg(long, value_name = "N")]
    pub parallel: Option<usize>,
    /// Stop at the first failure.
    #[arg(long)]
    pub fail_fast: bool,
    /// Only ops whose sources, references or configuration changed since a git revision.
    #[arg(long, value_name = "REVISION", num_args = 0..=1, default_missing_value = "HEAD")]
    pub changed: Option<String>,
    /// Run again whenever a file of the project changes.
    #[arg(long, conflicts_with_all = ["seed", "output"])]
    pub watch: bool,
    #[command(flatten)]
    pub cases: CaseOptions,
    #[command(flatten)]
    pub output: ReportOutput,
}

pub fn run(arguments: &Arguments, options: &GlobalOptions) -> Result<u8, ExpectedError> {
    if let Some(seed) = arguments.seed {
        let format = match arguments.output.format {
            ReportFormat::Text => Format::Text,
            ReportFormat::Json => Format::Json,
            other => {
                let name = other.to_possible_value().map(|value| value.get_name().to_string()).unwrap_or_default();
                let message = format!("one case has no report as {name}");
                return Err(ExpectedError::new(message, "use --format text or json with --seed"));
            }
        };
        let mut config = arguments.cases.config()?;
        config.quick = arguments.quick;
        let op = match arguments.op.as_slice() {
            [] => None,
            [op] => Some(op.clone()),
            _ => return Err(ExpectedError::plain("--seed takes one --op at most")),
        };
        let mut session = Session::open(options)?;
        let request = ReplayCase { project: session.project(), op_name: op, seed, config, minimized: false };
        return reproduce::replay(&mut session, request, format);
    }
    let mut session = Session::open(options)?;
    if arguments.watch {
        return watch::run(&mut session, |session| once(session, arguments));
    }
    once(&mut session, arguments)
}

fn once(session: &mut Session, arguments: &Arguments) -> Result<u8, ExpectedError> {
    let chosen = changed::chosen(session, &arguments.op, arguments.changed.as_ref())?;
    let Some(ops) = chosen.ops else {
        let kernels = chosen.kernel_reports(session)?;
        return report::write_without_ops(session, kernels, None, &arguments.output);
    };
    let request = RunCi {
        project: session.project(),
        ops,
        mode: if arguments.quick { Mode::Quick } else { Mode::Thorough },
        config: FuzzConfig { iterations: arguments.iterations, seed: arguments.base_seed, ..arguments.cases.config()? },
        parallel: arguments.parallel,
        fail_fast: arguments.fail_fast,
        shard: None,
        baseline: None,
        fail_on_regression: false,
        kernels: chosen.kernels,
        tools: Some(session.tools()),
    };
    let report = run_ops(session, Request::RunCi(request))?;
    report::write_of(session, &report, &arguments.output)
}

/// Runs ops and returns the report.
pub fn run_ops(session: &mut Session, request: Request) -> Result<RunReport, ExpectedError> {
    match session.run(request)? {
        Response::Report { report } => Ok(*report),
        other => Err(unexpected(&other).into()),
    }
}
