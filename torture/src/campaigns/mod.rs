//! The campaigns, in the order in which they run.

mod crash;
mod hostile;
mod power_loss;
mod sanitizers;

use crate::campaign::Campaign;

/// All of them.
pub const CAMPAIGNS: &[Campaign] = &[crash::CAMPAIGN, power_loss::CAMPAIGN, hostile::CAMPAIGN, sanitizers::CAMPAIGN];
