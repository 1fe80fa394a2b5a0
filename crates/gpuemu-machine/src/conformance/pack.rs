//! A pack of recordings: a folder with a manifest, arrays, and PTX files.

use std::fmt;
use std::path::{Path, PathBuf};

use thiserror::Error;

use super::launches::{arguments, launch};
use super::manifest::{Arrays, Entry, Parameter, RecordedRole, read_entries};
use crate::Launch;

/// Why a pack cannot be used, and where.
#[derive(Debug, Clone, PartialEq, Eq, Error)]
#[error("{}: {message}", path.display())]
pub struct PackError {
    /// The file or folder.
    pub path: PathBuf,
    pub message: String,
}

impl PackError {
    pub(super) fn new(path: &Path, message: impl fmt::Display) -> Self {
        Self { path: path.to_path_buf(), message: message.to_string() }
    }
}

/// What each buffer of a launch was recorded to hold afterwards, if that was.
pub type Afterwards = Vec<Option<Vec<u8>>>;

#[derive(Debug, Clone, PartialEq)]
pub struct Pack {
    pub folder: PathBuf,
    /// The launches that were recorded.
    pub entries: Vec<Entry>,
}

impl Pack {
    /// Reads the manifest. The arrays are read when they are needed.
    pub fn read(folder: &Path) -> Result<Self, PackError> {
        let path = folder.join("manifest.json");
        let entries = read_entries(&path)?;
        if entries.is_empty() {
            return Err(PackError::new(&path, "there is no entry in it"));
        }
        let mut names: Vec<&str> = entries.iter().map(|entry| entry.id.as_str()).collect();
        names.sort_unstable();
        if let Some([twice, _]) = names.windows(2).find(|pair| matches!(pair, [first, second] if first == second)) {
            return Err(PackError::new(&path, format!("there are two entries '{twice}'")));
        }
        Ok(Self { folder: folder.to_path_buf(), entries })
    }

    /// A launch, and what each of its buffers was recorded to hold afterwards.
    pub fn recorded(&self, entry: &Entry) -> Result<(Launch, Afterwards), PackError> {
        let mut arrays = Arrays::new(&self.folder, entry);
        let launch = launch(entry, &mut arrays)?;
        let mut after = Vec::new();
        for parameter in &entry.params {
            if let Parameter::Buffer(buffer) = parameter {
                after.push(arrays.after(buffer, buffer.out_key.as_ref())?);
            }
        }
        Ok((launch, after))
    }

    /// Reads everything that the launches need, and says what is missing first. The numbers are how many arrays there
    /// are, and how many of them are outputs.
    pub fn check(&self) -> Result<(u64, u64), PackError> {
        let (mut all, mut outputs) = (0, 0);
        for entry in &self.entries {
            let path = self.folder.join(&entry.ptx);
            if !path.is_file() {
                return Err(PackError::new(&path, format!("the PTX of {} is not there", entry.id)));
            }
            let mut arrays = Arrays::new(&self.folder, entry);
            arguments(entry, &mut arrays)?;
            for parameter in &entry.params {
                let Parameter::Buffer(buffer) = parameter else { continue };
                all += u64::from(buffer.key.is_some());
                for key in [&buffer.out_key, &buffer.out2_key] {
                    let there = arrays.after(buffer, key.as_ref())?.is_some();
                    all += u64::from(there);
                }
                outputs += u64::from(buffer.out_key.is_some());
                let written = buffer.role != RecordedRole::In && entry.expect_error.is_none();
                if written && buffer.out_key.is_none() {
                    let message = format!("{}: nothing was recorded of the output {}", entry.id, buffer.name);
                    return Err(PackError::new(&self.folder, message));
                }
            }
        }
        Ok((all, outputs))
    }
}
