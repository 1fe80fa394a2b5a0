//! `gpuemu completions`: completions for a shell.

use clap::CommandFactory;
use clap_complete::Shell;

use crate::exit_code;
use crate::expected_error::ExpectedError;
use crate::format::write_text;

/// Arguments of `gpuemu completions`.
#[derive(Debug, Clone, clap::Args)]
pub struct Arguments {
    /// The shell.
    #[arg(value_enum)]
    shell: Shell,
}

pub fn run(arguments: &Arguments) -> Result<u8, ExpectedError> {
    let mut script = Vec::new();
    clap_complete::generate(arguments.shell, &mut crate::Arguments::command(), "gpuemu", &mut script);
    write_text(&String::from_utf8_lossy(&script))?;
    Ok(exit_code::PASSED)
}
