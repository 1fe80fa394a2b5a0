//! What the daemon answers.

use std::path::PathBuf;

use gpuemu_config::Failure;
use gpuemu_model::artifact::ArtifactReport;
use gpuemu_model::case::CaseDescriptor;
use gpuemu_model::error_code::ErrorCode;
use gpuemu_model::evidence::OpEvidence;
use gpuemu_model::report::{ComparisonReport, RunReport, StoredRun, ValidationResult};
use gpuemu_model::schema::JsonSchema;
use gpuemu_model::seed_text;
use gpuemu_model::tensor_data::NamedTensorData;
use gpuemu_tensor::DType;
use serde::{Deserialize, Serialize};
use serde_json::{Map, Value};

use super::calibrate::CalibrationReport;
use super::campaign::CampaignStatus;
use super::illustrate::Illustration;

/// An answer.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(tag = "type")]
pub enum Response {
    /// The daemon is there.
    Pong {
        /// Its version.
        version: String,
        /// The version of its messages.
        protocol_version: u32,
        /// Since when.
        uptime_seconds: u64,
    },
    /// Done.
    Ok,
    /// Not done.
    Error {
        /// What kind of error.
        code: ErrorCode,
        /// What is wrong.
        message: String,
        /// What to do.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        hint: Option<String>,
    },
    /// How the daemon is.
    Status {
        /// Its state.
        status: DaemonStatus,
    },
    /// The ops of a project.
    Ops {
        /// The ops.
        ops: Vec<OpSummary>,
    },
    /// The verdict on one case.
    ValidationResult {
        /// The result.
        result: Box<ValidationResult>,
    },
    /// Results, newest first.
    Results {
        /// The results.
        results: Vec<ValidationResult>,
    },
    /// What ops came to in stored runs, of each op the newest first.
    Runs {
        /// The runs.
        runs: Vec<StoredRun>,
    },
    /// What the newest run of each op rests on.
    Evidence {
        /// The ops.
        ops: Vec<OpEvidence>,
        /// What stands against calling them passed.
        reservations: Vec<String>,
    },
    /// What a run found.
    Report {
        /// The report.
        report: Box<RunReport>,
    },
    /// What was measured and found in compiled kernels.
    Artifacts {
        /// The report.
        report: Box<ArtifactReport>,
    },
    /// What was measured of a trusted control.
    Calibration {
        /// The report.
        report: Box<CalibrationReport>,
    },
    /// The smallest failing case.
    Minimized {
        /// The search's result.
        minimized: Box<Minimized>,
    },
    /// A case with its tensors.
    Inspection {
        /// The case.
        inspection: Box<Inspection>,
    },
    /// The errors of a case.
    Illustration {
        /// The case.
        illustration: Box<Illustration>,
    },
    /// Failures that were run again.
    Replayed {
        /// Each of them.
        failures: Vec<Replayed>,
    },
    /// The baselines there are.
    Baselines {
        /// Each of them, newest first.
        baselines: Vec<BaselineSummary>,
    },
    /// A comparison with a baseline.
    Comparison {
        /// The comparison.
        comparison: Box<ComparisonReport>,
    },
    /// A generated case.
    TestCase {
        /// The case.
        case: Box<TestCase>,
    },
    /// Generated cases.
    TestBatch {
        /// The cases.
        cases: Vec<TestCase>,
    },
    /// Results of a client are kept.
    Recorded {
        /// The run that they belong to: later ones of the same campaign name it.
        #[serde(with = "seed_text")]
        #[schemars(with = "seed_text::SeedText")]
        run: u64,
    },
    /// How far a campaign is.
    Campaign {
        /// Its state.
        campaign: CampaignStatus,
    },
    /// A job.
    Job {
        /// Its state.
        job: JobStatus,
    },
    /// The jobs there are.
    Jobs {
        /// Each of them, without results.
        jobs: Vec<JobStatus>,
    },
}

impl From<Failure> for Response {
    fn from(failure: Failure) -> Response {
        Response::Error { code: failure.code, message: failure.message, hint: failure.hint }
    }
}

impl Response {
    /// An error without a hint.
    pub fn error(code: ErrorCode, message: impl Into<String>) -> Self {
        Response::Error { code, message: message.into(), hint: None }
    }
}

/// How the daemon is.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct DaemonStatus {
    /// Its version.
    pub version: String,
    /// Its process.
    pub pid: u32,
    /// Since when.
    pub uptime_seconds: u64,
    /// Its folder.
    pub home: PathBuf,
    /// Jobs that run.
    pub running_jobs: usize,
    /// What the store holds.
    pub stored: TreeCounts,
    /// Scripts that are no longer kept warm, and why.
    pub distrusted_scripts: Vec<(PathBuf, String)>,
}

/// Entries of the store.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct TreeCounts {
    /// Verdicts on cases.
    pub results: u64,
    /// Failures, with what runs them again.
    pub failures: u64,
    /// Results under tags.
    pub baselines: u64,
    /// What was measured of kernels.
    pub artifacts: u64,
    /// What was measured of kernels, under tags.
    pub artifact_baselines: u64,
}

/// One op of a project.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct OpSummary {
    /// Its name.
    pub name: String,
    /// Line of its definition, from 1.
    pub line: usize,
    /// Where it comes from: `module …`, `script …`, `kernel …` or `submitted`.
    pub source: String,
    /// What it is judged by.
    pub reference: String,
    /// Its signature.
    pub signature: String,
    /// Dtypes.
    pub dtypes: Vec<DType>,
    /// Files whose change concerns it, relative to the project.
    pub files: Vec<PathBuf>,
}

/// The smallest failing case that was found.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct Minimized {
    /// The case that was shrunk.
    pub original: ValidationResult,
    /// The smallest one that still fails for the same reason.
    pub minimized: ValidationResult,
    /// A passing case next to it.
    pub neighbour: Option<Neighbour>,
    /// Runs spent.
    pub runs: usize,
    /// Whether inputs were simplified beyond what a seed generates; they are kept with the failure.
    pub values_edited: bool,
    /// The inputs.
    pub inputs: NamedTensorData,
}

/// A passing case one step away from the smallest failing one.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct Neighbour {
    /// The dim that differs.
    pub dimension: String,
    /// Its size in the failing case.
    pub fails: usize,
    /// Its size in the passing case.
    pub passes: usize,
}

/// A case with its tensors and the checks it went through.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct Inspection {
    /// The verdict.
    pub result: ValidationResult,
    /// The checks, in order.
    pub steps: Vec<InspectionStep>,
    /// Everything that decides the case whose tensors follow: the extra case that failed, where the case
    /// itself did not.
    pub shown: CaseDescriptor,
    /// Its inputs, as the op got them: strides and gaps included where it sees them.
    pub inputs: NamedTensorData,
    /// Arguments that are not tensors, as the op got them.
    pub parameters: Map<String, Value>,
    /// What the op returned.
    pub outputs: NamedTensorData,
    /// What the reference says, in float64.
    pub expected: NamedTensorData,
    /// How far each element may be from that, its final rounding included, in float64.
    pub allowed: NamedTensorData,
    /// Dtypes that outputs must have.
    pub output_dtypes: Vec<(String, DType)>,
    /// Whether two runs may differ in bits.
    pub atomics: bool,
}

/// One check.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct InspectionStep {
    /// The check.
    pub check: String,
    /// `passed`, `failed`, `not reached` or `not checked`.
    pub status: String,
    /// What was seen.
    pub detail: String,
}

/// A stored failure that was run again.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct Replayed {
    /// `FIXED`, `FAILED`, `ERROR`, or `SKIPPED` where only the client that found it can run it.
    pub status: String,
    /// The verdict now; of a skipped one, the verdict as it was.
    pub result: ValidationResult,
}

/// A baseline.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct BaselineSummary {
    /// Its tag.
    pub tag: String,
    /// Milliseconds since 1970.
    pub time: u64,
    /// Its ops.
    pub ops: usize,
    /// Its cases.
    pub cases: usize,
    /// Of them failing, said when it is stored.
    #[serde(default)]
    pub failing: usize,
    /// Its compiled kernels.
    #[serde(default)]
    pub kernels: usize,
    /// What speaks against it as a good state, and what could not be kept, said when it is stored.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub warnings: Vec<String>,
}

/// A generated case.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct TestCase {
    /// The op.
    pub op_name: String,
    /// Its seed.
    #[serde(with = "seed_text")]
    #[schemars(with = "seed_text::SeedText")]
    pub seed: u64,
    /// Its dtype.
    pub dtype: DType,
    /// Its inputs.
    pub inputs: NamedTensorData,
    /// Arguments that are not tensors.
    pub kwargs: Map<String, Value>,
    /// Everything that decides it.
    pub case: CaseDescriptor,
}

/// What a job does.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
#[allow(missing_docs, reason = "the variants are their own names")]
pub enum JobState {
    Running,
    Done,
    Cancelled,
}

/// A job.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct JobStatus {
    /// Its number.
    #[serde(with = "seed_text")]
    #[schemars(with = "seed_text::SeedText")]
    pub job: u64,
    /// The type of the request it does.
    pub kind: String,
    /// What it does.
    pub state: JobState,
    /// Cases done.
    pub done: u64,
    /// Cases in all, as far as known.
    pub total: u64,
    /// Failures so far.
    pub failures: u64,
    /// What it is at.
    pub message: String,
    /// Its answer, once it has one.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub result: Option<Box<Response>>,
}
