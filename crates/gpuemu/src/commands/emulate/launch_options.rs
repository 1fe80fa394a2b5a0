//! What `gpuemu emulate` and `gpuemu sanitize` share: which kernel is launched, and how.

use std::path::PathBuf;
use std::str::FromStr;

use clap::ValueEnum;
use gpuemu_config::CompileTable;
use gpuemu_machine::approximations::Approximation;
use gpuemu_machine::tensor_core::TensorCore;
use gpuemu_machine::{BlockOrder, LaunchOptions, Trace};
use gpuemu_model::artifact::ToolSearch;
use gpuemu_model::emulation::AccessCheck;
use gpuemu_ptx::Source;
use gpuemu_ptx::compile::{CompileRequest, compile};
use gpuemu_ptx::tools::Toolchain;

use super::launch_argument::TypedArgument;
use crate::expected_error::ExpectedError;
use crate::format::Format;
use crate::session::{current_folder, python_of};

/// One launch.
#[derive(Debug, Clone, clap::Args)]
pub struct LaunchForm {
    /// The entry to launch; the only one of the file by default.
    #[arg(long, value_name = "NAME")]
    pub entry: Option<String>,
    /// Blocks of the grid.
    #[arg(long, value_name = "X,Y,Z", default_value = "1,1,1")]
    pub grid: Sizes,
    /// Threads of a block; by default as many as the code asks for.
    #[arg(long, value_name = "X,Y,Z")]
    pub block: Option<Sizes>,
    /// Bytes of dynamic shared memory; by default what the compiler says, or 0.
    #[arg(long, value_name = "BYTES")]
    pub shared: Option<u32>,
    /// An argument, in the order of the PTX; may be given several times.
    ///
    /// f32:in.npy is an input from a file, f32:inout:x.npy one that may be written too, f32:out:128x781 an output of
    /// that shape, i32:781 and f32:0.5 numbers, ptr:null a null pointer. A name may go before: y=f32:out:128x781. Types:
    /// f16, bf16, f32, f64, fp8e4nv, fp8e5, i8 to i64, u8 to u64, bool.
    #[arg(long = "arg", value_name = "TYPE:VALUE")]
    pub arguments: Vec<TypedArgument>,
    /// Write an output, named or numbered from 0 among the arguments, to a .npy file; may be given several times.
    #[arg(long, value_name = "NAME=FILE", value_parser = saved)]
    pub save: Vec<(String, PathBuf)>,
    /// Write all outputs to this folder, as NAME.npy.
    #[arg(long, value_name = "FOLDER")]
    pub output: Option<PathBuf>,
    /// Write down the instructions of one thread, by its block and its place in that.
    #[arg(long, value_name = "X,Y,Z:X,Y,Z")]
    pub trace: Option<TracedThread>,
    /// Most lines of the trace.
    #[arg(long, value_name = "N", default_value_t = 1000)]
    pub trace_lines: usize,
    /// Format of the result.
    #[arg(long, value_enum, default_value_t = Format::Text)]
    pub format: Format,
    #[command(flatten)]
    pub compile: CompileOptions,
}

/// How the machine runs.
#[derive(Debug, Clone, clap::Args)]
#[command(next_help_heading = "The machine")]
pub struct MachineOptions {
    /// Whose tensor cores.
    #[arg(long, value_enum, default_value_t = TensorCoreModel::H100)]
    pub tensor_core: TensorCoreModel,
    /// How approximated functions round: as the chip does, or correctly.
    #[arg(long, value_enum, default_value_t = ApproximationModel::Chip)]
    pub approx: ApproximationModel,
    /// The order in which blocks are begun: ascending, descending, or the seed of a shuffle.
    #[arg(long, value_name = "ORDER", default_value = "ascending", value_parser = order)]
    pub order: BlockOrder,
    /// Instructions of warps that may run without any block coming to its end.
    #[arg(long, value_name = "N")]
    pub max_steps: Option<u64>,
    /// Threads that run blocks; 0 is all cores.
    #[arg(long, value_name = "N", default_value_t = 0)]
    pub workers: usize,
}

/// How a source is compiled, if it is not PTX.
#[derive(Debug, Clone, Default, clap::Args)]
#[command(next_help_heading = "Compilation of .cu files and Triton kernels")]
pub struct CompileOptions {
    /// The architecture that code is made for, such as sm_80.
    #[arg(long, value_name = "ARCHITECTURE")]
    pub target: Option<String>,
    /// Types of a Triton kernel's arguments that are not constants, as in '*fp32,*fp32,i32'.
    #[arg(long, value_name = "TYPES", value_delimiter = ',')]
    pub signature: Vec<String>,
    /// The value of a Triton kernel's tl.constexpr argument; may be given several times.
    #[arg(long, value_name = "NAME=VALUE", value_parser = constant)]
    pub constant: Vec<(String, serde_json::Value)>,
    /// Warps of a block of a Triton kernel.
    #[arg(long, value_name = "N")]
    pub num_warps: Option<u32>,
    /// Stages of a Triton kernel's loops.
    #[arg(long, value_name = "N")]
    pub num_stages: Option<u32>,
    /// An option for nvcc or NVRTC; may be given several times.
    #[arg(long, value_name = "OPTION", allow_hyphen_values = true)]
    pub compiler_option: Vec<String>,
}

/// Whose tensor cores, as typed.
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub enum TensorCoreModel {
    /// A100, A30, RTX 30 and 40.
    A100,
    /// H100 and H200.
    H100,
    /// Fused multiply-adds, rounded to nearest.
    Ieee,
}

impl From<TensorCoreModel> for TensorCore {
    fn from(model: TensorCoreModel) -> Self {
        match model {
            TensorCoreModel::A100 => TensorCore::A100,
            TensorCoreModel::H100 => TensorCore::H100,
            TensorCoreModel::Ieee => TensorCore::Ieee,
        }
    }
}

/// How approximated functions round, as typed.
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub enum ApproximationModel {
    /// As the chip's special-function unit does.
    Chip,
    /// To the nearest number.
    Correct,
}

/// A check, as typed.
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub enum CheckName {
    /// Bounds, alignment, freed and read-only memory.
    Memory,
    /// Memory that is read before anything wrote it, outputs that nothing wrote.
    Init,
    /// Accesses that nothing orders.
    Race,
    /// Barriers and operations of a warp.
    Sync,
}

impl From<CheckName> for AccessCheck {
    fn from(check: CheckName) -> Self {
        match check {
            CheckName::Memory => AccessCheck::Memory,
            CheckName::Init => AccessCheck::Init,
            CheckName::Race => AccessCheck::Race,
            CheckName::Sync => AccessCheck::Sync,
        }
    }
}

/// Sizes in x, y and z; those that are not given are 1.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Sizes(pub [u32; 3]);

impl FromStr for Sizes {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        let numbers = text.split(',').map(|number| number.trim().parse()).collect::<Result<Vec<u32>, _>>();
        match numbers.as_deref() {
            Ok([x]) => Ok(Self([*x, 1, 1])),
            Ok([x, y]) => Ok(Self([*x, *y, 1])),
            Ok([x, y, z]) => Ok(Self([*x, *y, *z])),
            _ => Err("it is not one to three numbers, as in 128,1,1".to_string()),
        }
    }
}

/// A thread, as typed.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct TracedThread {
    block: [u32; 3],
    thread: [u32; 3],
}

impl FromStr for TracedThread {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        let place = |text: &str| {
            let numbers = text.split(',').map(|number| number.trim().parse()).collect::<Result<Vec<u32>, _>>();
            let numbers = numbers.ok().filter(|numbers| numbers.len() <= 3)?;
            Some(std::array::from_fn(|index| numbers.get(index).copied().unwrap_or_default()))
        };
        let places = text.split_once(':').and_then(|(block, thread)| Some((place(block)?, place(thread)?)));
        let (block, thread) = places.ok_or("it is no block and thread, as in 0,0,0:5,0,0")?;
        Ok(Self { block, thread })
    }
}

fn order(text: &str) -> Result<BlockOrder, String> {
    match text {
        "ascending" => Ok(BlockOrder::Ascending),
        "descending" => Ok(BlockOrder::Descending),
        seed => {
            seed.parse().map(BlockOrder::Shuffled).map_err(|_| "it is not ascending, descending or a seed".to_string())
        }
    }
}

fn saved(text: &str) -> Result<(String, PathBuf), String> {
    match text.split_once('=') {
        Some((name, file)) if !name.is_empty() && !file.is_empty() => Ok((name.to_string(), file.into())),
        _ => Err("it is not NAME=FILE".to_string()),
    }
}

fn constant(text: &str) -> Result<(String, serde_json::Value), String> {
    let (name, value) = text.split_once('=').ok_or("it is not NAME=VALUE")?;
    // What is no number, true or false is a text, such as the name of a type.
    let value = serde_json::from_str(value).unwrap_or_else(|_| serde_json::Value::String(value.to_string()));
    Ok((name.to_string(), value))
}

impl MachineOptions {
    /// As the machine takes them, with these checks.
    pub fn options(&self, checks: Vec<AccessCheck>) -> LaunchOptions {
        let defaults = LaunchOptions::default();
        LaunchOptions {
            tensor_core: self.tensor_core.into(),
            approximation: match self.approx {
                ApproximationModel::Chip => Approximation::Chip,
                ApproximationModel::Correct => Approximation::Correct,
            },
            checks,
            workers: self.workers,
            most_steps: self.max_steps.unwrap_or(defaults.most_steps),
            order: self.order,
            ..defaults
        }
    }
}

impl LaunchForm {
    /// The thread to trace.
    pub fn traced(&self) -> Option<Trace> {
        self.trace.map(|place| Trace { block: place.block, thread: place.thread, most_lines: self.trace_lines })
    }
}

/// Code that can be launched.
pub struct Code {
    pub source: Source,
    /// Where it comes from.
    pub producer: String,
    /// Bytes of dynamic shared memory, where the compiler says them.
    pub shared: Option<u64>,
    /// Threads of a block, where the compiler says them.
    pub threads: Option<u64>,
}

/// Reads PTX, or compiles a source.
pub fn code(file: &str, options: &CompileOptions) -> Result<Code, ExpectedError> {
    let here = current_folder()?;
    let python = python_of(&here);
    let table = CompileTable {
        target: options.target.clone(),
        options: options.compiler_option.clone(),
        signature: options.signature.clone(),
        constants: options.constant.iter().cloned().collect(),
        divisible_by_16: None,
        num_warps: options.num_warps,
        num_stages: options.num_stages,
    };
    // Looking for compilers takes a while, and PTX needs none.
    let toolchain = match file.ends_with(".ptx") {
        true => Toolchain::default(),
        false => Toolchain::find(&ToolSearch::of_process(Some(python.clone()))),
    };
    let request = CompileRequest { root: &here, source: file, table: &table, python: &python, memory_bytes: None };
    let compiled = compile(&request, &toolchain).map_err(|error| ExpectedError::plain(error.to_string()))?;
    let source = Source::from_bytes(file, compiled.ptx).map_err(|error| ExpectedError::plain(error.to_string()))?;
    let (shared, threads) = (compiled.dynamic_shared_bytes, compiled.block_threads);
    Ok(Code { source, producer: compiled.producer, shared, threads })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn sizes_and_threads_are_read_as_typed() {
        assert_eq!("128".parse(), Ok(Sizes([128, 1, 1])));
        assert_eq!("2, 3,4".parse(), Ok(Sizes([2, 3, 4])));
        for wrong in ["", "1,2,3,4", "a", "-1", "1,,2"] {
            assert!(wrong.parse::<Sizes>().is_err(), "{wrong}");
        }
        assert_eq!("1,2:5".parse(), Ok(TracedThread { block: [1, 2, 0], thread: [5, 0, 0] }));
        for wrong in ["1,2", "1:2:3", "1,2,3,4:0", ":"] {
            assert!(wrong.parse::<TracedThread>().is_err(), "{wrong}");
        }
        assert_eq!((order("7"), order("descending")), (Ok(BlockOrder::Shuffled(7)), Ok(BlockOrder::Descending)));
        assert!(order("random").is_err());
        assert_eq!(constant("BLOCK=1024"), Ok(("BLOCK".to_string(), 1024.into())));
        assert_eq!(constant("TYPE=type:float32"), Ok(("TYPE".to_string(), "type:float32".into())));
    }
}
