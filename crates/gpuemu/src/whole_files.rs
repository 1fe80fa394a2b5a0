//! Writing files as a whole: whoever reads one sees the old one or the new one.

use std::fs::File;
use std::io::Write;
use std::path::{Path, PathBuf};

/// Writes files beside their places and then puts all of them there. A link stays a link, and a file that is replaced
/// keeps its permissions.
pub fn write(files: &[(&Path, &[u8])]) -> std::io::Result<()> {
    let mut placed: Vec<(PathBuf, PathBuf)> = Vec::new();
    let written = files
        .iter()
        .try_for_each(|(path, bytes)| {
            let place = std::fs::canonicalize(path).unwrap_or_else(|_| path.to_path_buf());
            let mut beside = place.clone().into_os_string();
            beside.push(format!(".{}.new", std::process::id()));
            placed.push((PathBuf::from(beside), place));
            placed.last().map_or(Ok(()), |(beside, place)| write_beside(beside, place, bytes))
        })
        .and_then(|()| placed.iter().try_for_each(|(beside, place)| std::fs::rename(beside, place)));
    if written.is_err() {
        // What is in the way of a file is in the way of its removal too.
        placed.iter().for_each(|(beside, _)| drop(std::fs::remove_file(beside)));
    }
    written
}

fn write_beside(beside: &Path, place: &Path, bytes: &[u8]) -> std::io::Result<()> {
    let mut file = File::create(beside)?;
    file.write_all(bytes)?;
    file.sync_all()?;
    match std::fs::metadata(place) {
        Ok(old) => std::fs::set_permissions(beside, old.permissions()),
        Err(_) => Ok(()),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_file_is_replaced_as_a_whole_and_a_link_stays_one() {
        let folder = tempfile::TempDir::new().unwrap();
        let (real, link) = (folder.path().join("real.toml"), folder.path().join("gpuemu.toml"));
        std::fs::write(&real, "old").unwrap();
        std::os::unix::fs::symlink(&real, &link).unwrap();
        write(&[(&link, b"new")]).unwrap();
        assert_eq!(std::fs::read_to_string(&real).unwrap(), "new");
        assert!(std::fs::symlink_metadata(&link).unwrap().is_symlink());
        assert_eq!(std::fs::read_dir(folder.path()).unwrap().count(), 2);
    }

    #[test]
    fn where_one_cannot_be_written_nothing_is() {
        let folder = tempfile::TempDir::new().unwrap();
        let (good, bad) = (folder.path().join("good"), folder.path().join("none/bad"));
        assert!(write(&[(&good, b"1"), (&bad, b"2")]).is_err());
        assert_eq!(std::fs::read_dir(folder.path()).unwrap().count(), 0);
    }
}
