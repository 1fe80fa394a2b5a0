//! Finds the root of the repository.

use std::env;
use std::path::{Path, PathBuf};

use crate::failure::Failure;

/// The folder that holds `xtask/Cargo.toml`.
///
/// Looked up when the program runs, not when it is compiled: clones may share one target folder.
pub fn root() -> Result<PathBuf, Failure> {
    let start = match env::var_os("CARGO_MANIFEST_DIR") {
        Some(folder) => PathBuf::from(folder),
        None => env::current_dir()
            .map_err(|error| Failure::Environment(format!("cannot read the current folder: {error}")))?,
    };
    root_above(&start)
        .ok_or_else(|| Failure::Environment(format!("no folder above {} holds xtask/Cargo.toml", start.display())))
}

fn root_above(start: &Path) -> Option<PathBuf> {
    start.ancestors().find(|folder| folder.join("xtask/Cargo.toml").is_file()).map(Path::to_path_buf)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_root_is_found_from_a_folder_inside() {
        let root = root().unwrap();
        assert!(root.join("Cargo.lock").is_file());
        assert_eq!(root_above(&root.join("xtask/src/bench")), Some(root.clone()));
        assert_eq!(root_above(Path::new("/")), None);
    }

    #[test]
    fn newcomers_are_told_what_every_folder_holds() {
        let root = root().unwrap();
        let told = std::fs::read_to_string(root.join("CONTRIBUTING.md")).unwrap();
        for within in ["", "crates"] {
            for entry in std::fs::read_dir(root.join(within)).unwrap() {
                let entry = entry.unwrap();
                let name = entry.file_name().into_string().unwrap();
                let is_ours = entry.path().is_dir() && !name.starts_with('.') && name != "target" && name != "crates";
                let folder = Path::new(within).join(name);
                let is_told = ["`", "/"].iter().any(|end| told.contains(&format!("`{}{end}", folder.display())));
                assert!(!is_ours || is_told, "{}", folder.display());
            }
        }
    }
}
