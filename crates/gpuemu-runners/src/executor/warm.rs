//! Scripts that are kept warm for as long as that changes nothing.

use std::path::Path;

use gpuemu_process::fault;
use gpuemu_tensor::Tensor;
use gpuemu_tensor::rng::blake2b;

use super::pool::Pool;
use super::worker::{Answer, Key, Request, Work, Worker};
use super::{Arguments, ColdScript, ExecutorError, Interpreter, NamedTensors, Program, document};

/// Calls of every worker that are also run cold.
const PROOFS: u64 = 2;

/// Bytes of the hash that stands for a script's content.
const CONTENT_BYTES: usize = 16;

/// What a script consisted of.
pub(super) type Content = Vec<u8>;

/// A script kept warm, leased from a pool. The first calls of every worker are also run cold, and as soon as the
/// two differ the script is run cold only. Where both fail, the error is that of the cold run.
#[derive(Debug)]
pub struct WarmScript {
    pool: Pool,
    key: Key,
    cold: ColdScript,
    content: Content,
    worker: Option<Worker>,
}

impl WarmScript {
    pub(super) fn new(pool: Pool, interpreter: &Interpreter, script: &Path) -> Result<Self, ExecutorError> {
        let cold = ColdScript::new(interpreter.clone(), script.to_path_buf())?;
        let work = Work::Script(cold.script().to_path_buf());
        let key = Key { interpreter: interpreter.clone(), work };
        let content = content(cold.script());
        pool.reconsider(cold.script(), &content);
        let mut leased = Self { pool, key, cold, content, worker: None };
        if leased.may_be_warm() {
            leased.worker = match leased.pool.lease(&leased.key) {
                Ok(worker) => Some(worker),
                Err(error @ ExecutorError::Spawn { .. }) => return Err(error),
                // A script that cannot be loaded fails by its own words when it is called.
                Err(_) => None,
            };
        }
        Ok(leased)
    }

    fn may_be_warm(&self) -> bool {
        self.cold.is_python() && !self.pool.distrusts(self.cold.script(), &self.content)
    }

    /// A warm run, and whether its worker has proven itself before.
    fn run_warm(&mut self, arguments: &Arguments<'_>) -> (bool, Result<NamedTensors, ExecutorError>) {
        let mut worker = match self.worker.take().map_or_else(|| Worker::start(&self.key), Ok) {
            Ok(worker) => worker,
            Err(error) => return (false, Err(error)),
        };
        let proven = worker.calls >= PROOFS;
        worker.calls += 1;
        let result = ask(&mut worker, arguments);
        if worker.is_healthy() {
            self.worker = Some(worker);
        }
        (proven, result)
    }

    /// Acts on a difference between a warm and a cold run.
    fn differs(&mut self, difference: String) {
        let now = content(self.cold.script());
        let edited = now != self.content || self.worker.as_mut().is_some_and(Worker::is_stale);
        self.worker = None;
        if edited {
            // The two ran different code: that says nothing about either.
            self.content = now;
        } else {
            self.pool.distrust(self.cold.script(), now, difference);
        }
    }
}

impl Program for WarmScript {
    fn call(&mut self, arguments: &Arguments<'_>) -> Result<NamedTensors, ExecutorError> {
        if !self.may_be_warm() {
            self.worker = None;
            return self.cold.call(arguments);
        }
        let (proven, warm) = self.run_warm(arguments);
        if proven {
            return warm;
        }
        let cold = self.cold.call(arguments);
        fault!("warm.compare");
        if let Some(difference) = difference(&warm, &cold) {
            self.differs(difference);
        }
        cold
    }

    fn stderr(&mut self) -> String {
        match &mut self.worker {
            // The last answer is the cold one's until the worker has proven itself.
            Some(worker) if worker.calls > PROOFS => worker.stderr_so_far(),
            _ => self.cold.stderr(),
        }
    }
}

impl Drop for WarmScript {
    fn drop(&mut self) {
        if let Some(worker) = self.worker.take() {
            self.pool.give_back(worker);
        }
    }
}

fn ask(worker: &mut Worker, arguments: &Arguments<'_>) -> Result<NamedTensors, ExecutorError> {
    let what = worker.what();
    let document = document::request(arguments)
        .map_err(|error| ExecutorError::Protocol { what: what.clone(), message: error.to_string() })?;
    match worker.ask(&Request::RunScript, &[&document], arguments.timeout)? {
        (Answer::Printed, blobs) => {
            let printed = blobs.first().map_or(&[][..], Vec::as_slice);
            document::outputs(&what, printed, || worker.stderr_so_far())
        }
        (other, _) => Err(worker.unexpected(&other)),
    }
}

/// What a script consists of; nothing, where it cannot be read.
fn content(script: &Path) -> Content {
    let bytes = std::fs::read(script).unwrap_or_default();
    blake2b(CONTENT_BYTES).hash(&bytes).as_bytes().to_vec()
}

/// What differs between a warm and a cold run. Two failures count as the same.
fn difference(
    warm: &Result<NamedTensors, ExecutorError>,
    cold: &Result<NamedTensors, ExecutorError>,
) -> Option<String> {
    match (warm, cold) {
        (Err(_), Err(_)) => None,
        (Err(error), Ok(_)) => Some(format!("only the warm run fails: {error}")),
        (Ok(_), Err(error)) => Some(format!("only the cold run fails: {error}")),
        (Ok(warm), Ok(cold)) => {
            let names = |outputs: &NamedTensors| {
                outputs.iter().map(|(name, _)| format!("'{name}'")).collect::<Vec<_>>().join(", ")
            };
            if names(warm) != names(cold) {
                return Some(format!("the warm run gives outputs {}, the cold one {}", names(warm), names(cold)));
            }
            let pairs = warm.iter().zip(cold);
            pairs.filter_map(|((name, warm), (_, cold))| tensor_difference(name, warm, cold)).next()
        }
    }
}

fn tensor_difference(name: &str, warm: &Tensor, cold: &Tensor) -> Option<String> {
    if (warm.dtype(), warm.shape()) != (cold.dtype(), cold.shape()) {
        let (one, other) = (warm.dtype(), cold.dtype());
        let (shape, other_shape) = (warm.shape(), cold.shape());
        return Some(format!("output '{name}' is {one} {shape:?} warm and {other} {other_shape:?} cold"));
    }
    // To the bit: a NaN equals itself, and zeros of two signs differ.
    let (one, other) = (warm.to_contiguous_bytes(), cold.to_contiguous_bytes());
    let at = one.iter().zip(&other).position(|(one, other)| one != other)? / warm.dtype().size();
    let value = |tensor: &Tensor| tensor.to_f64().get(at).copied().unwrap_or(f64::NAN);
    Some(format!("element {at} of output '{name}' is {:?} warm and {:?} cold", value(warm), value(cold)))
}

#[cfg(test)]
mod tests {
    use gpuemu_tensor::DType;

    use super::*;

    #[test]
    fn a_difference_is_found_to_the_bit() {
        let outputs = |name: &str, dtype, values: &[f64]| {
            let tensor = Tensor::from_f64(dtype, vec![values.len()], values).unwrap();
            Ok(vec![(name.to_string(), tensor)])
        };
        let failed = || Err(ExecutorError::NoOutput { what: "a.py".to_string(), stderr: String::new() });
        let base = outputs("y", DType::F32, &[f64::NAN, 0.0]);
        assert_eq!(difference(&base, &outputs("y", DType::F32, &[f64::NAN, 0.0])), None);
        assert_eq!(difference(&failed(), &failed()), None);
        let text = |other: Result<NamedTensors, ExecutorError>| difference(&base, &other).unwrap();
        assert!(
            text(outputs("y", DType::F32, &[f64::NAN, -0.0])).contains("element 1 of output 'y' is 0.0 warm and -0.0")
        );
        assert!(text(outputs("y", DType::F64, &[f64::NAN, 0.0])).contains("float32 [2] warm and float64 [2] cold"));
        assert!(text(outputs("z", DType::F32, &[f64::NAN, 0.0])).contains("'y', the cold one 'z'"));
        assert!(text(failed()).contains("only the cold run fails"));
        assert!(difference(&failed(), &base).unwrap().contains("only the warm run fails"));
    }
}
