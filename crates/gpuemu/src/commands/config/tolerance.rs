//! `gpuemu config tolerance`: set the tolerance of an op in one dtype.

use gpuemu_config::{Environment, TolerancePair, with_tolerance};
use gpuemu_tensor::DType;
use serde_json::json;

use super::{TextSource, load, project_file};
use crate::exit_code;
use crate::expected_error::ExpectedError;
use crate::format::{Format, write_json, write_text};
use crate::whole_files;

/// Arguments of `gpuemu config tolerance`.
#[derive(Debug, Clone, clap::Args)]
pub struct Arguments {
    /// The op.
    #[arg(long, value_name = "NAME")]
    op: String,
    /// The dtype.
    #[arg(long, value_name = "DTYPE")]
    dtype: DType,
    /// The absolute part.
    #[arg(long, value_name = "NUMBER")]
    atol: f64,
    /// The relative part.
    #[arg(long, value_name = "NUMBER")]
    rtol: f64,
    /// With it the changed text is the result, and no file is written.
    #[command(flatten)]
    source: TextSource,
    /// Format of the result.
    #[arg(long, value_enum, default_value_t = Format::Text)]
    format: Format,
}

pub fn run(arguments: &Arguments) -> Result<u8, ExpectedError> {
    let environment = Environment::of_process();
    let given = arguments.source.text()?;
    let project = project_file(&environment, given.is_some())?;
    // The ops may be in a file of the user's.
    let file = load(project.clone(), given.clone(), &environment)?.ops_file().to_path_buf();
    let unreadable = |error| ExpectedError::plain(format!("cannot read {}: {error}", file.display()));
    let text = match &given {
        Some(text) if file == project => text.clone(),
        _ => std::fs::read_to_string(&file).map_err(unreadable)?,
    };
    let Arguments { op, dtype, atol, rtol, .. } = arguments;
    let edited = with_tolerance(&file, &text, op, *dtype, TolerancePair { atol: *atol, rtol: *rtol })?;
    let write = given.is_none();
    if write {
        whole_files::write(&[(&file, edited.as_bytes())])
            .map_err(|error| ExpectedError::plain(format!("cannot write {}: {error}", file.display())))?;
    }
    match arguments.format {
        Format::Json => write_json(&json!({ "file": file, "text": edited, "written": write }))?,
        Format::Text if write => write_text(&format!(
            "{op} is judged by atol = {atol:e}, rtol = {rtol:e} in {dtype} from now on\nwrote {}\n",
            file.display()
        ))?,
        Format::Text => write_text(&edited)?,
    }
    Ok(exit_code::PASSED)
}
