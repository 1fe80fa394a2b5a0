//! `gpuemu ops`: list the built-in ops, search them, describe one, and show how close correct kernels come to their
//! bounds.

mod describe;
mod headroom;
mod list;

use std::sync::Arc;

use gpuemu_engine::Op;
use gpuemu_engine::ops::{builtin, classes, find, nearest, search};

use crate::exit_code;
use crate::expected_error::ExpectedError;
use crate::format::{Format, write_json, write_text};

/// Arguments of `gpuemu ops`.
#[derive(Debug, clap::Args)]
pub struct Arguments {
    /// The ops to describe; all of them are listed without one.
    names: Vec<String>,
    /// List the ops that have these words in their names, keywords or descriptions.
    #[arg(long, value_name = "WORD", num_args = 1.., conflicts_with_all = ["names", "headroom"])]
    search: Vec<String>,
    /// Run correct kernels of the ops on generated cases, and print the largest error over the tolerance by dtype.
    #[arg(long)]
    headroom: bool,
    /// Cases for each op and each of its correct kernels.
    #[arg(long, default_value_t = 500, requires = "headroom", value_parser = clap::value_parser!(u64).range(1..))]
    cases: u64,
    /// Cases for each op's wrong kernels.
    #[arg(long, default_value_t = 100, requires = "headroom")]
    mutant_cases: u64,
    /// Base seed of the cases.
    #[arg(long, default_value_t = 1, requires = "headroom")]
    seed: u64,
    /// Format of the result.
    #[arg(long, value_enum, default_value_t = Format::Text)]
    format: Format,
}

pub fn run(arguments: &Arguments) -> Result<u8, ExpectedError> {
    let chosen: Vec<Arc<dyn Op>> = arguments.names.iter().map(|name| known(name)).collect::<Result<_, _>>()?;
    if arguments.headroom {
        return headroom::run(&chosen, arguments.cases, arguments.mutant_cases, arguments.seed, arguments.format);
    }
    if !arguments.search.is_empty() {
        let found = search(&arguments.search);
        if found.is_empty() {
            let words = arguments.search.join(" ");
            return Err(ExpectedError::new(format!("no op has '{words}'"), "`gpuemu ops` lists all of them"));
        }
        return print_list(&found, arguments.format);
    }
    match (&chosen[..], arguments.format) {
        ([], format) => return print_list(builtin(), format),
        ([one], Format::Json) => write_json(&describe::json(one.schema(), Some(&classes(one.as_ref()))))?,
        (several, Format::Json) => {
            let one = |op: &Arc<dyn Op>| describe::json(op.schema(), Some(&classes(op.as_ref())));
            write_json(&several.iter().map(one).collect::<Vec<_>>())?;
        }
        (several, Format::Text) => {
            let pages: Vec<String> = several.iter().map(|op| describe::text(op.as_ref())).collect();
            write_text(&pages.join("\n"))?;
        }
    }
    Ok(exit_code::PASSED)
}

fn print_list(ops: &[Arc<dyn Op>], format: Format) -> Result<u8, ExpectedError> {
    match format {
        Format::Json => write_json(&ops.iter().map(|op| describe::json(op.schema(), None)).collect::<Vec<_>>())?,
        Format::Text => write_text(&list::text(ops))?,
    }
    Ok(exit_code::PASSED)
}

/// The op of a name; where there is none, what might have been meant.
fn known(name: &str) -> Result<Arc<dyn Op>, ExpectedError> {
    if let Some(op) = find(name) {
        return Ok(op);
    }
    let related: Vec<String> = search(&[name.to_string()]).iter().map(|op| op.schema().name.clone()).take(6).collect();
    let hint = match (nearest(name), related.is_empty()) {
        (Some(known), _) => format!("did you mean '{known}'? `gpuemu ops` lists all of them"),
        (None, false) => format!("these have to do with it: {}", related.join(", ")),
        (None, true) => "`gpuemu ops` lists all of them, `gpuemu ops --search WORD` finds some".to_string(),
    };
    Err(ExpectedError::new(format!("unknown op '{name}'"), hint))
}
