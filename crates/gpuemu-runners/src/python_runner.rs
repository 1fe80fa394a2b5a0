//! A kernel in Python, as the engine runs it: a script by the stdin/stdout protocol, or a callable.

use std::time::Duration;

use gpuemu_engine::oracle::memory::{float_environment_left, input_overwritten, out_of_bounds};
use gpuemu_engine::runner::{Invocation, Placement, Runner, RunnerDescription, RunnerError, RunnerKind};
use gpuemu_engine::schema::{Parameters, Scalar};
use gpuemu_engine::verdict::{BugClass, Check, Finding};
use gpuemu_process::fault;
use gpuemu_tensor::Tensor;
use serde_json::{Map, Value};

use crate::executor::{Arguments, ExecutorError, NamedTensors, Program, Seen, Watch, is_ending, with_stderr};
use crate::python_program::{Entry, match_outputs};

/// A kernel in Python.
pub struct PythonRunner {
    description: RunnerDescription,
    program: Box<dyn Program>,
    extra: Map<String, Value>,
    withheld: Vec<String>,
    /// The keyword by which it is given memory for its outputs.
    out: Option<String>,
    timeout: Duration,
    broken: Option<ExecutorError>,
}

impl PythonRunner {
    /// A runner over the code of an entry. A callable sees the strides of its inputs, and its memory is watched. `extra`
    /// goes to every call beside the op's parameters; parameters in `withheld` are never passed, because the callable
    /// does not take them. By `out` it is given memory for its outputs.
    pub fn new(
        name: String,
        program: Box<dyn Program>,
        entry: &Entry,
        extra: Map<String, Value>,
        withheld: Vec<String>,
        out: Option<String>,
        timeout: Duration,
    ) -> Self {
        let callable = matches!(entry, Entry::Callable(..));
        let description = RunnerDescription {
            name,
            kind: RunnerKind::Script,
            layouts: callable,
            writes_into_buffers: out.is_some(),
            inputs_watched: callable,
            refills: callable,
            remembers: !matches!(entry, Entry::Cold(_)),
        };
        Self { description, program, extra, withheld, out, timeout, broken: None }
    }

    /// The arguments that are not tensors, as the program gets them.
    pub fn arguments(&self, parameters: &Parameters) -> Map<String, Value> {
        let mut arguments = parameters_json(parameters);
        arguments.retain(|name, _| !self.withheld.contains(name));
        arguments.extend(self.extra.clone());
        arguments
    }

    /// Why the program could not even be started, if that happened: no verdict on the kernel.
    pub fn error(&self) -> Option<&ExecutorError> {
        self.broken.as_ref()
    }
}

impl Runner for PythonRunner {
    fn description(&self) -> &RunnerDescription {
        &self.description
    }

    fn broken(&self) -> Option<String> {
        self.broken.as_ref().map(ToString::to_string)
    }

    fn run(&mut self, invocation: &mut Invocation<'_>) -> Result<(), RunnerError> {
        let mut inputs: NamedTensors = Vec::new();
        for (spec, buffer) in invocation.schema.inputs.iter().zip(&invocation.inputs) {
            if let Some(buffer) = buffer {
                let tensor = buffer.to_tensor().map_err(|error| RunnerError::Raised(error.to_string()))?;
                inputs.push((spec.name.clone(), tensor));
            }
        }
        fault!("runner.call");
        let parameters = self.arguments(invocation.parameters);
        let arguments = Arguments { inputs: &inputs, parameters: &parameters, timeout: self.timeout };
        let watch = watch_of(invocation, self.out.clone());
        let called = self.program.call_watched(&arguments, &watch, &mut invocation.outputs);
        let (outputs, seen) = called.map_err(|error| {
            if could_not_start(&error) || is_ending() {
                self.broken = Some(error.clone());
            }
            runner_error(error)
        })?;
        for seen in &seen {
            match seen {
                Seen::Launch(launch) => launch.tell(invocation),
                Seen::Raised { text } => return Err(RunnerError::Raised(text.clone())),
                _ => {}
            }
        }
        if self.out.is_some() {
            note(invocation, seen);
            return Ok(());
        }
        fault!("runner.match_outputs", RunnerError::Raised("injected".to_string()), Ok(()))?;
        accept(invocation, &outputs, seen)
            .map_err(|problem| RunnerError::Raised(with_stderr(problem, &self.program.stderr())))
    }
}

/// Puts the tensors that came back from a call into their places, with what was seen of memory.
pub fn accept(invocation: &mut Invocation<'_>, outputs: &NamedTensors, seen: Vec<Seen>) -> Result<(), String> {
    let names: Vec<String> = invocation.output_names().map(ToString::to_string).collect();
    invocation.surplus = outputs.len() > names.len();
    let matched = match_outputs(&names, invocation.schema.outputs.len(), outputs)?;
    let findings: Vec<Finding> =
        seen.into_iter().filter_map(|seen| finding(seen, invocation, &names, outputs, &matched)).collect();
    invocation.findings.extend(findings);
    for (place, tensor) in matched.into_iter().enumerate() {
        invocation.replace_output(place, tensor);
    }
    Ok(())
}

/// Makes findings of what was seen of a call that wrote its outputs into the engine's buffers.
pub fn note(invocation: &mut Invocation<'_>, seen: Vec<Seen>) {
    let names: Vec<String> = invocation.output_names().map(ToString::to_string).collect();
    let none = NamedTensors::new();
    let findings: Vec<Finding> =
        seen.into_iter().filter_map(|seen| finding(seen, invocation, &names, &none, &[])).collect();
    invocation.findings.extend(findings);
}

/// How the memory of a call is watched.
fn watch_of(invocation: &Invocation<'_>, out: Option<String>) -> Watch {
    Watch {
        poison: invocation.poison,
        outputs: invocation.output_names().map(ToString::to_string).collect(),
        in_place: invocation.overwriting().map(ToString::to_string).collect(),
        output_bytes: invocation.outputs.iter().map(|output| output.data().len()).collect(),
        out,
        refill: invocation.placement == Placement::Refilled,
    }
}

/// What was seen, as the engine reports it; nothing where the op is declared to work in place. `matched` are the
/// tensors among `outputs` that the op calls `names`.
fn finding(
    seen: Seen,
    invocation: &Invocation<'_>,
    names: &[String],
    outputs: &NamedTensors,
    matched: &[&Tensor],
) -> Option<Finding> {
    let name_in_op = |returned: String| {
        let tensor = outputs.iter().find(|(name, _)| *name == returned).map(|(_, tensor)| tensor);
        let place = matched.iter().position(|other| tensor.is_some_and(|tensor| std::ptr::eq(tensor, *other)));
        place.and_then(|place| names.get(place).cloned()).unwrap_or(returned)
    };
    let about_output = |check, tensor, bug_class, explanation| {
        Some(Finding {
            check,
            tensor,
            mismatched: 0,
            elements: 0,
            worst: None,
            bug_class,
            explanation,
            places: Vec::new(),
        })
    };
    match seen {
        Seen::InputModified { input, elements, first } => {
            let total = invocation.input(&input).map_or(0, |buffer| buffer.shape().iter().product());
            (!names.contains(&input)).then(|| input_overwritten(&input, total, elements, first))
        }
        Seen::OutOfBounds { input, damage } => {
            let buffer = invocation.input(&input)?;
            let elements = buffer.shape().iter().product();
            Some(out_of_bounds(&input, elements, buffer.dtype().size(), damage))
        }
        Seen::Aliasing { output, input } => {
            let name = name_in_op(output);
            if name == input {
                return None;
            }
            let words = format!(
                "'{name}' lies in the memory of the input '{input}': writing to one changes the other, and an input \
                 was returned in place of a result"
            );
            about_output(Check::Aliasing, name, BugClass::InputReturned, words)
        }
        Seen::OutputOverwritten { output } => {
            let name = name_in_op(output);
            let words = format!(
                "'{name}' of an earlier call changed when the function was called again: every call returns the same \
                 memory, so a result is lost unless it is copied in time"
            );
            about_output(Check::OutputOverwritten, name, BugClass::ReusedOutput, words)
        }
        Seen::NotLaunched { error } => {
            let ran = error.map_or("was not called".to_string(), |error| format!("raised {error}"));
            let words = format!(
                "the kernel that the op is said to launch {ran}, and yet there is a result: something else computed it"
            );
            about_output(Check::NotLaunched, names.first().cloned().unwrap_or_default(), BugClass::Fallback, words)
        }
        Seen::FloatEnvironment { differences } => Some(float_environment_left(&differences)),
        // Told before the outputs were looked at.
        Seen::Launch(_) | Seen::Raised { .. } => None,
    }
}

/// Whether an error says nothing about the kernel.
fn could_not_start(error: &ExecutorError) -> bool {
    matches!(
        error,
        ExecutorError::NotFound { .. }
            | ExecutorError::Spawn { .. }
            | ExecutorError::Import { .. }
            | ExecutorError::Protocol { .. }
    )
}

fn runner_error(error: ExecutorError) -> RunnerError {
    match error {
        ExecutorError::Failed { .. } => RunnerError::Crashed(error.to_string()),
        _ => RunnerError::Raised(error.to_string()),
    }
}

pub fn parameters_json(parameters: &Parameters) -> Map<String, Value> {
    let value = |scalar: &Scalar| match scalar {
        Scalar::Bool(value) => Value::from(*value),
        Scalar::Int(value) => Value::from(*value),
        Scalar::Float(value) => Value::from(*value),
    };
    parameters.0.iter().map(|(name, scalar)| (name.clone(), value(scalar))).collect()
}
