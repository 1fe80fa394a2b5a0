//! The engine of gpuemu: what ops are, which cases to try, and when a kernel is wrong.
//!
//! Data flows one way: a [`case::Case`] is generated, a [`runner::Runner`] turns its inputs into
//! outputs, the [`oracle`] gives a [`verdict::Verdict`]. No processes, sockets, storage or
//! terminal here.

pub mod case;
pub mod minimise;
pub mod ops;
pub mod oracle;
pub mod runner;
pub mod schema;
pub mod verdict;

pub use case::{Case, CaseDescriptor, Sampler};
pub use ops::Op;
pub use oracle::{Subject, Tolerance, judge};
pub use runner::{Invocation, Runner};
pub use verdict::{Outcome, Verdict};
