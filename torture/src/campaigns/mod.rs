//! The campaigns, in the order in which they run.

mod crash;
mod load;
mod memory;
mod power_loss;
mod volume;

use crate::campaign::Campaign;

/// All of them.
pub const CAMPAIGNS: &[Campaign] =
    &[crash::CAMPAIGN, power_loss::CAMPAIGN, load::CAMPAIGN, volume::CAMPAIGN, memory::CAMPAIGN];
