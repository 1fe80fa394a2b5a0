//! `[ops.calibration]`: tolerances that were measured on a trusted control, and where they come from.

use std::collections::BTreeMap;

use gpuemu_model::Strategy;
use gpuemu_model::schema::JsonSchema;
use gpuemu_tensor::DType;
use serde::{Deserialize, Serialize};

use super::check::{parse_seed, seed_of};
use super::error::{ConfigError, Source};
use super::located::Located;
use super::tables::SeedValue;

/// `[ops.calibration.<dtype>]`, as `gpuemu calibrate` writes it.
#[derive(Debug, Clone, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct CalibrationTable {
    /// Absolute part.
    pub atol: Located<f64>,
    /// Relative part.
    pub rtol: Located<f64>,
    /// The trusted control, in words.
    pub control: String,
    /// Cases that were measured.
    pub cases: u64,
    /// Base seed of the cases. A string where it does not fit TOML's integers.
    pub seed: Located<SeedValue>,
    /// How the values of the cases were chosen.
    pub values: Strategy,
}

/// A tolerance that was measured, and on what.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Calibration {
    pub atol: f64,
    pub rtol: f64,
    /// The trusted control, in words.
    pub control: String,
    /// Cases that were measured.
    pub cases: u64,
    /// Base seed of the cases.
    #[serde(with = "gpuemu_model::seed_text")]
    pub seed: u64,
    /// How the values of the cases were chosen.
    pub values: Strategy,
}

/// The calibrations of an op as written.
pub(super) type CalibrationTables = BTreeMap<DType, CalibrationTable>;

/// Checks the calibrations of an op.
pub(super) fn check_calibrations(source: &Source, tables: &Option<CalibrationTables>) -> Result<(), ConfigError> {
    for (dtype, table) in tables.iter().flatten() {
        if !dtype.is_float() {
            let message = format!("there is a calibration of {dtype}, which must be exact");
            return Err(source.invalid(&table.atol.span, message, Some("remove it".to_string())));
        }
        for (name, number) in [("atol", &table.atol), ("rtol", &table.rtol)] {
            if !number.value.is_finite() || number.value < 0.0 {
                let message = format!("calibrated {name} of {dtype} is {}, but must be 0 or above", number.value);
                return Err(source.invalid(&number.span, message, None));
            }
        }
        parse_seed(&table.seed, source)?;
    }
    Ok(())
}

/// The calibrations of an op, which were checked.
pub(super) fn resolve_calibrations(tables: Option<CalibrationTables>) -> BTreeMap<DType, Calibration> {
    let resolved = tables.into_iter().flatten().map(|(dtype, table)| {
        let CalibrationTable { atol, rtol, control, cases, seed, values } = table;
        let (atol, rtol, seed) = (atol.value, rtol.value, seed_of(&seed.value).unwrap_or_default());
        (dtype, Calibration { atol, rtol, control, cases, seed, values })
    });
    resolved.collect()
}
