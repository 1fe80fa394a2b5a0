//! Functions of a project that run in a worker and are given real arrays.

use gpuemu_engine::runner::Buffer;
use gpuemu_process::fault;
use gpuemu_tensor::dtype::UnknownDType;
use gpuemu_tensor::{DType, Tensor};

use super::accepted::Accepted;
use super::pool::Pool;
use super::watch::{Seen, Watch};
use super::worker::{Answer, Key, Output, Request, View, Worker};
use super::{Arguments, ExecutorError, NamedTensors, Program};

/// A function of a project, leased from a pool.
#[derive(Debug)]
pub struct Callable {
    pool: Pool,
    key: Key,
    accepted: Accepted,
    worker: Option<Worker>,
}

impl Callable {
    pub(super) fn new(pool: Pool, key: Key, worker: Worker) -> Self {
        Self { pool, key, accepted: worker.accepted.clone(), worker: Some(worker) }
    }

    /// What it can be given.
    pub fn accepted(&self) -> &Accepted {
        &self.accepted
    }

    fn run(
        &self,
        worker: &mut Worker,
        arguments: &Arguments<'_>,
        watch: Option<&Watch>,
        outputs: &mut [Buffer],
    ) -> Result<(NamedTensors, Vec<Seen>), ExecutorError> {
        let keyword = watch.and_then(|watch| watch.out.as_deref());
        let outs: &mut [Buffer] = if keyword.is_some() { outputs } else { &mut [] };
        let left = self.accepted.without(keyword);
        let names: Vec<&str> = arguments.inputs.iter().map(|(name, _)| name.as_str()).collect();
        let accepted = arguments.parameters.iter().filter(|(name, _)| left.takes(name));
        let request = Request::RunCallable {
            style: left.style_for(&names),
            inputs: arguments.inputs.iter().map(|(name, tensor)| view(name, tensor)).collect(),
            outs: outs.iter().map(memory_view).collect(),
            parameters: accepted.map(|(name, value)| (name.clone(), value.clone())).collect(),
            watch,
        };
        let storages = arguments.inputs.iter().map(|(_, tensor)| tensor.storage().as_bytes());
        let storages: Vec<&[u8]> = storages.chain(outs.iter().map(Buffer::memory)).collect();
        worker.calls += 1;
        match worker.ask(&request, &storages, arguments.timeout)? {
            (Answer::Returned { mut seen, raised: Some(text), .. }, _) => {
                seen.push(Seen::Raised { text });
                Ok((NamedTensors::new(), seen))
            }
            (Answer::Returned { outputs, seen, raised: None }, blobs) if outs.is_empty() => {
                match returned(outputs, &blobs) {
                    Ok(outputs) => Ok((outputs, seen)),
                    Err(message) => Err(worker.bad_output(message)),
                }
            }
            (Answer::Returned { seen, .. }, blobs) => match take_back(outs, &blobs) {
                Ok(()) => Ok((NamedTensors::new(), seen)),
                Err(message) => Err(worker.bad_output(message)),
            },
            (other, _) => Err(worker.unexpected(&other)),
        }
    }

    /// Makes a call in a worker that is kept if it can be asked again.
    fn make_call(
        &mut self,
        arguments: &Arguments<'_>,
        watch: Option<&Watch>,
        outputs: &mut [Buffer],
    ) -> Result<(NamedTensors, Vec<Seen>), ExecutorError> {
        let mut worker = match self.worker.take() {
            Some(worker) => worker,
            None => Worker::start(&self.key)?,
        };
        self.accepted.clone_from(&worker.accepted);
        let result = self.run(&mut worker, arguments, watch, outputs);
        if worker.is_healthy() {
            self.worker = Some(worker);
        }
        result
    }
}

impl Program for Callable {
    fn call(&mut self, arguments: &Arguments<'_>) -> Result<NamedTensors, ExecutorError> {
        self.make_call(arguments, None, &mut []).map(|(outputs, _)| outputs)
    }

    fn call_watched(
        &mut self,
        arguments: &Arguments<'_>,
        watch: &Watch,
        outputs: &mut [Buffer],
    ) -> Result<(NamedTensors, Vec<Seen>), ExecutorError> {
        self.make_call(arguments, Some(watch), outputs)
    }

    fn stderr(&mut self) -> String {
        self.worker.as_mut().map(Worker::stderr_so_far).unwrap_or_default()
    }
}

impl Drop for Callable {
    fn drop(&mut self) {
        if let Some(worker) = self.worker.take() {
            self.pool.give_back(worker);
        }
    }
}

fn view<'a>(name: &'a str, tensor: &'a Tensor) -> View<'a> {
    View {
        name,
        dtype: tensor.dtype().name(),
        element_bytes: tensor.dtype().size(),
        shape: tensor.shape(),
        strides: tensor.strides(),
        offset: tensor.offset(),
    }
}

/// All of the memory of an output, guard bands included. Outputs have no names there, only an order.
fn memory_view(output: &Buffer) -> View<'_> {
    View {
        name: "",
        dtype: output.dtype().name(),
        element_bytes: output.dtype().size(),
        shape: output.shape(),
        strides: output.strides(),
        offset: output.offset(),
    }
}

/// Takes memory back as the callable left it.
fn take_back(outs: &mut [Buffer], blobs: &[Vec<u8>]) -> Result<(), String> {
    let lengths = |blobs: &[Vec<u8>]| blobs.iter().map(Vec::len).collect::<Vec<_>>();
    let given: Vec<usize> = outs.iter().map(|out| out.memory().len()).collect();
    if lengths(blobs) != given {
        return Err(format!("memory of {given:?} bytes was given, {:?} bytes came back", lengths(blobs)));
    }
    for (out, blob) in outs.iter_mut().zip(blobs) {
        out.memory_mut().copy_from_slice(blob);
    }
    Ok(())
}

fn returned(outputs: Vec<Output>, blobs: &[Vec<u8>]) -> Result<NamedTensors, String> {
    fault!("callable.decode", "injected".to_string(), tensors(outputs, blobs))
}

fn tensors(outputs: Vec<Output>, blobs: &[Vec<u8>]) -> Result<NamedTensors, String> {
    if outputs.len() != blobs.len() {
        return Err(format!("{} outputs came with {} blobs", outputs.len(), blobs.len()));
    }
    let mut named = NamedTensors::with_capacity(outputs.len());
    for (output, blob) in outputs.into_iter().zip(blobs) {
        let wrong = |message: String| format!("output '{}': {message}", output.name);
        if named.iter().any(|(name, _)| *name == output.name) {
            return Err(wrong("it occurs twice".to_string()));
        }
        let dtype: DType = output.dtype.parse().map_err(|error: UnknownDType| wrong(error.to_string()))?;
        let tensor = Tensor::contiguous(dtype, output.shape, blob).map_err(|error| wrong(error.to_string()))?;
        named.push((output.name, tensor));
    }
    Ok(named)
}
