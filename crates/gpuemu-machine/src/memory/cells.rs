//! Bytes that several workers read and write at once.
//!
//! A kernel may race; the process that runs it must not. Every access to memory that a kernel writes is a relaxed atomic
//! one of the processor, which costs nothing on the machines at hand, and keeps a race of the kernel the kernel's own.

use std::cell::UnsafeCell;
use std::sync::atomic::{AtomicU8, AtomicU16, AtomicU32, AtomicU64, Ordering};

/// Memory whose words of 8 bytes are aligned.
#[derive(Debug)]
pub struct Cells {
    memory: Vec<UnsafeCell<u8>>,
    /// Where the first word begins.
    start: usize,
    bytes: usize,
    phase: usize,
}

// SAFETY: all accesses through a shared reference are atomic, but for those that their callers answer for.
#[allow(unsafe_code, reason = "memory that several workers access")]
unsafe impl Sync for Cells {}

/// So many words, all zero. Fresh memory of the system is zero and takes no room until it is touched.
#[allow(unsafe_code, reason = "fresh zero pages are only had as plain integers")]
pub(super) fn zeroed_words(count: usize) -> Vec<AtomicU64> {
    let words = std::mem::ManuallyDrop::new(vec![0u64; count]);
    // SAFETY: AtomicU64 has the size, alignment and bit validity of u64, and the vector is taken over whole.
    unsafe { Vec::from_raw_parts(words.as_ptr().cast_mut().cast(), words.len(), words.capacity()) }
}

impl Cells {
    /// So many bytes, all the same, of which the first has an address that is `phase` beyond a multiple of 8: what is
    /// aligned for the kernel is aligned here. Zeros take no room until they are touched.
    #[allow(unsafe_code, reason = "plain bytes become cells")]
    pub fn filled(bytes: usize, value: u8, phase: usize) -> Self {
        // Room for the first word to be aligned, and for the last one to be whole.
        let memory = std::mem::ManuallyDrop::new(vec![value; bytes + 24]);
        // SAFETY: UnsafeCell<u8> has the layout of u8, and the vector is taken over whole.
        let memory: Vec<UnsafeCell<u8>> =
            unsafe { Vec::from_raw_parts(memory.as_ptr().cast_mut().cast(), memory.len(), memory.capacity()) };
        let start = memory.as_ptr().align_offset(8).min(8) + phase % 8;
        Self { memory, start, bytes, phase: phase % 8 }
    }

    /// How many there are.
    pub fn len(&self) -> usize {
        self.bytes
    }

    /// Whether there are none.
    pub fn is_empty(&self) -> bool {
        self.bytes == 0
    }

    /// Bytes from an offset to the next word.
    #[inline(always)]
    fn to_word(&self, offset: usize) -> usize {
        (8 - (offset + self.phase) % 8) % 8
    }

    fn pointer(&self, offset: usize, bytes: usize) -> *const u8 {
        // The one check that all accesses below rely on.
        assert!(offset.checked_add(bytes).is_some_and(|end| end <= self.bytes), "access outside of its allocation");
        self.memory.as_ptr().cast::<u8>().wrapping_add(self.start + offset)
    }

    #[allow(unsafe_code, reason = "bytes within atomic words")]
    #[inline]
    pub fn read(&self, offset: usize, into: &mut [u8]) {
        let mut from = self.pointer(offset, into.len());
        // Up to a word boundary and after the last one byte by byte: buffers may start anywhere.
        // Words are aligned where the offset is.
        let (head, rest) = into.split_at_mut(self.to_word(offset).min(into.len()));
        for byte in head {
            // SAFETY: `pointer` checked that all bytes lie inside.
            *byte = unsafe { &*from.cast::<AtomicU8>() }.load(Ordering::Relaxed);
            from = from.wrapping_add(1);
        }
        let mut chunks = rest.chunks_exact_mut(8);
        for chunk in &mut chunks {
            // SAFETY: as above; the pointer is aligned to 8 here.
            let word = unsafe { &*from.cast::<AtomicU64>() }.load(Ordering::Relaxed);
            chunk.copy_from_slice(&word.to_le_bytes());
            from = from.wrapping_add(8);
        }
        for byte in chunks.into_remainder() {
            // SAFETY: as above.
            *byte = unsafe { &*from.cast::<AtomicU8>() }.load(Ordering::Relaxed);
            from = from.wrapping_add(1);
        }
    }

    #[allow(unsafe_code, reason = "bytes within atomic words")]
    #[inline]
    pub fn write(&self, offset: usize, from: &[u8]) {
        let mut into = self.pointer(offset, from.len());
        let (head, rest) = from.split_at(self.to_word(offset).min(from.len()));
        for byte in head {
            // SAFETY: `pointer` checked that all bytes lie inside.
            unsafe { &*into.cast::<AtomicU8>() }.store(*byte, Ordering::Relaxed);
            into = into.wrapping_add(1);
        }
        let mut chunks = rest.chunks_exact(8);
        for chunk in &mut chunks {
            let mut word = [0; 8];
            word.copy_from_slice(chunk);
            // SAFETY: as above; the pointer is aligned to 8 here.
            unsafe { &*into.cast::<AtomicU64>() }.store(u64::from_le_bytes(word), Ordering::Relaxed);
            into = into.wrapping_add(8);
        }
        for byte in chunks.remainder() {
            // SAFETY: as above.
            unsafe { &*into.cast::<AtomicU8>() }.store(*byte, Ordering::Relaxed);
            into = into.wrapping_add(1);
        }
    }

    /// Changes 1, 2, 4 or 8 bytes at once, at a multiple of as many; gives what they were.
    #[allow(unsafe_code, reason = "bytes within atomic words")]
    pub fn update(&self, offset: usize, bytes: usize, change: impl Fn(u64) -> u64) -> u64 {
        let pointer = self.pointer(offset, bytes);
        macro_rules! with {
            ($atomic:ty, $integer:ty) => {{
                if !pointer.cast::<$atomic>().is_aligned() {
                    return 0;
                }
                // SAFETY: `pointer` checked that all bytes lie inside, and the alignment was checked above.
                let cell = unsafe { &*pointer.cast::<$atomic>() };
                let changed = |old: $integer| Some(change(u64::from(old)) as $integer);
                match cell.fetch_update(Ordering::Relaxed, Ordering::Relaxed, changed) {
                    Ok(old) | Err(old) => u64::from(old),
                }
            }};
        }
        match bytes {
            1 => with!(AtomicU8, u8),
            2 => with!(AtomicU16, u16),
            4 => with!(AtomicU32, u32),
            _ => with!(AtomicU64, u64),
        }
    }

    /// All bytes, taken over.
    #[allow(unsafe_code, reason = "cells become plain bytes")]
    pub fn into_vec(self) -> Vec<u8> {
        let memory = std::mem::ManuallyDrop::new(self.memory);
        // SAFETY: UnsafeCell<u8> has the layout of u8, and the vector is taken over whole.
        let mut memory: Vec<u8> =
            unsafe { Vec::from_raw_parts(memory.as_ptr().cast_mut().cast(), memory.len(), memory.capacity()) };
        memory.truncate(self.start + self.bytes);
        memory.drain(..self.start);
        memory
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn bytes_come_back_wherever_they_lie() {
        let cells = Cells::filled(100, 0xAB, 0);
        for offset in 0..20 {
            let bytes: Vec<u8> = (0..60).map(|byte| byte as u8 ^ offset as u8).collect();
            cells.write(offset, &bytes);
            let mut back = vec![0; 60];
            cells.read(offset, &mut back);
            assert_eq!(back, bytes);
        }
        let all = cells.into_vec();
        assert_eq!((all.len(), all[99]), (100, 0xAB));
    }

    #[test]
    fn a_change_gives_what_was_there() {
        let cells = Cells::filled(16, 0, 0);
        assert_eq!(cells.update(4, 4, |old| old + 7), 0);
        assert_eq!(cells.update(4, 4, |old| old + 1), 7);
        assert_eq!(cells.into_vec()[..8], [0, 0, 0, 0, 8, 0, 0, 0]);
    }

    #[test]
    fn a_word_of_a_buffer_that_starts_between_words_is_changed_at_once() {
        let cells = Cells::filled(20, 0, 4);
        assert_eq!(cells.update(4, 8, |old| old + 7), 0, "its address is a multiple of 8");
        assert_eq!(cells.update(4, 8, |old| old + 1), 7);
        let bytes: Vec<u8> = (0..20).collect();
        cells.write(0, &bytes);
        assert_eq!(cells.into_vec(), bytes);
    }

    #[test]
    #[should_panic(expected = "outside")]
    fn nothing_is_read_outside() {
        Cells::filled(8, 0, 0).read(4, &mut [0; 8]);
    }
}
