//! Folders that targets work in: in memory, where nothing is waited for.

use std::path::Path;

use tempfile::TempDir;

/// A new folder, gone with the value.
pub fn folder() -> Option<TempDir> {
    let memory = Path::new("/dev/shm");
    let mut builder = tempfile::Builder::new();
    let builder = builder.prefix("hostile-");
    if memory.is_dir() { builder.tempdir_in(memory).ok() } else { builder.tempdir().ok() }
}
