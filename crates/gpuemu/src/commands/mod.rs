//! One file per subcommand.

pub mod corpus;
pub mod ops;

use clap::Subcommand;

use crate::expected_error::ExpectedError;

/// The subcommands.
#[derive(Debug, Subcommand)]
pub enum Command {
    /// Run the kernels with known verdicts and print what each check says of them.
    Corpus(corpus::Arguments),
    /// List the built-in ops, or describe one.
    Ops(ops::Arguments),
}

impl Command {
    /// Runs the subcommand; the number is the exit status.
    pub fn run(self) -> Result<u8, ExpectedError> {
        match self {
            Command::Corpus(arguments) => corpus::run(&arguments),
            Command::Ops(arguments) => ops::run(&arguments),
        }
    }
}
