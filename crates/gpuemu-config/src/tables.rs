//! The tables of a configuration file as they are written: everything optional, names checked.

use std::collections::BTreeMap;

use gpuemu_model::schema::JsonSchema;
use gpuemu_model::{Precision, Strategy};
use gpuemu_tensor::DType;
use serde::{Deserialize, Serialize};

use super::calibration::CalibrationTable;
use super::kernels::{KernelTable, LintTable};
use super::located::Located;

/// A configuration file of gpuemu: `gpuemu.toml`, the user's `config.toml` or the daemon's `daemon.toml`.
#[derive(Debug, Clone, Default, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct ConfigFile {
    /// The project.
    pub project: Option<ProjectTable>,
    /// How all ops are validated, unless they say otherwise.
    pub validation: Option<ValidationTable>,
    /// The ops to validate.
    pub ops: Option<Vec<OpTable>>,
    /// Compiled kernels to inspect and run.
    pub kernels: Option<Vec<KernelTable>>,
    /// How compiled kernels are checked.
    pub lint: Option<LintTable>,
    /// How results are judged in CI and reports.
    pub policies: Option<PoliciesTable>,
    /// Settings of CI runs.
    pub ci: Option<CiTable>,
    /// Settings of the daemon.
    pub daemon: Option<DaemonTable>,
    /// What the store keeps.
    pub storage: Option<StorageTable>,
    /// Failures that are known, with a reason and a date.
    pub expected_failures: Option<Vec<ExpectedFailureTable>>,
}

/// `[project]`
#[derive(Debug, Clone, Default, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct ProjectTable {
    /// Name, used in reports and logs.
    pub name: Option<String>,
    /// Version, for information only. Default "0.0.0".
    pub version: Option<String>,
    /// Framework whose adapter is used where none is named. Default "pytorch".
    pub framework: Option<Framework>,
}

/// A framework with an adapter.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "lowercase")]
#[allow(missing_docs, reason = "the variants are their own names")]
pub enum Framework {
    #[default]
    Pytorch,
    Jax,
    Tensorflow,
    Numpy,
}

/// `[validation]`
#[derive(Debug, Clone, Default, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct ValidationTable {
    /// Dtypes to test. Default ["float32"].
    pub dtypes: Option<Located<Vec<DType>>>,
    /// Fail on NaN where the reference has none. Default true.
    pub check_nan: Option<bool>,
    /// Fail on infinity where the reference has none. Default true.
    pub check_inf: Option<bool>,
    /// Base seed; 0 chooses one at random and prints it. A string where it does not fit TOML's integers.
    pub seed: Option<Located<SeedValue>>,
    /// Tolerances by dtype.
    pub tolerances: Option<BTreeMap<DType, Located<TolerancePair>>>,
    /// How values are chosen. Default "adversarial".
    pub values: Option<Strategy>,
}

/// A seed as written.
#[derive(Debug, Clone, PartialEq, Eq, Deserialize, JsonSchema)]
#[serde(untagged)]
pub enum SeedValue {
    /// A number.
    Number(i64),
    /// A number as text.
    Text(String),
}

/// atol and rtol of `|actual − expected| ≤ atol + rtol·|expected|`.
#[derive(Debug, Clone, Copy, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields, default)]
pub struct TolerancePair {
    /// Absolute part.
    pub atol: f64,
    /// Relative part.
    pub rtol: f64,
}

impl Default for TolerancePair {
    fn default() -> Self {
        Self { atol: 1e-5, rtol: 1e-5 }
    }
}

/// One `[[ops]]` entry.
#[derive(Debug, Clone, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct OpTable {
    /// Unique name.
    pub name: Located<String>,
    /// The built-in op that it is, where its name does not say so: a project may have several of one.
    pub op: Option<Located<String>>,
    /// Python module of the op, `pkg.mod` or `pkg.mod:function`.
    pub module: Option<Located<String>>,
    /// Function or launcher of the kernel, `pkg.mod:name`, that every call of `module` has to run: one that does not fails.
    pub launches: Option<Located<String>>,
    /// Script that runs the op by the stdin/stdout protocol.
    pub script: Option<Located<String>>,
    /// Name of a `[[kernels]]` entry that is the op.
    pub kernel: Option<Located<String>>,
    /// Reference script, or a callable as `module:function`; built-in ops need none.
    pub reference: Option<Located<String>>,
    /// How the reference is run. Default "script_based".
    pub execution_mode: Option<ExecutionMode>,
    /// Tolerances by dtype, in place of the global ones.
    pub tolerances: Option<BTreeMap<DType, Located<TolerancePair>>>,
    /// Which tolerance is used. By default "fixed" where tolerances are given or a script is the reference, else "bound".
    pub tolerance: Option<ToleranceMode>,
    /// Tolerances by dtype that `gpuemu calibrate` measured on a trusted control, for tolerance = "calibrated".
    pub calibration: Option<BTreeMap<DType, CalibrationTable>>,
    /// Structural checks of outputs.
    pub invariants: Option<Vec<Invariant>>,
    /// Signature such as "a[M,K] b[K,N] -> out[M,N]".
    pub signature: Option<Located<String>>,
    /// Sizes of dims: a number, a list, or a range.
    pub dims: Option<BTreeMap<String, Located<DimensionTable>>>,
    /// Sizes that quick runs use.
    pub shapes: Option<Vec<BTreeMap<String, usize>>>,
    /// Dtypes to test, in place of the global ones.
    pub dtypes: Option<Located<Vec<DType>>>,
    /// How values are chosen, in place of the global setting.
    pub values: Option<Strategy>,
    /// What the kernel may do with precision.
    pub precision: Option<Precision>,
    /// Precision in which float inputs reach the reference. Default "float64".
    pub reference_dtype: Option<ReferenceDtype>,
    /// Arguments of the op that are not tensors.
    pub kwargs: Option<BTreeMap<String, serde_json::Value>>,
    /// Seconds that one call may take, in place of the daemon's setting.
    pub timeout: Option<Located<f64>>,
}

/// Sizes of one dim.
#[derive(Debug, Clone, PartialEq, Eq, Deserialize, JsonSchema)]
#[serde(untagged, expecting = "expected a size, a list of sizes, or a table with min and max")]
pub enum DimensionTable {
    /// Always this size.
    Fixed(usize),
    /// One of these.
    List(Vec<usize>),
    /// From `min` to `max`, both included.
    Range {
        /// Smallest.
        min: usize,
        /// Largest.
        max: usize,
    },
}

/// How a reference is run.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum ExecutionMode {
    /// A process per case.
    #[default]
    ScriptBased,
    /// A callable in the client's process.
    ClientSide,
    /// A warm pool of workers.
    DaemonOrchestrated,
}

/// Which tolerance decides.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum ToleranceMode {
    /// The rigorous bound.
    Bound,
    /// p95 × 1.5 of a trusted control.
    Calibrated,
    /// atol and rtol as configured.
    Fixed,
}

/// A structural check of outputs.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum Invariant {
    /// The output's shape is the reference's.
    ShapePreserved,
    /// Every element is 0 or above.
    NonNegative,
    /// No NaN and no infinity.
    Finite,
    /// A square output equals its transpose.
    Symmetric,
    /// Rows sum to one along the last axis.
    Normalized,
}

/// Precision in which float inputs reach a reference.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum ReferenceDtype {
    /// As float64.
    #[default]
    Float64,
    /// In the dtype of the case.
    Native,
}

/// `[policies]`
#[derive(Debug, Clone, Default, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct PoliciesTable {
    /// Fail where an op that passed in the last stored run fails now. Default true.
    pub fail_on_regression: Option<bool>,
    /// Share of the tolerance from which a warning is given. Default 0.8.
    pub warn_threshold: Option<Located<f64>>,
    /// Growth of an error against a baseline that counts as a regression. Default 0.1.
    pub regression_threshold: Option<Located<f64>>,
}

/// `[ci]`
#[derive(Debug, Clone, Default, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct CiTable {
    /// Dtypes of quick runs; the same setting as `[ci.quick] dtypes`. Default ["float32"].
    pub quick_dtypes: Option<Located<Vec<DType>>>,
    /// Seconds that a thorough run may take. Default 300.
    pub thorough_timeout: Option<Located<i64>>,
    /// Ops validated at once; 0 is all cores; the same setting as `parallel`. Default 1.
    pub parallel_jobs: Option<Located<i64>>,
    /// Ops validated at once; 0 is all cores; the same setting as `parallel_jobs`.
    pub parallel: Option<Located<i64>>,
    /// Cases of each op in a thorough run. Default 200.
    pub fuzz_iterations: Option<Located<i64>>,
    /// Settings of quick runs.
    pub quick: Option<QuickTable>,
}

/// `[ci.quick]`
#[derive(Debug, Clone, Default, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct QuickTable {
    /// Cases of each op. Default 10.
    pub fuzz_iterations: Option<Located<i64>>,
    /// Dtypes; the same setting as `[ci] quick_dtypes`.
    pub dtypes: Option<Located<Vec<DType>>>,
}

/// `[daemon]`
#[derive(Debug, Clone, Default, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct DaemonTable {
    /// What the daemon logs. Default "info".
    pub log_level: Option<LogLevel>,
    /// Seconds without a request after which it exits; 0 never. Default 3600.
    pub idle_timeout: Option<Located<i64>>,
    /// Seconds that one call of a script may take. Default 60.
    pub script_timeout: Option<Located<f64>>,
    /// Warm workers that are kept; 0 is two per core. Default 0.
    pub workers: Option<Located<i64>>,
    /// Megabytes of memory that a script may use; 0 is no limit. Default 8192.
    pub script_memory_megabytes: Option<Located<i64>>,
    /// Megabytes that a message may have. Default 1024.
    pub message_megabytes: Option<Located<i64>>,
}

/// What is logged.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "lowercase")]
#[allow(missing_docs, reason = "the variants are their own names")]
pub enum LogLevel {
    Error,
    Warn,
    #[default]
    Info,
    Debug,
    Trace,
}

/// `[storage]`
#[derive(Debug, Clone, Default, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct StorageTable {
    /// Days that passed results are kept; 0 for ever. Failures and baselines are never removed. Default 90.
    pub keep_days: Option<Located<i64>>,
    /// Bytes of inputs that are kept with a failure; larger ones are rebuilt from the seed. Default 1048576.
    pub snapshot_bytes: Option<Located<i64>>,
}

/// One `[[expected_failures]]` entry.
#[derive(Debug, Clone, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct ExpectedFailureTable {
    /// The op.
    pub op: Located<String>,
    /// The dtype; all of them if left out.
    pub dtype: Option<DType>,
    /// Why the failure is known.
    pub reason: String,
    /// Last day, as YYYY-MM-DD, on which it is accepted.
    pub expires: Located<String>,
}
