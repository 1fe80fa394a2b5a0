//! Conformance: launches that were recorded on a chip, repeated by the machine and compared bit for bit.

mod above_sm_89;
mod bounds;
mod compare;
mod launches;
mod manifest;
mod npz;
mod pack;
mod report;
mod run;

pub use manifest::{Entry, Parameter, RecordedBuffer, RecordedRole, RecordedScalar, RecordedScratch, RecordedStruct};
pub use npz::{Array, Npz};
pub use pack::{Pack, PackError};
pub use report::{ConformanceOutcome, ConformanceReport, ConformanceSummary, LaunchResult};
pub use run::run;
