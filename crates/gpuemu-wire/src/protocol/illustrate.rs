//! Showing what is wrong with a case: the errors of its output as a picture, and its smallest form.

use gpuemu_model::case::CaseDescriptor;
use gpuemu_model::picture::ErrorPicture;
use gpuemu_model::report::ValidationResult;
use gpuemu_model::schema::JsonSchema;
use gpuemu_model::seed_text;
use gpuemu_model::settings::{FuzzConfig, ProjectReference};
use serde::{Deserialize, Serialize};

use super::response::Neighbour;

/// Run a failing case again and say where in its output the errors are. Nothing is stored.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct Illustrate {
    /// The project.
    pub project: ProjectReference,
    /// The op.
    pub op_name: String,
    /// The seed.
    #[serde(with = "seed_text")]
    #[schemars(with = "seed_text::SeedText")]
    pub seed: u64,
    /// What the case was drawn from.
    #[serde(default)]
    pub config: FuzzConfig,
    /// Everything that decided the case that failed; where the seed stands for another one now, there is an error.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub case: Option<CaseDescriptor>,
    /// Whether to look for its smallest form too.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub minimize: bool,
}

/// The errors of a case.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct Illustration {
    /// The verdict now.
    pub result: ValidationResult,
    /// The errors of the output that it is about.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub picture: Option<ErrorPicture>,
    /// Why there is no picture, where there is none.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub without_picture: Option<String>,
    /// Its smallest form, where that was asked for and the case still fails.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub smallest: Option<SmallestCase>,
}

/// The smallest form of a failing case.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct SmallestCase {
    /// Its verdict.
    pub result: ValidationResult,
    /// A passing case next to it.
    pub neighbour: Option<Neighbour>,
    /// Runs spent.
    pub runs: usize,
    /// Whether inputs were simplified beyond what a seed generates.
    pub values_edited: bool,
}
