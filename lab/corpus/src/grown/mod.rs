//! The grown corpus: pairs of a right and a wrong twin, for the kinds of bugs that kernels of the public have, and for the
//! known ways to cheat.
//!
//! All of it is one project as any user has it: compiled kernels with launch tables, Python functions, and an op for each
//! twin. It is run as a project is.

mod manifest;
mod project;

pub use manifest::{CLASSES, CaughtBy, Language, Pair, pairs};
pub use project::{Project, op_of, ptx_of};

/// The files of the grown corpus, by their path in `corpus/grown`, sorted.
static FILES: &[(&str, &str)] = include!(concat!(env!("OUT_DIR"), "/grown_files.rs"));

/// A file of the grown corpus.
fn file(path: &str) -> Option<&'static str> {
    FILES.binary_search_by_key(&path, |(name, _)| name).ok().map(|place| FILES[place].1)
}

/// Which of a pair.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub enum Side {
    Right,
    Wrong,
}
