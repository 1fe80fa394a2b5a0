//! The published corpus: 16 correct kernels and 10 with one seeded bug each (arXiv 2606.20128).

use std::sync::Arc;

use gpuemu_engine::case::Coverage;
use gpuemu_engine::oracle::Subject;
use gpuemu_engine::runner::Runner;
use gpuemu_engine::schema::{Parameters, Scalar, Schema, Sizes, SummationOrder};
use gpuemu_engine::{Sampler, ops};
use gpuemu_machine::LaunchOptions;
use gpuemu_runners::kernels::{CompiledKernel, KernelRunner};
use gpuemu_tensor::{DType, Layout};
use serde::Serialize;

use crate::compiled;
use crate::kernels::{Kernel, all};
use crate::mutation::Mutation;
use crate::stand_in::StandIn;
use crate::style::Style;

/// Whether a kernel is right.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum Role {
    /// A correct kernel: any failure is a false alarm.
    Control,
    /// A kernel with a seeded bug.
    Bug,
}

/// What runs a kernel.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum RunnerChoice {
    /// The compiled kernel, in the PTX machine; a stand-in where the kernel is one of NumPy.
    Ptx,
    /// A stand-in in Rust.
    Native,
}

/// A kernel of the corpus.
#[derive(Debug, Clone, Copy)]
pub struct Entry {
    /// Its number in the published table.
    pub number: u32,
    pub name: &'static str,
    /// Its bug, in words; empty for a control.
    pub bug: &'static str,
    kernel: Kernel,
    style: Style,
    mutation: Option<Mutation>,
    /// Sizes of the published study, taken half of the time.
    preferred: &'static [(&'static str, &'static [usize])],
    /// The one shape that the usual check looks at: multiples of every tile.
    naive: &'static [(&'static str, usize)],
}

const ROWS: &[(&str, &[usize])] = &[("H", &[1, 3, 256, 1025])];
const ROWS_FROM_TWO: &[(&str, &[usize])] = &[("H", &[2, 3, 256, 1025])];
const ROWS_OF_BUG: &[(&str, &[usize])] = &[("H", &[3, 256, 1025])];
const FLAT: &[(&str, &[usize])] = &[];
const ARRAY_MATMUL: &[(&str, &[usize])] =
    &[("M", &[1, 2, 7, 128]), ("K", &[1, 3, 16, 127, 256]), ("N", &[1, 2, 15, 64])];
const TILE_MATMUL: &[(&str, &[usize])] = &[("M", &[1, 2, 7, 64]), ("K", &[1, 3, 16, 64]), ("N", &[1, 2, 15, 64])];
const ATTENTION: &[(&str, &[usize])] = &[("M", &[1, 2, 8]), ("N", &[1, 3, 16, 256]), ("D", &[8, 16, 64])];
const FLASH: &[(&str, &[usize])] = &[("M", &[1, 2, 8]), ("N", &[1, 3, 16, 64, 128, 256]), ("D", &[8, 16, 64])];

const NAIVE_ROWS: &[(&str, usize)] = &[("...", 4), ("...", 32), ("H", 256)];
const NAIVE_FLAT: &[(&str, usize)] = &[("...", 4), ("...", 32), ("...", 256)];
const NAIVE_MATMUL: &[(&str, usize)] = &[("M", 64), ("K", 64), ("N", 64)];
const NAIVE_ATTENTION: &[(&str, usize)] = &[("B", 1), ("H", 1), ("G", 1), ("M", 8), ("N", 256), ("D", 64)];

const TRITON: Style = Style::TRITON;
const NUMPY: Style = Style::NUMPY;
const TILED: Style = TRITON.ordered(SummationOrder::Sequential);
const ONLINE: Style = TRITON.ordered(SummationOrder::Online(32));

const fn control(
    number: u32,
    name: &'static str,
    kernel: Kernel,
    style: Style,
    preferred: &'static [(&'static str, &'static [usize])],
    naive: &'static [(&'static str, usize)],
) -> Entry {
    Entry { number, name, bug: "", kernel, style, mutation: None, preferred, naive }
}

const fn with_bug(number: u32, name: &'static str, bug: &'static str, mutation: Mutation, right: Entry) -> Entry {
    Entry { number, name, bug, mutation: Some(mutation), ..right }
}

const SOFTMAX_NUMPY: Entry = control(1, "softmax_numpy", all::SOFTMAX, NUMPY, ROWS, NAIVE_ROWS);
const SOFTMAX: Entry = control(5, "softmax", all::SOFTMAX, TRITON, ROWS, NAIVE_ROWS);
const GELU: Entry = control(7, "gelu_tanh", all::GELU_TANH, TRITON, FLAT, NAIVE_FLAT);
const SILU: Entry = control(9, "silu", all::SILU, TRITON, FLAT, NAIVE_FLAT);
const RMSNORM: Entry = control(11, "rmsnorm", all::RMSNORM, TRITON, ROWS_FROM_TWO, NAIVE_ROWS);
const L2NORM: Entry = control(13, "l2norm", all::L2NORM, TRITON, ROWS_FROM_TWO, NAIVE_ROWS);
const LEAKY_RELU: Entry = control(16, "leaky_relu", all::LEAKY_RELU, TRITON, FLAT, NAIVE_FLAT);
const MATMUL: Entry = control(21, "matmul", all::MATMUL, TILED, TILE_MATMUL, NAIVE_MATMUL);
const ROW_ATTENTION: Entry = control(23, "attention", all::ATTENTION, TRITON, ATTENTION, NAIVE_ATTENTION);
const FLASH_ATTENTION: Entry = control(25, "flash_attention", all::FLASH, ONLINE, FLASH, NAIVE_ATTENTION);

/// The 26 kernels, in the order of the published table.
pub static KERNELS: [Entry; 26] = [
    SOFTMAX_NUMPY,
    control(2, "layernorm_numpy", all::LAYERNORM, NUMPY, ROWS_FROM_TWO, NAIVE_ROWS),
    control(3, "matmul_numpy", all::MATMUL, TILED, ARRAY_MATMUL, NAIVE_MATMUL),
    Entry {
        preferred: ROWS_OF_BUG,
        ..with_bug(
            4,
            "softmax_numpy_padded",
            "row padded with 0 to a multiple of 128, the padding left in maximum and denominator",
            Mutation::PadZero(128),
            SOFTMAX_NUMPY,
        )
    },
    SOFTMAX,
    Entry {
        preferred: ROWS_OF_BUG,
        ..with_bug(6, "softmax_other_zero", "masked lanes loaded as 0 in place of -inf", Mutation::PadZero(0), SOFTMAX)
    },
    GELU,
    with_bug(8, "gelu_no_half", "factor 0.5 dropped", Mutation::DropFactor, GELU),
    SILU,
    with_bug(10, "silu_double_argument", "x*sigmoid(2x)", Mutation::ScaleArgument(2.0), SILU),
    RMSNORM,
    with_bug(12, "rmsnorm_no_root", "square root dropped", Mutation::DropRoot, RMSNORM),
    L2NORM,
    with_bug(14, "l2norm_no_root", "square root dropped", Mutation::DropRoot, L2NORM),
    control(15, "relu", all::RELU, TRITON, FLAT, NAIVE_FLAT),
    LEAKY_RELU,
    with_bug(17, "leaky_relu_slope", "slope 0.1 in place of 0.01", Mutation::Constant(10.0), LEAKY_RELU),
    control(18, "sigmoid", all::SIGMOID, TRITON, FLAT, NAIVE_FLAT),
    control(19, "tanh", all::TANH, TRITON, FLAT, NAIVE_FLAT),
    control(20, "elu", all::ELU, TRITON, FLAT, NAIVE_FLAT),
    MATMUL,
    with_bug(22, "matmul_overwrite", "acc = in place of acc +=", Mutation::Overwrite, MATMUL),
    ROW_ATTENTION,
    with_bug(24, "attention_no_scale", "1/sqrt(D) missing", Mutation::DropFactor, ROW_ATTENTION),
    FLASH_ATTENTION,
    with_bug(
        26,
        "flash_no_rescale",
        "accumulator not rescaled when the running maximum moves",
        Mutation::DropRescale,
        FLASH_ATTENTION,
    ),
];

/// The kernel of a name or number.
pub fn find(name: &str) -> Option<&'static Entry> {
    KERNELS.iter().find(|entry| entry.name == name || entry.number.to_string() == name)
}

impl Entry {
    /// Whether there is a compiled kernel of it.
    pub fn is_compiled(&self) -> bool {
        matches!(compiled::find(self.name), Ok(Some(_)))
    }

    /// Whether it is right.
    pub fn role(&self) -> Role {
        if self.mutation.is_some() { Role::Bug } else { Role::Control }
    }

    /// The op it computes.
    pub fn op(&self) -> &'static str {
        self.kernel.op
    }

    /// The correct kernel that it was made of; itself if it is one.
    pub fn control(&self) -> Option<&'static Entry> {
        // The one before it that is written alike: two matmuls are, and the bug follows the one it is of.
        let alike = |entry: &&Entry| entry.op() == self.op() && entry.style == self.style;
        KERNELS.iter().filter(|entry| entry.role() == Role::Control && entry.number <= self.number).rev().find(alike)
    }

    /// The compiled kernel, if that is what is to run and there is one.
    pub fn compiled(&self, choice: RunnerChoice) -> Result<Option<Arc<CompiledKernel>>, String> {
        match choice {
            RunnerChoice::Ptx => compiled::find(self.name),
            RunnerChoice::Native => Ok(None),
        }
    }

    /// The kernel as a runner. Cases run side by side, each on one core.
    pub fn runner(&self, choice: RunnerChoice) -> Result<Box<dyn Runner>, String> {
        Ok(match self.compiled(choice)? {
            Some(kernel) => {
                Box::new(KernelRunner::new(kernel, LaunchOptions { workers: 1, ..LaunchOptions::default() }))
            }
            None => Box::new(self.stand_in()),
        })
    }

    /// The kernel as a stand-in.
    pub fn stand_in(&self) -> StandIn {
        StandIn::new(self.name, self.kernel, self.style, self.mutation)
    }

    /// The kernel with another bug, or none.
    pub fn mutated(&self, mutation: Option<Mutation>) -> StandIn {
        StandIn::new(self.name, self.kernel, self.style, mutation)
    }

    /// What it is judged as: its op, with the sizes of the study and the precision it declares.
    /// `None` only if the op were not built in, which a test excludes.
    pub fn subject(&self, choice: RunnerChoice) -> Option<Subject> {
        let op = ops::find(self.kernel.op)?;
        let mut schema: Schema = op.schema().clone();
        for dimension in &mut schema.dimensions {
            let preferred = self.preferred.iter().find(|(name, _)| *name == dimension.name);
            if let Some((_, sizes)) = preferred {
                dimension.preferred = sizes.to_vec();
            }
            if self.kernel.op == "attention" && matches!(dimension.name.as_str(), "B" | "H" | "G") {
                dimension.choices = vec![1];
            }
        }
        // The published kernels have no affine part, mask or second output.
        schema.inputs.retain(|tensor| !matches!(tensor.name.as_str(), "weight" | "bias" | "mask"));
        schema.outputs.retain(|tensor| tensor.name != "lse");
        let mut precision = self.style.precision();
        if self.kernel.op == "matmul" && matches!(self.compiled(choice), Ok(Some(_))) {
            // What Triton makes of a product of 16-bit matrices.
            (precision.tensor_core, precision.order) = (true, None);
        }
        Some(Subject::with_schema(op, schema).precision(precision))
    }

    /// How its cases are drawn: those that a compiled kernel covers, where one runs.
    pub fn sampler(&self, choice: RunnerChoice) -> Sampler {
        let mut parameters = Parameters::default();
        if self.kernel.op == "attention" {
            parameters.set("causal", Scalar::Bool(false));
            parameters.set("window", Scalar::Int(0));
            parameters.set("softcap", Scalar::Float(0.0));
        }
        let mut sampler =
            Sampler { dtypes: vec![DType::F32, DType::F16, DType::BF16], parameters, ..Sampler::default() };
        // What cannot be read is said when the kernel is run.
        if let Ok(Some(kernel)) = self.compiled(choice) {
            if !kernel.reads_strides() {
                sampler.layouts = vec![Layout::Contiguous];
            }
            sampler.covered = Coverage::by(move |schema, descriptor| kernel.covers(schema, descriptor));
        }
        sampler
    }

    /// The one shape of the usual check.
    pub fn naive_sizes(&self) -> Sizes {
        let mut sizes = Sizes::default();
        for (name, size) in self.naive {
            if *name == "..." {
                sizes.batch.push(*size);
            } else {
                sizes.named.push((name.to_string(), *size));
            }
        }
        sizes
    }
}
