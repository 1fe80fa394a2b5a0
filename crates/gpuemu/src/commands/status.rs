//! `gpuemu status`: the project, its ops and kernels, and the daemon at a glance.

use std::fmt::Write;

use gpuemu_config::Config;
use gpuemu_model::report::ValidationResult;
use gpuemu_wire::client::unexpected;
use gpuemu_wire::protocol::{OpSummary, ProjectOnly, Request, Response};
use serde_json::{Value, json};

use super::failures;
use crate::exit_code;
use crate::expected_error::ExpectedError;
use crate::format::{Format, write_json, write_text};
use crate::session::{GlobalOptions, Session};

/// Arguments of `gpuemu status`.
#[derive(Debug, Clone, clap::Args)]
pub struct Arguments {
    /// Format of the result.
    #[arg(long, value_enum, default_value_t = Format::Text)]
    format: Format,
}

pub fn run(arguments: &Arguments, options: &GlobalOptions) -> Result<u8, ExpectedError> {
    let mut session = Session::open(options)?;
    let project = session.project();
    let ops = match session.call(&Request::ListOps(ProjectOnly { project }))? {
        Response::Ops { ops } => ops,
        other => return Err(unexpected(&other).into()),
    };
    let status = match session.call(&Request::Status)? {
        Response::Status { status } => status,
        other => return Err(unexpected(&other).into()),
    };
    let failures = failures::stored(&mut session, None, 5)?;
    let config = &session.config;
    match arguments.format {
        Format::Json => write_json(&json!({
            "project": { "name": config.project.name, "version": config.project.version, "config": config.file },
            "ops": ops,
            "kernels": kernels(config),
            "daemon": status,
            "newest_failures": failures,
        }))?,
        Format::Text => {
            let mut text = format!("{} {} ({})\n", config.project.name, config.project.version, config.file.display());
            describe(&mut text, config, &ops, &failures);
            // Writing to a string cannot fail.
            let _ = writeln!(
                text,
                "gpuemu {}, process {}, {} jobs running, {} results stored in {}",
                status.version,
                status.pid,
                status.running_jobs,
                status.stored.results,
                status.home.display()
            );
            write_text(&text)?;
        }
    }
    Ok(exit_code::PASSED)
}

fn kernels(config: &Config) -> Vec<Value> {
    let kernels = config.kernels.iter();
    kernels.map(|kernel| json!({ "name": kernel.name, "line": kernel.line, "source": kernel.source })).collect()
}

fn describe(text: &mut String, config: &Config, ops: &[OpSummary], failures: &[ValidationResult]) {
    let names = ops.iter().map(|op| &op.name).chain(config.kernels.iter().map(|kernel| &kernel.name));
    let width = names.map(String::len).max().unwrap_or(0);
    for op in ops {
        let dtypes: Vec<String> = op.dtypes.iter().map(ToString::to_string).collect();
        let _ = writeln!(text, "  {:width$}  {}, {}, judged by {}", op.name, op.source, dtypes.join(" "), op.reference);
    }
    for kernel in &config.kernels {
        let _ = writeln!(text, "  {:width$}  kernel {}", kernel.name, kernel.source);
    }
    if !failures.is_empty() {
        text.push_str("newest failures:\n");
        failures.iter().for_each(|failure| text.push_str(&format!("  {}", failures::failure_line(failure))));
    }
}
