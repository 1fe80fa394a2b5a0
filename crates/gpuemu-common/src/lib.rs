//! What every other crate of gpuemu speaks of: dtypes with exact conversions, strided tensors
//! that validate themselves, and random streams that give the same bytes everywhere.

#[cfg(target_endian = "big")]
compile_error!("tensor bytes are little-endian; big-endian targets are not supported");

pub mod artifact;
pub mod config;
pub mod dtype;
pub mod emulation;
pub mod evidence;
pub mod finding;
pub mod float_format;
pub mod layout;
mod named;
pub mod nearest;
pub mod npy;
pub mod number_text;
pub mod picture;
pub mod precision;
pub mod protocol;
pub mod report;
pub mod rng;
mod schema_words;
pub mod seed_text;
pub mod shard;
pub mod storage;
pub mod strategy;
pub mod tensor;
pub mod tool_search;

pub use dtype::{DType, DTypeKind};
pub use float_format::FloatFormat;
pub use layout::Layout;
pub use precision::Precision;
pub use rng::Stream;
pub use storage::Storage;
pub use strategy::Strategy;
pub use tensor::{Tensor, TensorError};
