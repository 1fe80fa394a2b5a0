//! What is downloaded once and kept: folders in the user's cache folder, under names that stand for their content, so that
//! a fresh clone finds what an earlier clone has made.

use std::env;
use std::ffi::OsString;
use std::fs::{self, File};
use std::path::{Path, PathBuf};

use crate::failure::{Failure, cannot};

/// Written last: a folder without it is the remains of an interrupted attempt.
const COMPLETION_MARKER: &str = "gpuemu-complete";

/// Finds or makes the folder of this name. It is made in its place, empty at first, and made anew where it is not intact.
pub fn prepared(
    name: &str,
    is_intact: impl FnOnce(&Path) -> bool,
    make: impl FnOnce(&Path) -> Result<(), Failure>,
) -> Result<PathBuf, Failure> {
    let cache = cache_folder(env::var_os("XDG_CACHE_HOME"), env::home_dir())?;
    prepared_in(&cache, name, is_intact, make)
}

fn prepared_in(
    cache: &Path,
    name: &str,
    is_intact: impl FnOnce(&Path) -> bool,
    make: impl FnOnce(&Path) -> Result<(), Failure>,
) -> Result<PathBuf, Failure> {
    fs::create_dir_all(cache).map_err(|error| cannot("create", &cache.display(), &error))?;
    // Two clones may get here at once, and only one of them may build. The lock is let go when
    // the file is closed, at the end of this function at the latest.
    let lock_path = cache.join(format!("{name}.lock"));
    let lock = File::create(&lock_path).map_err(|error| cannot("create", &lock_path.display(), &error))?;
    lock.lock().map_err(|error| cannot("lock", &lock_path.display(), &error))?;

    let folder = cache.join(name);
    let marker = folder.join(COMPLETION_MARKER);
    if !marker.is_file() || !is_intact(&folder) {
        if folder.exists() {
            fs::remove_dir_all(&folder).map_err(|error| cannot("remove", &folder.display(), &error))?;
        }
        fs::create_dir_all(&folder).map_err(|error| cannot("create", &folder.display(), &error))?;
        make(&folder)?;
        File::create(&marker).map_err(|error| cannot("create", &marker.display(), &error))?;
    }
    Ok(folder)
}

/// The project's folder in the user's cache folder.
fn cache_folder(cache_home: Option<OsString>, home: Option<PathBuf>) -> Result<PathBuf, Failure> {
    // The base-directory specification has relative paths ignored.
    let explicit = cache_home.map(PathBuf::from).filter(|path| path.is_absolute());
    let conventional = || home.filter(|path| path.is_absolute()).map(|path| path.join(".cache"));
    let user_cache = explicit
        .or_else(conventional)
        .ok_or_else(|| Failure::Environment("neither XDG_CACHE_HOME nor HOME says where downloads may lie".into()))?;
    Ok(user_cache.join("gpuemu"))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_cache_folder_follows_the_base_directory_specification() {
        let home = || Some(PathBuf::from("/home/someone"));
        let folder = |cache_home: Option<&str>, home| cache_folder(cache_home.map(OsString::from), home).ok();
        assert_eq!(folder(Some("/cache"), home()), Some("/cache/gpuemu".into()));
        assert_eq!(folder(None, home()), Some("/home/someone/.cache/gpuemu".into()));
        assert_eq!(folder(Some(""), home()), Some("/home/someone/.cache/gpuemu".into()));
        assert_eq!(folder(Some("relative"), home()), Some("/home/someone/.cache/gpuemu".into()));
        assert_eq!(folder(None, None), None);
    }

    #[test]
    fn a_folder_is_made_once_and_again_if_it_was_not_finished_or_is_broken() {
        let cache = env::temp_dir().join(format!("gpuemu-cache-{}", std::process::id()));
        let made = |intact: bool, fails: bool| {
            let mut count = 0;
            let result = prepared_in(
                &cache,
                "thing",
                |_| intact,
                |folder| {
                    count += 1;
                    assert!(fs::read_dir(folder).unwrap().next().is_none(), "it begins empty");
                    fs::write(folder.join("content"), "").unwrap();
                    if fails { Err(Failure::Environment("no network".into())) } else { Ok(()) }
                },
            );
            (count, result.is_ok())
        };
        assert_eq!(made(true, true), (1, false));
        assert_eq!(made(true, false), (1, true));
        assert_eq!(made(true, false), (0, true));
        assert_eq!(made(false, false), (1, true));
        fs::remove_dir_all(&cache).unwrap();
    }
}
