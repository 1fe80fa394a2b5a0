//! The runner of a compiled kernel: a case becomes a launch, the machine runs it, and what it wrote goes back.

use std::sync::Arc;

use gpuemu_config::launch::LaunchArgument;
use gpuemu_engine::case::CaseDescriptor;
use gpuemu_engine::runner::{Buffer, Invocation, Runner, RunnerDescription, RunnerError, RunnerKind};
use gpuemu_engine::schema::Schema;
use gpuemu_machine::parameter_bytes::parameter_bytes;
use gpuemu_machine::{Argument, Buffer as MachineBuffer, Launch, LaunchError, LaunchOptions, Program, Role};

use crate::kernels::facts::CaseFacts;
use crate::kernels::findings::{finding, is_for_the_engine};
use crate::kernels::kernel::CompiledKernel;

/// A compiled kernel, as the engine runs it.
pub struct KernelRunner {
    description: RunnerDescription,
    kernel: Arc<CompiledKernel>,
    options: LaunchOptions,
}

/// A case that can be launched.
struct Prepared {
    launch: Launch,
    tensors: Vec<Tensor>,
    program: Arc<Program>,
    /// The PTX file that it is launched from, where the kernel has several.
    ptx: Option<String>,
}

/// Which tensor of the call a buffer of the launch is.
enum Tensor {
    Input,
    Output(usize),
}

impl KernelRunner {
    /// A runner of a kernel.
    pub fn new(kernel: Arc<CompiledKernel>, options: LaunchOptions) -> Self {
        let description = RunnerDescription {
            name: format!("{} in the PTX machine", kernel.name()),
            kind: RunnerKind::PtxMachine,
            layouts: kernel.reads_strides(),
            writes_into_buffers: true,
            // A store to an input is a finding of the machine, and never happens.
            inputs_watched: true,
            refills: false,
            remembers: false,
        };
        Self { description, kernel, options }
    }

    fn prepare(&self, invocation: &Invocation<'_>) -> Result<Prepared, RunnerError> {
        let raised = |error: String| RunnerError::Raised(error);
        let facts = CaseFacts::of_invocation(invocation);
        let table = self.kernel.launch_table();
        let covering = table.covering(&facts).map_err(|error| raised(error.to_string()))?;
        let covering = covering.ok_or_else(|| {
            raised(format!(
                "no variant of kernel '{}' covers sizes {} in {}",
                self.kernel.name(),
                invocation.sizes,
                invocation.dtype
            ))
        })?;
        let launch = covering.launch(&facts).map_err(|error| raised(error.to_string()))?;
        let program = self.kernel.program(launch.ptx, launch.entry).map_err(raised)?;
        let ptx = launch.ptx.map(ToString::to_string);
        let parameters = program.parameters();
        if parameters.len() != launch.args.len() {
            return Err(raised(format!(
                "kernel '{}' has {} parameters, its launch table gives {} arguments",
                self.kernel.name(),
                parameters.len(),
                launch.args.len()
            )));
        }
        let mut arguments: Vec<Argument> = Vec::new();
        let mut tensors = Vec::new();
        let mut known: Vec<(String, usize)> = Vec::new();
        for (argument, parameter) in launch.args.iter().zip(parameters) {
            let bytes = match argument {
                LaunchArgument::Tensor(name) => {
                    if let Some((_, place)) = known.iter().find(|(other, _)| other == name) {
                        // The same tensor twice is the same memory twice.
                        let offset = match arguments.get(*place) {
                            Some(Argument::Buffer(buffer)) => buffer.pointer,
                            _ => 0,
                        };
                        arguments.push(Argument::Within { argument: *place, offset });
                        continue;
                    }
                    known.push((name.clone(), arguments.len()));
                    let (buffer, tensor) = buffer_of(invocation, name)
                        .ok_or_else(|| raised(format!("tensor '{name}' does not take part in this case")))?;
                    arguments.push(Argument::Buffer(buffer));
                    tensors.push(tensor);
                    continue;
                }
                LaunchArgument::Null => vec![0; parameter.bytes as usize],
                LaunchArgument::Value(value) => parameter_bytes(parameter, value).map_err(raised)?,
            };
            arguments.push(Argument::Value(bytes));
        }
        let shared_bytes = launch.shared.unwrap_or_else(|| self.kernel.shared_bytes(launch.ptx));
        let launch = Launch { grid: launch.grid, block: launch.block, shared_bytes, arguments };
        Ok(Prepared { launch, tensors, program, ptx })
    }
}

impl Runner for KernelRunner {
    fn description(&self) -> &RunnerDescription {
        &self.description
    }

    fn covers(&self, schema: &Schema, descriptor: &CaseDescriptor) -> bool {
        self.kernel.covers(schema, descriptor)
    }

    fn run(&mut self, invocation: &mut Invocation<'_>) -> Result<(), RunnerError> {
        let Prepared { launch, tensors, program, ptx } = self.prepare(invocation)?;
        if launch.grid.contains(&0) {
            // Whoever launches kernels leaves this one out. What it should have written is seen to be missing.
            return Ok(());
        }
        let outcome = program.launch(&launch, &self.options).map_err(runner_error)?;
        if let Some(what) = outcome.not_checked.first() {
            // Never a pass: nothing is known of what was not looked at.
            return Err(RunnerError::Raised(format!("could not be checked: {what}")));
        }
        for (tensor, bytes) in tensors.iter().zip(&outcome.buffers) {
            if let Tensor::Output(place) = tensor
                && let Some(output) = invocation.outputs.get_mut(*place)
            {
                output.set_data(bytes);
            }
        }
        let found = outcome.findings.iter().filter(|found| !is_for_the_engine(found));
        invocation.findings.extend(found.map(|found| finding(found, ptx.as_deref())));
        Ok(())
    }
}

fn runner_error(error: LaunchError) -> RunnerError {
    match error {
        LaunchError::Endless { .. } => RunnerError::Crashed(error.to_string()),
        LaunchError::Trap { .. } => RunnerError::Crashed(error.to_string()),
        LaunchError::Late(limit) => RunnerError::TimedOut(limit),
        LaunchError::Assertion { .. } | LaunchError::Refused(_) | LaunchError::Exhausted(_) => {
            RunnerError::Raised(error.to_string())
        }
    }
}

/// The memory of a tensor of the call. One that is written in place is the output, which holds the input.
fn buffer_of(invocation: &Invocation<'_>, name: &str) -> Option<(MachineBuffer, Tensor)> {
    let place = invocation.output_names().position(|output| output == name);
    if let Some(place) = place {
        let in_place = invocation.overwriting().any(|other| other == name);
        let role = if in_place { Role::InputOutput } else { Role::Output };
        return Some((memory_of(name, invocation.outputs.get(place)?, role), Tensor::Output(place)));
    }
    Some((memory_of(name, invocation.input(name)?, Role::Input), Tensor::Input))
}

fn memory_of(name: &str, buffer: &Buffer, role: Role) -> MachineBuffer {
    let size = buffer.dtype().size() as u64;
    let contents = buffer.data().to_vec();
    MachineBuffer {
        name: name.to_string(),
        role,
        bytes: contents.len() as u64,
        contents,
        offset: 0,
        pointer: buffer.data_offset() as u64 * size,
        element_bytes: size as u32,
    }
}
