//! `gpuemu version`: version information.

use gpuemu_engine::case::GENERATOR_VERSION;
use gpuemu_model::report::REPORT_VERSION;
use gpuemu_wire::protocol::PROTOCOL_VERSION;
use serde_json::json;

use crate::exit_code;
use crate::expected_error::ExpectedError;
use crate::format::{Format, write_json, write_text};

/// Arguments of `gpuemu version`.
#[derive(Debug, Clone, clap::Args)]
pub struct Arguments {
    /// Format of the result.
    #[arg(long, value_enum, default_value_t = Format::Text)]
    format: Format,
}

pub fn run(arguments: &Arguments) -> Result<u8, ExpectedError> {
    let version = env!("CARGO_PKG_VERSION");
    match arguments.format {
        Format::Json => write_json(&json!({
            "version": version,
            "protocol_version": PROTOCOL_VERSION,
            "report_version": REPORT_VERSION,
            "generator_version": GENERATOR_VERSION,
        }))?,
        Format::Text => write_text(&format!(
            "gpuemu {version}\nprotocol {PROTOCOL_VERSION}, report {REPORT_VERSION}, case generator {GENERATOR_VERSION}\n"
        ))?,
    }
    Ok(exit_code::PASSED)
}
