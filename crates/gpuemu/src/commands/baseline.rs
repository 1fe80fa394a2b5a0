//! `gpuemu baseline`: keep a good state under a tag.

use std::fmt::Write;

use clap::Subcommand;
use gpuemu_client::client::unexpected;
use gpuemu_common::protocol::{BaselineSummary, ProjectOnly, Request, Response, StoreBaseline};

use crate::exit_code;
use crate::expected_error::ExpectedError;
use crate::format::{Format, write_json, write_text};
use crate::session::{GlobalOptions, Session, note};

/// Arguments of `gpuemu baseline`.
#[derive(Debug, Clone, clap::Args)]
#[command(args_conflicts_with_subcommands = true, arg_required_else_help = true)]
pub struct Arguments {
    #[command(subcommand)]
    action: Option<Action>,
    /// Keep the last run of every op under this tag.
    tag: Option<String>,
    /// Format of the result.
    #[arg(long, value_enum, default_value_t = Format::Text)]
    format: Format,
}

/// What is done with baselines.
#[derive(Debug, Clone, Subcommand)]
enum Action {
    /// Keep the last run of every op under a tag.
    Store {
        /// The tag.
        tag: String,
        /// Format of the result.
        #[arg(long, value_enum, default_value_t = Format::Text)]
        format: Format,
    },
    /// List the tags, newest first.
    List {
        /// Format of the result.
        #[arg(long, value_enum, default_value_t = Format::Text)]
        format: Format,
    },
    /// Remove a tag.
    Delete {
        /// The tag.
        tag: String,
    },
}

/// Runs the command.
pub fn run(arguments: &Arguments, options: &GlobalOptions) -> Result<u8, ExpectedError> {
    let mut session = Session::open(options)?;
    let project = session.project();
    let (request, format) = match (&arguments.action, &arguments.tag) {
        (Some(Action::Store { tag, format }), _) => {
            (Request::StoreBaseline(StoreBaseline { project, tag: tag.clone() }), *format)
        }
        (Some(Action::List { format }), _) => (Request::ListBaselines(ProjectOnly { project }), *format),
        (Some(Action::Delete { tag }), _) => {
            session.call(&Request::DeleteBaseline(StoreBaseline { project, tag: tag.clone() }))?;
            return Ok(exit_code::PASSED);
        }
        (None, Some(tag)) => (Request::StoreBaseline(StoreBaseline { project, tag: tag.clone() }), arguments.format),
        (None, None) => return Err(ExpectedError::new("no tag is given", "gpuemu baseline TAG")),
    };
    let baselines = match session.call(&request)? {
        Response::Baselines { baselines } => baselines,
        other => return Err(unexpected(&other).into()),
    };
    match format {
        Format::Json => write_json(&baselines)?,
        Format::Text => write_text(&describe(&baselines))?,
    }
    Ok(exit_code::PASSED)
}

fn describe(baselines: &[BaselineSummary]) -> String {
    if baselines.is_empty() {
        return "no baseline is stored\n".to_string();
    }
    let mut text = String::new();
    for baseline in baselines {
        // Writing to a string cannot fail.
        let _ = writeln!(text, "{}  {} ops, {} cases", baseline.tag, baseline.ops, baseline.cases);
        if baseline.failing > 0 {
            note(&format!("warning: {} of these cases fail: this is not a good state", baseline.failing));
        }
    }
    text
}
