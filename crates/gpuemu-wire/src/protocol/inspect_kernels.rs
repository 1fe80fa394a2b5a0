//! What clients ask for about compiled kernels.

use gpuemu_model::artifact::{OccupancyLaunch, ToolSearch};
use gpuemu_model::schema::JsonSchema;
use gpuemu_model::settings::ProjectReference;
use serde::{Deserialize, Serialize};

/// Measure and check the compiled kernels of a project.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct InspectKernels {
    /// The project.
    pub project: ProjectReference,
    /// The kernels; all if left out.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub kernels: Option<Vec<String>>,
    /// Architectures to measure for, in place of those of the configuration.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub architectures: Option<Vec<String>>,
    /// Where tools are looked for; left out, in the daemon's own environment.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub tools: Option<ToolSearch>,
    /// What kernels are held to beyond their configuration.
    #[serde(default)]
    pub lint: LintOptions,
    /// The launch that occupancy is estimated for, where the code does not say.
    #[serde(default)]
    pub launch: OccupancyLaunch,
}

/// What kernels are held to beyond their configuration. A limit given here goes before a configured one.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields, default)]
pub struct LintOptions {
    /// Rules that are silenced.
    pub allow: Vec<String>,
    /// More rules, read by the client: the daemon opens no file of a message's choice.
    pub rules: Vec<RuleText>,
    /// Most registers of a thread.
    pub max_registers: Option<u64>,
    /// Most spilled registers.
    pub max_spills: Option<u64>,
    /// Most bytes of local memory.
    pub max_local_memory_bytes: Option<u64>,
    /// More instructions that must not appear.
    pub forbidden_instructions: Vec<String>,
    /// More instructions that must appear.
    pub required_instructions: Vec<String>,
    /// Whether a rule that could not be checked is an error.
    pub fail_on_unchecked: bool,
}

/// The text of a file with rules.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct RuleText {
    /// What messages call it: the file that it was read from.
    pub name: String,
    /// The rules.
    pub text: String,
}
