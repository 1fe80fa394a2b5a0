//! Bytes on a 64-byte boundary, as kernels expect their buffers.

use bytemuck::{Pod, Zeroable};

/// Alignment of every buffer that gpuemu allocates: a cache line, and more than any vector access needs.
pub const ALIGNMENT: usize = 64;

#[derive(Clone, Copy, Pod, Zeroable)]
#[repr(C, align(64))]
struct Line([u8; ALIGNMENT]);

/// A growable-once byte buffer whose first byte is 64-byte aligned.
#[derive(Clone, Default)]
pub struct Storage {
    lines: Vec<Line>,
    length: usize,
}

impl Storage {
    /// A buffer of `length` bytes, each set to `fill`.
    pub fn filled(length: usize, fill: u8) -> Self {
        let count = length.div_ceil(ALIGNMENT);
        // Zeroed pages come from the system as they are: large buffers are not written twice.
        let lines = if fill == 0 { bytemuck::zeroed_vec(count) } else { vec![Line([fill; ALIGNMENT]); count] };
        Self { lines, length }
    }

    /// A copy of some bytes.
    pub fn copy_of(bytes: &[u8]) -> Self {
        let mut storage = Self::filled(bytes.len(), 0);
        storage.as_bytes_mut().copy_from_slice(bytes);
        storage
    }

    pub fn len(&self) -> usize {
        self.length
    }

    /// Whether there are no bytes.
    pub fn is_empty(&self) -> bool {
        self.length == 0
    }

    pub fn as_bytes(&self) -> &[u8] {
        &bytemuck::cast_slice(&self.lines)[..self.length]
    }

    /// The bytes, to write.
    pub fn as_bytes_mut(&mut self) -> &mut [u8] {
        &mut bytemuck::cast_slice_mut(&mut self.lines)[..self.length]
    }
}

impl std::fmt::Debug for Storage {
    fn fmt(&self, formatter: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(formatter, "Storage({} bytes)", self.length)
    }
}

impl PartialEq for Storage {
    fn eq(&self, other: &Self) -> bool {
        self.as_bytes() == other.as_bytes()
    }
}

impl Eq for Storage {}
