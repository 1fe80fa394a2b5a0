//! `gpuemu fuzz`: try many cases.

use gpuemu_common::protocol::{FuzzConfig, Mode, Request, RunCi};
use gpuemu_common::shard::Shard;

use super::run_options::CaseOptions;
use super::test::run_ops;
use crate::expected_error::ExpectedError;
use crate::format::ReportOutput;
use crate::report;
use crate::session::{GlobalOptions, Session};

/// Arguments of `gpuemu fuzz`.
#[derive(Debug, Clone, clap::Args)]
pub struct Arguments {
    /// Only this op; may be given several times.
    #[arg(long, value_name = "NAME")]
    op: Vec<String>,
    /// Cases of each op [default: 100].
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u64).range(1..))]
    iterations: Option<u64>,
    /// Seconds for all ops together, in place of a number of cases.
    #[arg(long, value_name = "SECONDS")]
    seconds: Option<f64>,
    /// Base seed: with the same one every case is the same, byte for byte.
    #[arg(long, value_name = "SEED")]
    seed: Option<u64>,
    /// Stop at the first failure.
    #[arg(long)]
    fail_fast: bool,
    /// Only every n-th case of each op, from the i-th on; `gpuemu report --merge` joins the reports.
    #[arg(long, value_name = "I/N", conflicts_with = "seconds")]
    shard: Option<Shard>,
    /// Ops at once; 0 is all cores.
    #[arg(long, value_name = "N")]
    parallel: Option<usize>,
    #[command(flatten)]
    cases: CaseOptions,
    #[command(flatten)]
    output: ReportOutput,
}

/// Runs the command.
pub fn run(arguments: &Arguments, options: &GlobalOptions) -> Result<u8, ExpectedError> {
    if let Some(seconds) = arguments.seconds.filter(|seconds| !(*seconds > 0.0 && seconds.is_finite())) {
        return Err(ExpectedError::plain(format!("--seconds is {seconds}; it must be above 0")));
    }
    let config = FuzzConfig {
        iterations: arguments.iterations,
        seconds: arguments.seconds,
        seed: arguments.seed,
        ..arguments.cases.config()?
    };
    let mut session = Session::open(options)?;
    let request = RunCi {
        project: session.project(),
        ops: arguments.op.clone(),
        mode: Mode::Fuzz,
        config,
        parallel: arguments.parallel,
        fail_fast: arguments.fail_fast,
        shard: arguments.shard,
        baseline: None,
        fail_on_regression: false,
        kernels: Some(false),
        tools: Some(session.tools()),
    };
    let report = run_ops(&mut session, Request::RunCi(request))?;
    report::write_of(&mut session, &report, &arguments.output)
}
