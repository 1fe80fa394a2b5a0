//! The manifest of a pack of recordings: one entry a launch.

use std::path::{Path, PathBuf};

use gpuemu_tensor::DType;
use serde::Deserialize;
use serde_json::Value;

use super::npz::Npz;
use super::pack::PackError;

/// A launch that was recorded. Fields that are not needed to repeat it are not read.
#[derive(Debug, Clone, PartialEq, Deserialize)]
pub struct Entry {
    pub id: String,
    /// What it belongs to: `kernel`, `instr` or `mma`.
    pub set: String,
    /// The kernel, of whole kernels.
    pub kernel: Option<String>,
    /// The family of instructions, of single instructions.
    pub family: Option<String>,
    /// The instruction, of single instructions.
    pub op: Option<String>,
    /// The PTX file, relative to the pack.
    pub ptx: String,
    pub entry: String,
    /// Parameters, in the order of the PTX.
    pub params: Vec<Parameter>,
    /// Blocks in x, y and z.
    pub grid: [u32; 3],
    /// Threads of a block in x, y and z.
    pub block: [u32; 3],
    /// Bytes of dynamic shared memory.
    pub shared: u32,
    /// The file with its arrays, relative to the pack.
    pub data_file: String,
    /// Whether every run gave the same bits; nothing where there is no output.
    #[serde(default)]
    pub deterministic: Option<bool>,
    /// Whether blocks add to the same places in an order that is not fixed.
    #[serde(default)]
    pub float_atomics_across_ctas: bool,
    /// What the kernel is expected to fail by.
    pub expect_error: Option<String>,
}

/// A parameter of a launch.
#[derive(Debug, Clone, PartialEq, Deserialize)]
#[serde(tag = "kind", rename_all = "snake_case")]
pub enum Parameter {
    Buffer(RecordedBuffer),
    Scalar(RecordedScalar),
    Struct(RecordedStruct),
    Scratch(RecordedScratch),
}

#[derive(Debug, Clone, PartialEq, Deserialize)]
pub struct RecordedBuffer {
    pub name: String,
    /// The type of its elements, or of their bit patterns.
    pub dtype: String,
    /// What the bit patterns mean.
    pub interp: Option<String>,
    /// What the kernel does with it.
    pub role: RecordedRole,
    /// Elements that it has, padding included.
    pub elems: u64,
    /// Its contents before; poison without.
    pub key: Option<String>,
    /// The file that `key` is in, if it is not the entry's.
    pub data_file: Option<String>,
    pub out_key: Option<String>,
    /// Its contents after another run.
    pub out2_key: Option<String>,
    /// Bytes from a multiple of 512 to its beginning.
    #[serde(default)]
    pub offset_bytes: u64,
}

/// What a kernel does with a buffer.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "lowercase")]
#[allow(missing_docs, reason = "the variants are their own names")]
pub enum RecordedRole {
    In,
    Out,
    InOut,
}

#[derive(Debug, Clone, PartialEq, Deserialize)]
pub struct RecordedScalar {
    pub name: String,
    pub dtype: String,
    pub value: Value,
    /// Its exact bit pattern.
    pub bits: Option<u64>,
}

#[derive(Debug, Clone, PartialEq, Eq, Deserialize)]
pub struct RecordedStruct {
    pub name: String,
    /// Its bytes, in hexadecimal digits.
    pub bytes: String,
}

/// A pointer that the compiler added.
#[derive(Debug, Clone, PartialEq, Eq, Deserialize)]
pub struct RecordedScratch {
    pub name: String,
}

/// The types of elements, and the bytes of one.
const ELEMENTS: [(&str, u32); 17] = [
    ("f16", 2),
    ("bf16", 2),
    ("f32", 4),
    ("f64", 8),
    ("fp8e5", 1),
    ("fp8e4nv", 1),
    ("fp8e4b15", 1),
    ("bool", 1),
    ("i1", 1),
    ("i8", 1),
    ("u8", 1),
    ("i16", 2),
    ("u16", 2),
    ("i32", 4),
    ("u32", 4),
    ("i64", 8),
    ("u64", 8),
];

pub(super) fn element_bytes(dtype: &str) -> Option<u32> {
    ELEMENTS.iter().find(|(name, _)| *name == dtype).map(|(_, bytes)| *bytes)
}

impl RecordedBuffer {
    /// The floating-point type of its elements, if they are of one that has arithmetic.
    pub(super) fn float(&self) -> Option<DType> {
        let name = self.interp.as_deref().unwrap_or(&self.dtype);
        name.parse().ok().filter(|dtype: &DType| matches!(dtype, DType::F16 | DType::BF16 | DType::F32 | DType::F64))
    }
}

pub(super) fn read_entries(path: &Path) -> Result<Vec<Entry>, PackError> {
    #[derive(Deserialize)]
    struct Manifest {
        entries: Vec<Value>,
    }
    let text = std::fs::read_to_string(path).map_err(|error| PackError::new(path, error))?;
    let manifest: Manifest = serde_json::from_str(&text).map_err(|error| PackError::new(path, error))?;
    let mut entries = Vec::with_capacity(manifest.entries.len());
    for (number, value) in manifest.entries.into_iter().enumerate() {
        let id = value.get("id").and_then(Value::as_str).unwrap_or("without an id").to_string();
        let entry = Entry::deserialize(value)
            .map_err(|error| PackError::new(path, format!("entry {} ({id}): {error}", number + 1)))?;
        entries.push(entry);
    }
    Ok(entries)
}

/// The arrays of one launch, read from their files. Files are opened once for a launch.
pub(super) struct Arrays<'a> {
    folder: &'a Path,
    entry: &'a Entry,
    files: Vec<(PathBuf, Npz)>,
}

impl<'a> Arrays<'a> {
    pub fn new(folder: &'a Path, entry: &'a Entry) -> Self {
        Self { folder, entry, files: Vec::new() }
    }

    /// What a buffer holds before.
    pub fn before(&mut self, buffer: &RecordedBuffer) -> Result<Option<Vec<u8>>, PackError> {
        let Some(key) = &buffer.key else { return Ok(None) };
        let file = buffer.data_file.as_ref().unwrap_or(&self.entry.data_file);
        self.array(file, key, buffer).map(Some)
    }

    /// What a buffer holds afterwards, by the key of one of the outcomes.
    pub fn after(&mut self, buffer: &RecordedBuffer, key: Option<&String>) -> Result<Option<Vec<u8>>, PackError> {
        let file = &self.entry.data_file;
        key.map(|key| self.array(file, key, buffer)).transpose()
    }

    fn array(&mut self, file: &str, key: &str, buffer: &RecordedBuffer) -> Result<Vec<u8>, PackError> {
        let path = self.folder.join(file);
        let index = match self.files.iter().position(|(known, _)| *known == path) {
            Some(index) => index,
            None => {
                self.files.push((path.clone(), Npz::open(&path)?));
                self.files.len() - 1
            }
        };
        let wrong = |message: String| PackError::new(&path, format!("{key}: {message}"));
        let element = element_bytes(&buffer.dtype).ok_or_else(|| {
            let (id, name, dtype) = (&self.entry.id, &buffer.name, &buffer.dtype);
            PackError::new(self.folder, format!("{id}: the dtype '{dtype}' of {name} is not known"))
        })?;
        let bytes = buffer.elems.checked_mul(u64::from(element)).ok_or_else(|| wrong("too large".to_string()))?;
        let Some((_, npz)) = self.files.get_mut(index) else { return Err(wrong("not opened".to_string())) };
        let array = npz.array(key, bytes)?;
        if array.element_bytes != element as usize {
            let (has, dtype) = (array.element_bytes, &buffer.dtype);
            return Err(wrong(format!("elements of {has} bytes, but {dtype} has {element}")));
        }
        if array.data.len() as u64 != bytes {
            let has = array.data.len() / array.element_bytes;
            return Err(wrong(format!("{has} elements, but the manifest says {}", buffer.elems)));
        }
        Ok(array.data)
    }
}
