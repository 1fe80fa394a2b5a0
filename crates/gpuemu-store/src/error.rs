//! What goes wrong with a store, always with the file it happened to.

use std::io::ErrorKind;
use std::path::{Path, PathBuf};

use gpuemu_config::Failure;
use gpuemu_model::ErrorCode;
use thiserror::Error;

/// What goes wrong with a store.
#[derive(Debug, Clone, PartialEq, Eq, Error)]
pub enum StoreError {
    /// Another process has it.
    #[error("the store {} is in use by another process; stop that daemon, or use it", .0.display())]
    InUse(PathBuf),
    /// The file holds something else.
    #[error("{} is not a gpuemu store and was left as it is; move it away, or name another file", .0.display())]
    NotAStore(PathBuf),
    /// It was written by a version that this one does not know.
    #[error("the store has schema version {found}, this gpuemu knows up to {known}; nothing was changed")]
    UnknownVersion { found: u64, known: u64 },
    /// A record cannot be read.
    #[error("a record of the store is damaged: {0}")]
    Damaged(String),
    /// A record cannot be written.
    #[error("a record cannot be encoded: {0}")]
    Encode(String),
    /// The disk or the database failed.
    #[error("the store {} failed: {problem}", path.display())]
    Database {
        path: PathBuf,
        /// What happened, and what helps.
        problem: String,
    },
}

/// An error before it knows its file.
#[derive(Debug)]
pub(super) enum Problem {
    Redb(Box<redb::Error>),
    /// One that says enough already.
    Store(StoreError),
}

impl<E: Into<redb::Error>> From<E> for Problem {
    fn from(error: E) -> Self {
        Problem::Redb(Box::new(error.into()))
    }
}

impl From<StoreError> for Problem {
    fn from(error: StoreError) -> Self {
        Problem::Store(error)
    }
}

impl Problem {
    /// The error, of the file it happened to.
    pub(super) fn at(self, path: &Path) -> StoreError {
        let error = match self {
            Problem::Store(error) => return error,
            Problem::Redb(error) => *error,
        };
        let path = path.to_path_buf();
        match error {
            redb::Error::DatabaseAlreadyOpen => StoreError::InUse(path),
            redb::Error::Io(error) if error.kind() == ErrorKind::InvalidData => StoreError::NotAStore(path),
            redb::Error::Io(error) => StoreError::Database { path, problem: explain(&error) },
            redb::Error::PreviousIo => {
                let problem = "an earlier write to it failed; start the daemon again".to_string();
                StoreError::Database { path, problem }
            }
            other => StoreError::Database { path, problem: other.to_string() },
        }
    }
}

fn explain(error: &std::io::Error) -> String {
    let hint = match error.kind() {
        ErrorKind::StorageFull | ErrorKind::QuotaExceeded | ErrorKind::FileTooLarge => {
            "; make room on that disk and start the daemon again"
        }
        ErrorKind::PermissionDenied | ErrorKind::ReadOnlyFilesystem => {
            "; the file and its folder have to be writable for you"
        }
        ErrorKind::NotFound | ErrorKind::NotADirectory => "; make its folder first",
        _ => "",
    };
    format!("{error}{hint}")
}

impl From<StoreError> for Failure {
    fn from(error: StoreError) -> Self {
        Self::new(ErrorCode::InternalError, error.to_string())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_full_disk_and_a_read_only_folder_are_named_with_the_file() {
        for (kind, hint) in [
            (ErrorKind::StorageFull, "make room"),
            (ErrorKind::QuotaExceeded, "make room"),
            (ErrorKind::PermissionDenied, "writable"),
            (ErrorKind::ReadOnlyFilesystem, "writable"),
            (ErrorKind::NotFound, "make its folder"),
        ] {
            let problem = Problem::from(redb::StorageError::Io(std::io::Error::from(kind)));
            let message = problem.at(Path::new("/home/somebody/gpuemu.redb")).to_string();
            assert!(message.contains("/home/somebody/gpuemu.redb") && message.contains(hint), "{message}");
        }
        let again = Problem::from(redb::StorageError::PreviousIo).at(Path::new("x.redb")).to_string();
        assert!(again.contains("x.redb") && again.contains("start the daemon again"), "{again}");
    }
}
