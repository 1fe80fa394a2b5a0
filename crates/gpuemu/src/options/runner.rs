//! What runs the published kernels: an argument of `corpus` and `study`.

use gpuemu_corpus::published::RunnerChoice;

/// What runs the published kernels.
#[derive(Debug, Clone, Copy, PartialEq, Eq, clap::ValueEnum)]
pub enum RunnerArgument {
    /// The compiled kernels, in the PTX machine; stand-ins where the kernel is one of NumPy.
    Ptx,
    /// Stand-ins in Rust.
    Native,
}

impl RunnerArgument {
    pub fn choice(self) -> RunnerChoice {
        match self {
            RunnerArgument::Ptx => RunnerChoice::Ptx,
            RunnerArgument::Native => RunnerChoice::Native,
        }
    }

    /// What ran, in words.
    pub fn words(self) -> &'static str {
        match self {
            RunnerArgument::Ptx => "compiled kernels in the PTX machine, those of NumPy as stand-ins in Rust",
            RunnerArgument::Native => "stand-ins in Rust",
        }
    }
}
