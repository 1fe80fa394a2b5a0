//! Strided tensors whose constructor believes nothing: shape, strides, offset and bytes may come
//! from a message or a file.

use thiserror::Error;

use crate::dtype::DType;
use crate::storage::Storage;

/// Most dimensions a tensor may have (NumPy's limit).
pub const MAX_RANK: usize = 64;

/// Why a tensor could not be made.
#[derive(Debug, Clone, PartialEq, Eq, Error)]
pub enum TensorError {
    #[error("a tensor of rank {rank} was given; at most {MAX_RANK} dimensions are supported")]
    Rank { rank: usize },
    /// There are more elements than any machine holds.
    #[error("shape {shape:?} of {dtype} has more elements than can be held")]
    TooLarge { shape: Vec<usize>, dtype: DType },
    /// There is not one stride per dimension.
    #[error("{strides} strides were given for {rank} dimensions")]
    StrideCount { strides: usize, rank: usize },
    /// An element lies outside the bytes.
    #[error(
        "elements {lowest}..={highest} of the storage are used (shape {shape:?}, strides {strides:?}, offset {offset}), but it holds {available} elements of {dtype}"
    )]
    OutOfBounds {
        lowest: i128,
        highest: i128,
        /// Elements the bytes hold.
        available: usize,
        shape: Vec<usize>,
        strides: Vec<isize>,
        offset: usize,
        dtype: DType,
    },
    /// The bytes do not hold a whole number of elements.
    #[error("{bytes} bytes are not a whole number of {dtype} elements ({} bytes each)", dtype.size())]
    OddLength { bytes: usize, dtype: DType },
    /// A contiguous tensor was given the wrong number of bytes.
    #[error("shape {shape:?} of {dtype} takes {expected} bytes, but {actual} were given")]
    ByteCount { shape: Vec<usize>, dtype: DType, expected: usize, actual: usize },
}

/// A tensor: elements of one dtype at `offset + Σ index·stride` of its storage.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Tensor {
    dtype: DType,
    shape: Vec<usize>,
    strides: Vec<isize>,
    offset: usize,
    storage: Storage,
}

impl Tensor {
    /// A tensor over given bytes, every element of which is checked to lie inside them.
    pub fn new(
        dtype: DType,
        shape: Vec<usize>,
        strides: Vec<isize>,
        offset: usize,
        storage: Storage,
    ) -> Result<Self, TensorError> {
        element_count(dtype, &shape)?;
        if strides.len() != shape.len() {
            return Err(TensorError::StrideCount { strides: strides.len(), rank: shape.len() });
        }
        if !storage.len().is_multiple_of(dtype.size()) {
            return Err(TensorError::OddLength { bytes: storage.len(), dtype });
        }
        let available = storage.len() / dtype.size();
        if let Some((lowest, highest)) = reach(&shape, &strides, offset) {
            if lowest < 0 || highest >= available as i128 {
                return Err(TensorError::OutOfBounds { lowest, highest, available, shape, strides, offset, dtype });
            }
        } else if offset > available {
            let position = offset as i128;
            return Err(TensorError::OutOfBounds {
                lowest: position,
                highest: position,
                available,
                shape,
                strides,
                offset,
                dtype,
            });
        }
        Ok(Self { dtype, shape, strides, offset, storage })
    }

    /// A contiguous tensor over exactly the bytes its shape needs.
    pub fn contiguous(dtype: DType, shape: Vec<usize>, bytes: &[u8]) -> Result<Self, TensorError> {
        let expected = element_count(dtype, &shape)? * dtype.size();
        if bytes.len() != expected {
            return Err(TensorError::ByteCount { shape, dtype, expected, actual: bytes.len() });
        }
        let strides = contiguous_strides(&shape);
        Ok(Self { dtype, shape, strides, offset: 0, storage: Storage::copy_of(bytes) })
    }

    /// A contiguous tensor of values rounded to the dtype.
    pub fn from_f64(dtype: DType, shape: Vec<usize>, values: &[f64]) -> Result<Self, TensorError> {
        let count = element_count(dtype, &shape)?;
        if count != values.len() {
            let (expected, actual) = (count * dtype.size(), values.len() * dtype.size());
            return Err(TensorError::ByteCount { shape, dtype, expected, actual });
        }
        let mut bytes = vec![0; count * dtype.size()];
        encode_slice(dtype, values, &mut bytes);
        Self::contiguous(dtype, shape, &bytes)
    }

    pub fn dtype(&self) -> DType {
        self.dtype
    }

    /// Sizes of the dimensions.
    pub fn shape(&self) -> &[usize] {
        &self.shape
    }

    /// Distances between neighbours along each dimension, in elements.
    pub fn strides(&self) -> &[isize] {
        &self.strides
    }

    /// Where in the storage the element at index 0 lies, in elements.
    pub fn offset(&self) -> usize {
        self.offset
    }

    /// The storage, gaps included.
    pub fn storage(&self) -> &Storage {
        &self.storage
    }

    pub fn len(&self) -> usize {
        // The other sizes of an empty tensor may be too large to multiply.
        if self.is_empty() { 0 } else { self.shape.iter().product() }
    }

    /// Whether there are no elements.
    pub fn is_empty(&self) -> bool {
        self.shape.contains(&0)
    }

    /// Whether elements lie in row-major order without gaps.
    pub fn is_contiguous(&self) -> bool {
        self.is_empty() || is_contiguous(&self.shape, &self.strides)
    }

    /// The elements' bytes in row-major order, gathered if need be.
    pub fn to_contiguous_bytes(&self) -> Vec<u8> {
        let mut bytes = Vec::new();
        gather(self.storage.as_bytes(), self.dtype.size(), &self.shape, &self.strides, self.offset, &mut bytes);
        bytes
    }

    /// The same elements, contiguous, in storage of their own.
    pub fn to_contiguous(&self) -> Tensor {
        Tensor {
            dtype: self.dtype,
            shape: self.shape.clone(),
            strides: contiguous_strides(&self.shape),
            offset: 0,
            storage: Storage::copy_of(&self.to_contiguous_bytes()),
        }
    }

    /// The elements' values in row-major order.
    pub fn to_f64(&self) -> Vec<f64> {
        let mut values = Vec::new();
        if self.is_contiguous() {
            let start = self.offset * self.dtype.size();
            let bytes = self.storage.as_bytes();
            let end = start + self.len() * self.dtype.size();
            decode_slice(self.dtype, bytes.get(start..end).unwrap_or_default(), &mut values);
        } else {
            decode_slice(self.dtype, &self.to_contiguous_bytes(), &mut values);
        }
        values
    }
}

/// Row-major strides of a shape.
pub fn contiguous_strides(shape: &[usize]) -> Vec<isize> {
    let mut strides = vec![0; shape.len()];
    let mut step = 1usize;
    for (stride, size) in strides.iter_mut().zip(shape).rev() {
        *stride = step as isize;
        step = step.saturating_mul((*size).max(1));
    }
    strides
}

fn is_contiguous(shape: &[usize], strides: &[isize]) -> bool {
    let mut step = 1isize;
    for (size, stride) in shape.iter().zip(strides).rev() {
        if *size != 1 && *stride != step {
            return false;
        }
        step = step.saturating_mul(isize::try_from(*size).unwrap_or(isize::MAX));
    }
    true
}

/// Elements that a tensor may have. An expanded dim costs no memory until it is copied: half a terabyte of float64 is
/// more than whatever could be meant.
const MOST_ELEMENTS: usize = 1 << 36;

/// The number of elements of a shape, if a dense copy of it is conceivable.
pub fn element_count(dtype: DType, shape: &[usize]) -> Result<usize, TensorError> {
    if shape.len() > MAX_RANK {
        return Err(TensorError::Rank { rank: shape.len() });
    }
    let too_large = || TensorError::TooLarge { shape: shape.to_vec(), dtype };
    if shape.contains(&0) {
        return Ok(0);
    }
    let mut count = 1usize;
    for size in shape {
        count = count.checked_mul(*size).ok_or_else(too_large)?;
    }
    if count > MOST_ELEMENTS { Err(too_large()) } else { Ok(count) }
}

/// Lowest and highest storage element that a non-empty view touches.
fn reach(shape: &[usize], strides: &[isize], offset: usize) -> Option<(i128, i128)> {
    // Before anything is added up: beside a dim of size 0 the others may be as large as they like.
    if shape.contains(&0) {
        return None;
    }
    let (mut lowest, mut highest) = (offset as i128, offset as i128);
    for (size, stride) in shape.iter().zip(strides) {
        let span = (*size as i128 - 1) * *stride as i128;
        if span < 0 { lowest += span } else { highest += span }
    }
    Some((lowest, highest))
}

/// Calls `visit(position)` with the storage position of every element in row-major order.
pub fn for_each_position(shape: &[usize], strides: &[isize], offset: usize, mut visit: impl FnMut(usize)) {
    if shape.contains(&0) {
        return;
    }
    let Some((&row, outer)) = shape.split_last() else {
        visit(offset);
        return;
    };
    let (row_stride, outer_strides) = (strides[outer.len()], &strides[..outer.len()]);
    let mut index = vec![0usize; outer.len()];
    let mut start = offset as isize;
    loop {
        for step in 0..row as isize {
            visit((start + step * row_stride) as usize);
        }
        let mut dimension = outer.len();
        loop {
            if dimension == 0 {
                return;
            }
            dimension -= 1;
            index[dimension] += 1;
            start += outer_strides[dimension];
            if index[dimension] < outer[dimension] {
                break;
            }
            start -= outer_strides[dimension] * outer[dimension] as isize;
            index[dimension] = 0;
        }
    }
}

/// Gathers a strided view's bytes in row-major order.
pub fn gather(bytes: &[u8], size: usize, shape: &[usize], strides: &[isize], offset: usize, into: &mut Vec<u8>) {
    into.clear();
    if shape.contains(&0) {
        return;
    }
    let count: usize = shape.iter().product();
    if is_contiguous(shape, strides) {
        into.extend_from_slice(&bytes[offset * size..(offset + count) * size]);
        return;
    }
    into.reserve(count * size);
    match size {
        1 => for_each_position(shape, strides, offset, |at| into.push(bytes[at])),
        2 => for_each_position(shape, strides, offset, |at| into.extend_from_slice(&bytes[at * 2..at * 2 + 2])),
        4 => for_each_position(shape, strides, offset, |at| into.extend_from_slice(&bytes[at * 4..at * 4 + 4])),
        _ => for_each_position(shape, strides, offset, |at| into.extend_from_slice(&bytes[at * 8..at * 8 + 8])),
    }
}

/// Scatters row-major bytes into a strided view. Where strides are 0 the last one stays.
pub fn scatter(from: &[u8], size: usize, shape: &[usize], strides: &[isize], offset: usize, into: &mut [u8]) {
    let mut elements = from.chunks_exact(size);
    for_each_position(shape, strides, offset, |at| {
        if let Some(element) = elements.next() {
            into[at * size..(at + 1) * size].copy_from_slice(element);
        }
    });
}

pub fn decode_slice(dtype: DType, bytes: &[u8], into: &mut Vec<f64>) {
    into.clear();
    let word2 = |chunk: &[u8]| u64::from(u16::from_le_bytes([chunk[0], chunk[1]]));
    let word4 = |chunk: &[u8]| u32::from_le_bytes([chunk[0], chunk[1], chunk[2], chunk[3]]);
    match dtype {
        DType::F32 => into.extend(bytes.chunks_exact(4).map(|chunk| f64::from(f32::from_bits(word4(chunk))))),
        DType::BF16 => {
            into.extend(bytes.chunks_exact(2).map(|chunk| f64::from(f32::from_bits((word2(chunk) as u32) << 16))))
        }
        _ => match dtype.size() {
            1 => into.extend(bytes.iter().map(|byte| dtype.decode(u64::from(*byte)))),
            2 => into.extend(bytes.chunks_exact(2).map(|chunk| dtype.decode(word2(chunk)))),
            4 => into.extend(bytes.chunks_exact(4).map(|chunk| dtype.decode(u64::from(word4(chunk))))),
            _ => into.extend(bytes.chunks_exact(8).map(|chunk| {
                let mut word = [0; 8];
                word.copy_from_slice(chunk);
                dtype.decode(u64::from_le_bytes(word))
            })),
        },
    }
}

/// Encodes values as contiguous elements; `into` must have the size of all of them.
pub fn encode_slice(dtype: DType, values: &[f64], into: &mut [u8]) {
    let size = dtype.size();
    if dtype == DType::F32 {
        for (value, chunk) in values.iter().zip(into.as_chunks_mut::<4>().0) {
            *chunk = (*value as f32).to_le_bytes();
        }
        return;
    }
    for (value, chunk) in values.iter().zip(into.chunks_exact_mut(size)) {
        chunk.copy_from_slice(&dtype.encode(*value).to_le_bytes()[..size]);
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    #[test]
    fn hostile_shapes_are_errors() {
        let none = || Storage::filled(0, 0);
        assert!(matches!(
            Tensor::new(DType::F64, vec![usize::MAX, usize::MAX], vec![0, 0], 0, none()),
            Err(TensorError::TooLarge { .. })
        ));
        // An expanded dim lies in memory, and a copy of it would not.
        let expanded = Tensor::new(DType::I8, vec![1 << 59], vec![0], 0, Storage::filled(1, 0));
        assert!(matches!(expanded, Err(TensorError::TooLarge { .. })));
        assert!(matches!(
            Tensor::new(DType::F32, vec![1; 65], vec![1; 65], 0, none()),
            Err(TensorError::Rank { rank: 65 })
        ));
        assert!(matches!(Tensor::new(DType::F32, vec![2], vec![], 0, none()), Err(TensorError::StrideCount { .. })));
        assert!(matches!(
            Tensor::new(DType::F32, vec![2], vec![1], 0, Storage::filled(7, 0)),
            Err(TensorError::OddLength { bytes: 7, .. })
        ));
        assert!(matches!(
            Tensor::new(DType::F32, vec![2], vec![isize::MAX], 0, Storage::filled(8, 0)),
            Err(TensorError::OutOfBounds { .. })
        ));
        assert!(matches!(
            Tensor::new(DType::F32, vec![2], vec![-1], 0, Storage::filled(8, 0)),
            Err(TensorError::OutOfBounds { lowest: -1, .. })
        ));
        assert!(matches!(
            Tensor::new(DType::F32, vec![0], vec![1], 9, Storage::filled(8, 0)),
            Err(TensorError::OutOfBounds { .. })
        ));
        assert!(matches!(Tensor::contiguous(DType::F32, vec![3], &[0; 8]), Err(TensorError::ByteCount { .. })));
    }

    #[test]
    fn a_zero_size_tensor_works_even_beside_a_huge_dimension() {
        for shape in [vec![usize::MAX, 0, 5], vec![0, 1 << 61, 4], vec![usize::MAX, usize::MAX, 0]] {
            let tensor = Tensor::new(DType::F32, shape, vec![1, 1, 1], 0, Storage::filled(0, 0)).unwrap();
            assert!(tensor.is_empty() && tensor.is_contiguous());
            assert_eq!((tensor.len(), tensor.to_f64().len(), tensor.to_contiguous_bytes().len()), (0, 0, 0));
            assert_eq!(tensor.to_contiguous().len(), 0);
        }
        let scalar = Tensor::from_f64(DType::F64, vec![], &[2.5]).unwrap();
        assert_eq!(scalar.to_f64(), [2.5]);
    }

    #[test]
    fn strides_of_zero_and_below_are_read() {
        let storage = Storage::copy_of(&[1, 2, 3, 4]);
        let expanded = Tensor::new(DType::U8, vec![2, 3], vec![0, 1], 1, storage.clone()).unwrap();
        assert_eq!(expanded.to_f64(), [2.0, 3.0, 4.0, 2.0, 3.0, 4.0]);
        let reversed = Tensor::new(DType::U8, vec![4], vec![-1], 3, storage).unwrap();
        assert_eq!(reversed.to_f64(), [4.0, 3.0, 2.0, 1.0]);
    }

    #[test]
    fn an_empty_tensor_may_have_sizes_and_strides_of_any_magnitude() {
        let shape = vec![usize::MAX, usize::MAX, usize::MAX, 0];
        let strides = vec![isize::MAX, isize::MAX, isize::MAX, 1];
        let dense = (vec![0, isize::MAX as usize, 4], vec![isize::MAX, 4, 1]);
        for (shape, strides) in [(shape, strides), dense] {
            let empty = Tensor::new(DType::Bool, shape, strides, 0, Storage::filled(1, 0)).unwrap();
            assert!(empty.is_empty() && empty.to_f64().is_empty());
        }
    }

    fn any_dtype() -> impl Strategy<Value = DType> {
        proptest::sample::select(DType::ALL.to_vec())
    }

    proptest! {
        #[test]
        fn the_constructor_never_panics(
            dtype in any_dtype(),
            shape in proptest::collection::vec(prop_oneof![0usize..5, any::<usize>()], 0..5),
            strides in proptest::collection::vec(prop_oneof![-3isize..9, any::<isize>()], 0..5),
            offset in prop_oneof![0usize..40, any::<usize>()],
            bytes in 0usize..200,
        ) {
            if let Ok(tensor) = Tensor::new(dtype, shape, strides, offset, Storage::filled(bytes, 0x55)) {
                prop_assert_eq!(tensor.to_f64().len(), tensor.len());
                prop_assert_eq!(tensor.to_contiguous().to_contiguous_bytes(), tensor.to_contiguous_bytes());
            }
        }

        #[test]
        fn any_tensor_round_trips(
            dtype in any_dtype(),
            shape in proptest::collection::vec(0usize..5, 0..4),
            gaps in proptest::collection::vec(0isize..3, 4),
            offset in 0usize..7,
            seed in any::<u64>(),
        ) {
            let mut strides = vec![0; shape.len()];
            let mut step = 1 + gaps[3];
            for dimension in (0..shape.len()).rev() {
                strides[dimension] = step;
                step = step * shape[dimension].max(1) as isize + gaps[dimension];
            }
            let count: usize = shape.iter().product();
            let mut stream = crate::rng::Stream::new(seed, "data/input/0");
            let size = dtype.size();
            let mut elements: Vec<u8> = (0..count * size).map(|_| stream.next_word() as u8).collect();
            if dtype == DType::Bool {
                elements.iter_mut().for_each(|byte| *byte &= 1);
            }
            let mut storage = Storage::filled((offset + step as usize + 1) * size, 0xee);
            scatter(&elements, size, &shape, &strides, offset, storage.as_bytes_mut());
            let tensor = Tensor::new(dtype, shape.clone(), strides, offset, storage).unwrap();
            prop_assert_eq!(&tensor.to_contiguous_bytes(), &elements);
            let values = tensor.to_f64();
            if dtype.size() < 8 || dtype == DType::F64 {
                let again = Tensor::from_f64(dtype, shape, &values).unwrap();
                for (left, right) in again.to_f64().iter().zip(&values) {
                    prop_assert!(left.to_bits() == right.to_bits() || (left.is_nan() && right.is_nan()));
                }
            }
        }
    }
}
