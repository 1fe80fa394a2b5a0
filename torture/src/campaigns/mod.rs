//! The campaigns, in the order in which they run.

mod confusion;
pub mod connect;
mod crash;
mod disk;
mod faults;
mod load;
mod memory;
mod power_loss;
mod scripts;
mod upgrades;
mod volume;

use crate::campaign::Campaign;

/// All of them.
pub const CAMPAIGNS: &[Campaign] = &[
    crash::CAMPAIGN,
    power_loss::CAMPAIGN,
    disk::CAMPAIGN,
    load::CAMPAIGN,
    volume::CAMPAIGN,
    memory::CAMPAIGN,
    connect::CAMPAIGN,
    confusion::CAMPAIGN,
    upgrades::CAMPAIGN,
    faults::CAMPAIGN,
    scripts::CAMPAIGN,
];
