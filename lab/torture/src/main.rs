//! `cargo xtask torture`: crashes, power cuts, hostile input, load and faults. Every trial ends with its figures.
#![allow(clippy::print_stdout, clippy::print_stderr, reason = "a terminal program: what it prints is its purpose")]

mod daemon_process;
mod history;
mod kernel_project;
mod mixed;
mod records;
mod requests;
mod trial;
mod trials;

use std::path::PathBuf;
use std::process::ExitCode;
use std::time::Instant;

use clap::Parser;
use clap::builder::PossibleValuesParser;
use trial::{Ended, Extent, Trial};
use trials::TRIALS;

/// Holds gpuemu under crashes, power cuts, hostile input, load and faults.
///
/// Exit code 1: something did not hold; 2: the command could not be carried out.
#[derive(Parser)]
#[command(name = "cargo xtask torture", bin_name = "cargo xtask torture")]
struct Arguments {
    /// The trials to run; all of them if none is named.
    #[arg(value_parser = PossibleValuesParser::new(TRIALS.iter().map(|trial| trial.name)))]
    trials: Vec<String>,
    /// Run the short form, as `cargo xtask test` does.
    #[arg(long)]
    short: bool,
    /// The number that every choice is drawn from.
    #[arg(long, default_value_t = 1)]
    seed: u64,
    /// List the trials, and run none.
    #[arg(long)]
    list: bool,
    /// Be somebody who has no business with the daemon behind this socket.
    #[arg(long, hide = true, value_name = "SOCKET")]
    stranger: Option<PathBuf>,
    /// Be a client that is killed while it holds shared memory.
    #[arg(long, hide = true)]
    holder: bool,
}

fn main() -> ExitCode {
    let arguments = Arguments::parse();
    if let Some(socket) = &arguments.stranger {
        return trials::connect::stranger(socket);
    }
    if arguments.holder {
        return trials::connect::holder();
    }
    if arguments.list {
        TRIALS.iter().for_each(|trial| println!("{:14} {}", trial.name, trial.about));
        return ExitCode::SUCCESS;
    }
    let extent = Extent { short: arguments.short, seed: arguments.seed };
    let is_chosen =
        |trial: &&Trial| arguments.trials.is_empty() || arguments.trials.iter().any(|name| name == trial.name);
    let mut broken = false;
    for trial in TRIALS.iter().filter(is_chosen) {
        let start = Instant::now();
        let ended = (trial.run)(&extent);
        let seconds = start.elapsed().as_secs_f64();
        match ended {
            Ended::Held(figures) => println!("held     {:14} {} ({seconds:.0} s)", trial.name, figures.join("; ")),
            Ended::Impossible(reason) => {
                println!("skipped  {:14} {reason}", trial.name);
                // Where a merge is decided, nothing may go unchecked.
                broken |= std::env::var_os("CI").is_some_and(|value| value == "true");
            }
            Ended::LeftOut(reason) => println!("left out {:14} of the short form: {reason}", trial.name),
            Ended::Broken(what) => {
                println!("BROKEN   {:14} {what} (seed {}, {seconds:.0} s)", trial.name, extent.seed);
                broken = true;
            }
        }
    }
    if broken { ExitCode::FAILURE } else { ExitCode::SUCCESS }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn arguments_are_consistent() {
        use clap::CommandFactory;
        Arguments::command().debug_assert();
    }
}
