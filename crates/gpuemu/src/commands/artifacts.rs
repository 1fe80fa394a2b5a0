//! `gpuemu artifacts`: what compiled kernels are made of.

use std::path::PathBuf;

use gpuemu_model::artifact::OccupancyLaunch;
use gpuemu_model::json::ToJson;

use crate::exit_code;
use crate::expected_error::ExpectedError;
use crate::format::{Format, Output};
use crate::options::kernels::{ArchitectureOptions, FileLook, ProjectLook, look_at_files, look_at_project};
use crate::report::artifacts;
use crate::session::GlobalOptions;

/// Arguments of `gpuemu artifacts`.
#[derive(Debug, Clone, clap::Args)]
pub struct Arguments {
    /// PTX files, which need no project; without one the project's kernels are measured.
    #[arg(value_name = "FILE")]
    files: Vec<PathBuf>,
    /// Only this kernel of the project; may be given several times.
    #[arg(long, value_name = "NAME", conflicts_with = "files")]
    kernel: Vec<String>,
    #[command(flatten)]
    architectures: ArchitectureOptions,
    /// Threads of a block that occupancy is estimated for, where the code does not say.
    #[arg(long, value_name = "THREADS", value_parser = clap::value_parser!(u64).range(1..=1024))]
    block: Option<u64>,
    /// Bytes of shared memory that a launch adds.
    #[arg(long, value_name = "BYTES")]
    shared: Option<u64>,
    #[command(flatten)]
    output: Output,
}

pub fn run(arguments: &Arguments, options: &GlobalOptions) -> Result<u8, ExpectedError> {
    let launch = OccupancyLaunch { block_threads: arguments.block, dynamic_shared_bytes: arguments.shared };
    let architectures = &arguments.architectures.architecture;
    let report = if arguments.files.is_empty() {
        let (kernels, architectures) = (arguments.kernel.clone(), architectures.clone());
        look_at_project(options, ProjectLook { kernels, architectures, launch, ..ProjectLook::default() })?
    } else {
        look_at_files(&arguments.files, &FileLook { architectures, launch, ..FileLook::default() })?
    };
    let text = match arguments.output.format {
        Format::Json => format!("{}\n", report.to_pretty_json()?),
        Format::Text => artifacts::text(&report.kernels),
    };
    arguments.output.write(&text)?;
    // What the linter says of them is for `gpuemu lint`.
    let unread = report.kernels.iter().any(|kernel| kernel.artifact.is_none());
    Ok(if unread { exit_code::ENVIRONMENT_ERROR } else { exit_code::PASSED })
}
