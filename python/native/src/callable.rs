//! A callable of the user as the engine runs it: every call gets memory that is watched.

use std::collections::VecDeque;

use gpuemu_engine::runner::{Buffer, Invocation, Placement, Runner, RunnerDescription, RunnerError};
use gpuemu_runners::executor::{Accepted, CallStyle, NamedTensors, Seen};
use gpuemu_runners::kernels::findings::SeenLaunch;
use gpuemu_runners::python_runner::{accept, note, parameters_json};
use gpuemu_tensor::{DType, Tensor};
use pyo3::IntoPyObjectExt;
use pyo3::exceptions::PyValueError;
use pyo3::prelude::*;
use pyo3::types::{PyDict, PyList, PyTuple};
use serde_json::{Map, Value};

use crate::arrays::{Memory, bytes_of, fill, memory};

/// Calls whose input memory is kept, so that the next ones lie elsewhere.
const REMEMBERED_CALLS: usize = 3;

/// What `gpuemu._runs.callable.Bridge` returns for one call: how the callable failed, if it did; outputs (name, bytes, dtype,
/// shape); what was seen of memory, as JSON, or nothing; and launches in the PTX machine, as JSON.
type Returned<'py> = (Option<String>, Vec<(String, Bound<'py, Memory>, String, Vec<usize>)>, String, Vec<String>);

/// How calls are made.
pub struct Calling {
    /// `gpuemu._runs.callable.Bridge`, with the callable in it.
    pub bridge: Py<PyAny>,
    /// What the callable can be given.
    pub accepted: Accepted,
    /// Parameters that it does not take.
    pub withheld: Vec<String>,
    /// Arguments for every call.
    pub extra: Map<String, Value>,
    /// Whether inputs always come in one dict.
    pub dictionary: bool,
}

/// A callable, ready to be run.
pub struct CallableRunner {
    description: RunnerDescription,
    calling: Calling,
    recent: VecDeque<Vec<Py<Memory>>>,
    /// An exception that says nothing about the callable: an interrupt, or arrays that cannot be made.
    broken: Option<PyErr>,
    calls: u64,
}

impl CallableRunner {
    pub fn new(description: RunnerDescription, calling: Calling) -> Self {
        Self { description, calling, recent: VecDeque::new(), broken: None, calls: 0 }
    }

    /// Takes the exception that ended it, if one did.
    pub fn take_broken(&mut self) -> Option<PyErr> {
        self.broken.take()
    }

    /// Calls made so far.
    pub fn calls(&self) -> u64 {
        self.calls
    }

    fn call(&mut self, py: Python<'_>, invocation: &mut Invocation<'_>) -> PyResult<Result<(), RunnerError>> {
        let inputs = self.place_inputs(py, invocation)?;
        let outputs = self.place_outputs(py, invocation)?;
        let specs = invocation.schema.inputs.iter().zip(&invocation.inputs);
        let present: Vec<(&str, &Buffer)> =
            specs.filter_map(|(spec, buffer)| Some((spec.name.as_str(), buffer.as_ref()?))).collect();
        let names: Vec<&str> = present.iter().map(|(name, _)| *name).collect();
        let style = match self.calling.dictionary {
            true => CallStyle::Dictionary,
            false => self.calling.accepted.style_for(&names),
        };
        let style = style.name();
        let views = PyList::empty(py);
        for ((name, buffer), memory) in present.iter().zip(&inputs) {
            views.append(view(py, name, buffer, memory)?)?;
        }
        let out_views = PyList::empty(py);
        for ((name, buffer), memory) in invocation.output_names().zip(&invocation.outputs).zip(&outputs) {
            out_views.append(view(py, name, buffer, memory)?)?;
        }
        let expected: Vec<usize> = invocation.outputs.iter().map(|buffer| buffer.data().len()).collect();
        let keywords = self.keywords(py, invocation)?;
        self.calls += 1;
        let returned =
            self.calling.bridge.call1(py, (style, views, keywords, out_views, invocation.poison, expected))?;
        for (buffer, memory) in invocation.inputs.iter_mut().flatten().zip(&inputs) {
            buffer.memory_mut().copy_from_slice(&bytes_of(memory)?);
        }
        for (buffer, memory) in invocation.outputs.iter_mut().zip(&outputs) {
            buffer.memory_mut().copy_from_slice(&bytes_of(memory)?);
        }
        let (failure, values, seen, launches) = returned.extract::<Returned<'_>>(py)?;
        for launch in launches {
            let launch: SeenLaunch =
                serde_json::from_str(&launch).map_err(|error| PyValueError::new_err(format!("a launch: {error}")))?;
            launch.tell(invocation);
        }
        if let Some(text) = failure {
            return Ok(Err(RunnerError::Raised(text)));
        }
        invocation.surplus = values.len() > invocation.outputs.len();
        let seen: Vec<Seen> = match seen.as_str() {
            "" => Vec::new(),
            text => serde_json::from_str(text)
                .map_err(|error| PyValueError::new_err(format!("what was seen of memory: {error}")))?,
        };
        if self.description.writes_into_buffers {
            note(invocation, seen);
            return Ok(Ok(()));
        }
        Ok(take(invocation, &values, seen))
    }

    /// Memory for the inputs: new, or that of the last call with inputs of these lengths.
    fn place_inputs<'py>(&mut self, py: Python<'py>, invocation: &Invocation<'_>) -> PyResult<Vec<Bound<'py, Memory>>> {
        let buffers: Vec<&Buffer> = invocation.inputs.iter().flatten().collect();
        let last = self.recent.back().filter(|_| invocation.placement == Placement::Refilled);
        let last: Option<Vec<Bound<'py, Memory>>> =
            last.map(|last| last.iter().map(|one| one.bind(py).clone()).collect());
        let lengths = |last: &Vec<Bound<'py, Memory>>| {
            use numpy::PyUntypedArrayMethods;
            last.len() == buffers.len()
                && last.iter().zip(&buffers).all(|(one, other)| one.len() == other.memory().len())
        };
        let placed = match last.filter(lengths) {
            Some(last) => {
                for (memory, buffer) in last.iter().zip(&buffers) {
                    fill(memory, buffer.memory())?;
                }
                last
            }
            None => buffers.iter().map(|buffer| memory(py, buffer.memory())).collect::<PyResult<_>>()?,
        };
        self.recent.push_back(placed.iter().map(|memory| memory.clone().unbind()).collect());
        if self.recent.len() > REMEMBERED_CALLS {
            self.recent.pop_front();
        }
        Ok(placed)
    }

    fn place_outputs<'py>(&self, py: Python<'py>, invocation: &Invocation<'_>) -> PyResult<Vec<Bound<'py, Memory>>> {
        let taken = if self.description.writes_into_buffers { invocation.outputs.as_slice() } else { &[] };
        taken.iter().map(|buffer| memory(py, buffer.memory())).collect()
    }

    fn keywords<'py>(&self, py: Python<'py>, invocation: &Invocation<'_>) -> PyResult<Bound<'py, PyDict>> {
        let keywords = PyDict::new(py);
        let parameters = parameters_json(invocation.parameters);
        let Calling { accepted, withheld, extra, .. } = &self.calling;
        let wanted = |name: &String| accepted.takes(name) && !withheld.contains(name);
        for (name, value) in parameters.iter().chain(extra).filter(|(name, _)| wanted(name)) {
            keywords.set_item(name, to_python(py, value)?)?;
        }
        Ok(keywords)
    }
}

impl Runner for CallableRunner {
    fn description(&self) -> &RunnerDescription {
        &self.description
    }

    fn broken(&self) -> Option<String> {
        self.broken.as_ref().map(ToString::to_string)
    }

    fn run(&mut self, invocation: &mut Invocation<'_>) -> Result<(), RunnerError> {
        if self.broken.is_some() {
            return Err(RunnerError::Raised("an earlier call was interrupted".to_string()));
        }
        Python::attach(|py| match self.call(py, invocation) {
            Ok(result) => result,
            Err(error) => {
                let text = error.to_string();
                self.broken = Some(error);
                Err(RunnerError::Raised(text))
            }
        })
    }
}

/// A tensor as the bridge gets it: name, memory, dtype, shape, strides and offset in elements.
type View<'py> = (Py<PyAny>, Bound<'py, Memory>, &'static str, Bound<'py, PyTuple>, Bound<'py, PyTuple>, usize);

fn view<'py>(py: Python<'py>, name: &str, buffer: &Buffer, memory: &Bound<'py, Memory>) -> PyResult<View<'py>> {
    let shape = PyTuple::new(py, buffer.shape())?;
    let strides = PyTuple::new(py, buffer.strides())?;
    Ok((name.into_py_any(py)?, memory.clone(), buffer.dtype().name(), shape, strides, buffer.offset()))
}

/// The tensors that came back, in their places, and what was seen of their memory.
fn take(
    invocation: &mut Invocation<'_>,
    values: &[(String, Bound<'_, Memory>, String, Vec<usize>)],
    seen: Vec<Seen>,
) -> Result<(), RunnerError> {
    let mut outputs: NamedTensors = Vec::with_capacity(values.len());
    for (name, memory, dtype, shape) in values {
        outputs.push((name.clone(), tensor(name, memory, dtype, shape)?));
    }
    accept(invocation, &outputs, seen).map_err(RunnerError::Raised)
}

fn tensor(name: &str, memory: &Bound<'_, Memory>, dtype: &str, shape: &[usize]) -> Result<Tensor, RunnerError> {
    let wrong = |words: String| RunnerError::Raised(format!("output '{name}': {words}"));
    let dtype: DType = dtype.parse().map_err(|error| wrong(format!("{error}")))?;
    let bytes = bytes_of(memory).map_err(|error| wrong(error.to_string()))?;
    Tensor::contiguous(dtype, shape.to_vec(), &bytes).map_err(|error| wrong(error.to_string()))
}

/// A JSON value as Python has it.
fn to_python(py: Python<'_>, value: &Value) -> PyResult<Py<PyAny>> {
    match value {
        Value::Null => Ok(py.None()),
        Value::Bool(value) => value.into_py_any(py),
        Value::Number(number) => match number.as_i64() {
            Some(whole) => whole.into_py_any(py),
            None => number.as_f64().unwrap_or(f64::NAN).into_py_any(py),
        },
        Value::String(text) => text.into_py_any(py),
        Value::Array(values) => {
            let values: Vec<Py<PyAny>> = values.iter().map(|value| to_python(py, value)).collect::<PyResult<_>>()?;
            values.into_py_any(py)
        }
        Value::Object(entries) => {
            let dictionary = PyDict::new(py);
            for (name, value) in entries {
                dictionary.set_item(name, to_python(py, value)?)?;
            }
            dictionary.into_py_any(py)
        }
    }
}
