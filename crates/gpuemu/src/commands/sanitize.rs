//! `gpuemu sanitize`: run a compiled kernel with every access, barrier and race checked.

use gpuemu_model::emulation::AccessCheck;

use super::emulate::launch_options::{CheckName, LaunchForm, MachineOptions};
use super::emulate::launched::launch;
use crate::expected_error::ExpectedError;

/// Arguments of `gpuemu sanitize`.
#[derive(Debug, Clone, clap::Args)]
pub struct Arguments {
    /// The kernel: a .ptx file, a .cu file, or a Triton kernel as file.py:kernel.
    #[arg(value_name = "FILE")]
    file: String,
    /// What is checked; bounds of memory always are. Default: everything.
    #[arg(long, value_enum, value_delimiter = ',', value_name = "CHECKS")]
    check: Vec<CheckName>,
    #[command(flatten)]
    launch: LaunchForm,
    #[command(flatten)]
    machine: MachineOptions,
}

pub fn run(arguments: &Arguments) -> Result<u8, ExpectedError> {
    let checks = match arguments.check.as_slice() {
        [] => AccessCheck::ALL.to_vec(),
        chosen => {
            AccessCheck::ALL.into_iter().filter(|check| chosen.iter().any(|one| *check == (*one).into())).collect()
        }
    };
    launch(&arguments.file, &arguments.launch, &arguments.machine, checks)?.write(arguments.launch.format)
}
