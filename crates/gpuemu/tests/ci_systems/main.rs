//! The GitHub action, the GitLab template and what `gpuemu init --ci` writes: their shell steps are run here, with the
//! real gpuemu, as the CI systems run them.
#![allow(
    clippy::unwrap_used,
    clippy::expect_used,
    clippy::panic,
    clippy::print_stderr,
    reason = "tests fail by panicking, and say which were skipped"
)]

mod baselines;
mod comments;
mod documentation;
mod expression;
#[path = "../fixture/mod.rs"]
mod fixture;
mod fresh_machines;
mod github;
mod github_api;
mod github_job;
mod gitlab;
mod gitlab_job;
mod installation;
mod packages;
mod programs;
mod projects;
mod shell_scripts;
mod workflow;
mod yaml;
