//! Buffers with guard bands, so that a store outside of a tensor leaves a mark.

use gpuemu_tensor::storage::ALIGNMENT;
use gpuemu_tensor::tensor::contiguous_strides;
use gpuemu_tensor::{DType, Storage, Tensor, TensorError};
use serde::Deserialize;

/// Bytes of guard on each side of a buffer.
pub const GUARD_BYTES: usize = 4 * ALIGNMENT;

const GUARD_FILL: u8 = 0xc3;

/// Where a guard band was written.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Deserialize)]
pub struct GuardDamage {
    /// Whether the band after the data was hit, rather than the one before it.
    pub after: bool,
    /// Distance in bytes of the nearest damaged byte from the data.
    pub distance: usize,
    /// Damaged bytes in all.
    pub bytes: usize,
}

/// A tensor in memory of its own, between guard bands.
#[derive(Debug, Clone)]
pub struct Buffer {
    dtype: DType,
    shape: Vec<usize>,
    strides: Vec<isize>,
    offset: usize,
    memory: Storage,
    data_bytes: usize,
}

impl Buffer {
    /// A copy of a tensor, strides and gaps included.
    pub fn holding(tensor: &Tensor) -> Self {
        let data = tensor.storage().as_bytes();
        let mut memory = Storage::filled(data.len() + 2 * GUARD_BYTES, GUARD_FILL);
        memory.as_bytes_mut()[GUARD_BYTES..GUARD_BYTES + data.len()].copy_from_slice(data);
        Self {
            dtype: tensor.dtype(),
            shape: tensor.shape().to_vec(),
            strides: tensor.strides().to_vec(),
            offset: tensor.offset() + GUARD_BYTES / tensor.dtype().size(),
            memory,
            data_bytes: data.len(),
        }
    }

    /// A contiguous output, every byte set to `poison`.
    pub fn poisoned(dtype: DType, shape: Vec<usize>, poison: u8) -> Self {
        let elements = if shape.contains(&0) { 0 } else { shape.iter().product::<usize>() };
        let data_bytes = elements * dtype.size();
        let mut memory = Storage::filled(data_bytes + 2 * GUARD_BYTES, GUARD_FILL);
        memory.as_bytes_mut()[GUARD_BYTES..GUARD_BYTES + data_bytes].fill(poison);
        let strides = contiguous_strides(&shape);
        Self { dtype, shape, strides, offset: GUARD_BYTES / dtype.size(), memory, data_bytes }
    }

    pub fn dtype(&self) -> DType {
        self.dtype
    }

    /// Sizes of the dimensions.
    pub fn shape(&self) -> &[usize] {
        &self.shape
    }

    pub fn strides(&self) -> &[isize] {
        &self.strides
    }

    /// Where in [`Self::memory`] the element at index 0 lies, in elements.
    pub fn offset(&self) -> usize {
        self.offset
    }

    /// All of the memory, guard bands included: what a kernel's pointer can reach.
    pub fn memory(&self) -> &[u8] {
        self.memory.as_bytes()
    }

    /// All of the memory, to write.
    pub fn memory_mut(&mut self) -> &mut [u8] {
        self.memory.as_bytes_mut()
    }

    /// The bytes between the guard bands.
    pub fn data(&self) -> &[u8] {
        &self.memory.as_bytes()[GUARD_BYTES..GUARD_BYTES + self.data_bytes]
    }

    /// Where between the guard bands the element at index 0 lies, in elements.
    pub fn data_offset(&self) -> usize {
        self.offset - GUARD_BYTES / self.dtype.size()
    }

    /// Replaces the bytes between the guard bands, as far as there are any.
    pub fn set_data(&mut self, bytes: &[u8]) {
        let count = self.data_bytes.min(bytes.len());
        self.memory.as_bytes_mut()[GUARD_BYTES..GUARD_BYTES + count].copy_from_slice(&bytes[..count]);
    }

    /// The elements' bytes in row-major order.
    pub fn contiguous_bytes(&self) -> Vec<u8> {
        let mut bytes = Vec::new();
        let (memory, size) = (self.memory.as_bytes(), self.dtype.size());
        gpuemu_tensor::tensor::gather(memory, size, &self.shape, &self.strides, self.offset, &mut bytes);
        bytes
    }

    /// A copy without the guard bands, strides and gaps included.
    pub fn to_tensor(&self) -> Result<Tensor, TensorError> {
        Tensor::new(
            self.dtype,
            self.shape.clone(),
            self.strides.clone(),
            self.data_offset(),
            Storage::copy_of(self.data()),
        )
    }

    /// Damage to the guard bands, if any.
    pub fn guard_damage(&self) -> Option<GuardDamage> {
        let memory = self.memory.as_bytes();
        let (before, rest) = memory.split_at(GUARD_BYTES);
        let after = &rest[self.data_bytes..];
        let intact = |byte: &u8| *byte == GUARD_FILL;
        if before.iter().all(intact) && after.iter().all(intact) {
            return None;
        }
        let bytes = before.iter().chain(after).filter(|byte| !intact(byte)).count();
        let behind = after.iter().position(|byte| !intact(byte));
        let ahead = before.iter().rev().position(|byte| !intact(byte));
        let distance = behind.or(ahead).unwrap_or(0);
        Some(GuardDamage { after: behind.is_some(), distance, bytes })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_store_past_the_end_leaves_a_mark() {
        let mut buffer = Buffer::poisoned(DType::F32, vec![3], 0xff);
        assert_eq!(buffer.guard_damage(), None);
        let end = (buffer.offset() + 3) * 4;
        buffer.memory_mut()[end + 1] = 0;
        assert_eq!(buffer.guard_damage(), Some(GuardDamage { after: true, distance: 1, bytes: 1 }));
        assert_eq!(buffer.contiguous_bytes(), [0xff; 12]);
    }

    #[test]
    fn data_is_aligned_and_a_strided_copy_keeps_its_elements() {
        let tensor = Tensor::new(DType::F32, vec![2, 2], vec![3, 1], 1, Storage::filled(24, 7)).unwrap();
        let buffer = Buffer::holding(&tensor);
        assert_eq!(buffer.data().as_ptr() as usize % ALIGNMENT, 0);
        assert_eq!(buffer.contiguous_bytes(), tensor.to_contiguous_bytes());
        assert_eq!(buffer.to_tensor().unwrap(), tensor);
    }
}
