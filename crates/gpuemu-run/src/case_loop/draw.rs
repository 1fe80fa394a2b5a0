//! Cases in the order of their run, made ahead of the runner where that is wanted.

use std::ops::ControlFlow;
use std::sync::mpsc::sync_channel;

use gpuemu_engine::case::materialise;
use gpuemu_engine::ops::{Expectation, OpError};
use gpuemu_engine::{Case, Sampler, Subject};
use gpuemu_model::shard::Shard;
use gpuemu_process::fault;
use gpuemu_tensor::rng::case_seed;

use super::Plan;

/// A case, ready to be run.
pub(super) struct Drawn {
    /// Its place among the cases of the run.
    pub index: u64,
    pub seed: u64,
    pub case: Result<Case, String>,
    /// What is expected of it, where that was asked ahead.
    pub expected: Option<Result<Vec<Expectation>, OpError>>,
    /// The case that was drawn first, and which the op's kernel does not cover.
    pub left_out: Option<String>,
}

/// Calls `next` with one case after the other until it wants no more; whether it wanted all.
pub(super) fn each_case(
    subject: &Subject,
    sampler: &Sampler,
    plan: &Plan,
    mut next: impl FnMut(Drawn) -> ControlFlow<()>,
) -> ControlFlow<()> {
    let (before, base_seed) = (plan.replayed.len() as u64, plan.base_seed);
    let drawn = plan.shard.unwrap_or(Shard::WHOLE).cases(plan.cases);
    let drawn = drawn.map(|index| (before + index, case_seed(base_seed, index)));
    let mut seeds = (0..).zip(plan.replayed.iter().copied()).chain(drawn);
    if plan.ahead == 0 {
        return seeds.try_for_each(|(index, seed)| next(draw(subject, sampler, index, seed)));
    }
    std::thread::scope(|scope| {
        let (sender, receiver) = sync_channel(plan.ahead);
        scope.spawn(move || {
            for (index, seed) in seeds {
                let mut drawn = draw(subject, sampler, index, seed);
                drawn.expected = drawn.case.as_ref().ok().map(|case| subject.expect(case));
                if sender.send(drawn).is_err() {
                    break;
                }
            }
        });
        receiver.iter().try_for_each(next)
    })
}

fn draw(subject: &Subject, sampler: &Sampler, index: u64, seed: u64) -> Drawn {
    fault!("case.describe");
    let descriptor = subject.describe(sampler, seed);
    let left_out = subject.left_out(sampler, seed).map(|case| format!("{}, {}", case.dtype, case.sizes));
    let made = materialise(subject.schema(), &descriptor).map_err(|error| error.to_string());
    let case = fault!("case.materialise", "injected".to_string(), made);
    Drawn { index, seed, case, expected: None, left_out }
}
