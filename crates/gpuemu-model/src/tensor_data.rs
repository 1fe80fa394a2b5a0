//! Tensors in messages: as base64 text, as a span of the frame's payload, or in shared memory.

use base64::Engine;
use base64::engine::general_purpose::STANDARD;
use gpuemu_tensor::storage::ALIGNMENT;
use gpuemu_tensor::tensor::{contiguous_strides, element_count};
use gpuemu_tensor::{DType, Storage, Tensor, TensorError};
use serde::{Deserialize, Serialize};
use thiserror::Error;

use crate::schema::JsonSchema;

/// A tensor of a message. Exactly one of `data`, `binary` and `shared` says where its bytes are.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct TensorData {
    /// The element type.
    pub dtype: DType,
    /// Sizes of the dimensions.
    pub shape: Vec<usize>,
    /// Distances between neighbours, in elements; row-major if left out.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub strides: Option<Vec<isize>>,
    /// Where in the bytes the element at index 0 lies, in elements.
    #[serde(default, skip_serializing_if = "is_zero")]
    pub offset: usize,
    /// Base64 of the bytes.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub data: Option<String>,
    /// Place of the bytes in the frame's payload.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub binary: Option<Span>,
    /// Place of the bytes in shared memory.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub shared: Option<SharedMemory>,
}

fn is_zero(value: &usize) -> bool {
    *value == 0
}

/// Bytes that a tensor may have although fewer were sent.
pub const LARGEST_EXPANSION: usize = 256 << 20;

/// Some bytes among others.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct Span {
    /// The first byte.
    pub offset: u64,
    /// The number of bytes.
    pub length: u64,
}

/// Some bytes of a file in shared memory.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct SharedMemory {
    /// The file's name, without a folder.
    pub name: String,
    /// The first byte.
    pub offset: u64,
    /// The number of bytes.
    pub length: u64,
}

/// Tensors by name, in order.
pub type NamedTensorData = indexed::Named<TensorData>;

mod indexed {
    //! A JSON object that keeps the order of its names and refuses a name that comes twice.

    use std::fmt;
    use std::marker::PhantomData;

    use serde::de::{Error, MapAccess, Visitor};
    use serde::ser::SerializeMap;
    use serde::{Deserialize, Deserializer, Serialize, Serializer};

    /// Values by name, in order.
    #[derive(Debug, Clone, PartialEq)]
    pub struct Named<T>(pub Vec<(String, T)>);

    impl<T> Default for Named<T> {
        fn default() -> Self {
            Self(Vec::new())
        }
    }

    impl<T: Serialize> Serialize for Named<T> {
        fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
            let mut map = serializer.serialize_map(Some(self.0.len()))?;
            for (name, value) in &self.0 {
                map.serialize_entry(name, value)?;
            }
            map.end()
        }
    }

    impl<'de, T: Deserialize<'de>> Deserialize<'de> for Named<T> {
        fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
            struct Names<T>(PhantomData<T>);
            impl<'de, T: Deserialize<'de>> Visitor<'de> for Names<T> {
                type Value = Named<T>;
                fn expecting(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
                    formatter.write_str("an object of tensors by name")
                }
                fn visit_map<A: MapAccess<'de>>(self, mut map: A) -> Result<Named<T>, A::Error> {
                    let mut values: Vec<(String, T)> = Vec::new();
                    while let Some((name, value)) = map.next_entry::<String, T>()? {
                        if values.iter().any(|(known, _)| *known == name) {
                            return Err(A::Error::custom(format!("'{name}' comes twice")));
                        }
                        values.push((name, value));
                    }
                    Ok(Named(values))
                }
            }
            deserializer.deserialize_map(Names(PhantomData))
        }
    }
}

/// Why the tensor of a message cannot be read.
#[derive(Debug, Clone, PartialEq, Eq, Error)]
pub enum TensorDataError {
    /// None or several of the three places are given.
    #[error("exactly one of 'data', 'binary' and 'shared' must say where the bytes are; {0} do")]
    Places(usize),
    /// Not base64.
    #[error("'data' is not base64: {0}")]
    Base64(String),
    /// A span outside of the payload.
    #[error("the payload has {available} bytes, but bytes {offset} to {offset}+{length} are asked for")]
    Payload {
        /// Bytes of the payload.
        available: usize,
        /// The first byte asked for.
        offset: u64,
        /// The number of bytes asked for.
        length: u64,
    },
    /// Shared memory cannot be read.
    #[error("shared memory: {0}")]
    Shared(String),
    /// Shape, strides and bytes do not fit.
    #[error(transparent)]
    Tensor(#[from] TensorError),
}

impl TensorData {
    /// A tensor as base64 text: contiguous, as every reader understands it.
    pub fn base64(tensor: &Tensor) -> Self {
        let bytes = tensor.to_contiguous_bytes();
        Self { data: Some(STANDARD.encode(bytes)), ..Self::form(tensor.dtype(), tensor.shape()) }
    }

    /// A tensor as base64 text, with its strides and gaps.
    pub fn base64_as_it_lies(tensor: &Tensor) -> Self {
        Self {
            strides: (!tensor.is_contiguous()).then(|| tensor.strides().to_vec()),
            offset: tensor.offset(),
            data: Some(STANDARD.encode(tensor.storage().as_bytes())),
            ..Self::form(tensor.dtype(), tensor.shape())
        }
    }

    fn form(dtype: DType, shape: &[usize]) -> Self {
        Self { dtype, shape: shape.to_vec(), strides: None, offset: 0, data: None, binary: None, shared: None }
    }

    /// Bytes that it takes in a message or in memory.
    pub fn length(&self) -> u64 {
        let text = self.data.as_ref().map_or(0, String::len) as u64;
        let (binary, shared) =
            (self.binary.map_or(0, |span| span.length), self.shared.as_ref().map_or(0, |place| place.length));
        // Whoever wrote them may have written anything.
        text.saturating_add(binary).saturating_add(shared)
    }

    /// A contiguous tensor whose bytes lie in shared memory.
    pub fn in_shared_memory(dtype: DType, shape: &[usize], shared: SharedMemory) -> Self {
        Self { shared: Some(shared), ..Self::form(dtype, shape) }
    }

    /// The tensor. `payload` is that of the frame, `shared` reads shared memory.
    pub fn tensor(
        &self,
        payload: &[u8],
        shared: impl Fn(&SharedMemory) -> Result<Storage, String>,
    ) -> Result<Tensor, TensorDataError> {
        // Before any byte is fetched: a shape that cannot be is no reason to allocate.
        element_count(self.dtype, &self.shape)?;
        let storage = match (&self.data, &self.binary, &self.shared) {
            (Some(text), None, None) => {
                let bytes = STANDARD.decode(text).map_err(|error| TensorDataError::Base64(error.to_string()))?;
                Storage::copy_of(&bytes)
            }
            (None, Some(span), None) => Storage::copy_of(span_of(payload, *span)?),
            (None, None, Some(place)) => {
                // Before it is read: a file may be as long as somebody says.
                let expected = element_count(self.dtype, &self.shape)? * self.dtype.size();
                if self.strides.is_none() && self.offset == 0 && place.length != expected as u64 {
                    let (shape, dtype, actual) = (self.shape.clone(), self.dtype, place.length as usize);
                    return Err(TensorError::ByteCount { shape, dtype, expected, actual }.into());
                }
                shared(place).map_err(TensorDataError::Shared)?
            }
            (data, binary, shared) => {
                let places = [data.is_some(), binary.is_some(), shared.is_some()];
                return Err(TensorDataError::Places(places.into_iter().filter(|given| *given).count()));
            }
        };
        // Strides of 0 make much of little: what is computed from must not be far more than what was sent.
        let bytes = element_count(self.dtype, &self.shape)? * self.dtype.size();
        if bytes > storage.len().max(LARGEST_EXPANSION) {
            return Err(TensorError::TooLarge { shape: self.shape.clone(), dtype: self.dtype }.into());
        }
        match &self.strides {
            None if self.offset == 0 => {
                let expected = element_count(self.dtype, &self.shape)? * self.dtype.size();
                if storage.len() != expected {
                    let (shape, dtype, actual) = (self.shape.clone(), self.dtype, storage.len());
                    return Err(TensorError::ByteCount { shape, dtype, expected, actual }.into());
                }
                let strides = contiguous_strides(&self.shape);
                Ok(Tensor::new(self.dtype, self.shape.clone(), strides, 0, storage)?)
            }
            strides => {
                let strides = strides.clone().unwrap_or_else(|| contiguous_strides(&self.shape));
                Ok(Tensor::new(self.dtype, self.shape.clone(), strides, self.offset, storage)?)
            }
        }
    }
}

fn span_of(payload: &[u8], span: Span) -> Result<&[u8], TensorDataError> {
    let outside = TensorDataError::Payload { available: payload.len(), offset: span.offset, length: span.length };
    let start = usize::try_from(span.offset).ok();
    let end = start.zip(usize::try_from(span.length).ok()).and_then(|(start, length)| start.checked_add(length));
    start.zip(end).and_then(|(start, end)| payload.get(start..end)).ok_or(outside)
}

/// The payload of a frame that is being put together.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Payload {
    bytes: Vec<u8>,
}

impl Payload {
    /// Adds a tensor, strides and gaps included, and says where it is.
    pub fn push(&mut self, tensor: &Tensor) -> TensorData {
        self.bytes.resize(self.bytes.len().next_multiple_of(ALIGNMENT), 0);
        let storage = tensor.storage().as_bytes();
        let span = Span { offset: self.bytes.len() as u64, length: storage.len() as u64 };
        self.bytes.extend_from_slice(storage);
        TensorData {
            strides: (!tensor.is_contiguous()).then(|| tensor.strides().to_vec()),
            offset: tensor.offset(),
            binary: Some(span),
            ..TensorData::form(tensor.dtype(), tensor.shape())
        }
    }

    pub fn bytes(&self) -> &[u8] {
        &self.bytes
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use gpuemu_tensor::Layout;

    fn no_memory(_: &SharedMemory) -> Result<Storage, String> {
        Err("none here".to_string())
    }

    #[test]
    fn a_tensor_travels_as_text_and_as_bytes() {
        let elements: Vec<u8> = (0..24).collect();
        let tensor = Layout::Transposed.place(DType::F32, &[2, 3], &elements).unwrap();
        let text = serde_json::to_string(&TensorData::base64(&tensor)).unwrap();
        assert_eq!(text, r#"{"dtype":"float32","shape":[2,3],"data":"AAECAwQFBgcICQoLDA0ODxAREhMUFRYX"}"#);
        let read: TensorData = serde_json::from_str(&text).unwrap();
        assert_eq!(read.tensor(&[], no_memory).unwrap().to_contiguous_bytes(), elements);
        assert_eq!(TensorData::base64_as_it_lies(&tensor).tensor(&[], no_memory).unwrap(), tensor);
        let mut payload = Payload::default();
        payload.push(&tensor);
        let data = payload.push(&tensor);
        assert_eq!(data.binary.unwrap().offset % ALIGNMENT as u64, 0);
        assert_eq!(data.tensor(payload.bytes(), no_memory).unwrap(), tensor);
    }

    #[test]
    fn hostile_tensors_are_errors() {
        for (text, part) in [
            (r#"{"dtype":"float32","shape":[1]}"#, "exactly one"),
            (r#"{"dtype":"float32","shape":[1],"data":"AAAA","binary":{"offset":0,"length":4}}"#, "2 do"),
            (r#"{"dtype":"float32","shape":[1],"data":"%%%"}"#, "base64"),
            (r#"{"dtype":"float32","shape":[1],"data":"AAA="}"#, "takes 4 bytes, but 2"),
            (r#"{"dtype":"float32","shape":[9223372036854775807,9],"data":""}"#, "more elements"),
            (r#"{"dtype":"float32","shape":[1],"binary":{"offset":18446744073709551615,"length":4}}"#, "payload has 0"),
            (r#"{"dtype":"float32","shape":[2],"strides":[-1],"data":"AAAAAAAAAAA="}"#, "elements -1..=0"),
            (r#"{"dtype":"float32","shape":[1073741824],"strides":[0],"data":"AAAAAA=="}"#, "more elements"),
            (r#"{"dtype":"float32","shape":[1],"shared":{"name":"x","offset":0,"length":4}}"#, "none here"),
        ] {
            let data: TensorData = serde_json::from_str(text).unwrap();
            let error = data.tensor(&[], no_memory).unwrap_err().to_string();
            assert!(error.contains(part), "{error}");
        }
        let twice = r#"{"a":{"dtype":"float32","shape":[0],"data":""},"a":{"dtype":"float32","shape":[0],"data":""}}"#;
        assert!(serde_json::from_str::<NamedTensorData>(twice).is_err());
    }
}
