//! Writing files as a whole: whoever reads one sees the old one or the new one.

use std::fs::File;
use std::io::Write;
use std::path::{Path, PathBuf};

/// Writes files beside their places and then puts all of them there. A link stays a link, and a file that is replaced
/// keeps its permissions. What is no file, such as a device or a pipe, cannot be replaced: it is written as it is, first.
pub fn write(files: &[(&Path, &[u8])]) -> std::io::Result<()> {
    let mut placed: Vec<(PathBuf, PathBuf)> = Vec::new();
    let is_other = |path: &Path| std::fs::metadata(path).is_ok_and(|found| !found.is_file());
    let (others, files): (Vec<_>, Vec<_>) = files.iter().partition(|(path, _)| is_other(path));
    others.iter().try_for_each(|(path, bytes)| std::fs::write(path, bytes))?;
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
    fn what_is_no_file_is_never_replaced_by_one() {
        use std::os::unix::fs::FileTypeExt;
        let folder = tempfile::TempDir::new().unwrap();
        let (socket, beside) = (folder.path().join("socket"), folder.path().join("beside"));
        let _listener = std::os::unix::net::UnixListener::bind(&socket).unwrap();
        // It cannot be written as a file either; then nothing else is.
        assert!(write(&[(&beside, b"1"), (&socket, b"2")]).is_err() && !beside.exists());
        assert!(std::fs::metadata(&socket).unwrap().file_type().is_socket());
    }

    #[test]
    fn where_one_cannot_be_written_nothing_is() {
        let folder = tempfile::TempDir::new().unwrap();
        let (good, bad) = (folder.path().join("good"), folder.path().join("none/bad"));
        assert!(write(&[(&good, b"1"), (&bad, b"2")]).is_err());
        assert_eq!(std::fs::read_dir(folder.path()).unwrap().count(), 0);
    }
}
