//! What commands about compiled kernels share: which kernels are looked at, and how.

use std::path::PathBuf;

use gpuemu_config::{ArtifactChecks, check_architecture};
use gpuemu_model::artifact::OccupancyLaunch;
use gpuemu_model::artifact::{ARTIFACT_VERSION, ArtifactReport, KernelReport, KernelStatus, ToolSearch};
use gpuemu_ptx::inspect::Inspector;
use gpuemu_ptx::lint::ProjectRule;
use gpuemu_ptx::tools::Toolchain;
use gpuemu_wire::client::unexpected;
use gpuemu_wire::protocol::{InspectKernels, LintOptions, Request, Response};

use crate::expected_error::ExpectedError;
use crate::session::{GlobalOptions, Session, current_folder, python_of};

/// The architectures that are measured for.
#[derive(Debug, Clone, Default, clap::Args)]
pub struct ArchitectureOptions {
    /// Measure for this architecture, such as sm_90, in place of the code's own; may be given several times.
    #[arg(long, value_name = "ARCHITECTURE", value_parser = architecture)]
    pub architecture: Vec<String>,
}

fn architecture(text: &str) -> Result<String, String> {
    check_architecture(text).map(|()| text.to_string())
}

#[derive(Debug, Default)]
pub struct FileLook<'a> {
    /// Architectures to measure for.
    pub architectures: &'a [String],
    /// What the code is held to.
    pub checks: ArtifactChecks,
    /// Rules of the user's own.
    pub rules: Vec<ProjectRule>,
    /// The launch that occupancy is estimated for.
    pub launch: OccupancyLaunch,
}

/// Looks at PTX files, without a project and without the daemon.
pub fn look_at_files(files: &[PathBuf], look: &FileLook<'_>) -> Result<ArtifactReport, ExpectedError> {
    let python = python_of(&current_folder()?);
    let toolchain = Toolchain::find(&ToolSearch::of_process(Some(python)));
    let inspector =
        Inspector { toolchain: &toolchain, architectures: look.architectures, rules: &look.rules, launch: look.launch };
    let kernels = files.iter().map(|file| inspector.file(file, &look.checks)).collect();
    Ok(ArtifactReport { version: ARTIFACT_VERSION, project: String::new(), kernels })
}

/// How the kernels of a project are looked at.
#[derive(Debug, Default)]
pub struct ProjectLook {
    /// Only these; all if empty.
    pub kernels: Vec<String>,
    /// Architectures to measure for, in place of the configured ones.
    pub architectures: Vec<String>,
    /// What they are held to beyond their configuration.
    pub lint: LintOptions,
    /// The launch that occupancy is estimated for.
    pub launch: OccupancyLaunch,
}

/// Looks at the kernels of the current folder's project.
pub fn look_at_project(options: &GlobalOptions, look: ProjectLook) -> Result<ArtifactReport, ExpectedError> {
    look_at_kernels(&mut Session::open(options)?, look)
}

pub fn look_at_kernels(session: &mut Session, look: ProjectLook) -> Result<ArtifactReport, ExpectedError> {
    let some = |list: Vec<String>| (!list.is_empty()).then_some(list);
    let request = InspectKernels {
        project: session.project(),
        kernels: some(look.kernels),
        architectures: some(look.architectures),
        tools: Some(session.tools()),
        lint: look.lint,
        launch: look.launch,
    };
    match session.run(Request::InspectKernels(request))? {
        Response::Artifacts { report } => Ok(*report),
        other => Err(unexpected(&other).into()),
    }
}

/// Whether some kernel has a status.
pub fn any(kernels: &[KernelReport], status: KernelStatus) -> bool {
    kernels.iter().any(|kernel| kernel.status == status)
}
