//! Tensor cores: products of small matrices, bit for bit as a chip computes them, or as IEEE arithmetic would; and the
//! instructions that bring matrices to and from them.

mod aligned_sum;
mod element;
mod forms;
mod fragment;
mod matrix_transfer;
mod model;
mod opcode;
mod plan;
mod product;
mod scalar;
mod tile;
#[cfg(target_arch = "x86_64")]
mod tile_x86;
mod transposition;
mod wmma_transfer;

pub use element::Element;
pub use fragment::{Matrix, Order};
pub use matrix_transfer::{Direction, MatrixTransfer};
pub use model::TensorCore;
pub use plan::PreparedProduct;
pub use product::{Combination, Family, FragmentRegisters, Fragments, MatrixProduct};
pub use transposition::transpose;
pub use wmma_transfer::WmmaTransfer;

#[cfg(test)]
mod tests;
