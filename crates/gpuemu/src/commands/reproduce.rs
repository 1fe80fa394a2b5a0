//! `gpuemu reproduce`: run one case again.

use gpuemu_model::finding::Outcome;
use gpuemu_model::json::ToJson;
use gpuemu_model::picture::{ErrorPicture, Tile};
use gpuemu_model::report::ValidationResult;
use gpuemu_model::settings::FuzzConfig;
use gpuemu_wire::client::unexpected;
use gpuemu_wire::protocol::{Illustrate, Illustration, ReplayCase, Request, Response};

use crate::exit_code;
use crate::expected_error::ExpectedError;
use crate::format::{Format, write_json, write_text};
use crate::options::cases::{CaseOptions, SeedArgument};
use crate::report::text;
use crate::session::{GlobalOptions, Session};

/// Arguments of `gpuemu reproduce`.
#[derive(Debug, Clone, clap::Args)]
pub struct Arguments {
    #[command(flatten)]
    seed: SeedArgument,
    /// The op; may be left out where a stored result has the seed.
    #[arg(long, value_name = "NAME")]
    op: Option<String>,
    /// The smallest form of a failure that was minimized.
    #[arg(long)]
    minimized: bool,
    /// The case was drawn by a quick run.
    #[arg(long)]
    quick: bool,
    /// Say where in the output the errors are too: as JSON with a heat map and the numbers around the worst of them.
    #[arg(long, requires = "op", conflicts_with = "minimized")]
    picture: bool,
    #[command(flatten)]
    cases: CaseOptions,
    /// Format of the result.
    #[arg(long, value_enum, default_value_t = Format::Text)]
    format: Format,
}

pub fn run(arguments: &Arguments, options: &GlobalOptions) -> Result<u8, ExpectedError> {
    let config = FuzzConfig { quick: arguments.quick, ..arguments.cases.config()? };
    let mut session = Session::open(options)?;
    if let Some(op_name) = arguments.op.clone().filter(|_| arguments.picture) {
        let (project, seed) = (session.project(), arguments.seed.value());
        let request = Illustrate { project, op_name, seed, config, case: None, minimize: false };
        return illustrate(&mut session, request, arguments.format);
    }
    let request = ReplayCase {
        project: session.project(),
        op_name: arguments.op.clone(),
        seed: arguments.seed.value(),
        config,
        minimized: arguments.minimized,
    };
    replay(&mut session, request, arguments.format)
}

/// Runs a case again and shows its verdict.
pub fn replay(session: &mut Session, request: ReplayCase, format: Format) -> Result<u8, ExpectedError> {
    let result = match session.run(Request::Reproduce(request))? {
        Response::ValidationResult { result } => result,
        other => return Err(unexpected(&other).into()),
    };
    match format {
        Format::Json => write_json(&result.to_json_value()?)?,
        Format::Text => write_text(&text::result(&result))?,
    }
    Ok(exit_code_of(&result))
}

/// Runs a case again and shows where it is wrong.
fn illustrate(session: &mut Session, request: Illustrate, format: Format) -> Result<u8, ExpectedError> {
    let illustration = match session.run(Request::Illustrate(request))? {
        Response::Illustration { illustration } => illustration,
        other => return Err(unexpected(&other).into()),
    };
    match format {
        Format::Json => write_json(&illustration.to_json_value()?)?,
        Format::Text => write_text(&format!("{}{}", text::result(&illustration.result), picture_line(&illustration)))?,
    }
    Ok(exit_code_of(&illustration.result))
}

fn picture_line(illustration: &Illustration) -> String {
    match (&illustration.picture, &illustration.without_picture) {
        (Some(picture), _) => {
            let ErrorPicture { tensor, shape, mismatched, elements, window, .. } = picture;
            let tile = |tile: Option<Tile>, what: &str| {
                tile.map(|tile| format!(", tiles of {} {what}", tile.size)).unwrap_or_default()
            };
            let tiles = tile(picture.row_tile, "rows") + &tile(picture.column_tile, "columns");
            let worst = &window.worst;
            format!(
                "  {mismatched} of {elements} elements of {tensor}{shape:?} are wrong, the worst at {worst:?}{tiles}\n"
            )
        }
        (None, Some(reason)) => format!("  no picture: {reason}\n"),
        (None, None) => String::new(),
    }
}

fn exit_code_of(result: &ValidationResult) -> u8 {
    match result.outcome {
        Outcome::Passed => exit_code::PASSED,
        Outcome::Failed => exit_code::FAILED,
        Outcome::Undetermined | Outcome::Error => exit_code::ENVIRONMENT_ERROR,
    }
}
