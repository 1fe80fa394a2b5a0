//! `gpuemu fuzz`: try many cases.

use std::collections::BTreeMap;

use gpuemu_model::json::ToJson;
use gpuemu_model::settings::{FuzzConfig, Mode};
use gpuemu_model::shard::Shard;
use gpuemu_wire::protocol::{Request, RunCi};
use serde_json::{Map, Value};

use super::test::run_ops;
use crate::cluster::{self, Campaign};
use crate::expected_error::ExpectedError;
use crate::format::ReportOutput;
use crate::options::cases::CaseOptions;
use crate::report;
use crate::session::{GlobalOptions, Session};

/// Who runs the cases.
#[derive(Debug, Clone, Copy, PartialEq, Eq, clap::ValueEnum)]
enum Engine {
    /// This machine.
    Local,
    /// The workers of a Ray cluster.
    Ray,
}

/// What a worker needs, as `NAME=AMOUNT`.
fn resource(text: &str) -> Result<(String, f64), String> {
    let parsed = text.split_once('=').and_then(|(name, amount)| Some((name.trim(), amount.trim().parse().ok()?)));
    match parsed {
        Some((name, amount)) if !name.is_empty() && amount >= 0.0 && f64::is_finite(amount) => {
            Ok((name.to_string(), amount))
        }
        _ => Err("write it as NAME=AMOUNT, such as GPU=1".to_string()),
    }
}

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
    /// Who runs the cases: this machine, or workers of a Ray cluster, which the report does not depend on.
    #[arg(long, value_enum, default_value = "local", value_name = "ENGINE")]
    engine: Engine,
    /// The Ray cluster, `auto` for the one that is there; without it one is started on this machine.
    #[arg(long, value_name = "ADDRESS")]
    address: Option<String>,
    /// Workers on the cluster; as many as there is room for if left out.
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u32).range(1..))]
    workers: Option<u32>,
    /// What each worker needs, by Ray's names: GPU=1 puts workers on nodes with a GPU.
    #[arg(long, value_delimiter = ',', value_name = "NAME=AMOUNT", value_parser = resource)]
    resources: Vec<(String, f64)>,
    /// Go on with a campaign whose driver was killed, the newest one or the one of a run.
    #[arg(long, value_name = "RUN", num_args = 0..=1)]
    resume: Option<Option<u64>>,
    #[command(flatten)]
    cases: CaseOptions,
    #[command(flatten)]
    output: ReportOutput,
}

pub fn run(arguments: &Arguments, options: &GlobalOptions) -> Result<u8, ExpectedError> {
    if let Some(seconds) = arguments.seconds.filter(|seconds| !(*seconds > 0.0 && seconds.is_finite())) {
        return Err(ExpectedError::plain(format!("--seconds is {seconds}; it must be above 0")));
    }
    if arguments.engine == Engine::Ray {
        return on_cluster(arguments, options);
    }
    refuse_options_of_ray(arguments)?;
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

/// Runs the cases on a Ray cluster.
fn on_cluster(arguments: &Arguments, options: &GlobalOptions) -> Result<u8, ExpectedError> {
    let refused = [
        ("--seconds", arguments.seconds.is_some(), "give a number of cases: --iterations"),
        ("--shard", arguments.shard.is_some(), "the cluster has shards of its own"),
        ("--fail-fast", arguments.fail_fast, "all ranges are run, or none is a verdict"),
        ("--parallel", arguments.parallel.is_some(), "use --workers"),
        ("--no-daemon", options.no_daemon, "the daemon keeps what the workers find"),
    ];
    if let Some((option, _, hint)) = refused.into_iter().find(|(_, given, _)| *given) {
        return Err(ExpectedError::new(format!("{option} does not go with --engine ray"), hint));
    }
    let mut session = Session::open(options)?;
    let settings = arguments.cases.config()?.to_json_value()?;
    let settings: Map<String, Value> = settings.as_object().cloned().unwrap_or_default();
    let campaign = Campaign {
        ops: arguments.op.clone(),
        iterations: arguments.iterations.unwrap_or(FuzzConfig::ITERATIONS),
        seed: arguments.seed.map(|seed| seed.to_string()),
        address: arguments.address.clone(),
        workers: arguments.workers,
        resources: arguments.resources.iter().cloned().collect::<BTreeMap<_, _>>(),
        resume: match arguments.resume {
            None => Value::Bool(false),
            Some(None) => Value::Bool(true),
            Some(Some(run)) => Value::String(run.to_string()),
        },
        minimize: !arguments.output.no_minimize,
        settings,
        project: session.project().root.display().to_string(),
    };
    let report = cluster::run(&session, &campaign)?;
    report::write_of(&mut session, &report, &arguments.output)
}

fn refuse_options_of_ray(arguments: &Arguments) -> Result<(), ExpectedError> {
    let given = [
        ("--address", arguments.address.is_some()),
        ("--workers", arguments.workers.is_some()),
        ("--resources", !arguments.resources.is_empty()),
        ("--resume", arguments.resume.is_some()),
    ];
    match given.into_iter().find(|(_, given)| *given) {
        Some((option, _)) => Err(ExpectedError::new(format!("{option} needs a cluster"), "add --engine ray")),
        None => Ok(()),
    }
}
