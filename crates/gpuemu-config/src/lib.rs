//! Configuration: three TOML files of one form, merged, with defaults filled in.
//!
//! `gpuemu.toml` of the project goes before the user's `config.toml`, which goes before the daemon's
//! `daemon.toml`. Lists such as `[[ops]]` are taken whole from the first file that has them.

mod blank_report;
mod calibration;
mod check;
mod check_kernels;
mod check_launch;
mod edit;
mod error;
pub mod expression;
pub mod failure;
mod kernels;
pub mod launch;
mod load;
mod located;
mod merge;
mod resolve;
#[cfg(feature = "schema")]
mod schema;
mod tables;
mod text_range;

pub use calibration::{Calibration, CalibrationTable};
pub use edit::{with_calibrations, with_tolerance};
pub use error::{ConfigError, InvalidFile};
pub use failure::Failure;
pub use kernels::{ArtifactChecks, CompileTable, Kernel, Lint, SourceKind, architecture_number, check_architecture};
pub use load::{Environment, find_project_file, kernels_of, load, load_daemon, load_file, load_text};
pub use located::Located;
pub use resolve::{
    Ci, Config, Daemon, DimensionRange, ExpectedFailure, Op, OpSource, Policies, Project, Seed, Storage, Validation,
};
pub use tables::{
    ConfigFile, ExecutionMode, Framework, Invariant, LogLevel, ReferenceDtype, ToleranceMode, TolerancePair,
};
pub use text_range::{TextPlace, TextRange};
