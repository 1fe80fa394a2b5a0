//! `gpuemu coverage`: which ops, dtypes, sizes, layouts and values were exercised, and which checks could not run.

mod count;
mod dimension_class;

use std::fmt::Write;

use count::{Coverage, OpCoverage};
use gpuemu_wire::client::unexpected;
use gpuemu_wire::protocol::{ListResults, ListRuns, ProjectOnly, Request, Response};

use crate::exit_code;
use crate::expected_error::ExpectedError;
use crate::format::{Format, write_json, write_text};
use crate::report::style::{BAD, GOOD, WARNING, paint};
use crate::session::{GlobalOptions, Session, note};

/// Results that are counted at most.
const MOST_RESULTS: u64 = 100_000;

/// Arguments of `gpuemu coverage`.
#[derive(Debug, Clone, clap::Args)]
pub struct Arguments {
    /// Only this op.
    #[arg(long, value_name = "NAME")]
    op: Option<String>,
    /// Only results of the last so many hours.
    #[arg(long, value_name = "HOURS", alias = "since_hours")]
    since_hours: Option<f64>,
    /// Format of the result.
    #[arg(long, value_enum, default_value_t = Format::Text)]
    format: Format,
}

pub fn run(arguments: &Arguments, options: &GlobalOptions) -> Result<u8, ExpectedError> {
    let mut session = Session::open(options)?;
    let project = session.project();
    let mut ops = match session.call(&Request::ListOps(ProjectOnly { project: project.clone() }))? {
        Response::Ops { ops } => ops,
        other => return Err(unexpected(&other).into()),
    };
    let request = ListResults {
        project: project.clone(),
        op_name: arguments.op.clone(),
        limit: Some(MOST_RESULTS),
        since_hours: arguments.since_hours,
    };
    let results = match session.call(&Request::ListResults(request))? {
        Response::Results { results } => results,
        other => return Err(unexpected(&other).into()),
    };
    let request = ListRuns { project, op_name: arguments.op.clone(), limit: Some(1) };
    let runs = match session.call(&Request::ListRuns(request))? {
        Response::Runs { runs } => runs,
        other => return Err(unexpected(&other).into()),
    };
    if let Some(name) = &arguments.op {
        ops.retain(|op| op.name == *name);
        if ops.is_empty() && results.is_empty() {
            let hint = "`gpuemu coverage` without --op shows those that there are";
            return Err(ExpectedError::new(format!("there is no op '{name}', and no result of one"), hint));
        }
    }
    if results.len() as u64 >= MOST_RESULTS {
        note(&format!("only the newest {MOST_RESULTS} results are counted: ask for one op, or a shorter time"));
    }
    let coverage = Coverage::of(&ops, &results, &runs);
    match arguments.format {
        Format::Json => write_json(&coverage)?,
        Format::Text => write_text(&describe(&coverage))?,
    }
    Ok(exit_code::PASSED)
}

fn describe(coverage: &Coverage) -> String {
    let mut text = String::new();
    for op in &coverage.ops {
        // Writing to a string cannot fail.
        let _ = describe_op(&mut text, op);
    }
    let tried = coverage.ops.iter().filter(|op| op.judged > 0).count();
    let _ = writeln!(text, "{tried} of {} ops have a case that was judged", coverage.ops.len());
    text
}

fn describe_op(text: &mut String, op: &OpCoverage) -> std::fmt::Result {
    if op.cases == 0 {
        writeln!(text, "{}\n  {}", op.op, paint(BAD, "no case of it is stored"))?;
    } else {
        let unlisted = if op.configured { "" } else { ", not in the configuration" };
        writeln!(text, "{}: {} of {} cases judged{unlisted}", op.op, op.judged, op.cases)?;
        if op.unread > 0 {
            writeln!(text, "  {} cases are of another version: only their dtype is counted", op.unread)?;
        }
        line(text, "dtypes", op.dtypes.iter().map(|(dtype, count)| (dtype.to_string(), *count)))?;
        for (dim, classes) in &op.dims {
            let name = if dim == "..." { "leading dims".to_string() } else { format!("dim {dim}") };
            line(text, &name, classes.iter().map(|(class, count)| (class.words().to_string(), *count)))?;
        }
        line(text, "layouts", op.layouts.iter().map(|(name, count)| (name.to_string(), *count)))?;
        line(text, "values", op.values.iter().map(|(name, count)| (name.to_string(), *count)))?;
    }
    if !op.not_checked.is_empty() {
        writeln!(text, "  {} {}", paint(WARNING, "not checked:"), op.not_checked.join(", "))?;
    }
    text.push('\n');
    Ok(())
}

/// What was exercised, with how many cases, and then what never was.
fn line(text: &mut String, name: &str, counts: impl Iterator<Item = (String, u64)>) -> std::fmt::Result {
    let (tried, never): (Vec<_>, Vec<_>) = counts.partition(|(_, count)| *count > 0);
    let tried: Vec<String> = tried.iter().map(|(what, count)| format!("{what} {count}")).collect();
    write!(text, "  {name:14}{}", paint(GOOD, &tried.join(", ")))?;
    if !never.is_empty() {
        let never: Vec<&str> = never.iter().map(|(what, _)| what.as_str()).collect();
        let separator = if tried.is_empty() { "" } else { "; " };
        write!(text, "{separator}{}", paint(WARNING, &format!("never: {}", never.join(", "))))?;
    }
    text.push('\n');
    Ok(())
}
