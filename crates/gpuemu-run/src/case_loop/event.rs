//! What happens in a run, in order, and who takes it.

use std::ops::ControlFlow;

use gpuemu_engine::{Case, Verdict};
use gpuemu_model::report::OpReport;

use crate::configured_op::ConfiguredOp;

/// One thing that happened to an op.
pub enum Event<'a> {
    /// A case is about to be run.
    CaseDue {
        so_far: &'a OpReport,
        planned: u64,
    },
    CaseJudged(Judged<'a>),
    /// The last case was judged; what is to be kept has to be kept now.
    CasesEnded,
}

/// A case with its verdict.
#[derive(Clone, Copy)]
pub struct Judged<'a> {
    pub op: &'a ConfiguredOp,
    /// Its place among the cases of the run.
    pub index: u64,
    pub case: &'a Case,
    /// Its result says where it belongs, too.
    pub verdict: &'a Verdict,
    /// Whether it passed when it was judged before: this verdict takes the place of that one.
    pub again: bool,
}

/// Why there is no further case.
#[derive(Debug)]
pub enum Stop {
    Cancelled,
    /// What went wrong, in words: what was found so far is no pass.
    Failed(String),
}

/// Takes what happens. A front adds a sink, never a loop.
pub trait Sink {
    fn take(&mut self, event: &Event<'_>) -> ControlFlow<Stop>;
}
