//! The inputs of a failing case, small enough to keep: what is read back is believed in nothing.

use gpuemu_tensor::{DType, Storage, Tensor};
use lz4_flex::block::{compress, decompress_into};
use serde::{Deserialize, Serialize};

use super::StoreError;

/// Most bytes that one byte of an lz4 block can stand for.
const LARGEST_RATIO: u64 = 255;

/// Most bytes of inputs that are kept whatever the limit: an lz4 block, and a value of the database, have theirs.
const MOST_BYTES: u64 = 1 << 30;

/// One input, laid out as the kernel got it.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct SnapshotTensor {
    /// Name of the input.
    pub name: String,
    /// Name of its dtype.
    pub dtype: String,
    /// Sizes of the dimensions.
    pub shape: Vec<u64>,
    /// Distances between neighbours along each dimension, in elements.
    pub strides: Vec<i64>,
    /// Where the element at index 0 lies, in elements.
    pub offset: u64,
    /// Bytes of the storage, gaps included.
    pub storage_bytes: u64,
    /// The storage, as an lz4 block; its bytes stand after the record.
    #[serde(skip)]
    pub compressed: Vec<u8>,
}

/// The inputs of a case; none where they were too large, or are rebuilt from the seed.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct Snapshot {
    /// The inputs, in their order.
    pub inputs: Vec<SnapshotTensor>,
}

impl Snapshot {
    /// The snapshot of some inputs; an empty one if they have more than `limit_bytes` together.
    pub fn of(inputs: &[(String, Tensor)], limit_bytes: u64) -> Snapshot {
        let bytes: u64 = inputs.iter().map(|(_, tensor)| tensor.storage().len() as u64).sum();
        if bytes > limit_bytes.min(MOST_BYTES) {
            return Snapshot::default();
        }
        Snapshot { inputs: inputs.iter().map(|(name, tensor)| SnapshotTensor::of(name, tensor)).collect() }
    }

    /// Whether it holds no inputs.
    pub fn is_empty(&self) -> bool {
        self.inputs.is_empty()
    }

    /// The inputs, each checked before anything is allocated for it.
    pub fn tensors(&self) -> Result<Vec<(String, Tensor)>, StoreError> {
        self.inputs.iter().map(|input| Ok((input.name.clone(), input.tensor()?))).collect()
    }
}

impl SnapshotTensor {
    fn of(name: &str, tensor: &Tensor) -> Self {
        Self {
            name: name.to_string(),
            dtype: tensor.dtype().name().to_string(),
            shape: tensor.shape().iter().map(|size| *size as u64).collect(),
            strides: tensor.strides().iter().map(|stride| *stride as i64).collect(),
            offset: tensor.offset() as u64,
            storage_bytes: tensor.storage().len() as u64,
            compressed: compress(tensor.storage().as_bytes()),
        }
    }

    fn tensor(&self) -> Result<Tensor, StoreError> {
        let damaged = |what: String| StoreError::Damaged(format!("input {:?} of a snapshot: {what}", self.name));
        let too_large = || damaged("a size that cannot be addressed".to_string());
        let dtype: DType = self.dtype.parse().map_err(|error| damaged(format!("{error}")))?;
        let shape: Result<Vec<usize>, _> = self.shape.iter().map(|size| usize::try_from(*size)).collect();
        let strides: Result<Vec<isize>, _> = self.strides.iter().map(|stride| isize::try_from(*stride)).collect();
        let offset = usize::try_from(self.offset).map_err(|_| too_large())?;
        if self.storage_bytes > (self.compressed.len() as u64).saturating_mul(LARGEST_RATIO) {
            let (claimed, held) = (self.storage_bytes, self.compressed.len());
            return Err(damaged(format!("{held} compressed bytes cannot stand for {claimed}")));
        }
        let length = usize::try_from(self.storage_bytes).map_err(|_| too_large())?;
        let mut storage = Storage::filled(length, 0);
        let read = decompress_into(&self.compressed, storage.as_bytes_mut());
        let read = read.map_err(|error| damaged(error.to_string()))?;
        if read != length {
            return Err(damaged(format!("{read} bytes where {length} were kept")));
        }
        Tensor::new(dtype, shape.map_err(|_| too_large())?, strides.map_err(|_| too_large())?, offset, storage)
            .map_err(|error| damaged(error.to_string()))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use gpuemu_tensor::{Layout, Stream};
    use proptest::prelude::*;

    fn placed(dtype: DType, shape: &[usize], layout: Layout, seed: u64) -> Tensor {
        let layout = layout.for_shape(shape);
        let count: usize = layout.stored_shape(shape).iter().product();
        let mut stream = Stream::new(seed, "data/input/0");
        let elements: Vec<u8> = (0..count * dtype.size()).map(|_| stream.next_word() as u8 & 3).collect();
        layout.place(dtype, shape, &elements).unwrap()
    }

    fn snapshot() -> Snapshot {
        let tensor = placed(DType::F32, &[3, 5], Layout::RowGap, 7);
        Snapshot::of(&[("x".to_string(), tensor)], 1000)
    }

    fn damage(change: impl FnOnce(&mut SnapshotTensor)) -> String {
        let mut snapshot = snapshot();
        change(&mut snapshot.inputs[0]);
        match snapshot.tensors() {
            Err(StoreError::Damaged(message)) => message,
            other => panic!("{other:?}"),
        }
    }

    #[test]
    fn inputs_over_the_limit_are_not_kept() {
        let bytes = placed(DType::F32, &[3, 5], Layout::RowGap, 7).storage().len() as u64;
        let inputs = [("x".to_string(), placed(DType::F32, &[3, 5], Layout::RowGap, 7))];
        assert!(Snapshot::of(&inputs, bytes - 1).is_empty());
        assert_eq!(Snapshot::of(&inputs, bytes).tensors().unwrap(), inputs);
    }

    #[test]
    fn what_cannot_be_is_named_before_anything_is_allocated() {
        assert!(damage(|input| input.storage_bytes = u64::MAX).contains("cannot stand for"));
        assert!(damage(|input| input.storage_bytes = 1 << 50).contains("cannot stand for"));
        assert!(damage(|input| input.storage_bytes -= 4).contains("input \"x\""));
        assert!(damage(|input| input.storage_bytes += 4).contains("where"));
        assert!(damage(|input| input.dtype = "float99".to_string()).contains("float99"));
        assert!(damage(|input| input.shape[0] = u64::MAX).contains("input \"x\""));
        assert!(damage(|input| input.strides[0] = i64::MIN).contains("input \"x\""));
        assert!(damage(|input| input.offset = 1 << 40).contains("input \"x\""));
        assert!(damage(|input| input.compressed.clear()).contains("cannot stand for"));
        assert!(damage(|input| input.compressed.truncate(4)).contains("input \"x\""));
        let deep = damage(|input| (input.shape, input.strides) = (vec![1; 65], vec![1; 65]));
        assert!(deep.contains("65"), "{deep}");
    }

    proptest! {
        #[test]
        fn any_tensor_is_read_back(
            dtype in proptest::sample::select(DType::ALL.to_vec()),
            shape in proptest::collection::vec(0usize..6, 0..5),
            layout in proptest::sample::select(Layout::ALL.to_vec()),
            name in any::<String>(),
            seed in any::<u64>(),
        ) {
            let inputs = [(name, placed(dtype, &shape, layout, seed)), ("".to_string(), placed(dtype, &[], layout, seed))];
            prop_assert_eq!(Snapshot::of(&inputs, u64::MAX).tensors().unwrap(), inputs);
        }

        #[test]
        fn compressed_nonsense_never_panics(
            compressed in proptest::collection::vec(any::<u8>(), 0..40),
            storage_bytes in 0u64..20_000,
            shape in proptest::collection::vec(prop_oneof![0u64..6, any::<u64>()], 0..4),
            strides in proptest::collection::vec(prop_oneof![-3i64..6, any::<i64>()], 0..4),
            offset in prop_oneof![0u64..6, any::<u64>()],
        ) {
            let (name, dtype) = ("x".to_string(), "float16".to_string());
            let input = SnapshotTensor { name, dtype, shape, strides, offset, storage_bytes, compressed };
            let _ = Snapshot { inputs: vec![input] }.tensors();
        }
    }
}
