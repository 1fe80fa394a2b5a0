//! `gpuemu baseline`: keep a good state under a tag.

use std::fmt::Write;

use clap::Subcommand;
use gpuemu_model::json::ToJson;
use gpuemu_wire::client::unexpected;
use gpuemu_wire::protocol::{BaselineSummary, ProjectOnly, Request, Response, StoreBaseline};

use crate::exit_code;
use crate::expected_error::ExpectedError;
use crate::format::{Format, write_json, write_text};
use crate::report::kernels::counted;
use crate::session::{GlobalOptions, Session, note};

/// Arguments of `gpuemu baseline`.
#[derive(Debug, Clone, clap::Args)]
#[command(args_conflicts_with_subcommands = true, arg_required_else_help = true)]
pub struct Arguments {
    #[command(subcommand)]
    action: Option<Action>,
    /// Keep the last run of every op and the measures of every kernel under this tag.
    tag: Option<String>,
    /// Format of the result.
    #[arg(long, value_enum, default_value_t = Format::Text)]
    format: Format,
}

/// What is done with baselines.
#[derive(Debug, Clone, Subcommand)]
enum Action {
    /// Keep the last run of every op and the measures of every kernel under a tag.
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

pub fn run(arguments: &Arguments, options: &GlobalOptions) -> Result<u8, ExpectedError> {
    let mut session = Session::open(options)?;
    let project = session.project();
    let (request, format) = match (&arguments.action, &arguments.tag) {
        (Some(Action::Store { tag, format }), _) => return store(&mut session, tag, *format),
        (Some(Action::List { format }), _) => (Request::ListBaselines(ProjectOnly { project }), *format),
        (Some(Action::Delete { tag }), _) => {
            session.call(&Request::DeleteBaseline(StoreBaseline { project, tag: tag.clone(), tools: None }))?;
            return Ok(exit_code::PASSED);
        }
        (None, Some(tag)) => return store(&mut session, tag, arguments.format),
        (None, None) => return Err(ExpectedError::new("no tag is given", "gpuemu baseline TAG")),
    };
    write(session.call(&request)?, format)
}

/// Kernels are compiled for it, which takes a while.
fn store(session: &mut Session, tag: &str, format: Format) -> Result<u8, ExpectedError> {
    let request = StoreBaseline { project: session.project(), tag: tag.to_string(), tools: Some(session.tools()) };
    write(session.run(Request::StoreBaseline(request))?, format)
}

fn write(response: Response, format: Format) -> Result<u8, ExpectedError> {
    let baselines = match response {
        Response::Baselines { baselines } => baselines,
        other => return Err(unexpected(&other).into()),
    };
    for baseline in &baselines {
        if baseline.failing > 0 {
            note(&format!("warning: {} of these cases fail: this is not a good state", baseline.failing));
        }
        baseline.warnings.iter().for_each(|warning| note(&format!("warning: {warning}")));
    }
    match format {
        Format::Json => write_json(&baselines.to_json_value()?)?,
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
        let mut parts = Vec::new();
        if baseline.ops > 0 || baseline.kernels == 0 {
            parts.push(format!("{} ops, {} cases", baseline.ops, baseline.cases));
        }
        if baseline.kernels > 0 {
            parts.push(counted(baseline.kernels as u64, "kernel", "kernels"));
        }
        // Writing to a string cannot fail.
        let _ = writeln!(text, "{}  {}", baseline.tag, parts.join(", "));
    }
    text
}
