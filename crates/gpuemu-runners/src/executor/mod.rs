//! Running Python for a project: reference scripts, op scripts and callables.
//!
//! A script reads one JSON document from stdin and prints one to stdout. It runs cold, in a process of its own per
//! call, or warm, in a worker that keeps what it imported. A warm script has to prove itself: the first answers of
//! every worker are compared with cold runs to the bit, and a script that differs stays cold. A callable is a
//! function that always runs in a worker and is given real arrays.

mod accepted;
mod callable;
mod cold;
mod document;
mod error;
mod frame;
mod interpreter;
mod pool;
mod process;
mod tail;
mod warm;
mod watch;
mod worker;

use std::time::Duration;

use gpuemu_engine::runner::Buffer;
use gpuemu_tensor::Tensor;
use serde_json::{Map, Value};

pub use accepted::{Accepted, CallStyle};
pub use callable::Callable;
pub use cold::ColdScript;
pub use error::{ExecutorError, with_stderr};
pub use gpuemu_process::{adopt_orphans, end_all, is_ending};
pub use interpreter::Interpreter;
pub use pool::Pool;
pub use warm::WarmScript;
pub use watch::{Seen, Watch};

pub type NamedTensors = Vec<(String, Tensor)>;

/// What one call is given.
#[derive(Debug, Clone, Copy)]
pub struct Arguments<'a> {
    /// The inputs, in the order of the op's signature.
    pub inputs: &'a [(String, Tensor)],
    pub parameters: &'a Map<String, Value>,
    /// How long the call may take. Where a warm script is still compared with a cold run, each of the two may.
    pub timeout: Duration,
}

/// Something in Python that turns inputs into outputs.
pub trait Program: Send {
    fn call(&mut self, arguments: &Arguments<'_>) -> Result<NamedTensors, ExecutorError>;

    /// The end of what the last call wrote to stderr, where what it returned turns out to be wrong.
    fn stderr(&mut self) -> String;

    /// Calls it, and says what it did to memory. Where the watch has a keyword for outputs, it writes into these, and
    /// none come back. A process that is given documents has no memory to watch.
    fn call_watched(
        &mut self,
        arguments: &Arguments<'_>,
        _watch: &Watch,
        _outputs: &mut [Buffer],
    ) -> Result<(NamedTensors, Vec<Seen>), ExecutorError> {
        self.call(arguments).map(|outputs| (outputs, Vec::new()))
    }
}
