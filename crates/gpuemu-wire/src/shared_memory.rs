//! Tensor bytes in shared memory: a file that lives in memory, written by the client, read by the daemon.
//!
//! The daemon reads the file rather than mapping it: a client that shortens a mapped file would end
//! the daemon, and reading costs one copy at the speed of memory.

use std::fs::{File, OpenOptions, Permissions};
use std::io;
use std::os::unix::fs::{FileExt, MetadataExt, OpenOptionsExt, PermissionsExt};
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicU64, Ordering};

use gpuemu_model::tensor_data::{LARGEST_EXPANSION, SharedMemory};
use gpuemu_tensor::Storage;
use gpuemu_tensor::storage::ALIGNMENT;

/// What names of segments begin with: nothing else is ever opened.
const PREFIX: &str = "gpuemu-";

/// The folder whose files live in memory; elsewhere than on Linux, the one for temporary files.
fn folder() -> PathBuf {
    let memory = Path::new("/dev/shm");
    if memory.is_dir() { memory.to_path_buf() } else { std::env::temp_dir() }
}

/// A segment of shared memory, gone with this value. It is made once and used for many requests.
#[derive(Debug)]
pub struct Segment {
    file: File,
    path: PathBuf,
    name: String,
    used: u64,
    owner: u32,
}

impl Segment {
    /// A new, empty segment that only this user can open.
    pub fn create() -> io::Result<Self> {
        static NEXT: AtomicU64 = AtomicU64::new(0);
        remove_abandoned();
        loop {
            let owner = std::process::id();
            let name = format!("{PREFIX}{owner}-{}", NEXT.fetch_add(1, Ordering::Relaxed));
            let path = folder().join(&name);
            // A name left behind by a process that was killed is used again.
            let _ = std::fs::remove_file(&path);
            let file = OpenOptions::new().read(true).write(true).create_new(true).mode(0o600).open(&path)?;
            // Whatever the umask takes away, its owner may read it.
            file.set_permissions(Permissions::from_mode(0o600))?;
            // Another process may take it for abandoned before it is locked: then it is another name's turn.
            if lock(&file) && file.metadata()?.nlink() > 0 {
                return Ok(Self { file, path, name, used: 0, owner });
            }
        }
    }

    /// Whether this process made it. A fork has a copy of this value, but not a segment of its own.
    pub fn is_own(&self) -> bool {
        self.owner == std::process::id()
    }

    /// Writes over everything from the start.
    pub fn clear(&mut self) {
        self.used = 0;
    }

    /// Adds bytes and says where they are.
    pub fn push(&mut self, bytes: &[u8]) -> io::Result<SharedMemory> {
        let offset = self.used.next_multiple_of(ALIGNMENT as u64);
        self.write(bytes, offset)?;
        self.used = offset + bytes.len() as u64;
        Ok(SharedMemory { name: self.name.clone(), offset, length: bytes.len() as u64 })
    }

    /// Writes bytes: large ones on several cores, because one does not use all of the memory's bandwidth.
    fn write(&self, bytes: &[u8], offset: u64) -> io::Result<()> {
        let threads = std::thread::available_parallelism().map_or(1, usize::from).min(MOST_WRITERS);
        let part = bytes.len().div_ceil(threads).max(LEAST_PART);
        let (first, rest) = bytes.split_at(part.min(bytes.len()));
        std::thread::scope(|scope| {
            let write =
                |(index, chunk): (usize, &[u8])| self.file.write_all_at(chunk, offset + ((index + 1) * part) as u64);
            let spawn = |numbered| std::thread::Builder::new().spawn_scoped(scope, move || write(numbered)).ok();
            let writers: Vec<_> = rest.chunks(part).enumerate().map(|chunk| (chunk, spawn(chunk))).collect();
            let own = self.file.write_all_at(first, offset);
            for (chunk, writer) in writers {
                // A thread that could not be started, or did not end well, leaves its part to this one.
                match writer.and_then(|writer| writer.join().ok()) {
                    Some(written) => written?,
                    None => write(chunk)?,
                }
            }
            own
        })
    }
}

/// Threads that write one tensor.
const MOST_WRITERS: usize = 4;

/// Bytes that are worth a thread.
const LEAST_PART: usize = 4 << 20;

impl Drop for Segment {
    fn drop(&mut self) {
        if self.is_own() {
            // Left behind at worst: the next process of this id removes it.
            let _ = std::fs::remove_file(&self.path);
        }
    }
}

/// Locks a segment for as long as a process has it open; whether nobody else has.
fn lock(file: &File) -> bool {
    rustix::fs::flock(file, rustix::fs::FlockOperation::NonBlockingLockExclusive).is_ok()
}

/// Whether a name is one that [`Segment::create`] gives. Other clients may name and lock theirs as they like.
fn is_made_here(name: &str) -> bool {
    let numbers = name.strip_prefix(PREFIX).and_then(|rest| rest.split_once('-'));
    numbers.is_some_and(|(process, number)| process.parse::<u32>().is_ok() && number.parse::<u64>().is_ok())
}

/// Removes segments whose processes ended without doing so: killed, or forked and ended at once. That a process
/// lives is known by its lock; process numbers of another container mean nothing here.
pub fn remove_abandoned() {
    let Ok(entries) = std::fs::read_dir(folder()) else { return };
    for entry in entries.flatten() {
        let named = entry.file_name().to_str().is_some_and(is_made_here);
        // Only this user's can be opened.
        let flags = rustix::fs::OFlags::NOFOLLOW | rustix::fs::OFlags::NONBLOCK;
        let mut options = OpenOptions::new();
        let options = options.read(true).write(true).custom_flags(flags.bits() as i32);
        if named
            && let Ok(file) = options.open(entry.path())
            && lock(&file)
        {
            let _ = std::fs::remove_file(entry.path());
        }
    }
}

/// Bytes of a segment of another process of the same user, checked to be there.
#[derive(Debug)]
pub struct SharedBytes {
    file: File,
    place: SharedMemory,
}

impl SharedBytes {
    /// Opens them. Nothing that the client says is believed.
    pub fn open(place: &SharedMemory) -> Result<Self, String> {
        let plain = place.name.starts_with(PREFIX) && !place.name.contains(['/', '\0']);
        if !plain {
            return Err(format!("'{}' is not the name of a segment", place.name));
        }
        let failed = |error: io::Error| format!("{}: {error}", place.name);
        let flags = rustix::fs::OFlags::NOFOLLOW | rustix::fs::OFlags::NONBLOCK;
        let file = OpenOptions::new().read(true).custom_flags(flags.bits() as i32).open(folder().join(&place.name));
        let file = file.map_err(failed)?;
        let metadata = file.metadata().map_err(failed)?;
        if !metadata.is_file() || metadata.uid() != rustix::process::geteuid().as_raw() {
            return Err(format!("'{}' is not a segment of this user", place.name));
        }
        let end = place.offset.checked_add(place.length);
        if end.is_none_or(|end| end > metadata.len()) {
            let (offset, length, size) = (place.offset, place.length, metadata.len());
            return Err(format!("'{}' has {size} bytes, but {length} from {offset} on are asked for", place.name));
        }
        // A file of holes is as long as somebody says, and takes no memory until it is read.
        let held = metadata.blocks().saturating_mul(512);
        if place.length > held.max(LARGEST_EXPANSION as u64) {
            return Err(format!("'{}' holds {held} bytes, but {} are asked for", place.name, place.length));
        }
        Ok(Self { file, place: place.clone() })
    }

    /// The number of bytes.
    pub fn length(&self) -> u64 {
        self.place.length
    }

    /// Some of the bytes.
    pub fn read(&self, start: u64, length: usize) -> Result<Storage, String> {
        let end = start.checked_add(length as u64);
        if end.is_none_or(|end| end > self.place.length) {
            return Err(format!("'{}': {length} bytes from {start} on are not there", self.place.name));
        }
        let mut storage = Storage::filled(length, 0);
        let read = self.file.read_exact_at(storage.as_bytes_mut(), self.place.offset + start);
        read.map_err(|error| format!("{}: {error}", self.place.name))?;
        Ok(storage)
    }
}

/// Reads all bytes of a place in shared memory.
pub fn read(place: &SharedMemory) -> Result<Storage, String> {
    SharedBytes::open(place)?.read(0, place.length as usize)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_written_is_read_and_the_segment_is_used_again() {
        let mut segment = Segment::create().unwrap();
        let first = segment.push(b"one").unwrap();
        let second = segment.push(&[7; 100]).unwrap();
        assert_eq!(second.offset, 64);
        assert_eq!(read(&first).unwrap().as_bytes(), b"one");
        assert_eq!(read(&second).unwrap().as_bytes(), [7; 100]);
        segment.clear();
        let again = segment.push(b"two").unwrap();
        assert_eq!(again, first);
        assert_eq!(read(&again).unwrap().as_bytes(), b"two");
        drop(segment);
        assert!(read(&again).is_err());
    }

    #[test]
    fn a_segment_that_nobody_has_is_removed_by_the_next_and_no_other() {
        let abandoned = folder().join(format!("{PREFIX}{}-{}", std::process::id(), u64::MAX));
        let foreign = folder().join(format!("{PREFIX}{}-of-another-client", std::process::id()));
        std::fs::write(&abandoned, "left behind").unwrap();
        std::fs::write(&foreign, "").unwrap();
        let mut kept = Segment::create().unwrap();
        let place = kept.push(b"kept").unwrap();
        let _another = Segment::create().unwrap();
        assert!(!abandoned.exists() && foreign.exists());
        std::fs::remove_file(&foreign).unwrap();
        assert_eq!(read(&place).unwrap().as_bytes(), b"kept");
    }

    #[test]
    fn what_is_no_segment_is_refused() {
        let place = |name: &str, offset, length| SharedMemory { name: name.to_string(), offset, length };
        for name in ["", "passwd", "gpuemu-/../passwd", "/etc/passwd", "gpuemu-\0"] {
            assert!(read(&place(name, 0, 1)).unwrap_err().contains("not the name"), "{name:?}");
        }
        let mut segment = Segment::create().unwrap();
        let good = segment.push(b"bytes").unwrap();
        assert!(read(&place(&good.name, 0, 6)).unwrap_err().contains("has 5 bytes"));
        assert!(read(&place(&good.name, u64::MAX, 2)).is_err());
        segment.file.set_len(1 << 40).unwrap();
        assert!(read(&place(&good.name, 0, 1 << 39)).unwrap_err().contains("holds 4096 bytes"));
        assert_eq!(read(&place(&good.name, 0, 1 << 20)).unwrap().len(), 1 << 20);
        let link = format!("{PREFIX}{}-link", std::process::id());
        std::os::unix::fs::symlink(folder().join(&good.name), folder().join(&link)).unwrap();
        let followed = read(&place(&link, 0, 1));
        std::fs::remove_file(folder().join(&link)).unwrap();
        assert!(followed.is_err());
    }
}
