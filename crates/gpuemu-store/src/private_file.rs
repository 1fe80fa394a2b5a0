//! Files that only their owner may read.

use std::fs::{File, OpenOptions, Permissions};
use std::os::unix::fs::{OpenOptionsExt, PermissionsExt};
use std::path::Path;

/// Opens a file that only its owner may read, whatever the umask.
pub fn open_private(options: &mut OpenOptions, path: &Path) -> std::io::Result<File> {
    let file = options.mode(0o600).open(path)?;
    file.set_permissions(Permissions::from_mode(0o600))?;
    Ok(file)
}
