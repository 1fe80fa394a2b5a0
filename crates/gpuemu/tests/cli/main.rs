//! What the command line does, from the outside: one program, since each is linked with the whole engine.
#![allow(
    clippy::unwrap_used,
    clippy::expect_used,
    clippy::panic,
    clippy::print_stderr,
    reason = "tests fail by panicking"
)]

#[path = "../fixture/mod.rs"]
mod fixture;
#[path = "../running_daemon/mod.rs"]
mod running_daemon;

mod calibrate;
mod commands;
mod config;
mod conformance;
mod corpus;
mod corpus_grown;
mod coverage;
mod daemon;
mod debug;
mod emulate;
mod exit_codes;
mod init;
mod judging;
mod kernel_files;
mod kernel_ops;
mod kernel_projects;
mod launches;
mod malformed;
mod memory;
mod ops;
mod outputs;
mod page;
mod pages;
mod picture;
mod protocol_document;
mod readme;
mod recording;
mod shards;
mod signed;
mod study;
mod transcript;
