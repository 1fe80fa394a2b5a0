//! What a run found: one model, which travels, is stored, and which every writer of reports takes.

use gpuemu_tensor::DType;
use serde::{Deserialize, Serialize};

use crate::artifact::{ArtifactComparison, ArtifactStatus, KernelReport, KernelStatus};
use crate::case::CaseDescriptor;
use crate::evidence::Evidence;
use crate::finding::{Check, ElementCounts, Finding, LargestErrors, Outcome};
use crate::json::FromJson;
use crate::schema::JsonSchema;
use crate::settings::FuzzConfig;
use crate::shard::{OpPart, RunPart, Shard};
use crate::tensor_data::NamedTensorData;
use crate::{name, number_text, seed_text};

/// The version of a report's JSON.
pub const REPORT_VERSION: u32 = 1;

/// The mode of a report in which no op had to be run, since nothing that ops are made of has changed.
pub const UNCHANGED: &str = "changed";

/// The verdict on one case, with what is needed to run it again.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct ValidationResult {
    /// The op.
    pub op: String,
    /// How it ended.
    pub outcome: Outcome,
    /// Whether it passed.
    pub passed: bool,
    /// The case's seed.
    #[serde(with = "seed_text")]
    #[schemars(with = "seed_text::SeedText")]
    pub seed: u64,
    /// Its dtype.
    pub dtype: DType,
    /// Sizes of its dims.
    pub sizes: String,
    /// Shapes of its inputs.
    pub shapes: Vec<(String, Vec<usize>)>,
    /// Layouts that are not contiguous.
    pub layout: String,
    /// How its values were chosen.
    pub values: String,
    /// Arguments that are not tensors.
    pub parameters: String,
    /// What is wrong, the gravest first.
    pub failures: Vec<Finding>,
    /// Why nothing could be said, or what went wrong.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub message: Option<String>,
    /// Things worth knowing about a case that passed.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub warnings: Vec<String>,
    /// Its largest errors.
    #[serde(flatten)]
    pub largest: LargestErrors,
    /// The tolerance, in words.
    pub tolerance: String,
    /// Elements by how they were judged.
    pub elements: ElementCounts,
    /// What produced the output.
    pub runner: String,
    /// Checks that could not be made.
    pub not_checked: Vec<String>,
    /// Everything that decides the case.
    pub case: CaseDescriptor,
    /// The extra case, run for more evidence, that failed where the case itself did not.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub failing_case: Option<Box<CaseDescriptor>>,
    /// The run it belongs to.
    #[serde(default, with = "seed_text::option", skip_serializing_if = "Option::is_none")]
    #[schemars(with = "Option<seed_text::SeedText>")]
    pub run: Option<u64>,
    /// Milliseconds since 1970.
    pub time: u64,
    /// Whether it is the smallest form of another failure.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub minimized: bool,
    /// Whether a client ran and judged it in its own process: nobody else can run it again.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub client_side: bool,
    /// What its case was drawn from.
    #[serde(default)]
    pub settings: FuzzConfig,
    /// Its inputs as they were kept, where one stored failure is asked for.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub inputs: Option<NamedTensorData>,
    /// The command that runs it again.
    pub replay: String,
}

impl ValidationResult {
    /// A case of which nothing is known yet.
    pub fn of(case: CaseDescriptor) -> Self {
        Self {
            op: case.op.clone(),
            outcome: Outcome::Passed,
            passed: true,
            seed: case.seed,
            dtype: case.dtype,
            sizes: case.sizes.to_string(),
            shapes: Vec::new(),
            layout: String::new(),
            values: case.values.to_string(),
            parameters: case.parameters.to_string(),
            failures: Vec::new(),
            message: None,
            warnings: Vec::new(),
            largest: LargestErrors::default(),
            tolerance: String::new(),
            elements: ElementCounts::default(),
            runner: String::new(),
            not_checked: Vec::new(),
            case,
            failing_case: None,
            run: None,
            time: 0,
            minimized: false,
            client_side: false,
            settings: FuzzConfig::default(),
            inputs: None,
            replay: String::new(),
        }
    }

    /// Gives the case what the result says of it, where whoever judged it described no case.
    pub fn complete_case(&mut self) {
        if self.case.schema.is_empty() {
            (self.case.op, self.case.dtype, self.case.seed) = (self.op.clone(), self.dtype, self.seed);
        }
    }

    /// Whether a check fired.
    pub fn failed(&self) -> bool {
        self.outcome == Outcome::Failed
    }

    pub fn finding(&self) -> Option<&Finding> {
        self.failures.first()
    }

    /// The reason of failure, which a minimised case must share.
    pub fn reason(&self) -> Option<Check> {
        self.finding().map(|finding| finding.check)
    }
}

/// How an op did in a run.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum OpStatus {
    /// Every case passed.
    Passed,
    /// A case failed.
    Failed,
    /// Cases failed, all of them expected to.
    ExpectedFailure,
    /// It could not be judged.
    Error,
    /// Time ran out before all cases were run, or the run was cancelled.
    Unfinished,
}

/// Cases of one dtype.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct DtypeCounts {
    /// The dtype.
    pub dtype: DType,
    /// Cases run.
    pub cases: u64,
    /// Of them failed.
    pub failed: u64,
    /// Of them passed, with at least one element that was compared.
    #[serde(default)]
    pub judged: u64,
    /// Largest |out − y|.
    #[serde(with = "number_text")]
    #[schemars(with = "number_text::NumberText")]
    pub max_abs_diff: f64,
}

/// One case of a run in short.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct CaseSummary {
    /// How it ended.
    pub outcome: Outcome,
    /// Largest |out − y|.
    #[serde(with = "number_text")]
    #[schemars(with = "number_text::NumberText")]
    pub max_abs_diff: f64,
    /// Largest |out − y| in units of the last place.
    #[serde(with = "number_text")]
    #[schemars(with = "number_text::NumberText")]
    pub max_ulp_diff: f64,
    /// Everything that decides the case.
    pub case: CaseDescriptor,
}

/// A file that an op is made of, as it was when the op ran.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct SourceDigest {
    /// Its path, relative to the project where it lies in it.
    pub path: String,
    /// SHA-256 of its bytes, in hexadecimal; none if it could not be read.
    pub sha256: Option<String>,
}

/// How one op did.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct OpReport {
    /// The op.
    pub op: String,
    /// How it did.
    pub status: OpStatus,
    /// Line of its definition in the configuration, from 1; 0 where there is none.
    pub line: usize,
    /// What ran it.
    pub runner: String,
    /// What it was judged by.
    pub reference: String,
    /// Cases that were asked for.
    pub planned: u64,
    /// Cases run.
    pub cases: u64,
    /// Of them passed.
    pub passed: u64,
    /// Of them failed.
    pub failed: u64,
    /// Of them undetermined.
    pub undetermined: u64,
    /// Of them without a verdict because the reference failed.
    pub errors: u64,
    /// By dtype.
    pub dtypes: Vec<DtypeCounts>,
    /// Its largest errors.
    #[serde(flatten)]
    pub largest: LargestErrors,
    /// The failures, at most [`OpReport::MOST_FAILURES`] of them.
    pub failures: Vec<ValidationResult>,
    /// Why it could not be judged, or what is unfinished.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub message: Option<String>,
    /// Things worth knowing.
    pub warnings: Vec<String>,
    /// Dtypes whose passes prove little: plainly wrong outputs would have passed as well.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub weak: Vec<DType>,
    /// Checks that could not be made.
    pub not_checked: Vec<String>,
    /// Whether it passed in the run before.
    pub regressed: bool,
    /// Seconds it took.
    pub seconds: f64,
    /// Its cases, at most [`OpReport::MOST_CASES`] of them.
    pub case_results: Vec<CaseSummary>,
    /// The files that it is made of: its own, and those of the project that they import.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub sources: Vec<SourceDigest>,
    /// What joining it with the other shards needs, where the run is one of several shards.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub part: Option<OpPart>,
}

impl OpReport {
    /// Failures that a report carries in full, for each op.
    pub const MOST_FAILURES: usize = 50;

    /// Cases that a report lists, for each op.
    pub const MOST_CASES: usize = 1000;

    /// An op of which nothing is known yet.
    pub fn blank(op: &str) -> Self {
        Self {
            op: op.to_string(),
            status: OpStatus::Passed,
            line: 0,
            runner: String::new(),
            reference: String::new(),
            planned: 0,
            cases: 0,
            passed: 0,
            failed: 0,
            undetermined: 0,
            errors: 0,
            dtypes: Vec::new(),
            largest: LargestErrors::default(),
            failures: Vec::new(),
            message: None,
            warnings: Vec::new(),
            weak: Vec::new(),
            not_checked: Vec::new(),
            regressed: false,
            seconds: 0.0,
            case_results: Vec::new(),
            sources: Vec::new(),
            part: None,
        }
    }
}

/// What a run found.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct RunReport {
    /// The version of this form.
    pub version: u32,
    /// gpuemu's version.
    pub gpuemu: String,
    /// The project's name.
    pub project: String,
    /// The configuration file.
    pub config: String,
    /// The run's number; 0 where stored results of several runs are shown.
    #[serde(with = "seed_text")]
    #[schemars(with = "seed_text::SeedText")]
    pub run: u64,
    /// Milliseconds since 1970.
    pub time: u64,
    /// Seconds it took.
    pub seconds: f64,
    /// `quick`, `thorough`, `fuzz`, `stored`, or `changed` where no op had to be run.
    pub mode: String,
    /// Base seed.
    #[serde(with = "seed_text")]
    #[schemars(with = "seed_text::SeedText")]
    pub seed: u64,
    /// What cases were drawn from.
    pub settings: FuzzConfig,
    /// Which part of the run this is, where it is not all of it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub part: Option<RunPart>,
    /// Fingerprint of the configuration; empty in reports of older versions.
    #[serde(default)]
    pub config_digest: String,
    /// Whether everything passed.
    pub passed: bool,
    /// The ops.
    pub ops: Vec<OpReport>,
    /// Ops that were left out: nothing here can run them.
    #[serde(default)]
    pub left_out: u64,
    /// Compiled kernels.
    #[serde(default)]
    pub kernels: Vec<KernelReport>,
    /// The comparison with a baseline, if asked for.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub comparison: Option<ComparisonReport>,
    /// Things worth knowing about the run.
    pub warnings: Vec<String>,
    /// What the verdicts rest on, in a report to be signed.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub evidence: Option<Evidence>,
}

/// What an op came to in a stored run. Its failures and cases are stored by themselves.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct StoredRun {
    /// gpuemu's version.
    pub gpuemu: String,
    /// The run's number.
    #[serde(with = "seed_text")]
    #[schemars(with = "seed_text::SeedText")]
    pub run: u64,
    /// Milliseconds since 1970.
    pub time: u64,
    /// `quick`, `thorough` or `fuzz`.
    pub mode: String,
    /// Base seed.
    #[serde(with = "seed_text")]
    #[schemars(with = "seed_text::SeedText")]
    pub seed: u64,
    /// What cases were drawn from.
    pub settings: FuzzConfig,
    /// Which part of the run it is, where it is not all of it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub shard: Option<Shard>,
    /// Fingerprint of the configuration.
    pub config_digest: String,
    /// How the op did.
    pub op: OpReport,
}

/// What a run makes of the process's exit status.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Conclusion {
    Passed,
    /// A validation failed or regressed, or is unfinished.
    Failed,
    /// Nothing failed, but something could not be judged.
    Error,
}

impl RunReport {
    pub fn cases(&self) -> u64 {
        self.ops.iter().map(|op| op.cases).sum()
    }

    /// What the run comes to: a failure weighs more than an error, and no case at all is an error unless
    /// there are kernels only, or none had to be run.
    /// Reads a report, and refuses one with names that could pass for other lines of what is printed of it.
    pub fn read(bytes: &[u8]) -> Result<Self, String> {
        let report = Self::from_json(bytes).map_err(|error| error.to_string())?;
        let ops = report.ops.iter().map(|op| ("op", &op.op));
        let kernels = report.kernels.iter().map(|kernel| ("kernel", &kernel.kernel));
        let names = std::iter::once(("project", &report.project)).chain(ops).chain(kernels);
        let wrong = names.filter_map(|(what, text)| Some((what, text, name::problem(text)?))).next();
        match wrong {
            Some((what, text, problem)) => Err(format!("the name of the {what} {text:?} {problem}")),
            None => Ok(report),
        }
    }

    pub fn conclusion(&self) -> Conclusion {
        let any = |status: OpStatus| self.ops.iter().any(|op| op.status == status);
        let any_kernel = |status: KernelStatus| self.kernels.iter().any(|kernel| kernel.status == status);
        let unchanged = self.mode == UNCHANGED;
        let kernels_only = self.ops.is_empty() && self.left_out == 0 && (!self.kernels.is_empty() || unchanged);
        let regressed = self.comparison.as_ref().is_some_and(|comparison| comparison.fails);
        let incomparable = self.comparison.as_ref().is_some_and(ComparisonReport::is_incomplete);
        if any(OpStatus::Failed) || any(OpStatus::Unfinished) || any_kernel(KernelStatus::Failed) || regressed {
            Conclusion::Failed
        } else if any(OpStatus::Error)
            || any_kernel(KernelStatus::Error)
            || (self.cases() == 0 && !kernels_only)
            || self.evidence.as_ref().is_some_and(|evidence| !evidence.reservations.is_empty())
            || incomparable
        {
            Conclusion::Error
        } else {
            Conclusion::Passed
        }
    }
}

/// How an op's errors compare with a baseline.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum ComparisonStatus {
    /// As before, within the threshold.
    Same,
    /// The largest error became smaller by more than the threshold.
    Improved,
    /// The largest error grew past the threshold, or a case that passed fails.
    Regressed,
    /// The op is gone, or its cases can no longer be made.
    NotComparable,
}

/// One op compared with a baseline, over the same cases.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct OpComparison {
    /// The op.
    pub op: String,
    /// How it compares.
    pub status: ComparisonStatus,
    /// Cases compared.
    pub cases: u64,
    /// Cases that passed then and fail now.
    pub newly_failing: u64,
    /// Cases that fail now.
    pub failing: u64,
    /// Largest error then.
    #[serde(with = "number_text")]
    #[schemars(with = "number_text::NumberText")]
    pub before_abs: f64,
    /// Largest error now.
    #[serde(with = "number_text")]
    #[schemars(with = "number_text::NumberText")]
    pub now_abs: f64,
    /// Largest error then, in units of the last place.
    #[serde(with = "number_text")]
    #[schemars(with = "number_text::NumberText")]
    pub before_ulp: f64,
    /// Largest error now, in units of the last place.
    #[serde(with = "number_text")]
    #[schemars(with = "number_text::NumberText")]
    pub now_ulp: f64,
    /// The case that shows it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub worst: Option<ValidationResult>,
    /// What is to be said.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub message: Option<String>,
}

impl OpComparison {
    /// An op of which nothing is known yet.
    pub fn not_compared(op: &str) -> Self {
        Self {
            op: op.to_string(),
            status: ComparisonStatus::NotComparable,
            cases: 0,
            newly_failing: 0,
            failing: 0,
            before_abs: 0.0,
            now_abs: 0.0,
            before_ulp: 0.0,
            now_ulp: 0.0,
            worst: None,
            message: None,
        }
    }
}

/// A comparison with a baseline.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct ComparisonReport {
    /// The baseline's tag or file.
    pub baseline: String,
    /// Growth that counts.
    pub threshold: f64,
    /// Whether a regression fails the run.
    pub fails: bool,
    /// The ops.
    pub ops: Vec<OpComparison>,
    /// The entries of compiled kernels.
    #[serde(default)]
    pub artifacts: Vec<ArtifactComparison>,
}

impl ComparisonReport {
    /// Whether some op or kernel of the baseline could not be compared.
    pub fn is_incomplete(&self) -> bool {
        let gone = [ArtifactStatus::NotComparable, ArtifactStatus::Missing];
        self.ops.iter().any(|op| op.status == ComparisonStatus::NotComparable)
            || self.artifacts.iter().any(|entry| gone.contains(&entry.status))
    }

    /// Whether some case fails, as it may have done before.
    pub fn is_failing(&self) -> bool {
        self.ops.iter().any(|op| op.failing > 0)
    }

    /// Whether some op or kernel regressed.
    pub fn regressed(&self) -> bool {
        self.ops.iter().any(|op| op.status == ComparisonStatus::Regressed)
            || self.artifacts.iter().any(|entry| entry.status == ArtifactStatus::Regressed)
    }

    /// Whether constants of some kernel differ.
    pub fn constants_differ(&self) -> bool {
        self.artifacts.iter().any(|entry| !entry.constants.is_empty())
    }
}
