//! The configuration that the rest of gpuemu sees: merged, checked, defaults filled in.

use std::collections::BTreeMap;
use std::ops::Range;
use std::path::{Path, PathBuf};
use std::time::Duration;

use gpuemu_model::nearest::nearest;
use gpuemu_model::{Precision, Strategy};
use gpuemu_tensor::DType;

use super::calibration::{Calibration, resolve_calibrations};
use super::check::{parse_date, parse_seed};
use super::error::{ConfigError, Source};
use super::kernels::{Kernel, Lint, resolve_kernel, resolve_lint};
use super::located::Located;
use super::tables::*;
use super::text_range::TextRange;

/// The whole configuration of a project.
#[derive(Debug, Clone)]
pub struct Config {
    /// Folder of `gpuemu.toml`: paths in it are relative to this.
    pub root: PathBuf,
    pub file: PathBuf,
    /// Fingerprint of all files that were read.
    pub digest: String,
    /// `[project]`
    pub project: Project,
    /// `[validation]`
    pub validation: Validation,
    /// `[[ops]]`
    pub ops: Vec<Op>,
    /// `[[kernels]]`
    pub kernels: Vec<Kernel>,
    /// `[lint]`
    pub lint: Lint,
    /// `[policies]`
    pub policies: Policies,
    /// `[ci]`
    pub ci: Ci,
    /// `[daemon]`
    pub daemon: Daemon,
    /// `[storage]`
    pub storage: Storage,
    /// `[[expected_failures]]`
    pub expected_failures: Vec<ExpectedFailure>,
    /// The file that the ops are in, for errors that are found later.
    ops_source: Source,
}

impl Config {
    /// The configuration of a folder without a file: defaults, and no ops of its own.
    pub fn without_file(root: PathBuf) -> Self {
        let name = root.file_name().map_or("gpuemu".into(), |name| name.to_string_lossy().into_owned());
        let file = ConfigFile::default();
        let ci = resolve_ci(CiTable::default());
        Self {
            digest: String::new(),
            project: Project { name, version: "0.0.0".to_string(), framework: Framework::Numpy },
            validation: Validation {
                dtypes: vec![DType::F32],
                check_nan: true,
                check_inf: true,
                seed: Seed::Random,
                tolerances: BTreeMap::new(),
                values: Strategy::Adversarial,
            },
            ops: Vec::new(),
            kernels: Vec::new(),
            lint: Lint::default(),
            policies: resolve_policies(&PoliciesTable::default()),
            ci,
            daemon: resolve_daemon(file.daemon.unwrap_or_default()),
            storage: resolve_storage(StorageTable::default()),
            expected_failures: Vec::new(),
            ops_source: Source { path: root.clone(), text: String::new() },
            file: PathBuf::new(),
            root,
        }
    }

    pub fn ops_file(&self) -> &Path {
        &self.ops_source.path
    }

    /// The part of [`Config::ops_file`] that bytes are.
    pub fn ops_range(&self, span: &Range<usize>) -> TextRange {
        TextRange::of(&self.ops_source.text, span)
    }

    /// An error in the definition of an op, found by those who know ops.
    pub fn error_at(&self, span: &Range<usize>, message: impl Into<String>, hint: Option<String>) -> ConfigError {
        self.ops_source.invalid(span, message, hint)
    }
}

#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Project {
    pub name: String,
    pub version: String,
    pub framework: Framework,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Seed {
    /// Chosen anew for each run, and printed.
    Random,
    Fixed(u64),
}

/// How ops are validated.
#[derive(Debug, Clone, PartialEq)]
pub struct Validation {
    pub dtypes: Vec<DType>,
    /// Whether unexpected NaN fails.
    pub check_nan: bool,
    /// Whether unexpected infinity fails.
    pub check_inf: bool,
    pub seed: Seed,
    /// Tolerances that the user configured.
    pub tolerances: BTreeMap<DType, TolerancePair>,
    pub values: Strategy,
}

/// Where the op under test comes from.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum OpSource {
    /// A Python module, `pkg.mod` or `pkg.mod:function`.
    Module(String),
    Script(String),
    /// A `[[kernels]]` entry.
    Kernel(String),
    /// Nothing named: outputs are submitted by a client.
    Submitted,
}

/// Sizes of one dim.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum DimensionRange {
    List(Vec<usize>),
    /// From the first to the second, both included.
    Range(usize, usize),
}

#[derive(Debug, Clone)]
pub struct Op {
    pub name: String,
    /// Line of its name in the file, from 1.
    pub line: usize,
    /// Place of its name in the file.
    pub span: Range<usize>,
    /// The built-in op that it is said to be.
    pub op: Option<Located<String>>,
    /// Where it comes from.
    pub source: OpSource,
    /// What every call of its module has to run.
    pub launches: Option<String>,
    pub reference: Option<String>,
    /// How the reference is run.
    pub execution_mode: ExecutionMode,
    /// The op's own tolerances over the global ones.
    pub tolerances: BTreeMap<DType, TolerancePair>,
    /// Which tolerance decides, if it was said.
    pub tolerance: Option<ToleranceMode>,
    /// Tolerances that were measured on a trusted control.
    pub calibration: BTreeMap<DType, Calibration>,
    pub invariants: Vec<Invariant>,
    /// Signature, if given, and its place in the file.
    pub signature: Option<Located<String>>,
    pub dims: BTreeMap<String, DimensionRange>,
    /// Sizes of quick runs.
    pub shapes: Vec<BTreeMap<String, usize>>,
    pub dtypes: Vec<DType>,
    pub values: Strategy,
    pub precision: Option<Precision>,
    /// Precision of a reference's inputs.
    pub reference_dtype: ReferenceDtype,
    /// Arguments that are not tensors.
    pub kwargs: BTreeMap<String, serde_json::Value>,
    pub timeout: Duration,
}

impl Op {
    /// The name of the built-in op that it is, if there is one of that name.
    pub fn built_in_name(&self) -> &str {
        self.op.as_ref().map_or(&self.name, |op| &op.value)
    }

    /// Which tolerance decides: the one that was said, or the fixed ones where some are given or nothing has a bound.
    pub fn tolerance_mode(&self) -> ToleranceMode {
        let given = !self.tolerances.is_empty() || self.reference.is_some();
        self.tolerance.unwrap_or(if given { ToleranceMode::Fixed } else { ToleranceMode::Bound })
    }
}

/// How results are judged.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Policies {
    /// See `[policies]`.
    pub fail_on_regression: bool,
    /// See `[policies]`.
    pub warn_threshold: f64,
    /// See `[policies]`.
    pub regression_threshold: f64,
}

#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Ci {
    /// Dtypes of quick runs.
    pub quick_dtypes: Vec<DType>,
    /// Cases of each op in a quick run.
    pub quick_iterations: u64,
    /// Cases of each op in a thorough run.
    pub iterations: u64,
    pub thorough_timeout: Duration,
    /// Ops at once; 0 is all cores.
    pub parallel: usize,
}

#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Daemon {
    pub log_level: LogLevel,
    /// Time without a request after which it exits.
    pub idle_timeout: Option<Duration>,
    /// Longest call of a script.
    pub script_timeout: Duration,
    /// Warm workers that are kept; 0 is two per core.
    pub workers: usize,
    /// Memory of a script in bytes.
    pub script_memory: Option<u64>,
    /// Largest message in bytes.
    pub message_bytes: u64,
}

/// What the store keeps.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Storage {
    /// Days that passed results are kept.
    pub keep_days: Option<u32>,
    /// Bytes of inputs kept with a failure.
    pub snapshot_bytes: u64,
}

/// A failure that is known.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ExpectedFailure {
    pub op: String,
    /// The dtype; all if `None`.
    pub dtype: Option<DType>,
    pub reason: String,
    /// Last day: year, month, day.
    pub expires: (u16, u8, u8),
}

const MEGABYTE: u64 = 1 << 20;

fn natural(value: Option<Located<i64>>, default: u64) -> u64 {
    value.map_or(default, |located| located.value.unsigned_abs())
}

fn pairs(tolerances: Option<BTreeMap<DType, Located<TolerancePair>>>) -> BTreeMap<DType, TolerancePair> {
    tolerances.into_iter().flatten().map(|(dtype, pair)| (dtype, pair.value)).collect()
}

/// The files that lists came from, for errors across tables.
pub(super) struct ListSources<'a> {
    pub ops: &'a Source,
    pub expected_failures: &'a Source,
}

pub(super) fn resolve(
    file: ConfigFile,
    sources: &ListSources<'_>,
    root: PathBuf,
    path: PathBuf,
    digest: String,
) -> Result<Config, ConfigError> {
    let source = sources.ops;
    let project = file.project.unwrap_or_default();
    let name = project.name.unwrap_or_default();
    if let Some(problem) = gpuemu_model::name::problem(&name) {
        let hint = Some("add `[project]` with `name = \"my-project\"`".to_string());
        return Err(source.invalid(&(0..0), format!("the project's name {problem}"), hint));
    }
    let daemon = resolve_daemon(file.daemon.unwrap_or_default());
    let validation = resolve_validation(file.validation.unwrap_or_default(), source)?;
    let lint = file.lint.unwrap_or_default();
    let kernels = file.kernels.into_iter().flatten().map(|kernel| resolve_kernel(kernel, &lint, source));
    let kernels: Vec<Kernel> = kernels.collect();
    let mut ops = Vec::new();
    for op in file.ops.into_iter().flatten() {
        if let Some(kernel) = &op.kernel {
            known(source, "kernel", kernel, kernels.iter().map(|kernel| kernel.name.as_str()))?;
            launchable(source, &op.name.value, kernel, &kernels)?;
        }
        ops.push(resolve_op(op, &validation, &daemon, source));
    }
    let mut expected_failures = Vec::new();
    for expected in file.expected_failures.into_iter().flatten() {
        known(sources.expected_failures, "op", &expected.op, ops.iter().map(|op: &Op| op.name.as_str()))?;
        expected_failures.push(ExpectedFailure {
            op: expected.op.value,
            dtype: expected.dtype,
            reason: expected.reason,
            expires: parse_date(&expected.expires.value).unwrap_or_default(),
        });
    }
    let policies = file.policies.unwrap_or_default();
    let storage = file.storage.unwrap_or_default();
    Ok(Config {
        root,
        file: path,
        digest,
        project: Project {
            name,
            version: project.version.unwrap_or_else(|| "0.0.0".to_string()),
            framework: project.framework.unwrap_or_default(),
        },
        validation,
        ops,
        kernels,
        lint: resolve_lint(lint),
        policies: resolve_policies(&policies),
        ci: resolve_ci(file.ci.unwrap_or_default()),
        daemon,
        storage: resolve_storage(storage),
        expected_failures,
        ops_source: sources.ops.clone(),
    })
}

fn resolve_policies(table: &PoliciesTable) -> Policies {
    Policies {
        fail_on_regression: table.fail_on_regression.unwrap_or(true),
        warn_threshold: table.warn_threshold.as_ref().map_or(0.8, |share| share.value),
        regression_threshold: table.regression_threshold.as_ref().map_or(0.1, |growth| growth.value),
    }
}

/// What the store keeps.
pub(super) fn resolve_storage(table: StorageTable) -> Storage {
    Storage {
        keep_days: Some(natural(table.keep_days, 90).min(u64::from(u32::MAX)) as u32).filter(|days| *days > 0),
        snapshot_bytes: natural(table.snapshot_bytes, MEGABYTE),
    }
}

fn known<'a>(
    source: &Source,
    what: &str,
    name: &Located<String>,
    names: impl Iterator<Item = &'a str> + Clone,
) -> Result<(), ConfigError> {
    if names.clone().any(|known| known == name.value) {
        return Ok(());
    }
    let hint = nearest(&name.value, names).map(|meant| format!("did you mean `{meant}`?"));
    Err(source.invalid(&name.span, format!("there is no {what} '{}'", name.value), hint))
}

/// A kernel that an op is made of has to say how it is launched.
fn launchable(source: &Source, op: &str, name: &Located<String>, kernels: &[Kernel]) -> Result<(), ConfigError> {
    if kernels.iter().any(|kernel| kernel.name == name.value && kernel.launch.is_some()) {
        return Ok(());
    }
    let message = format!("op '{op}' is the kernel '{}', which has no launch table", name.value);
    let hint = Some("give the kernel grid, block and args".to_string());
    Err(source.invalid(&name.span, message, hint))
}

fn resolve_validation(table: ValidationTable, source: &Source) -> Result<Validation, ConfigError> {
    let seed = match &table.seed {
        None => Seed::Random,
        Some(seed) => match parse_seed(seed, source)? {
            0 => Seed::Random,
            seed => Seed::Fixed(seed),
        },
    };
    Ok(Validation {
        dtypes: table.dtypes.map_or_else(|| vec![DType::F32], |dtypes| dtypes.value),
        check_nan: table.check_nan.unwrap_or(true),
        check_inf: table.check_inf.unwrap_or(true),
        seed,
        tolerances: pairs(table.tolerances),
        values: table.values.unwrap_or(Strategy::Adversarial),
    })
}

fn resolve_op(op: OpTable, validation: &Validation, daemon: &Daemon, source: &Source) -> Op {
    let mut tolerances = validation.tolerances.clone();
    tolerances.extend(pairs(op.tolerances));
    let text = |value: Option<Located<String>>| value.map(|located| located.value);
    let dims = op.dims.into_iter().flatten().map(|(name, range)| {
        let range = match range.value {
            DimensionTable::Fixed(size) => DimensionRange::List(vec![size]),
            DimensionTable::List(sizes) => DimensionRange::List(sizes),
            DimensionTable::Range { min, max } => DimensionRange::Range(min, max),
        };
        (name, range)
    });
    Op {
        line: line_of(&source.text, &op.name.span),
        span: op.name.span.clone(),
        name: op.name.value,
        op: op.op,
        source: match (op.module, op.script, op.kernel) {
            (Some(module), ..) => OpSource::Module(module.value),
            (_, Some(script), _) => OpSource::Script(script.value),
            (.., Some(kernel)) => OpSource::Kernel(kernel.value),
            _ => OpSource::Submitted,
        },
        launches: text(op.launches),
        reference: text(op.reference),
        execution_mode: op.execution_mode.unwrap_or_default(),
        tolerances,
        tolerance: op.tolerance,
        calibration: resolve_calibrations(op.calibration),
        invariants: op.invariants.unwrap_or_default(),
        signature: op.signature,
        dims: dims.collect(),
        shapes: op.shapes.unwrap_or_default(),
        dtypes: op.dtypes.map_or_else(|| validation.dtypes.clone(), |dtypes| dtypes.value),
        values: op.values.unwrap_or(validation.values),
        precision: op.precision,
        reference_dtype: op.reference_dtype.unwrap_or_default(),
        kwargs: op.kwargs.unwrap_or_default(),
        timeout: op.timeout.map_or(daemon.script_timeout, |seconds| Duration::from_secs_f64(seconds.value)),
    }
}

/// The line, from 1, that a span begins in.
pub(super) fn line_of(text: &str, span: &Range<usize>) -> usize {
    text.get(..span.start).unwrap_or_default().matches('\n').count() + 1
}

fn resolve_ci(table: CiTable) -> Ci {
    let quick = table.quick.unwrap_or_default();
    Ci {
        quick_dtypes: quick.dtypes.or(table.quick_dtypes).map_or_else(|| vec![DType::F32], |dtypes| dtypes.value),
        quick_iterations: natural(quick.fuzz_iterations, 10),
        iterations: natural(table.fuzz_iterations, 200),
        thorough_timeout: Duration::from_secs(natural(table.thorough_timeout, 300)),
        parallel: natural(table.parallel.or(table.parallel_jobs), 1) as usize,
    }
}

pub(super) fn resolve_daemon(table: DaemonTable) -> Daemon {
    let some_if_positive = |value: u64| Some(value).filter(|value| *value > 0);
    Daemon {
        log_level: table.log_level.unwrap_or_default(),
        idle_timeout: some_if_positive(natural(table.idle_timeout, 3600)).map(Duration::from_secs),
        script_timeout: Duration::from_secs_f64(table.script_timeout.map_or(60.0, |seconds| seconds.value)),
        workers: natural(table.workers, 0) as usize,
        script_memory: some_if_positive(natural(table.script_memory_megabytes, 8192))
            .map(|size| size.saturating_mul(MEGABYTE)),
        message_bytes: natural(table.message_megabytes, 1024).saturating_mul(MEGABYTE),
    }
}
