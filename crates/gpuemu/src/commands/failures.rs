//! `gpuemu failures`: list, show and replay stored failures.

use std::fmt::Write;

use clap::Subcommand;
use gpuemu_model::json::ToJson;
use gpuemu_model::report::ValidationResult;
use gpuemu_wire::client::unexpected;
use gpuemu_wire::protocol::{GetResult, ListResults, ReplayFailures, Replayed, Request, Response};

use crate::exit_code;
use crate::expected_error::ExpectedError;
use crate::format::{Format, write_json, write_text};
use crate::report::style::{BAD, GOOD, WARNING, paint};
use crate::report::text;
use crate::session::{GlobalOptions, Session, note};

/// Failures that are listed where no number is given.
const LISTED: u64 = 100;

/// Arguments of `gpuemu failures`.
#[derive(Debug, Clone, clap::Args)]
#[command(args_conflicts_with_subcommands = true)]
pub struct Arguments {
    #[command(subcommand)]
    action: Option<Action>,
    #[command(flatten)]
    list: ListArguments,
}

/// What is done with stored failures.
#[derive(Debug, Clone, Subcommand)]
enum Action {
    /// List them, newest first.
    List(ListArguments),
    /// Show one.
    Show {
        /// The seed of the case.
        seed: u64,
        /// The op.
        #[arg(long, value_name = "NAME")]
        op: Option<String>,
        /// Format of the result.
        #[arg(long, value_enum, default_value_t = Format::Text)]
        format: Format,
    },
    /// Run them again: FIXED or FAILED for each, SKIPPED where only Python can run it.
    Replay(ListArguments),
}

#[derive(Debug, Clone, clap::Args)]
struct ListArguments {
    /// Of one op.
    #[arg(long, value_name = "NAME")]
    op: Option<String>,
    /// At most so many, the newest first [default: 100 are listed, all are replayed].
    #[arg(long, value_name = "N")]
    limit: Option<u64>,
    /// Not older than so many hours.
    #[arg(long, value_name = "HOURS", alias = "since_hours")]
    since_hours: Option<f64>,
    /// Format of the result.
    #[arg(long, value_enum, default_value_t = Format::Text)]
    format: Format,
}

pub fn run(arguments: &Arguments, options: &GlobalOptions) -> Result<u8, ExpectedError> {
    let mut session = Session::open(options)?;
    match &arguments.action {
        None => list(&mut session, &arguments.list),
        Some(Action::List(arguments)) => list(&mut session, arguments),
        Some(Action::Show { seed, op, format }) => show(&mut session, *seed, op.clone(), *format),
        Some(Action::Replay(arguments)) => replay(&mut session, arguments),
    }
}

/// Stored failures, newest first.
pub fn stored(
    session: &mut Session,
    op_name: Option<String>,
    limit: u64,
) -> Result<Vec<ValidationResult>, ExpectedError> {
    let project = session.project();
    let request = ListResults { project, op_name, limit: Some(limit), since_hours: None };
    match session.call(&Request::ListFailures(request))? {
        Response::Results { results } => Ok(results),
        other => Err(unexpected(&other).into()),
    }
}

fn list(session: &mut Session, arguments: &ListArguments) -> Result<u8, ExpectedError> {
    let limit = arguments.limit.unwrap_or(LISTED);
    let request = ListResults {
        project: session.project(),
        op_name: arguments.op.clone(),
        // One more than is shown tells whether there are more.
        limit: Some(limit.saturating_add(1)),
        since_hours: arguments.since_hours,
    };
    let mut results = match session.call(&Request::ListFailures(request))? {
        Response::Results { results } => results,
        other => return Err(unexpected(&other).into()),
    };
    if results.len() as u64 > limit {
        results.truncate(limit as usize);
        note(&format!("these are the newest {limit}; --limit shows more"));
    }
    match arguments.format {
        Format::Json => write_json(&results.to_json_value()?)?,
        Format::Text if results.is_empty() => write_text("no failure is stored\n")?,
        Format::Text => write_text(&results.iter().map(failure_line).collect::<String>())?,
    }
    Ok(exit_code::PASSED)
}

pub fn failure_line(result: &ValidationResult) -> String {
    let what = result.finding().map_or(String::new(), |finding| format!("{} [{}]", finding.check, finding.bug_class));
    let minimized = if result.minimized { " (minimized)" } else { "" };
    format!("{}  {}{minimized}  {what}\n", result.op, text::case_line(result))
}

fn show(session: &mut Session, seed: u64, op_name: Option<String>, format: Format) -> Result<u8, ExpectedError> {
    let request = GetResult { project: session.project(), op_name, seed };
    let result = match session.call(&Request::GetResult(request))? {
        Response::ValidationResult { result } => result,
        other => return Err(unexpected(&other).into()),
    };
    match format {
        Format::Json => write_json(&result.to_json_value()?)?,
        Format::Text => write_text(&text::result(&result))?,
    }
    Ok(exit_code::PASSED)
}

fn replay(session: &mut Session, arguments: &ListArguments) -> Result<u8, ExpectedError> {
    let request = ReplayFailures { project: session.project(), op_name: arguments.op.clone(), limit: arguments.limit };
    let failures = match session.run(Request::ReplayFailures(request))? {
        Response::Replayed { failures } => failures,
        other => return Err(unexpected(&other).into()),
    };
    match arguments.format {
        Format::Json => write_json(&failures.to_json_value()?)?,
        Format::Text if failures.is_empty() => write_text("no failure is stored\n")?,
        Format::Text => write_text(&describe(&failures))?,
    }
    let any = |status: &str| failures.iter().any(|failure| failure.status == status);
    // What was skipped is not known to be mended: alone it is no pass.
    Ok(if any("FAILED") {
        exit_code::FAILED
    } else if any("ERROR") || (any("SKIPPED") && !any("FIXED")) {
        exit_code::ENVIRONMENT_ERROR
    } else {
        exit_code::PASSED
    })
}

fn describe(failures: &[Replayed]) -> String {
    let mut text = String::new();
    for failure in failures {
        let style = match failure.status.as_str() {
            "FIXED" => GOOD,
            "SKIPPED" => WARNING,
            _ => BAD,
        };
        let status = paint(style, &format!("{:6}", failure.status));
        let result = &failure.result;
        // Writing to a string cannot fail.
        let _ = write!(text, "{status}  {}", failure_line(result));
        if matches!(failure.status.as_str(), "ERROR" | "SKIPPED") {
            let _ = writeln!(text, "        {}", result.message.as_deref().unwrap_or_default());
        }
    }
    let count = |status: &str| failures.iter().filter(|failure| failure.status == status).count();
    let _ = write!(text, "\n{} fixed, {} failed, {} errors", count("FIXED"), count("FAILED"), count("ERROR"));
    if count("SKIPPED") > 0 {
        let _ = write!(text, ", {} skipped", count("SKIPPED"));
    }
    text.push('\n');
    text
}
