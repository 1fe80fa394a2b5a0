//! The four published studies, run again on the published corpus: which bugs the usual check accepts, what each
//! tolerance finds, what each kind of input finds, and what compiled code shows.
//!
//! A study is a function of its seed and counts alone: the same ones give the same result.

pub mod artifacts;
pub mod headroom;
pub mod inputs;
pub mod oracle;
pub mod proportion;
pub mod tolerance;

use gpuemu_engine::oracle::Subject;

use crate::published::{Entry, RunnerChoice};

/// Called with the amount of work done since the last call.
pub type Progress<'a> = &'a (dyn Fn(u64) + Sync);

/// Base seeds of one study must not share cases: each purpose has its own.
fn seed_of(base_seed: u64, purpose: &str, number: u32) -> u64 {
    gpuemu_tensor::Stream::new(base_seed, &format!("study/{purpose}/{number}")).next_word()
}

fn subject_of(entry: &Entry, choice: RunnerChoice) -> Result<Subject, String> {
    entry.subject(choice).ok_or_else(|| format!("kernel '{}' has no built-in op", entry.name))
}
