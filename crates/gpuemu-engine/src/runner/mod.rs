//! A runner turns a case's inputs into outputs: a client's callable, a script, the PTX machine, or
//! a stand-in written in Rust. The engine allocates every buffer; errors and crashes are verdicts.

pub mod buffer;

use std::collections::BTreeSet;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::time::Duration;

use gpuemu_tensor::{DType, FloatEnvironment, Tensor};
use serde::Serialize;
use thiserror::Error;

pub use buffer::{Buffer, GuardDamage};

use crate::case::CaseDescriptor;
use crate::oracle::memory::float_environment_left;
use crate::schema::{Parameters, Schema, Sizes, TensorSpec};
use crate::verdict::Finding;

/// What kind of thing produced an output.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum RunnerKind {
    /// The user's own code, in the client's process.
    Callable,
    /// A script or module run by the daemon.
    Script,
    /// The compiled kernel in gpuemu's PTX machine.
    PtxMachine,
    /// A model of a kernel written in Rust.
    StandIn,
}

/// What a runner is and what it can be checked for.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct RunnerDescription {
    /// Its name, for reports.
    pub name: String,
    pub kind: RunnerKind,
    /// Whether it reads inputs by their strides; otherwise it gets contiguous copies.
    pub layouts: bool,
    /// Whether it writes into the engine's buffers, so that poison and guard bands mean something.
    pub writes_into_buffers: bool,
    /// Whether what it did to its inputs is seen.
    pub inputs_watched: bool,
    /// Whether it can be given new data at the addresses of its last call.
    pub refills: bool,
    /// Whether its calls share a process, in which they may leave something for those after them.
    pub remembers: bool,
}

/// Why a runner gave no output. Each of these is a verdict.
#[derive(Debug, Clone, PartialEq, Eq, Error)]
pub enum RunnerError {
    /// It touched memory outside of its buffers.
    #[error("illegal address: {0}")]
    IllegalAddress(String),
    /// It raised an error of its own.
    #[error("{0}")]
    Raised(String),
    #[error("crashed: {0}")]
    Crashed(String),
    /// It did not finish in time.
    #[error("did not finish within {} s", .0.as_secs_f64())]
    TimedOut(Duration),
}

/// Where the inputs of a call lie.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub enum Placement {
    /// In memory that no earlier call of the same case has seen.
    #[default]
    Fresh,
    /// At the addresses of the last call, whose data they replace.
    Refilled,
}

/// One call of a kernel, with buffers that belong to the engine.
#[derive(Debug)]
pub struct Invocation<'a> {
    pub schema: &'a Schema,
    pub sizes: &'a Sizes,
    pub parameters: &'a Parameters,
    /// Optional tensors that take part.
    pub present: &'a [String],
    /// Dtype of the case.
    pub dtype: DType,
    /// Inputs in the order of the schema; `None` where an optional one is absent.
    pub inputs: Vec<Option<Buffer>>,
    /// Outputs in the order of the schema, those absent left out: poisoned, but for those written in place, which
    /// hold their input in its own layout and are the one buffer that such a kernel reads and writes.
    pub outputs: Vec<Buffer>,
    /// What outputs hold that are not written in place, and freed memory should.
    pub poison: u8,
    /// Where the inputs are to lie, for runners that can choose.
    pub placement: Placement,
    /// What the runner itself saw go wrong, beside what it returned.
    pub findings: Vec<Finding>,
    /// Whether more outputs came back than are judged.
    pub surplus: bool,
    /// What else than the runner looked at in this call, of the things that a verdict says are not checked.
    pub looked_at: BTreeSet<&'static str>,
}

impl Invocation<'_> {
    pub fn input(&self, name: &str) -> Option<&Buffer> {
        let index = self.schema.inputs.iter().position(|spec| spec.name == name)?;
        self.inputs.get(index)?.as_ref()
    }

    /// The names of the outputs that take part, in order.
    pub fn output_names(&self) -> impl Iterator<Item = &str> {
        let takes_part = |spec: &&TensorSpec| !spec.optional || self.present.contains(&spec.name);
        self.schema.outputs.iter().filter(takes_part).map(|spec| spec.name.as_str())
    }

    /// The outputs that take part and are written over an input.
    pub fn overwriting(&self) -> impl Iterator<Item = &str> {
        self.output_names().filter(|name| self.schema.inputs.iter().any(|input| input.name == *name))
    }

    /// Hands over an output that was computed elsewhere. Its shape and dtype are judged, not assumed.
    pub fn replace_output(&mut self, index: usize, tensor: &Tensor) {
        if let Some(output) = self.outputs.get_mut(index) {
            *output = Buffer::holding(tensor);
        }
    }
}

/// Something that computes an op.
pub trait Runner: Send {
    fn description(&self) -> &RunnerDescription;

    /// Whether it can run a case at all: a compiled kernel is made for some sizes and dtypes.
    fn covers(&self, schema: &Schema, descriptor: &CaseDescriptor) -> bool {
        let _ = (schema, descriptor);
        true
    }

    /// What went wrong that says nothing about the kernel: its program cannot be started, the caller interrupts it.
    fn broken(&self) -> Option<String> {
        None
    }

    /// Computes the outputs of one call.
    fn run(&mut self, invocation: &mut Invocation<'_>) -> Result<(), RunnerError>;
}

/// Runs one call; a panic of the runner is its crash, not ours. It computes as the caller's thread did, and what it makes
/// of that is not how its result is judged.
pub fn run_guarded(runner: &mut dyn Runner, invocation: &mut Invocation<'_>) -> Result<(), RunnerError> {
    let (ours, callers) = (FloatEnvironment::current(), FloatEnvironment::outside());
    callers.set();
    let ran = catch_unwind(AssertUnwindSafe(|| runner.run(invocation)));
    let left = FloatEnvironment::current();
    ours.set();
    if left != callers {
        invocation.findings.push(float_environment_left(&left.differences()));
    }
    ran.unwrap_or_else(|panic| {
        let text = panic.downcast_ref::<String>().cloned();
        let text = text.or_else(|| panic.downcast_ref::<&str>().map(ToString::to_string));
        Err(RunnerError::Crashed(text.unwrap_or_else(|| "panicked".to_string())))
    })
}
