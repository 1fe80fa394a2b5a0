//! A disk that loses power: of what was not synced, anything may be there afterwards, in part and in any order.

use std::io;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use gpuemu_tensor::Stream;
use redb::StorageBackend;

/// What a disk writes in one go.
const SECTOR: usize = 512;

/// A disk. Clones are the same disk.
#[derive(Debug, Clone, Default)]
pub struct Disk(Arc<Mutex<Content>>);

#[derive(Debug, Default)]
struct Content {
    /// What survives a loss of power.
    durable: Vec<u8>,
    /// What is read: everything written.
    cached: Vec<u8>,
    /// What was written since the last sync.
    pending: Vec<Change>,
    /// Operations until the power goes; `None` while it stays.
    left: Option<u64>,
    /// Whether a sync only pretends. No honest disk does; a check that holds on this one checks nothing.
    lies: bool,
}

#[derive(Debug)]
enum Change {
    Write { offset: usize, bytes: Vec<u8> },
    Length(usize),
}

/// What came of the changes that were not synced.
#[derive(Debug, Default, Clone, Copy, PartialEq, Eq)]
pub struct Survivors {
    /// Writes that were lost.
    pub dropped: u64,
    /// Writes that were kept in part.
    pub torn: u64,
    /// Writes that were kept.
    pub kept: u64,
}

impl Disk {
    /// A disk whose syncs do nothing.
    #[cfg(test)]
    pub fn lying() -> Self {
        Self(Arc::new(Mutex::new(Content { lies: true, ..Content::default() })))
    }

    /// Lets the power go after so many more writes and syncs.
    pub fn fail_after(&self, operations: u64) {
        self.lock().left = Some(operations);
    }

    /// Brings the power back. Of the changes since the last sync each was lost, kept or kept in part, whichever came
    /// first.
    pub fn restart(&self, choices: &mut Stream) -> Survivors {
        let mut content = self.lock();
        let content = &mut *content;
        content.left = None;
        let mut survivors = Survivors::default();
        let mut writes = Vec::new();
        // Lengths are what the file system remembers, in their order up to some point.
        let mut lengths = Vec::new();
        for change in content.pending.drain(..) {
            match change {
                Change::Write { offset, bytes } => writes.push((offset, bytes)),
                Change::Length(length) => lengths.push(length),
            }
        }
        let remembered = choices.below(lengths.len() as u64 + 1) as usize;
        if let Some(length) = lengths[..remembered].last() {
            content.durable.resize(*length, 0);
        }
        while !writes.is_empty() {
            let (offset, bytes) = writes.swap_remove(choices.below(writes.len() as u64) as usize);
            match choices.below(3) {
                0 => survivors.dropped += 1,
                1 => {
                    survivors.kept += 1;
                    place(&mut content.durable, offset, &bytes);
                }
                _ => {
                    survivors.torn += 1;
                    for (index, sector) in bytes.chunks(SECTOR).enumerate() {
                        if choices.chance(1, 2) {
                            place(&mut content.durable, offset + index * SECTOR, sector);
                        }
                    }
                }
            }
        }
        content.cached.clone_from(&content.durable);
        survivors
    }

    fn lock(&self) -> MutexGuard<'_, Content> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Content {
    /// Counts an operation; an error once the power is gone.
    fn operate(&mut self) -> io::Result<()> {
        match &mut self.left {
            Some(0) => Err(io::Error::other("the power is gone")),
            Some(left) => {
                *left -= 1;
                Ok(())
            }
            None => Ok(()),
        }
    }
}

fn place(bytes: &mut Vec<u8>, offset: usize, part: &[u8]) {
    let end = offset + part.len();
    if bytes.len() < end {
        bytes.resize(end, 0);
    }
    bytes[offset..end].copy_from_slice(part);
}

impl StorageBackend for Disk {
    fn len(&self) -> io::Result<u64> {
        Ok(self.lock().cached.len() as u64)
    }

    fn read(&self, offset: u64, out: &mut [u8]) -> io::Result<()> {
        let content = self.lock();
        if content.left == Some(0) {
            return Err(io::Error::other("the power is gone"));
        }
        let offset = offset as usize;
        let found = content.cached.get(offset..offset + out.len());
        out.copy_from_slice(found.ok_or_else(|| io::Error::from(io::ErrorKind::UnexpectedEof))?);
        Ok(())
    }

    fn set_len(&self, length: u64) -> io::Result<()> {
        let mut content = self.lock();
        content.operate()?;
        content.cached.resize(length as usize, 0);
        content.pending.push(Change::Length(length as usize));
        Ok(())
    }

    fn sync_data(&self) -> io::Result<()> {
        let mut content = self.lock();
        content.operate()?;
        if content.lies {
            return Ok(());
        }
        let content = &mut *content;
        for change in content.pending.drain(..) {
            match change {
                Change::Write { offset, bytes } => place(&mut content.durable, offset, &bytes),
                Change::Length(length) => content.durable.resize(length, 0),
            }
        }
        Ok(())
    }

    fn write(&self, offset: u64, data: &[u8]) -> io::Result<()> {
        let mut content = self.lock();
        content.operate()?;
        place(&mut content.cached, offset as usize, data);
        content.pending.push(Change::Write { offset: offset as usize, bytes: data.to_vec() });
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used, reason = "tests fail by panicking")]
    use super::*;

    #[test]
    fn what_was_synced_stays_and_of_the_rest_some() {
        let mut choices = Stream::new(3, "disk");
        let mut seen = Survivors::default();
        for _ in 0..200 {
            let disk = Disk::default();
            disk.write(0, &[1; 2048]).unwrap();
            disk.sync_data().unwrap();
            disk.write(2048, &[2; 2048]).unwrap();
            disk.write(4096, &[3; 2048]).unwrap();
            let survivors = disk.restart(&mut choices);
            assert_eq!(survivors.dropped + survivors.torn + survivors.kept, 2);
            seen.dropped += survivors.dropped;
            seen.torn += survivors.torn;
            seen.kept += survivors.kept;
            let mut first = [0; 2048];
            disk.read(0, &mut first).unwrap();
            assert_eq!(first, [1; 2048]);
        }
        assert!(seen.dropped > 50 && seen.torn > 50 && seen.kept > 50, "{seen:?}");
    }

    #[test]
    fn nothing_works_without_power() {
        let disk = Disk::default();
        disk.fail_after(1);
        disk.write(0, &[1]).unwrap();
        assert!(disk.write(1, &[1]).is_err() && disk.sync_data().is_err() && disk.set_len(9).is_err());
        assert!(disk.read(0, &mut [0]).is_err());
        disk.restart(&mut Stream::new(1, "disk"));
        disk.write(0, &[1]).unwrap();
    }
}
