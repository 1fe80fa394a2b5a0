//! `gpuemu diff`: run the cases of a baseline again and compare errors, compare compiled kernels.

use std::path::{Path, PathBuf};

use gpuemu_model::artifact::{ArtifactStatus, KernelReport};
use gpuemu_model::json::ToJson;
use gpuemu_model::report::ComparisonReport;
use gpuemu_ptx::diff::{bare, compare};
use gpuemu_wire::client::unexpected;
use gpuemu_wire::protocol::{CompareBaseline, Request, Response};

use super::ci;
use crate::exit_code;
use crate::expected_error::ExpectedError;
use crate::format::{Format, write_json, write_text};
use crate::options::kernels::{ArchitectureOptions, FileLook, look_at_files};
use crate::report::text;
use crate::session::{GlobalOptions, Session};

/// Growth that counts where no project says otherwise.
const THRESHOLD: f64 = 0.1;

/// Arguments of `gpuemu diff`.
#[derive(Debug, Clone, clap::Args)]
pub struct Arguments {
    /// A stored baseline, or the JSON report of an earlier run.
    #[arg(long, value_name = "TAG|FILE", required_unless_present = "ptx")]
    baseline: Option<String>,
    /// Compare two PTX files, which need no project.
    #[arg(long, value_names = ["OLD", "NEW"], num_args = 2, conflicts_with_all = ["baseline", "op"])]
    ptx: Vec<PathBuf>,
    /// Only this op, and no compiled kernel.
    #[arg(long, value_name = "NAME")]
    op: Option<String>,
    /// Fail where a constant of a compiled kernel differs.
    #[arg(long)]
    fail_on_constants: bool,
    #[command(flatten)]
    architectures: ArchitectureOptions,
    /// Format of the result.
    #[arg(long, value_enum, default_value_t = Format::Text)]
    format: Format,
}

pub fn run(arguments: &Arguments, options: &GlobalOptions) -> Result<u8, ExpectedError> {
    if arguments.ptx.is_empty() && !arguments.architectures.architecture.is_empty() {
        let hint = "the architectures of a project's kernels are set by `architectures` of [lint] in gpuemu.toml";
        return Err(ExpectedError::new("--architecture goes with --ptx", hint));
    }
    let comparison = match (&arguments.baseline, arguments.ptx.as_slice()) {
        (Some(baseline), _) => against_baseline(arguments, baseline, options)?,
        (None, [old, new]) => between_files(arguments, old, new)?,
        (None, _) => return Err(ExpectedError::new("no baseline given", "gpuemu diff --baseline TAG")),
    };
    match arguments.format {
        Format::Json => write_json(&comparison.to_json_value()?)?,
        Format::Text => write_text(&text::comparison(&comparison))?,
    }
    let constants = arguments.fail_on_constants && comparison.constants_differ();
    Ok(if comparison.regressed() || comparison.is_failing() || constants {
        exit_code::FAILED
    } else if comparison.is_incomplete() {
        exit_code::ENVIRONMENT_ERROR
    } else {
        exit_code::PASSED
    })
}

fn against_baseline(
    arguments: &Arguments,
    baseline: &str,
    options: &GlobalOptions,
) -> Result<ComparisonReport, ExpectedError> {
    let baseline = ci::baseline(baseline)?;
    let mut session = Session::open(options)?;
    let request = CompareBaseline {
        project: session.project(),
        baseline,
        op_name: arguments.op.clone(),
        tools: Some(session.tools()),
    };
    match session.run(Request::CompareBaseline(request))? {
        Response::Comparison { comparison } => Ok(*comparison),
        other => Err(unexpected(&other).into()),
    }
}

fn between_files(arguments: &Arguments, old: &Path, new: &Path) -> Result<ComparisonReport, ExpectedError> {
    let look = FileLook { architectures: &arguments.architectures.architecture, ..FileLook::default() };
    let report = look_at_files(&[old.to_path_buf(), new.to_path_buf()], &look)?;
    let unreadable = |kernel: &KernelReport| {
        let message = kernel.message.as_deref().unwrap_or_default();
        bare(&kernel.kernel, "", ArtifactStatus::NotComparable, message)
    };
    let artifacts = match report.kernels.as_slice() {
        [KernelReport { artifact: Some(before), .. }, KernelReport { artifact: Some(now), .. }] => {
            compare(before, now, THRESHOLD)
        }
        kernels => kernels.iter().filter(|kernel| kernel.artifact.is_none()).map(unreadable).collect(),
    };
    let name = old.display().to_string();
    let mut comparison =
        ComparisonReport { baseline: name, threshold: THRESHOLD, fails: false, ops: Vec::new(), artifacts };
    comparison.fails = comparison.regressed();
    Ok(comparison)
}
