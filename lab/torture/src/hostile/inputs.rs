//! The inputs that are kept: a seed or more for every target, and whatever was found to be wrong once.

use std::path::{Path, PathBuf};

/// The folder of a target's inputs.
pub fn folder(name: &str) -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("inputs").join(name)
}

/// The inputs of a target by the names of their files, in order.
pub fn inputs(name: &str) -> Result<Vec<(String, Vec<u8>)>, String> {
    let folder = folder(name);
    let failed = |error: std::io::Error| format!("{}: {error}", folder.display());
    let mut found = Vec::new();
    for entry in std::fs::read_dir(&folder).map_err(failed)? {
        let entry = entry.map_err(failed)?;
        found.push((entry.file_name().to_string_lossy().into_owned(), std::fs::read(entry.path()).map_err(failed)?));
    }
    found.sort();
    if found.is_empty() { Err(format!("{} holds no inputs", folder.display())) } else { Ok(found) }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::hostile::TARGETS;

    /// Every kept input is read, and what was wrong once stays mended.
    #[test]
    fn every_kept_input_is_read() {
        for target in TARGETS {
            for (_, bytes) in inputs(target.name).unwrap() {
                (target.run)(&bytes);
            }
        }
    }
}
