//! gpuemu's folder: the store, the socket and the logs of one user, used by one process at a time.

use std::fs::{File, OpenOptions, Permissions, TryLockError};
use std::io::{Read, Seek, SeekFrom, Write};
use std::os::unix::fs::{DirBuilderExt, PermissionsExt};
use std::path::{Path, PathBuf};

use gpuemu_store::private_file::open_private;
use thiserror::Error;

/// Why the folder cannot be used.
#[derive(Debug, Error)]
pub enum HomeError {
    /// Neither `GPUEMU_HOME` nor `HOME` is set.
    #[error("cannot locate gpuemu's home directory: neither GPUEMU_HOME nor HOME is set")]
    Unknown,
    /// Another process has it.
    #[error("{} is in use by {holder}", home.display())]
    InUse {
        home: PathBuf,
        /// Who has it: its kind and process id.
        holder: String,
    },
    /// It cannot be made or opened.
    #[error("gpuemu cannot use {}: {source}; set GPUEMU_HOME to a folder that you can write to", path.display())]
    Unusable {
        /// The folder or file.
        path: PathBuf,
        source: std::io::Error,
    },
}

/// The folder, held by this process for as long as this lives.
#[derive(Debug)]
pub struct Home {
    path: PathBuf,
    lock: File,
}

impl Home {
    /// Makes the folder if need be and takes its lock. `holder` says who has it, for those who come second.
    pub fn open(path: &Path, holder: &str) -> Result<Self, HomeError> {
        for folder in [path.to_path_buf(), path.join("db"), path.join("logs")] {
            make_private(&folder)?;
        }
        let file = path.join("daemon.lock");
        let unusable = |source| HomeError::Unusable { path: file.clone(), source };
        let mut options = OpenOptions::new();
        let opened = open_private(options.read(true).write(true).create(true).truncate(false), &file);
        let mut lock = opened.map_err(unusable)?;
        match lock.try_lock() {
            Ok(()) => {}
            Err(TryLockError::WouldBlock) => {
                let mut holder = String::new();
                // Who holds it is only for the message.
                let _ = lock.read_to_string(&mut holder);
                let holder = if holder.trim().is_empty() { "another process".to_string() } else { holder };
                return Err(HomeError::InUse { home: path.to_path_buf(), holder: holder.trim().to_string() });
            }
            Err(TryLockError::Error(source)) => return Err(unusable(source)),
        }
        let text = format!("{holder} (process {})\n", std::process::id());
        let written =
            lock.set_len(0).and_then(|()| lock.seek(SeekFrom::Start(0))).and_then(|_| lock.write_all(text.as_bytes()));
        written.map_err(unusable)?;
        Ok(Self { path: path.to_path_buf(), lock })
    }

    pub fn path(&self) -> &Path {
        &self.path
    }

    /// The file of the store.
    pub fn store(&self) -> PathBuf {
        self.path.join("db").join("gpuemu.redb")
    }
}

impl Drop for Home {
    fn drop(&mut self) {
        // An empty file says that nobody has it; the lock itself ends with the file.
        let _ = self.lock.set_len(0);
    }
}

/// Whether nobody has the folder.
pub fn is_free(home: &Path) -> bool {
    match File::open(home.join("daemon.lock")) {
        Ok(lock) => lock.try_lock_shared().is_ok(),
        Err(_) => true,
    }
}

/// The file that the daemon logs to.
pub fn log_file(home: &Path) -> PathBuf {
    home.join("logs").join("daemon.log")
}

/// Makes a folder that only its owner may enter, whatever the umask; also those on the way that are not there.
fn make_private(folder: &Path) -> Result<(), HomeError> {
    let missing: Vec<&Path> = folder.ancestors().take_while(|place| !place.exists()).collect();
    for place in missing.iter().rev().filter(|place| !place.as_os_str().is_empty()) {
        match std::fs::DirBuilder::new().mode(0o700).create(place) {
            // Another process may make it at the same time.
            Err(source) if !place.is_dir() => return Err(HomeError::Unusable { path: place.to_path_buf(), source }),
            _ => own(place)?,
        }
    }
    own(folder)
}

fn own(folder: &Path) -> Result<(), HomeError> {
    let owned = std::fs::set_permissions(folder, Permissions::from_mode(0o700));
    owned.map_err(|source| HomeError::Unusable { path: folder.to_path_buf(), source })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_second_is_told_who_was_first() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("home");
        let first = Home::open(&path, "the daemon").unwrap();
        assert_eq!(std::fs::metadata(&path).unwrap().permissions().mode() & 0o777, 0o700);
        let second = Home::open(&path, "gpuemu test").unwrap_err().to_string();
        assert!(second.contains("the daemon (process "), "{second}");
        assert!(!is_free(&path));
        drop(first);
        assert!(is_free(&path));
        Home::open(&path, "gpuemu test").unwrap();
    }
}
