//! `cargo xtask torture`: crashes, power cuts, hostile input, load and faults. Every campaign ends with its figures.
#![allow(clippy::print_stdout, clippy::print_stderr, reason = "a terminal program: what it prints is its purpose")]

mod campaign;
mod campaigns;
mod daemon_process;
mod history;
mod kernel_project;
mod mixed;
mod records;
mod requests;

use std::path::PathBuf;
use std::process::ExitCode;
use std::time::Instant;

use campaign::{Campaign, Ended, Extent};
use campaigns::CAMPAIGNS;
use clap::Parser;
use clap::builder::PossibleValuesParser;

/// Holds gpuemu under crashes, power cuts, hostile input, load and faults.
///
/// Exit code 1: something did not hold; 2: the command could not be carried out.
#[derive(Parser)]
#[command(name = "cargo xtask torture", bin_name = "cargo xtask torture")]
struct Arguments {
    /// The campaigns to run; all of them if none is named.
    #[arg(value_parser = PossibleValuesParser::new(CAMPAIGNS.iter().map(|campaign| campaign.name)))]
    campaigns: Vec<String>,
    /// Run the short form, as `cargo xtask test` does.
    #[arg(long)]
    short: bool,
    /// The number that every choice is drawn from.
    #[arg(long, default_value_t = 1)]
    seed: u64,
    /// List the campaigns, and run none.
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
        return campaigns::connect::stranger(socket);
    }
    if arguments.holder {
        return campaigns::connect::holder();
    }
    if arguments.list {
        CAMPAIGNS.iter().for_each(|campaign| println!("{:14} {}", campaign.name, campaign.about));
        return ExitCode::SUCCESS;
    }
    let extent = Extent { short: arguments.short, seed: arguments.seed };
    let is_chosen = |campaign: &&Campaign| {
        arguments.campaigns.is_empty() || arguments.campaigns.iter().any(|name| name == campaign.name)
    };
    let mut broken = false;
    for campaign in CAMPAIGNS.iter().filter(is_chosen) {
        let start = Instant::now();
        let ended = (campaign.run)(&extent);
        let seconds = start.elapsed().as_secs_f64();
        match ended {
            Ended::Held(figures) => println!("held     {:14} {} ({seconds:.0} s)", campaign.name, figures.join("; ")),
            Ended::Impossible(reason) => {
                println!("skipped  {:14} {reason}", campaign.name);
                // Where a merge is decided, nothing may go unchecked.
                broken |= std::env::var_os("CI").is_some_and(|value| value == "true");
            }
            Ended::LeftOut(reason) => println!("left out {:14} of the short form: {reason}", campaign.name),
            Ended::Broken(what) => {
                println!("BROKEN   {:14} {what} (seed {}, {seconds:.0} s)", campaign.name, extent.seed);
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
