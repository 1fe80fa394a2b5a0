//! The memory of threads: local variables and parameters of calls.

/// The own memory of the threads of a warp, thread by thread.
#[derive(Debug, Clone, Default)]
pub struct LocalMemory {
    frame: usize,
    bytes: Vec<u8>,
    written: Vec<bool>,
}

impl LocalMemory {
    /// Room for so many bytes a thread, never written.
    pub fn reset(&mut self, frame: usize, lanes: usize, poison: u8) {
        self.frame = frame;
        self.bytes.clear();
        self.bytes.resize(frame * lanes, poison);
        self.written.clear();
        self.written.resize(frame * lanes, false);
    }

    fn place(&self, lane: usize, offset: u64, bytes: usize) -> Option<std::ops::Range<usize>> {
        let offset = usize::try_from(offset).ok()?;
        let end = offset.checked_add(bytes)?;
        (end <= self.frame).then(|| lane * self.frame + offset..lane * self.frame + end)
    }

    /// Bytes of a thread; none if they lie outside.
    pub fn get(&self, lane: usize, offset: u64, bytes: usize) -> Option<&[u8]> {
        self.bytes.get(self.place(lane, offset, bytes)?)
    }

    /// Whether all of these bytes were written.
    pub fn is_written(&self, lane: usize, offset: u64, bytes: usize) -> bool {
        self.place(lane, offset, bytes)
            .and_then(|place| self.written.get(place))
            .is_some_and(|all| all.iter().all(|one| *one))
    }

    /// Writes bytes of a thread; false if they lie outside.
    pub fn set(&mut self, lane: usize, offset: u64, from: &[u8]) -> bool {
        let Some(place) = self.place(lane, offset, from.len()) else { return false };
        self.bytes[place.clone()].copy_from_slice(from);
        self.written[place].fill(true);
        true
    }

    /// Copies bytes of a thread, written or not.
    pub fn copy(&mut self, lane: usize, from: u32, to: u32, bytes: usize) {
        let (Some(source), Some(target)) =
            (self.place(lane, u64::from(from), bytes), self.place(lane, u64::from(to), bytes))
        else {
            return;
        };
        self.bytes.copy_within(source.clone(), target.start);
        self.written.copy_within(source, target.start);
    }

    /// Bytes of a thread.
    pub fn frame(&self) -> usize {
        self.frame
    }
}
