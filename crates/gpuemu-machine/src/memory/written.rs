//! Which bytes were written: a bit for each.

use std::sync::atomic::{AtomicU64, Ordering};

/// A bit a byte. Bits are only ever set, so that several workers can do it at once.
#[derive(Debug)]
pub struct WrittenMap {
    words: Vec<AtomicU64>,
    bytes: usize,
}

/// The bits of one word from one to another.
fn bits(from: usize, to: usize) -> u64 {
    let all = u64::MAX >> (64 - (to - from).clamp(1, 64));
    all << from
}

impl WrittenMap {
    /// Of so many bytes, none written. Fresh memory takes no room until it is touched.
    pub fn new(bytes: usize) -> Self {
        Self { words: super::cells::zeroed_words(bytes.div_ceil(64)), bytes }
    }

    /// The words that bytes lie in, each with the bits of its bytes.
    #[inline(always)]
    fn each(&self, offset: usize, bytes: usize, mut each: impl FnMut(&AtomicU64, u64) -> bool) -> bool {
        let end = (offset + bytes).min(self.bytes);
        let mut at = offset;
        while at < end {
            let word = at / 64;
            let stop = end.min((word + 1) * 64);
            if !each(&self.words[word], bits(at % 64, stop - word * 64)) {
                return false;
            }
            at = stop;
        }
        true
    }

    #[inline]
    pub fn set(&self, offset: usize, bytes: usize) {
        self.each(offset, bytes, |word, bits| {
            if bits == u64::MAX {
                word.store(bits, Ordering::Relaxed);
            } else {
                word.fetch_or(bits, Ordering::Relaxed);
            }
            true
        });
    }

    /// Whether all of these bytes were written.
    #[inline]
    pub fn all_set(&self, offset: usize, bytes: usize) -> bool {
        self.each(offset, bytes, |word, bits| word.load(Ordering::Relaxed) & bits == bits)
    }

    /// Bytes that were not.
    pub fn unset(&self) -> u64 {
        let mut count = 0;
        self.each(0, self.bytes, |word, bits| {
            count += u64::from((!word.load(Ordering::Relaxed) & bits).count_ones());
            true
        });
        count
    }

    pub fn first_unset(&self) -> Option<u64> {
        let mut place = 0;
        let mut found = None;
        self.each(0, self.bytes, |word, bits| {
            let missing = !word.load(Ordering::Relaxed) & bits;
            found = (missing != 0).then(|| place + u64::from(missing.trailing_zeros()));
            place += 64;
            found.is_none()
        });
        found
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn bytes_are_told_apart_across_words() {
        let map = WrittenMap::new(200);
        assert_eq!((map.unset(), map.first_unset()), (200, Some(0)));
        map.set(0, 70);
        assert!(map.all_set(3, 67) && !map.all_set(3, 68));
        assert_eq!((map.unset(), map.first_unset()), (130, Some(70)));
        map.set(71, 129);
        assert_eq!((map.unset(), map.first_unset()), (1, Some(70)));
        map.set(70, 1);
        assert_eq!((map.unset(), map.first_unset()), (0, None));
        assert!(map.all_set(0, 200));
    }
}
