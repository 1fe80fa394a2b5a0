//! Reports in every format: from a run of corpus kernels, against their schemas, and where they are read.
#![allow(clippy::unwrap_used, clippy::panic, clippy::print_stderr, reason = "tests fail by panicking")]

#[path = "../fixture/mod.rs"]
mod fixture;

mod comment;
mod corpus_run;
mod github;
mod golden;
mod json_output;
mod rewritten;
mod schemas;
