//! What clients ask for.

use gpuemu_model::artifact::ToolSearch;
use gpuemu_model::report::{RunReport, ValidationResult};
use gpuemu_model::schema::JsonSchema;
use gpuemu_model::seed_text;
use gpuemu_model::settings::{FuzzConfig, Mode, ProjectReference};
use gpuemu_model::shard::Shard;
use gpuemu_model::tensor_data::{NamedTensorData, TensorData};
use serde::{Deserialize, Serialize};
use serde_json::{Map, Value};

use super::calibrate::Calibrate;
use super::campaign::{BeginCampaign, CampaignReference, GetRun, KeepMinimized, KeepPart};
use super::illustrate::Illustrate;
use super::inspect_kernels::InspectKernels;

/// A request.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(tag = "type")]
pub enum Request {
    /// Does the daemon answer, and which version is it?
    Ping {
        /// The client's protocol version; the daemon refuses any but its own.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        protocol_version: Option<u32>,
    },
    /// End the daemon; jobs that run are cancelled.
    Shutdown,
    /// How is the daemon?
    Status,
    /// Which ops does a project have?
    ListOps(ProjectOnly),
    /// Judge an output that the client computed from inputs of its own.
    ValidateOp(ValidateOp),
    /// Try many cases of one op.
    FuzzOp(FuzzOp),
    /// Try cases of many ops.
    RunCi(RunCi),
    /// Measure and check the compiled kernels of a project.
    InspectKernels(InspectKernels),
    /// Measure a trusted control of an op.
    Calibrate(Calibrate),
    /// Run one case again.
    Reproduce(ReplayCase),
    /// Run one case again and return all of its tensors.
    Inspect(ReplayCase),
    /// Run a failing case again and say where in its output the errors are.
    Illustrate(Illustrate),
    /// Shrink a failing case.
    Minimize(Minimize),
    /// Run stored failures again.
    ReplayFailures(ReplayFailures),
    /// One stored result.
    GetResult(GetResult),
    /// Stored results, newest first.
    ListResults(ListResults),
    /// Stored failures, newest first.
    ListFailures(ListResults),
    /// What ops came to in stored runs, of each op the newest first.
    ListRuns(ListRuns),
    /// The report on stored results: of each op its newest run.
    ReportStored(ReportStored),
    /// What the newest run of each op of a project rests on.
    GatherEvidence(GatherEvidence),
    /// Keep the last run of each op, and what is measured of each kernel, under a tag.
    StoreBaseline(StoreBaseline),
    /// The tags there are.
    ListBaselines(ProjectOnly),
    /// Remove a tag.
    DeleteBaseline(StoreBaseline),
    /// Run the cases of a baseline again and compare errors.
    CompareBaseline(CompareBaseline),
    /// One generated case.
    GetTestCase(GetTestCase),
    /// Many generated cases.
    GetTestBatch(GetTestBatch),
    /// Judge and keep the output that a client computed for a generated case.
    SubmitOutput(SubmitOutput),
    /// Keep verdicts that a client reached in its own process.
    RecordResults(RecordResults),
    /// Everything that a run left of one op, in the order of its cases.
    GetRun(GetRun),
    /// Begin a run whose parts others make.
    BeginCampaign(BeginCampaign),
    /// How far is a campaign?
    GetCampaign(CampaignReference),
    /// Keep a part of a campaign.
    KeepPart(KeepPart),
    /// Keep the smallest form of a failure that was shrunk elsewhere.
    KeepMinimized(KeepMinimized),
    /// Join the parts of a campaign once all of them are kept.
    EndCampaign(CampaignReference),
    /// Do something long in the background.
    SubmitJob {
        /// What to do.
        job: Box<Request>,
    },
    /// How far is a job?
    JobStatus(JobReference),
    /// Stop a job.
    CancelJob(JobReference),
    /// The jobs there are.
    ListJobs,
}

macro_rules! jobs {
    ($($kind:ident),+ $(,)?) => {
        impl Request {
            /// The types of requests that can be done in the background.
            pub const JOBS: &[&str] = &[$(stringify!($kind)),+];

            /// Its type, if it can be done in the background.
            pub fn job_kind(&self) -> Option<&'static str> {
                match self {
                    $(Self::$kind(_) => Some(stringify!($kind)),)+
                    _ => None,
                }
            }
        }
    };
}

jobs!(
    FuzzOp,
    RunCi,
    Minimize,
    ReplayFailures,
    StoreBaseline,
    CompareBaseline,
    Reproduce,
    Inspect,
    Illustrate,
    InspectKernels,
    Calibrate,
    GatherEvidence
);

/// A request that needs nothing but a project.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct ProjectOnly {
    /// The project.
    pub project: ProjectReference,
}

/// Judge an output that the client computed from inputs of its own.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct ValidateOp {
    /// The project.
    pub project: ProjectReference,
    /// The op.
    pub op_name: String,
    /// Its inputs.
    pub inputs: NamedTensorData,
    /// Its output, where it has one.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub output: Option<TensorData>,
    /// Its outputs by name, where it has several.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub outputs: Option<NamedTensorData>,
    /// Arguments that are not tensors.
    #[serde(default, skip_serializing_if = "Map::is_empty")]
    pub kwargs: Map<String, Value>,
}

/// Try many cases of one op.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct FuzzOp {
    /// The project.
    pub project: ProjectReference,
    /// The op.
    pub op_name: String,
    /// What cases are drawn from.
    #[serde(default)]
    pub config: FuzzConfig,
    /// Stop at the first failure.
    #[serde(default)]
    pub fail_fast: bool,
    /// Only the cases of one shard.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub shard: Option<Shard>,
}

/// Try cases of many ops.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct RunCi {
    /// The project.
    pub project: ProjectReference,
    /// The ops; all if empty.
    #[serde(default)]
    pub ops: Vec<String>,
    /// How much is done.
    #[serde(default)]
    pub mode: Mode,
    /// What cases are drawn from.
    #[serde(default)]
    pub config: FuzzConfig,
    /// Ops at once; 0 is all cores.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub parallel: Option<usize>,
    /// Stop an op at its first failure, and the run with it.
    #[serde(default)]
    pub fail_fast: bool,
    /// Only the cases of one shard.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub shard: Option<Shard>,
    /// Compare with a baseline.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub baseline: Option<BaselineReference>,
    /// Whether an error that grew past the threshold fails the run.
    #[serde(default)]
    pub fail_on_regression: bool,
    /// Whether compiled kernels are looked at; left out, they are where all ops are tested.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub kernels: Option<bool>,
    /// Where tools are looked for; left out, in the daemon's own environment.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub tools: Option<ToolSearch>,
}

/// One case: by its seed, or by its whole description.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct ReplayCase {
    /// The project.
    pub project: ProjectReference,
    /// The op; may be left out where a stored failure has the seed.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub op_name: Option<String>,
    /// The seed.
    #[serde(with = "seed_text")]
    #[schemars(with = "seed_text::SeedText")]
    pub seed: u64,
    /// What the case was drawn from, where no stored failure has the seed.
    #[serde(default)]
    pub config: FuzzConfig,
    /// The smallest form of the failure in place of the failure itself.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub minimized: bool,
}

/// Shrink a failing case.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct Minimize {
    /// The project.
    pub project: ProjectReference,
    /// The op; may be left out where a stored failure has the seed.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub op_name: Option<String>,
    /// The seed.
    #[serde(with = "seed_text")]
    #[schemars(with = "seed_text::SeedText")]
    pub seed: u64,
    /// What the case was drawn from, where no stored failure has the seed.
    #[serde(default)]
    pub config: FuzzConfig,
    /// `combined`, `binary-search-dims` or `binary-search-values`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub strategy: Option<String>,
    /// Most runs of the case.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub max_runs: Option<u64>,
}

/// Run stored failures again.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct ReplayFailures {
    /// The project.
    pub project: ProjectReference,
    /// Of one op.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub op_name: Option<String>,
    /// At most so many, the newest first.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub limit: Option<u64>,
}

/// One stored result.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct GetResult {
    /// The project.
    pub project: ProjectReference,
    /// Of one op.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub op_name: Option<String>,
    /// Its seed.
    #[serde(with = "seed_text")]
    #[schemars(with = "seed_text::SeedText")]
    pub seed: u64,
}

/// What the newest run of each op of a project rests on.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct GatherEvidence {
    /// The project.
    pub project: ProjectReference,
}

/// What ops came to in stored runs.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct ListRuns {
    /// The project.
    pub project: ProjectReference,
    /// Of one op.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub op_name: Option<String>,
    /// At most so many of each op; one if left out.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub limit: Option<u64>,
}

/// Stored results or failures.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct ListResults {
    /// The project.
    pub project: ProjectReference,
    /// Of one op.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub op_name: Option<String>,
    /// At most so many.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub limit: Option<u64>,
    /// Not older than so many hours.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub since_hours: Option<f64>,
}

/// The report on stored results.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct ReportStored {
    /// The project.
    pub project: ProjectReference,
    /// Of one op.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub op_name: Option<String>,
    /// Not older than so many hours.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub since_hours: Option<f64>,
}

/// A baseline's tag.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct StoreBaseline {
    /// The project.
    pub project: ProjectReference,
    /// The tag.
    pub tag: String,
    /// Where tools are looked for; left out, in the daemon's own environment.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub tools: Option<ToolSearch>,
}

/// A baseline: stored under a tag, or the report of an earlier run.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum BaselineReference {
    /// A stored tag.
    Tag(String),
    /// A report, and what to call it.
    Report {
        /// Its file's name, say.
        name: String,
        /// The report.
        report: Box<RunReport>,
    },
}

/// Compare with a baseline.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct CompareBaseline {
    /// The project.
    pub project: ProjectReference,
    /// The baseline.
    pub baseline: BaselineReference,
    /// Only this op, and no kernel.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub op_name: Option<String>,
    /// Where tools are looked for; left out, in the daemon's own environment.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub tools: Option<ToolSearch>,
}

/// How tensors of an answer travel.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum Encoding {
    /// As base64 text: any JSON reader can take them.
    #[default]
    Base64,
    /// As bytes behind the header of a binary frame, strides kept.
    Binary,
}

/// One generated case.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct GetTestCase {
    /// The project.
    pub project: ProjectReference,
    /// The op.
    pub op_name: String,
    /// The case's seed; drawn at random if left out.
    #[serde(default, with = "seed_text::option", skip_serializing_if = "Option::is_none")]
    #[schemars(with = "Option<seed_text::SeedText>")]
    pub seed: Option<u64>,
    /// What the case is drawn from.
    #[serde(default)]
    pub config: FuzzConfig,
    /// How its tensors travel.
    #[serde(default)]
    pub encoding: Encoding,
}

/// Many generated cases: so many from a base seed, or one for each seed.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct GetTestBatch {
    /// The project.
    pub project: ProjectReference,
    /// The op.
    pub op_name: String,
    /// How many.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub count: Option<u64>,
    /// Case seeds.
    #[serde(default, with = "seed_text::list", skip_serializing_if = "Vec::is_empty")]
    #[schemars(with = "Vec<seed_text::SeedText>")]
    pub seeds: Vec<u64>,
    /// What the cases are drawn from.
    #[serde(default)]
    pub config: FuzzConfig,
    /// How their tensors travel.
    #[serde(default)]
    pub encoding: Encoding,
}

/// The output that a client computed for a generated case.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct SubmitOutput {
    /// The project.
    pub project: ProjectReference,
    /// The op.
    pub op_name: String,
    /// The case's seed.
    #[serde(with = "seed_text")]
    #[schemars(with = "seed_text::SeedText")]
    pub seed: u64,
    /// What the case was drawn from.
    #[serde(default)]
    pub config: FuzzConfig,
    /// The inputs as the client used them: compared with what the seed gives.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub inputs: Option<NamedTensorData>,
    /// The output, where the op has one.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub output: Option<TensorData>,
    /// The outputs by name, where it has several.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub outputs: Option<NamedTensorData>,
}

/// Verdicts that a client reached in its own process, where the daemon cannot run the op.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct RecordResults {
    /// The project.
    pub project: ProjectReference,
    /// The op: any name, whether or not the project knows it.
    pub op_name: String,
    /// Base seed of the run.
    #[serde(with = "seed_text")]
    #[schemars(with = "seed_text::SeedText")]
    pub base_seed: u64,
    /// The run that these results go on with, as an earlier answer named it; a new one if left out.
    #[serde(default, with = "seed_text::option", skip_serializing_if = "Option::is_none")]
    #[schemars(with = "Option<seed_text::SeedText>")]
    pub run: Option<u64>,
    /// What the cases were drawn from.
    #[serde(default)]
    pub settings: FuzzConfig,
    /// The verdicts in the order of their cases. Failures may bring their inputs, which are kept with them.
    pub results: Vec<ValidationResult>,
}

/// A job.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct JobReference {
    /// Its number.
    #[serde(with = "seed_text")]
    #[schemars(with = "seed_text::SeedText")]
    pub job: u64,
    /// Milliseconds to wait for its end, at most.
    #[serde(default)]
    pub wait_ms: u64,
}
