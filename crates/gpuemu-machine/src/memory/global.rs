//! Global memory: allocations that lie far apart.

use super::address::{MOST_BYTES, allocation_of, base_of};
use super::cells::Cells;
use super::copy;
use super::written::WrittenMap;
use crate::execution::launch::{Buffer, POISON, Role};

/// Memory up to this size holds poison where nothing was written; larger memory is zero there, and takes no room.
const MOST_POISONED: u64 = 1 << 30;

/// The bytes of an allocation.
#[derive(Debug)]
pub enum Bytes<'l> {
    /// Those that the launch was given, which are only read.
    Given(&'l [u8]),
    /// Bytes of its own.
    Own(Cells),
}

impl Bytes<'_> {
    /// How many there are.
    #[inline(always)]
    pub fn len(&self) -> usize {
        match self {
            Bytes::Given(bytes) => bytes.len(),
            Bytes::Own(cells) => cells.len(),
        }
    }

    /// Whether there are none.
    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }

    #[inline(always)]
    pub fn read(&self, offset: usize, into: &mut [u8]) {
        match self {
            Bytes::Given(bytes) => copy(into, &bytes[offset..offset + into.len()]),
            Bytes::Own(cells) => cells.read(offset, into),
        }
    }

    pub fn into_vec(self) -> Vec<u8> {
        match self {
            Bytes::Given(bytes) => bytes.to_vec(),
            Bytes::Own(cells) => cells.into_vec(),
        }
    }
}

/// One buffer of a launch, or a variable of the module.
#[derive(Debug)]
pub struct Allocation<'l> {
    pub name: String,
    /// The address of its first byte.
    pub base: u64,
    pub bytes: Bytes<'l>,
    /// Which bytes were written; missing where all of them were from the beginning.
    pub written: Option<WrittenMap>,
    /// Whether it may only be read.
    pub read_only: bool,
    /// Whether the caller wants it written.
    pub output: bool,
    /// Bytes of an element, for messages.
    pub element_bytes: u32,
}

impl Allocation<'_> {
    /// How many bytes it has.
    #[inline(always)]
    pub fn len(&self) -> u64 {
        self.bytes.len() as u64
    }

    /// Whether it has none.
    pub fn is_empty(&self) -> bool {
        self.bytes.is_empty()
    }

    /// The offset of an access that lies wholly inside.
    #[inline(always)]
    pub fn inside(&self, address: u64, bytes: u64) -> Option<usize> {
        let offset = address.wrapping_sub(self.base);
        (offset < self.len() && bytes <= self.len() - offset).then_some(offset as usize)
    }

    /// The cells of memory that may be written.
    #[inline(always)]
    pub fn writable(&self) -> Option<&Cells> {
        match &self.bytes {
            Bytes::Own(cells) if !self.read_only => Some(cells),
            _ => None,
        }
    }
}

/// All allocations of a launch.
#[derive(Debug, Default)]
pub struct GlobalMemory<'l> {
    allocations: Vec<Allocation<'l>>,
}

impl<'l> GlobalMemory<'l> {
    /// All of them, in the order in which they were made.
    pub fn allocations(&self) -> &[Allocation<'l>] {
        &self.allocations
    }

    /// Makes room for a buffer and gives the pointer to it.
    pub fn add_buffer(&mut self, buffer: &'l Buffer, watch_writes: bool) -> Result<u64, String> {
        let Buffer { name, role, bytes, contents, offset, pointer, element_bytes } = buffer;
        if *bytes > MOST_BYTES {
            return Err(format!("buffer '{name}' has {bytes} bytes, at most {MOST_BYTES} are possible"));
        }
        if contents.len() as u64 > *bytes {
            return Err(format!("buffer '{name}' has {bytes} bytes but is given {} of contents", contents.len()));
        }
        let Ok(length) = usize::try_from(*bytes) else {
            return Err(format!("buffer '{name}' with {bytes} bytes does not fit this machine"));
        };
        let read_only = *role == Role::Input;
        let memory = if read_only && contents.len() == length {
            Bytes::Given(contents)
        } else {
            let cells =
                Cells::filled(length, if *bytes <= MOST_POISONED { POISON } else { 0 }, (*offset % 512) as usize);
            cells.write(0, contents);
            Bytes::Own(cells)
        };
        let known = if *role == Role::Output { 0 } else { contents.len() };
        let written = (watch_writes && known < length).then(|| {
            let written = WrittenMap::new(length);
            written.set(0, known);
            written
        });
        let base = self.add(Allocation {
            name: name.clone(),
            base: base_of(self.allocations.len(), *offset),
            bytes: memory,
            written,
            read_only,
            output: *role == Role::Output,
            element_bytes: (*element_bytes).max(1),
        });
        Ok(base.wrapping_add(*pointer))
    }

    /// Makes room for a variable of the module, which holds something from the beginning, and zeros beyond it.
    pub fn add_variable(&mut self, name: &str, bytes: usize, contents: &[u8], read_only: bool) -> u64 {
        let cells = Cells::filled(bytes.max(contents.len()), 0, 0);
        cells.write(0, contents);
        self.add(Allocation {
            name: name.to_string(),
            base: base_of(self.allocations.len(), 0),
            bytes: Bytes::Own(cells),
            written: None,
            read_only,
            output: false,
            element_bytes: 1,
        })
    }

    fn add(&mut self, allocation: Allocation<'l>) -> u64 {
        let base = allocation.base;
        self.allocations.push(allocation);
        base
    }

    /// The bytes of all allocations, in order.
    pub fn into_bytes(self) -> impl Iterator<Item = Bytes<'l>> {
        self.allocations.into_iter().map(|allocation| allocation.bytes)
    }

    /// The allocation that an address belongs to, or has missed.
    #[inline(always)]
    pub fn near(&self, address: u64) -> Option<&Allocation<'l>> {
        self.allocations.get(allocation_of(address)?)
    }

    /// The bytes of text at an address up to a zero, at most so many.
    pub fn text(&self, address: u64, most: usize) -> Option<String> {
        let allocation = self.near(address)?;
        let start = allocation.inside(address, 1)?;
        let mut bytes = vec![0; most.min(allocation.bytes.len() - start)];
        allocation.bytes.read(start, &mut bytes);
        let end = bytes.iter().position(|byte| *byte == 0).unwrap_or(bytes.len());
        Some(String::from_utf8_lossy(&bytes[..end]).into_owned())
    }
}
