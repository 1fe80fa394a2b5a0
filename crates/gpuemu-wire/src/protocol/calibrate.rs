//! Measuring a trusted control of an op.

use gpuemu_config::{Calibration, TolerancePair};
use gpuemu_model::schema::JsonSchema;
use gpuemu_model::settings::{FuzzConfig, ProjectReference};
use gpuemu_model::{Strategy, seed_text};
use gpuemu_tensor::DType;
use serde::{Deserialize, Serialize};

/// Measure a trusted control of an op: another implementation that is believed in.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct Calibrate {
    /// The project.
    pub project: ProjectReference,
    /// The op.
    pub op_name: String,
    /// The control: the name of a kernel of the project, a script, or a callable as `module:function`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub control: Option<String>,
    /// Whether the op itself may be the control. Its errors are then what it is allowed: it has to be trusted.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub trust_op: bool,
    /// What cases are drawn from; `iterations` is the number of cases of each dtype.
    #[serde(default)]
    pub config: FuzzConfig,
}

/// What was measured of a control.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct CalibrationReport {
    /// The op.
    pub op: String,
    /// The control, in words.
    pub control: String,
    /// What it was compared with.
    pub reference: String,
    /// Base seed of the cases.
    #[serde(with = "seed_text")]
    #[schemars(with = "seed_text::SeedText")]
    pub seed: u64,
    /// How their values were chosen.
    pub values: Strategy,
    /// Cases drawn of each dtype.
    pub drawn: u64,
    /// What was measured of outputs of each dtype.
    pub dtypes: Vec<DtypeCalibration>,
    /// What the user should know before relying on it.
    pub warnings: Vec<String>,
}

/// What was measured of outputs of one dtype.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct DtypeCalibration {
    /// The dtype of the outputs.
    pub dtype: DType,
    /// Cases that gave a finite number to measure.
    pub cases: u64,
    /// The error |out − y|/(1 + |y|) that 95 % of the cases do not exceed.
    pub p95: f64,
    /// The largest error.
    pub largest: f64,
    /// Cases of the control that p95 × 1.5 leaves out: as many may fail although they are right.
    pub beyond: u64,
    /// Absolute part: p95 × 1.5, or the least that is kept.
    pub atol: f64,
    /// Relative part: p95 × 1.5, or the least that is kept.
    pub rtol: f64,
    /// What was stored before.
    pub before: Option<TolerancePair>,
    /// How many times what the rigorous bound allows at a typical element is allowed now; without a bound, nothing.
    pub over_bound: Option<f64>,
}

impl CalibrationReport {
    /// What is to be stored for outputs of one dtype.
    pub fn stored(&self, measured: &DtypeCalibration) -> Calibration {
        Calibration {
            atol: measured.atol,
            rtol: measured.rtol,
            control: self.control.clone(),
            cases: measured.cases,
            seed: self.seed,
            values: self.values,
        }
    }
}
