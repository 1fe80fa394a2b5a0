//! Dtypes with exact conversions, strided tensors that validate themselves, and random streams that give the same bytes
//! everywhere.

#[cfg(target_endian = "big")]
compile_error!("tensor bytes are little-endian; big-endian targets are not supported");

pub mod dtype;
pub mod float_environment;
pub mod float_format;
pub mod layout;
pub mod named;
pub mod npy;
pub mod rng;
pub mod storage;
pub mod tensor;

pub use dtype::{DType, DTypeKind};
pub use float_environment::FloatEnvironment;
pub use float_format::FloatFormat;
pub use layout::Layout;
pub use rng::Stream;
pub use storage::Storage;
pub use tensor::{Tensor, TensorError};
