//! Writing files as a whole: whoever reads one sees the old one or the new one.

use std::fs::Permissions;
use std::io::Write;
use std::os::unix::fs::PermissionsExt;
use std::path::Path;

use tempfile::{Builder, NamedTempFile};

/// Writes files beside their places and then puts all of them there. A link stays a link, and a file that is replaced
/// keeps its permissions. What is no file, such as a device or a pipe, cannot be replaced: it is written as it is, first.
pub fn write(files: &[(&Path, &[u8])]) -> std::io::Result<()> {
    let is_other = |path: &Path| std::fs::metadata(path).is_ok_and(|found| !found.is_file());
    let (others, files): (Vec<_>, Vec<_>) = files.iter().partition(|(path, _)| is_other(path));
    others.iter().try_for_each(|(path, bytes)| std::fs::write(path, bytes))?;
    // What was written beside its place is removed where any of them cannot be.
    let written = files.iter().map(|(path, bytes)| {
        let place = std::fs::canonicalize(path).unwrap_or_else(|_| path.to_path_buf());
        Ok((written_beside(&place, bytes)?, place))
    });
    for (file, place) in written.collect::<std::io::Result<Vec<_>>>()? {
        file.persist(place)?;
    }
    Ok(())
}

fn written_beside(place: &Path, bytes: &[u8]) -> std::io::Result<NamedTempFile> {
    let folder = place.parent().filter(|folder| !folder.as_os_str().is_empty()).unwrap_or(Path::new("."));
    // As any new file: what a mask leaves of this.
    let mut file = Builder::new().permissions(Permissions::from_mode(0o666)).tempfile_in(folder)?;
    file.write_all(bytes)?;
    if let Ok(old) = std::fs::metadata(place) {
        file.as_file().set_permissions(old.permissions())?;
    }
    file.as_file().sync_all()?;
    Ok(file)
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
