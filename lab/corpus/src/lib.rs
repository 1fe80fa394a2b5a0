//! Kernels with known verdicts.
//!
//! The published corpus of 26 kernels: those of Triton compiled, for the PTX machine, and all of them as tiled Rust
//! stand-ins, with the tile sizes, masks and bugs it describes; the grown corpus of pairs; the correct variants and mutants
//! that the oracle's detection is measured with.
//! A stand-in is generic over its arithmetic: in float32 it is the kernel, in float64 it is the
//! exact model of the kernel's formula.

pub mod catalogue;
pub mod compiled;
pub mod detection;
pub mod grown;
pub mod implementations;
pub mod kernel_run;
pub mod kernels;
pub mod memory;
pub mod mutants;
pub mod mutation;
pub mod published;
pub mod real;
pub mod stand_in;
pub mod studies;
pub mod style;
pub mod summation;
pub mod visibility;
