//! A campaign over many machines: one run whose parts are made elsewhere.

use serde::{Deserialize, Serialize};

use crate::report::RunReport;
use crate::schema::JsonSchema;
use crate::seed_text;
use crate::settings::FuzzConfig;

/// How far a campaign is.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct CampaignStatus {
    /// Its run.
    #[serde(with = "seed_text")]
    #[schemars(with = "seed_text::SeedText")]
    pub run: u64,
    /// The ops that were asked for; empty for all of the project.
    pub ops: Vec<String>,
    /// The ops that every part has to speak of.
    pub planned_ops: Vec<String>,
    /// What cases are drawn from; its number of cases and its seed are those of the run.
    pub config: FuzzConfig,
    /// How many parts there are.
    pub parts: u32,
    /// The numbers of those that are kept, from 1.
    pub kept: Vec<u32>,
    /// Whether clients call the ops in their own processes.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub client_side: bool,
    /// The report on a part without its ops: what reports on parts have in common.
    pub report: Box<RunReport>,
}
