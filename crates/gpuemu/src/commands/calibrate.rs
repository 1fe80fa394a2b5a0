//! `gpuemu calibrate`: measure a trusted control, and keep the tolerances in `gpuemu.toml`.

use std::fmt::Write;
use std::path::Path;

use gpuemu_config::{Op, ToleranceMode};
use gpuemu_model::json::ToJson;
use gpuemu_model::settings::FuzzConfig;
use gpuemu_tensor::DType;
use gpuemu_wire::client::unexpected;
use gpuemu_wire::protocol::{Calibrate, CalibrationReport, DtypeCalibration, Request, Response};

use crate::exit_code;
use crate::expected_error::ExpectedError;
use crate::format::{Format, write_json, write_text};
use crate::session::{GlobalOptions, Session};
use crate::whole_files;

/// Arguments of `gpuemu calibrate`.
#[derive(Debug, Clone, clap::Args)]
pub struct Arguments {
    /// The op whose tolerances are measured.
    #[arg(long, value_name = "NAME")]
    op: String,
    /// The trusted control, another implementation of the op: a kernel of the project, a script (.py), or a callable
    /// as module:function.
    #[arg(long, value_name = "CONTROL")]
    control: Option<String>,
    /// The op itself is trusted and may be the control.
    #[arg(long)]
    trust_op: bool,
    /// Cases of each dtype [default: 200].
    #[arg(long, value_name = "N")]
    cases: Option<u64>,
    /// Base seed: with the same one every case is the same, byte for byte.
    #[arg(long, value_name = "SEED")]
    seed: Option<u64>,
    /// Only these dtypes, separated by commas, in place of the configured ones.
    #[arg(long, value_delimiter = ',', value_name = "DTYPE")]
    dtypes: Vec<DType>,
    /// Measure and print, but write nothing.
    #[arg(long)]
    dry_run: bool,
    /// Format of the result.
    #[arg(long, value_enum, default_value_t = Format::Text)]
    format: Format,
}

pub fn run(arguments: &Arguments, options: &GlobalOptions) -> Result<u8, ExpectedError> {
    let mut session = Session::open(options)?;
    let request = Calibrate {
        project: session.project(),
        op_name: arguments.op.clone(),
        control: arguments.control.clone(),
        trust_op: arguments.trust_op,
        config: FuzzConfig {
            iterations: arguments.cases,
            seed: arguments.seed,
            dtypes: (!arguments.dtypes.is_empty()).then(|| arguments.dtypes.clone()),
            ..FuzzConfig::default()
        },
    };
    let report = match session.run(Request::Calibrate(request))? {
        Response::Calibration { report } => report,
        other => return Err(unexpected(&other).into()),
    };
    let op = session.config.ops.iter().find(|op| op.name == arguments.op).cloned();
    let file = session.config.ops_file().to_path_buf();
    let written = (!arguments.dry_run).then_some(file.as_path());
    if let Some(file) = written {
        store(&mut session, file, &report)?;
    }
    match arguments.format {
        Format::Json => {
            let mut whole = report.to_json_value()?;
            whole["written"] = serde_json::to_value(written)?;
            write_json(&whole)?;
        }
        Format::Text => write_text(&describe(&report, op.as_ref(), written))?,
    }
    Ok(exit_code::PASSED)
}

/// Writes the tolerances into the file that the op is in.
fn store(session: &mut Session, file: &Path, report: &CalibrationReport) -> Result<(), ExpectedError> {
    let before = session.config.digest.clone();
    session.reload()?;
    if session.config.digest != before {
        let message = format!("{} was changed while the control was measured: nothing is written", file.display());
        return Err(ExpectedError::new(message, "run the command again"));
    }
    let text = std::fs::read_to_string(file)
        .map_err(|error| ExpectedError::plain(format!("cannot read {}: {error}", file.display())))?;
    let calibrations = report.dtypes.iter().map(|measured| (measured.dtype, report.stored(measured))).collect();
    let text = gpuemu_config::with_calibrations(file, &text, &report.op, &calibrations)?;
    whole_files::write(&[(file, text.as_bytes())])
        .map_err(|error| ExpectedError::plain(format!("cannot write {}: {error}", file.display())))
}

fn describe(report: &CalibrationReport, op: Option<&Op>, written: Option<&Path>) -> String {
    let mut text = String::new();
    // Writing to a string cannot fail.
    let _ = writeln!(text, "{}: measured {} against {}", report.op, report.control, report.reference);
    let (drawn, seed, values) = (report.drawn, report.seed, report.values.name());
    let _ = writeln!(text, "  {drawn} cases of each dtype, seed {seed}, values {values}");
    for measured in &report.dtypes {
        describe_dtype(&mut text, measured);
    }
    for warning in &report.warnings {
        let _ = writeln!(text, "warning: {warning}");
    }
    let _ = match written {
        Some(file) => writeln!(text, "wrote {}", file.display()),
        None => writeln!(text, "nothing is written: this was a dry run"),
    };
    if let Some(mode) = op.map(Op::tolerance_mode).filter(|_| written.is_some()) {
        let _ = match mode {
            ToleranceMode::Calibrated => writeln!(text, "op '{}' is judged by it from now on", report.op),
            ToleranceMode::Bound => writeln!(
                text,
                "op '{}' is still judged by its rigorous bound: tolerance = \"calibrated\" changes that",
                report.op
            ),
            ToleranceMode::Fixed => writeln!(
                text,
                "op '{}' is still judged by fixed tolerances: tolerance = \"calibrated\" changes that",
                report.op
            ),
        };
    }
    text
}

fn describe_dtype(text: &mut String, measured: &DtypeCalibration) {
    let DtypeCalibration { dtype, cases, p95, largest, beyond, atol, rtol, before, over_bound } = measured;
    let _ = writeln!(text, "  {dtype}: atol = {atol:e}, rtol = {rtol:e}");
    let _ = match before {
        Some(before) => writeln!(text, "    before: atol = {:e}, rtol = {:e}", before.atol, before.rtol),
        None => writeln!(text, "    before: no calibration"),
    };
    let _ = writeln!(
        text,
        "    {cases} cases with finite results, error |out - y| / (1 + |y|): 95 % up to {p95:.2e}, the largest {largest:.2e}"
    );
    if *beyond > 0 {
        let _ =
            writeln!(text, "    up to {beyond} of them are beyond it: a failure by this tolerance alone proves no bug");
    }
    if let Some(times) = over_bound {
        let _ = writeln!(text, "    {times:.2} times what the rigorous bound allows at a typical element");
    }
}
