//! `gpuemu emulate`: run a compiled kernel on this processor, or repeat launches that were recorded on a chip.

mod conformance;
mod launch_argument;
pub mod launch_options;
pub mod launched;
mod output;

use std::path::PathBuf;

use gpuemu_model::emulation::AccessCheck;

use self::launch_options::{LaunchForm, MachineOptions};
use crate::expected_error::ExpectedError;
use crate::session::GlobalOptions;

/// Arguments of `gpuemu emulate`.
#[derive(Debug, Clone, clap::Args)]
pub struct Arguments {
    /// The kernel: a .ptx file, a .cu file, or a Triton kernel as file.py:kernel.
    #[arg(value_name = "FILE", required_unless_present = "conformance")]
    file: Option<String>,
    /// Repeat the launches of this folder, which holds a manifest.json, and compare them bit for bit.
    #[arg(long, value_name = "FOLDER", conflicts_with_all = ["file", "arguments", "entry", "save", "output", "trace"])]
    conformance: Option<PathBuf>,
    #[command(flatten)]
    launch: LaunchForm,
    #[command(flatten)]
    machine: MachineOptions,
}

pub fn run(arguments: &Arguments, options: &GlobalOptions) -> Result<u8, ExpectedError> {
    if let Some(folder) = &arguments.conformance {
        let machine = arguments.machine.options(AccessCheck::ALL.to_vec());
        return conformance::run(folder, &machine, arguments.launch.format, options);
    }
    // Bounds are checked always; the rest is what `gpuemu sanitize` is for.
    let file = arguments.file.as_deref().unwrap_or_default();
    launched::launch(file, &arguments.launch, &arguments.machine, Vec::new())?.write(arguments.launch.format)
}
