//! What every other crate of gpuemu speaks of: configuration, messages and the report model, beside the tensors and
//! random streams of `gpuemu-tensor`.

pub mod artifact;
pub mod config;
pub mod emulation;
pub mod evidence;
pub mod finding;
pub mod json;
pub mod nearest;
pub mod number_text;
pub mod picture;
pub mod precision;
pub mod protocol;
pub mod report;
mod schema;
pub mod seed_text;
pub mod shard;
pub mod strategy;
pub mod tool_search;

pub use gpuemu_tensor::{DType, DTypeKind, FloatFormat, Layout, Storage, Stream, Tensor, TensorError};
pub use gpuemu_tensor::{dtype, float_format, layout, npy, rng, storage, tensor};
pub use precision::Precision;
pub use strategy::Strategy;
