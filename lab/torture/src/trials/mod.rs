//! The trials, in the order in which they run.

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

use crate::trial::Trial;

pub const TRIALS: &[Trial] = &[
    crash::TRIAL,
    power_loss::TRIAL,
    disk::TRIAL,
    hostile::TRIAL,
    load::TRIAL,
    volume::TRIAL,
    memory::TRIAL,
    scripts::TRIAL,
    connect::TRIAL,
    confusion::TRIAL,
    faults::TRIAL,
    upgrades::TRIAL,
    sanitizers::TRIAL,
];
