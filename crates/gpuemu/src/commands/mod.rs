//! One file per subcommand.

pub mod artifacts;
pub mod baseline;
pub mod calibrate;
pub mod ci;
pub mod completions;
pub mod config;
pub mod corpus;
pub mod coverage;
pub mod daemon;
pub mod debug;
pub mod diff;
pub mod emulate;
pub mod failures;
pub mod fuzz;
pub mod init;
pub mod lint;
pub mod man;
pub mod minimize;
pub mod ops;
pub mod report;
pub mod reproduce;
pub mod sanitize;
pub mod sign;
pub mod status;
pub mod study;
pub mod test;
pub mod verify;
pub mod version;

use clap::Subcommand;

use crate::expected_error::ExpectedError;
use crate::session::GlobalOptions;

/// The subcommands.
#[derive(Debug, Subcommand)]
pub enum Command {
    /// Start a project: configuration and, if wanted, examples.
    Init(init::Arguments),
    /// Try cases of the project's ops; the everyday check.
    Test(test::Arguments),
    /// Try many cases.
    Fuzz(fuzz::Arguments),
    /// Run one case again, from its seed.
    Reproduce(reproduce::Arguments),
    /// Shrink a failing case to the smallest that fails for the same reason.
    #[command(alias = "minimise")]
    Minimize(minimize::Arguments),
    /// List, show and replay stored failures.
    Failures(failures::Arguments),
    /// Look into stored failures, tensor by tensor.
    Debug(debug::Arguments),
    /// Keep a good state under a tag.
    Baseline(baseline::Arguments),
    /// Compare with a baseline: errors over the same cases, and compiled kernels.
    Diff(diff::Arguments),
    /// Check compiled kernels against rules.
    Lint(lint::Arguments),
    /// Show what compiled kernels are made of: registers, memory, instructions, occupancy.
    Artifacts(artifacts::Arguments),
    /// Run a compiled kernel on this processor, bit for bit as the chip does.
    Emulate(emulate::Arguments),
    /// Run a compiled kernel and check every access, barrier and race.
    Sanitize(sanitize::Arguments),
    /// Measure a trusted control of an op, and keep p95 x 1.5 of its errors as tolerances.
    Calibrate(calibrate::Arguments),
    /// The gate of a pull request: run all ops, check all kernels, write a report, say pass or fail.
    Ci(ci::Arguments),
    /// Show stored results as a report.
    Report(report::Arguments),
    /// Show which dtypes, sizes, layouts and values stored cases exercised, and what could not be checked.
    Coverage(coverage::Arguments),
    /// Sign a report with a key of your own.
    Sign(sign::Arguments),
    /// Verify a signed report, and say what it says.
    Verify(verify::Arguments),
    /// The project, its ops and kernels, and the daemon at a glance.
    Status(status::Arguments),
    /// Check the configuration, or change it.
    Config(config::Arguments),
    /// Start, stop and look at the daemon.
    Daemon(daemon::Arguments),
    /// List the built-in ops, or describe one.
    Ops(ops::Arguments),
    /// Run the kernels with known verdicts and print what each check says of them.
    Corpus(corpus::Arguments),
    /// Run one of the four published studies again: a table, and as files JSON and a figure.
    Study(study::Arguments),
    /// Print completions for a shell.
    Completions(completions::Arguments),
    /// Print the manual page, or write all of them.
    Man(man::Arguments),
    /// Print version information.
    Version(version::Arguments),
}

impl Command {
    /// Runs the subcommand; the number is the exit status.
    pub fn run(self, options: &GlobalOptions) -> Result<u8, ExpectedError> {
        match self {
            Command::Init(arguments) => init::run(&arguments, options),
            Command::Test(arguments) => test::run(&arguments, options),
            Command::Fuzz(arguments) => fuzz::run(&arguments, options),
            Command::Reproduce(arguments) => reproduce::run(&arguments, options),
            Command::Minimize(arguments) => minimize::run(&arguments, options),
            Command::Failures(arguments) => failures::run(&arguments, options),
            Command::Debug(arguments) => debug::run(&arguments, options),
            Command::Baseline(arguments) => baseline::run(&arguments, options),
            Command::Diff(arguments) => diff::run(&arguments, options),
            Command::Lint(arguments) => lint::run(&arguments, options),
            Command::Artifacts(arguments) => artifacts::run(&arguments, options),
            Command::Emulate(arguments) => emulate::run(&arguments, options),
            Command::Sanitize(arguments) => sanitize::run(&arguments),
            Command::Calibrate(arguments) => calibrate::run(&arguments, options),
            Command::Ci(arguments) => ci::run(&arguments, options),
            Command::Report(arguments) => report::run(&arguments, options),
            Command::Sign(arguments) => sign::run(&arguments),
            Command::Verify(arguments) => verify::run(&arguments),
            Command::Coverage(arguments) => coverage::run(&arguments, options),
            Command::Status(arguments) => status::run(&arguments, options),
            Command::Config(arguments) => config::run(&arguments),
            Command::Daemon(arguments) => daemon::run(&arguments, options),
            Command::Ops(arguments) => ops::run(&arguments),
            Command::Corpus(arguments) => corpus::run(&arguments, options),
            Command::Study(arguments) => study::run(&arguments, options),
            Command::Completions(arguments) => completions::run(&arguments),
            Command::Man(arguments) => man::run(&arguments),
            Command::Version(arguments) => version::run(&arguments),
        }
    }
}
