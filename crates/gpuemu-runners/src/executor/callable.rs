//! Functions of a project that run in a worker and are given real arrays.

use gpuemu_process::fault;
use gpuemu_tensor::dtype::UnknownDType;
use gpuemu_tensor::{DType, Tensor};
use serde::{Deserialize, Serialize};

use super::pool::Pool;
use super::watch::{Seen, Watch};
use super::worker::{Answer, Key, Output, Request, View, Worker};
use super::{Arguments, ExecutorError, NamedTensors, Program};

/// What a callable can be given, as its signature says.
#[derive(Debug, Clone, PartialEq, Eq, Default, Deserialize)]
pub struct Accepted {
    /// Parameters that can be given by keyword.
    pub names: Vec<String>,
    /// Whether any keyword can be given (`**kwargs`).
    pub any: bool,
    /// Positional parameters without a default.
    pub required: Vec<String>,
    /// Whether any number of positional arguments can be given (`*args`, or a signature that is not known).
    pub any_positional: bool,
}

/// How a callable is given its inputs. Parameters are always given by keyword.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum CallStyle {
    /// Each by its name.
    Keywords,
    /// One after the other.
    Positional,
    /// All in one dict.
    Dictionary,
}

impl CallStyle {
    /// The name by which it is known in Python.
    pub const fn name(self) -> &'static str {
        match self {
            CallStyle::Keywords => "keywords",
            CallStyle::Positional => "positional",
            CallStyle::Dictionary => "dictionary",
        }
    }
}

impl Accepted {
    /// Whether a parameter can be given by this name.
    pub fn takes(&self, name: &str) -> bool {
        self.any || self.names.iter().any(|known| known == name)
    }

    /// How inputs of these names are given. The names are known only when a call is made, so the style is chosen then.
    ///
    /// By keywords if every name can be given so; a function with `**kwargs` whose required parameters have other
    /// names than all inputs cannot be called so, and one with `*args, **kwargs` alone says nothing about names. In one dict if there is one required positional parameter and no
    /// more can be given, and there are several inputs and no other parameter, or it is called `inputs`. In order
    /// otherwise.
    pub fn style_for(&self, inputs: &[&str]) -> CallStyle {
        let named = |name: &String| inputs.contains(&name.as_str());
        let unnamed = self.any_positional && self.names.is_empty();
        let unknown = self.any && (unnamed || !self.required.is_empty() && !self.required.iter().any(named));
        if !unknown && inputs.iter().all(|name| self.takes(name)) {
            return CallStyle::Keywords;
        }
        match self.required.as_slice() {
            [only] if !self.any_positional && (only == "inputs" || inputs.len() > 1 && self.names.len() == 1) => {
                CallStyle::Dictionary
            }
            _ => CallStyle::Positional,
        }
    }
}

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
    ) -> Result<(NamedTensors, Vec<Seen>), ExecutorError> {
        let names: Vec<&str> = arguments.inputs.iter().map(|(name, _)| name.as_str()).collect();
        let accepted = arguments.parameters.iter().filter(|(name, _)| self.accepted.takes(name));
        let request = Request::RunCallable {
            style: self.accepted.style_for(&names),
            inputs: arguments.inputs.iter().map(|(name, tensor)| view(name, tensor)).collect(),
            parameters: accepted.map(|(name, value)| (name.clone(), value.clone())).collect(),
            watch,
        };
        let storages: Vec<&[u8]> = arguments.inputs.iter().map(|(_, tensor)| tensor.storage().as_bytes()).collect();
        worker.calls += 1;
        match worker.ask(&request, &storages, arguments.timeout)? {
            (Answer::Returned { outputs, mut seen, raised }, blobs) => match returned(outputs, &blobs) {
                Ok(outputs) if raised.is_some() => {
                    seen.extend(raised.map(|text| Seen::Raised { text }));
                    Ok((outputs, seen))
                }
                Ok(outputs) => Ok((outputs, seen)),
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
    ) -> Result<(NamedTensors, Vec<Seen>), ExecutorError> {
        let mut worker = match self.worker.take() {
            Some(worker) => worker,
            None => Worker::start(&self.key)?,
        };
        self.accepted.clone_from(&worker.accepted);
        let result = self.run(&mut worker, arguments, watch);
        if worker.is_healthy() {
            self.worker = Some(worker);
        }
        result
    }
}

impl Program for Callable {
    fn call(&mut self, arguments: &Arguments<'_>) -> Result<NamedTensors, ExecutorError> {
        self.make_call(arguments, None).map(|(outputs, _)| outputs)
    }

    fn call_watched(
        &mut self,
        arguments: &Arguments<'_>,
        watch: &Watch,
    ) -> Result<(NamedTensors, Vec<Seen>), ExecutorError> {
        self.make_call(arguments, Some(watch))
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

#[cfg(test)]
mod tests {
    use super::*;

    fn accepted(names: &[&str], required: usize, any: bool, any_positional: bool) -> Accepted {
        let names: Vec<String> = names.iter().map(|name| name.to_string()).collect();
        Accepted { required: names[..required].to_vec(), names, any, any_positional }
    }

    #[test]
    fn inputs_go_where_the_signature_has_room_for_them() {
        let style = |accepted: Accepted, inputs: &[&str]| accepted.style_for(inputs);
        // def f(a, b, axis=-1)
        assert_eq!(style(accepted(&["a", "b", "axis"], 2, false, false), &["a", "b"]), CallStyle::Keywords);
        // def f(x, y)
        assert_eq!(style(accepted(&["x", "y"], 2, false, false), &["a", "b"]), CallStyle::Positional);
        // def f(**kwargs), def f(a, **kwargs), def f(x, **kwargs)
        assert_eq!(style(accepted(&[], 0, true, false), &["a"]), CallStyle::Keywords);
        assert_eq!(style(accepted(&["a"], 1, true, false), &["a", "b"]), CallStyle::Keywords);
        assert_eq!(style(accepted(&["x"], 1, true, false), &["a"]), CallStyle::Positional);
        // def f(*args, **kwargs)
        assert_eq!(style(accepted(&[], 0, true, true), &["a"]), CallStyle::Positional);
        // def f(tensors), def f(inputs), def f(x), def f(x, *rest)
        assert_eq!(style(accepted(&["tensors"], 1, false, false), &["a", "b"]), CallStyle::Dictionary);
        assert_eq!(style(accepted(&["inputs"], 1, false, false), &["a"]), CallStyle::Dictionary);
        assert_eq!(style(accepted(&["x"], 1, false, false), &["a"]), CallStyle::Positional);
        assert_eq!(style(accepted(&["x"], 1, false, true), &["a", "b"]), CallStyle::Positional);
    }
}
