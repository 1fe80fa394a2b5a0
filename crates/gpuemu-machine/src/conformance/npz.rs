//! Archives of arrays: NumPy's `.npz`, a zip of `.npy` files.

use std::fs::File;
use std::io::{BufReader, Read};
use std::path::{Path, PathBuf};

use gpuemu_tensor::npy::Npy;
use zip::ZipArchive;

use super::pack::PackError;

/// More than any header of an array takes.
const MOST_HEADER_BYTES: u64 = 1 << 16;

pub struct Npz {
    path: PathBuf,
    archive: ZipArchive<BufReader<File>>,
}

/// An array: its elements in the order of C, whatever its shape.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Array {
    pub element_bytes: usize,
    pub data: Vec<u8>,
}

impl Npz {
    pub fn open(path: &Path) -> Result<Self, PackError> {
        let file = File::open(path).map_err(|error| PackError::new(path, error))?;
        let archive = ZipArchive::new(BufReader::new(file)).map_err(|error| PackError::new(path, error))?;
        Ok(Self { path: path.to_path_buf(), archive })
    }

    /// Reads an array by its name, which has at most this many bytes.
    pub fn array(&mut self, key: &str, most_bytes: u64) -> Result<Array, PackError> {
        let wrong = |message: &dyn std::fmt::Display| PackError::new(&self.path, format!("{key}: {message}"));
        let mut file = self.archive.by_name(&format!("{key}.npy")).map_err(|error| wrong(&error))?;
        // What a file says of its own size is not to be believed.
        let limit = most_bytes.saturating_add(MOST_HEADER_BYTES);
        let mut bytes = Vec::new();
        file.by_ref().take(limit.saturating_add(1)).read_to_end(&mut bytes).map_err(|error| wrong(&error))?;
        if bytes.len() as u64 > limit {
            return Err(wrong(&format!("more than the {most_bytes} bytes that the manifest says")));
        }
        let array = Npy::read(&bytes).map_err(|error| wrong(&error))?;
        Ok(Array { element_bytes: array.element_bytes, data: array.data.to_vec() })
    }
}
