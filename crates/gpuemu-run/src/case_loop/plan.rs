//! How many cases, which, and for how long.

use std::time::{Duration, Instant};

use gpuemu_model::shard::Shard;

/// What is run of an op.
#[derive(Debug, Clone)]
pub struct Plan {
    /// Case seeds that come first: failures of earlier runs.
    pub replayed: Vec<u64>,
    /// The seed that those of the other cases are derived from.
    pub base_seed: u64,
    /// Cases in all, those replayed not counted.
    pub cases: u64,
    /// Only the cases of one shard, and what joining it with the others takes.
    pub shard: Option<Shard>,
    pub limit: Option<Limit>,
    /// Stop at the first failure.
    pub fail_fast: bool,
    pub repeats: Repeats,
    /// Cases that are made, with what is expected of them, while the runner is at another one.
    pub ahead: usize,
}

/// When time is up.
#[derive(Debug, Clone, Copy)]
pub struct Limit {
    pub deadline: Instant,
    /// Whether running until then is what was asked for: the op is not unfinished where cases are left.
    pub is_goal: bool,
}

/// Calls of the first case that passed, after all others: what was right in the first calls must stay right.
#[derive(Debug, Clone, Copy)]
pub struct Repeats {
    pub calls: usize,
    pub time: Duration,
}

impl Repeats {
    pub const NONE: Self = Self { calls: 0, time: Duration::ZERO };
    pub const STANDARD: Self = Self { calls: 1000, time: Duration::from_millis(500) };
}

impl Plan {
    /// So many cases of a base seed, and nothing else.
    pub fn of(base_seed: u64, cases: u64) -> Self {
        Self {
            replayed: Vec::new(),
            base_seed,
            cases,
            shard: None,
            limit: None,
            fail_fast: false,
            repeats: Repeats::NONE,
            ahead: 0,
        }
    }

    /// Cases that are run of each op.
    pub fn total(&self) -> u64 {
        let drawn = self.shard.map_or(self.cases, |shard| shard.size(self.cases));
        drawn.saturating_add(self.replayed.len() as u64)
    }

    /// The cases that a report counts as planned, where so many were run.
    pub fn planned(&self, run: u64) -> u64 {
        if self.is_open_ended() { run } else { self.total() }
    }

    /// Whether time, and not a number, says how many cases there are.
    pub fn is_open_ended(&self) -> bool {
        self.limit.is_some_and(|limit| limit.is_goal)
    }
}
