//! A campaign over many machines: one run whose parts are made elsewhere and kept here.

pub use gpuemu_model::campaign::CampaignStatus;
use gpuemu_model::report::{RunReport, ValidationResult};
use gpuemu_model::schema::JsonSchema;
use gpuemu_model::seed_text;
use gpuemu_model::settings::{FuzzConfig, ProjectReference};
use gpuemu_model::tensor_data::NamedTensorData;
use serde::{Deserialize, Serialize};

/// Begin a run whose parts others make.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct BeginCampaign {
    /// The project.
    pub project: ProjectReference,
    /// The ops; all of the project if empty.
    #[serde(default)]
    pub ops: Vec<String>,
    /// What cases are drawn from, how many of each op, and the base seed.
    #[serde(default)]
    pub config: FuzzConfig,
    /// How many parts there are.
    pub parts: u32,
    /// Whether clients call the ops in their own processes: then they need not be the project's.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub client_side: bool,
}

/// A campaign that was begun.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct CampaignReference {
    /// The project.
    pub project: ProjectReference,
    /// Its run; the newest campaign that has not ended if left out.
    #[serde(default, with = "seed_text::option", skip_serializing_if = "Option::is_none")]
    #[schemars(with = "Option<seed_text::SeedText>")]
    pub run: Option<u64>,
}

/// Everything that a run of this project left of one op.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct GetRun {
    /// The project.
    pub project: ProjectReference,
    /// The op.
    pub op_name: String,
    /// The run.
    #[serde(with = "seed_text")]
    #[schemars(with = "seed_text::SeedText")]
    pub run: u64,
}

/// Keep a part of a campaign. A part that is kept already is kept again: nothing is counted twice.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct KeepPart {
    /// The project.
    pub project: ProjectReference,
    /// The campaign's run.
    #[serde(with = "seed_text")]
    #[schemars(with = "seed_text::SeedText")]
    pub run: u64,
    /// The report on the part, a shard of the run.
    pub report: Box<RunReport>,
    /// The verdicts on all cases of the part, for each op in the order of its cases. Failures bring their inputs.
    pub results: Vec<ValidationResult>,
}

/// Keep the smallest form of a failure that was shrunk elsewhere.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct KeepMinimized {
    /// The project.
    pub project: ProjectReference,
    /// The verdict on the smallest case.
    pub minimized: Box<ValidationResult>,
    /// Its inputs.
    pub inputs: NamedTensorData,
    /// Whether its values were simplified, so that no seed gives them.
    #[serde(default)]
    pub values_edited: bool,
}
