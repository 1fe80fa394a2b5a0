//! The campaigns, in the order in which they run.

mod confusion;
pub mod connect;
mod crash;
mod disk;
mod faults;
mod hostile;
mod load;
mod memory;
mod power_loss;
mod sanitizers;
mod scripts;
mod upgrades;
mod volume;

use crate::campaign::Campaign;

pub const CAMPAIGNS: &[Campaign] = &[
    crash::CAMPAIGN,
    power_loss::CAMPAIGN,
    disk::CAMPAIGN,
    hostile::CAMPAIGN,
    load::CAMPAIGN,
    volume::CAMPAIGN,
    memory::CAMPAIGN,
    scripts::CAMPAIGN,
    connect::CAMPAIGN,
    confusion::CAMPAIGN,
    faults::CAMPAIGN,
    upgrades::CAMPAIGN,
    sanitizers::CAMPAIGN,
];
