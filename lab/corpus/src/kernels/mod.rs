//! Stand-ins: tiled models of kernels, generic over the arithmetic they compute in.

pub mod attention;
pub mod elementwise;
pub mod flash;
pub mod matmul;
pub mod normalisation;
pub mod reduction;
pub mod rope;
pub mod softmax;

use gpuemu_engine::runner::{Buffer, Invocation, RunnerError};
use gpuemu_engine::schema::Schema;

use crate::memory::{Rows, load, positions, store};
use crate::mutation::{Mutated, Mutation};
use crate::real::Real;
use crate::style::Style;

/// How a kernel is written, and what is wrong with it.
#[derive(Debug, Clone, Copy)]
pub struct Plan {
    /// How it is written.
    pub style: Style,
    pub mutation: Option<Mutation>,
}

pub type Body = fn(&mut Invocation<'_>, &Plan) -> Result<(), RunnerError>;

/// A kernel that can be run in float32 and evaluated in float64.
#[derive(Debug, Clone, Copy)]
pub struct Kernel {
    /// The op it computes.
    pub op: &'static str,
    /// The kernel as a GPU runs it.
    pub single: Body,
    /// The same formula in float64.
    pub double: Body,
}

/// A kernel of an op from a body that is generic over its arithmetic.
#[macro_export]
macro_rules! kernel {
    ($op:literal, $($body:tt)+) => {
        $crate::kernels::Kernel { op: $op, single: $($body)+::<f32>, double: $($body)+::<f64> }
    };
}

/// Every stand-in, one per op; attention has a second, online one.
pub mod all {
    use super::*;

    pub const RELU: Kernel = kernel!("relu", elementwise::relu);
    pub const LEAKY_RELU: Kernel = kernel!("leaky_relu", elementwise::leaky_relu);
    pub const ELU: Kernel = kernel!("elu", elementwise::elu);
    pub const SIGMOID: Kernel = kernel!("sigmoid", elementwise::sigmoid);
    pub const SILU: Kernel = kernel!("silu", elementwise::silu);
    pub const TANH: Kernel = kernel!("tanh", elementwise::tanh);
    pub const GELU: Kernel = kernel!("gelu", elementwise::gelu);
    pub const GELU_TANH: Kernel = kernel!("gelu_tanh", elementwise::gelu_tanh);
    pub const SWIGLU: Kernel = kernel!("swiglu", elementwise::swiglu);
    pub const ROPE: Kernel = kernel!("rope", rope::rope);
    pub const SOFTMAX: Kernel = kernel!("softmax", softmax::softmax);
    pub const LOG_SOFTMAX: Kernel = kernel!("log_softmax", softmax::log_softmax);
    pub const CROSS_ENTROPY: Kernel = kernel!("cross_entropy", softmax::cross_entropy);
    pub const SUM: Kernel = kernel!("sum", reduction::sum);
    pub const MEAN: Kernel = kernel!("mean", reduction::mean);
    pub const MAX: Kernel = kernel!("max", reduction::max);
    pub const CUMSUM: Kernel = kernel!("cumsum", reduction::cumsum);
    pub const LAYERNORM: Kernel = kernel!("layernorm", normalisation::layernorm);
    pub const RMSNORM: Kernel = kernel!("rmsnorm", normalisation::rmsnorm);
    /// l2norm.
    pub const L2NORM: Kernel = kernel!("l2norm", normalisation::l2norm);
    pub const MATMUL: Kernel = kernel!("matmul", matmul::matmul);
    /// attention, one program per query row.
    pub const ATTENTION: Kernel = kernel!("attention", attention::attention);
    /// attention, online softmax over blocks of keys.
    pub const FLASH: Kernel = kernel!("attention", flash::flash);
}

/// An input that the schema promises.
pub(crate) fn required(inputs: &[Option<Buffer>], index: usize) -> Result<&Buffer, RunnerError> {
    let missing = || RunnerError::Raised(format!("input {index} is missing"));
    inputs.get(index).and_then(Option::as_ref).ok_or_else(missing)
}

pub(crate) fn optional<'a>(inputs: &'a [Option<Buffer>], schema: &Schema, name: &str) -> Option<&'a Buffer> {
    let index = schema.inputs.iter().position(|spec| spec.name == name)?;
    inputs.get(index)?.as_ref()
}

/// The elements of an input in row-major order; nothing where an optional one is absent.
pub(crate) fn elements<R: Real>(call: &Invocation<'_>, name: &str) -> Result<Option<Vec<R>>, RunnerError> {
    call.input(name).map(read).transpose()
}

/// The elements of an input that the op always has, in row-major order.
pub(crate) fn input<R: Real>(call: &Invocation<'_>, name: &str) -> Result<Vec<R>, RunnerError> {
    elements(call, name)?.ok_or_else(|| RunnerError::Raised(format!("input '{name}' is missing")))
}

/// The elements of a buffer in row-major order.
pub(crate) fn read<R: Real>(buffer: &Buffer) -> Result<Vec<R>, RunnerError> {
    positions(buffer).into_iter().map(|position| load(buffer, position)).collect()
}

/// Stores all elements of an output in row-major order, scaled where that is the mutation.
pub(crate) fn write<R: Real>(plan: &Plan, output: &mut Buffer, values: &[R]) -> Result<(), RunnerError> {
    for (position, value) in positions(output).into_iter().zip(values) {
        store(output, position, scaled(plan, *value))?;
    }
    Ok(())
}

/// The size of a dim, 0 where the schema has no such dim.
pub(crate) fn size(call: &Invocation<'_>, name: &str) -> usize {
    call.sizes.get(name).unwrap_or(0)
}

/// A row in registers: masked lanes hold `neutral`, unless the kernel is wrong about them.
pub(crate) fn load_row<R: Real>(
    plan: &Plan,
    buffer: &Buffer,
    rows: &Rows,
    row: usize,
    neutral: R,
) -> Result<Vec<R>, RunnerError> {
    let width = rows.width;
    let mut lanes = Vec::with_capacity(width.next_power_of_two());
    for column in 0..width {
        lanes.push(load(buffer, rows.at(row, column))?);
    }
    match plan.mutation {
        Some(Mutation::PadZero(multiple)) => {
            let padded = if multiple == 0 { width.next_power_of_two() } else { width.next_multiple_of(multiple) };
            lanes.resize(padded.max(width), R::zero());
        }
        Some(Mutation::DropMask) => {
            for column in width..width.next_power_of_two() {
                lanes.push(load(buffer, rows.at(row, column))?);
            }
        }
        Some(Mutation::DropTail(tile)) => {
            let whole = width / tile * tile;
            if whole > 0 {
                lanes[whole..].fill(neutral);
            }
        }
        Some(Mutation::SkipElement) if width > 1 => lanes[width / 2] = neutral,
        _ => {}
    }
    Ok(lanes)
}

/// Sums in the kernel's own order and accumulator.
pub(crate) fn add_up<R: Real>(plan: &Plan, terms: &[R]) -> R {
    let narrow = match plan.mutation {
        Some(Mutation::NarrowAccumulator(dtype)) => Some(dtype),
        _ => plan.style.accumulate,
    };
    crate::summation::sum(terms, plan.style.order, narrow)
}

/// The result as it is stored: scaled where that is the mutation.
pub(crate) fn scaled<R: Real>(plan: &Plan, value: R) -> R {
    if plan.mutation.output() == 1.0 { value } else { value * R::new(plan.mutation.output()) }
}
