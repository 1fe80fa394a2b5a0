//! Who last wrote and read every piece of a block's shared memory.
//!
//! A piece is as large as the smallest access of the kernel, so that neighbours are never taken for one. What is not
//! ordered by a barrier is a race; pieces under an asynchronous copy belong to nobody until the copy was waited for.

use super::clocks::{Clocks, Knowledge};
use super::readers::Readers;

/// Who did something: clock, warp and lane, in one number. Larger clocks are larger numbers.
const LANE_BITS: u32 = 5;
const WARP_BITS: u32 = 5;
const SEVERAL_LANES: u32 = 1 << (LANE_BITS + WARP_BITS);
const SEVERAL_WARPS: u32 = 1 << (LANE_BITS + WARP_BITS + 1);
const CLOCK_SHIFT: u32 = LANE_BITS + WARP_BITS + 2;
/// The largest clock; from there on everything counts as ordered.
const MOST_CLOCK: u32 = (1 << (32 - CLOCK_SHIFT)) - 2;
/// The clock of a piece that an asynchronous copy is on its way to; the rest of the key is who began it.
const IN_FLIGHT: u32 = MOST_CLOCK + 1;

/// A thread of the block.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Accessor {
    pub warp: u32,
    pub lane: u32,
}

impl Accessor {
    fn key(self, clock: u32) -> u32 {
        clock.min(MOST_CLOCK) << CLOCK_SHIFT | self.warp << LANE_BITS | self.lane
    }

    fn in_flight(self) -> u32 {
        IN_FLIGHT << CLOCK_SHIFT | self.warp << LANE_BITS | self.lane
    }

    fn of(key: u32) -> Self {
        Self { warp: key >> LANE_BITS & 31, lane: key & 31 }
    }
}

/// What all lanes of a warp have in common when they access shared memory.
#[derive(Debug, Clone, Copy)]
pub struct Stamp {
    warp: u32,
    step: u32,
    /// Keys below this are of accesses that the warp knows of, whoever made them.
    limit: u32,
    /// Keys below this are, if a lane of the warp itself made them.
    own_limit: u32,
    /// The key of lane 0.
    key: u32,
}

impl Stamp {
    /// Of a warp that is at an instruction.
    #[inline]
    pub fn new(warp: u32, step: u32, clocks: &Clocks) -> Self {
        let knowledge = clocks.knowledge(warp);
        let limit = |known: u32| (known.min(MOST_CLOCK) + 1) << CLOCK_SHIFT;
        let own_limit = limit(knowledge.own.get(warp as usize).copied().unwrap_or_default());
        let key = Accessor { warp, lane: 0 }.key(clocks.clock(warp));
        Self { warp, step, limit: limit(knowledge.least), own_limit, key }
    }
}

/// Lanes whose bytes lie side by side.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct SharedRun {
    pub offset: usize,
    pub lane_bytes: usize,
    pub lanes: usize,
    pub first: usize,
}

/// What is wrong with an access.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Conflict {
    /// Nothing wrote it before.
    Uninitialised,
    /// An asynchronous copy to it was not waited for.
    InFlight {
        /// The instruction that began the copy.
        step: u32,
        by: Accessor,
    },
    /// Several threads read it, and not all of them met the one that writes it now: only with every reader kept can be said
    /// whether those that did not were before it, and who they are.
    Unsure,
    /// Somebody else accessed it, and nothing orders the two.
    Race {
        step: u32,
        /// The other; of several, one of them.
        other: Accessor,
        /// Whether the other wrote.
        wrote: bool,
    },
}

/// The shadow of a block's shared memory.
#[derive(Debug, Clone, Default)]
pub struct SharedShadow {
    granule_shift: u32,
    writes: Vec<u32>,
    write_steps: Vec<u32>,
    reads: Vec<u32>,
    read_steps: Vec<u32>,
    /// Every reader, where they are kept.
    readers: Option<Readers>,
}

impl SharedShadow {
    /// Of so many bytes, in pieces of 1, 2 or 4, with every reader of each or the last.
    pub fn new(bytes: usize, granule: u32, every_reader: bool) -> Self {
        let granule = granule.clamp(1, 4).next_power_of_two();
        let pieces = bytes.div_ceil(granule as usize);
        Self {
            granule_shift: granule.trailing_zeros(),
            writes: vec![0; pieces],
            write_steps: vec![0; pieces],
            reads: vec![0; pieces],
            read_steps: vec![0; pieces],
            readers: every_reader.then(Readers::default),
        }
    }

    /// Whether accesses at these clocks can still be told from earlier ones.
    pub fn follows(clocks: &Clocks) -> bool {
        clocks.is_complete() && clocks.latest() <= MOST_CLOCK
    }

    /// As at the beginning of a block.
    pub fn clear(&mut self) {
        self.writes.fill(0);
        self.reads.fill(0);
        if let Some(readers) = &mut self.readers {
            readers.clear();
        }
    }

    #[inline(always)]
    fn pieces(&self, offset: usize, bytes: usize) -> std::ops::Range<usize> {
        let first = offset >> self.granule_shift;
        let last = (offset + bytes.max(1) - 1) >> self.granule_shift;
        first..(last + 1).min(self.writes.len())
    }

    /// Pieces of a lane, as a power of two.
    fn lane_shift(&self, lane_bytes: usize) -> u32 {
        lane_bytes.trailing_zeros().saturating_sub(self.granule_shift)
    }

    /// Lanes that lie side by side read; gives the first thing that is wrong, and the piece's offset in bytes.
    #[inline(always)]
    pub fn read(
        &mut self,
        run: SharedRun,
        stamp: Stamp,
        clocks: &Clocks,
        is_strong: impl Fn(u32) -> bool,
    ) -> Option<(usize, Conflict)> {
        let range = self.pieces(run.offset, run.lane_bytes * run.lanes);
        let shift = self.lane_shift(run.lane_bytes);
        let key = stamp.key + run.first as u32;
        if self.readers.is_some() {
            self.keep_readers(range.clone(), shift, run.first, stamp, clocks);
        }
        let suspicious = match range.len() {
            // Rows of matrices, and words or vectors of a whole warp: lengths that the compiler unrolls.
            4 => self.note_read::<4>(range.start, shift, key, stamp),
            32 => self.note_read::<32>(range.start, shift, key, stamp),
            128 => self.note_read::<128>(range.start, shift, key, stamp),
            _ => range.clone().fold(false, |suspicious, place| {
                let key = key + ((place - range.start) as u32 >> shift);
                self.note_read::<1>(place, 0, key, stamp) | suspicious
            }),
        };
        if suspicious { self.conflict_of_read(range, shift, run.first, stamp, clocks, is_strong) } else { None }
    }

    #[cold]
    fn keep_readers(&mut self, range: std::ops::Range<usize>, shift: u32, first: usize, stamp: Stamp, clocks: &Clocks) {
        let Some(readers) = &mut self.readers else { return };
        let (clock, knowledge) = (clocks.clock(stamp.warp), clocks.knowledge(stamp.warp));
        for place in range.clone() {
            let by = Accessor { warp: stamp.warp, lane: first as u32 + ((place - range.start) as u32 >> shift) };
            readers.note(place, by, clock, stamp.step, knowledge);
        }
    }

    /// Notes that pieces are read; whether something about them may be wrong.
    #[inline(always)]
    fn note_read<const PIECES: usize>(&mut self, start: usize, shift: u32, key: u32, stamp: Stamp) -> bool {
        let Some(writes) = self.writes[start..].first_chunk::<PIECES>() else { return true };
        let (mut most, mut least) = (0, u32::MAX);
        for write in writes {
            most = most.max(*write);
            least = least.min(*write);
        }
        if let Some(reads) = self.reads[start..].first_chunk_mut::<PIECES>() {
            for (place, read) in reads.iter_mut().enumerate() {
                *read = with_reader(*read, key + (place as u32 >> shift), stamp);
            }
        }
        if let Some(steps) = self.read_steps[start..].first_chunk_mut::<PIECES>() {
            *steps = [stamp.step; PIECES];
        }
        most >= stamp.limit || least == 0
    }

    #[cold]
    fn conflict_of_read(
        &self,
        range: std::ops::Range<usize>,
        shift: u32,
        first: usize,
        stamp: Stamp,
        clocks: &Clocks,
        is_strong: impl Fn(u32) -> bool,
    ) -> Option<(usize, Conflict)> {
        let knowledge = clocks.knowledge(stamp.warp);
        for place in range.clone() {
            let write = self.writes[place];
            let lane = first as u32 + ((place - range.start) as u32 >> shift);
            let reader = Accessor { warp: stamp.warp, lane };
            let other_step = self.write_steps[place];
            let wrong = if write == 0 {
                Conflict::Uninitialised
            } else if is_in_flight(write) {
                Conflict::InFlight { step: other_step, by: Accessor::of(write) }
            } else if ordered(write, reader, knowledge) || (is_strong(stamp.step) && is_strong(other_step)) {
                continue;
            } else {
                Conflict::Race { step: other_step, other: Accessor::of(write), wrote: true }
            };
            return Some((place << self.granule_shift, wrong));
        }
        None
    }

    /// What is wrong with a write of lanes that lie side by side, which is not noted yet; `unchanged` says whether what is
    /// written to bytes is there already.
    #[inline(always)]
    pub fn before_write(
        &self,
        run: SharedRun,
        stamp: Stamp,
        clocks: &Clocks,
        is_strong: impl Fn(u32) -> bool,
        unchanged: impl Fn(usize, usize) -> bool,
    ) -> Option<(usize, Conflict)> {
        let range = self.pieces(run.offset, run.lane_bytes * run.lanes);
        let shift = self.lane_shift(run.lane_bytes);
        self.conflict_of_write(range, shift, run.first, stamp, clocks, is_strong, unchanged)
    }

    /// Notes a write of lanes that lie side by side.
    #[inline(always)]
    pub fn write(&mut self, run: SharedRun, stamp: Stamp) {
        let range = self.pieces(run.offset, run.lane_bytes * run.lanes);
        self.set_writer(range.clone(), self.lane_shift(run.lane_bytes), stamp.key + run.first as u32);
        self.write_steps[range].fill(stamp.step);
    }

    /// The latest key of pieces, of a write or of a read.
    #[inline(always)]
    fn latest<const PIECES: usize>(&self, start: usize) -> u32 {
        let writes = self.writes[start..].first_chunk::<PIECES>();
        let reads = self.reads[start..].first_chunk::<PIECES>();
        let (Some(writes), Some(reads)) = (writes, reads) else { return u32::MAX };
        let mut most = 0;
        for (write, read) in writes.iter().zip(reads) {
            most = most.max(*write).max(*read);
        }
        most
    }

    /// Rows of 16 bytes, one a lane from the first on, are read; whether something about one of them may be wrong.
    #[inline(always)]
    pub fn read_rows(&mut self, offsets: &[u32], stamp: Stamp, clocks: &Clocks) -> bool {
        if self.readers.is_some() {
            for (lane, offset) in offsets.iter().enumerate() {
                let range = self.pieces(*offset as usize, 16);
                self.keep_readers(range, self.lane_shift(16), lane, stamp, clocks);
            }
        }
        match self.granule_shift {
            2 => self.note_rows::<4>(offsets, stamp),
            1 => self.note_rows::<8>(offsets, stamp),
            _ => self.note_rows::<16>(offsets, stamp),
        }
    }

    #[inline(always)]
    fn note_rows<const PIECES: usize>(&mut self, offsets: &[u32], stamp: Stamp) -> bool {
        let (mut most, mut least) = ([0; PIECES], [u32::MAX; PIECES]);
        for (lane, offset) in offsets.iter().enumerate() {
            let start = (offset >> self.granule_shift) as usize;
            let Some(writes) = self.writes[start..].first_chunk::<PIECES>() else { return true };
            for ((most, least), write) in most.iter_mut().zip(&mut least).zip(writes) {
                *most = (*most).max(*write);
                *least = (*least).min(*write);
            }
            let key = stamp.key + lane as u32;
            if let Some(reads) = self.reads[start..].first_chunk_mut::<PIECES>() {
                for read in reads {
                    *read = with_reader(*read, key, stamp);
                }
            }
            if let Some(steps) = self.read_steps[start..].first_chunk_mut::<PIECES>() {
                *steps = [stamp.step; PIECES];
            }
        }
        most.iter().any(|most| *most >= stamp.limit) || least.contains(&0)
    }

    /// What is wrong with a read that was noted.
    #[cold]
    pub fn explain_read(
        &self,
        run: SharedRun,
        stamp: Stamp,
        clocks: &Clocks,
        is_strong: impl Fn(u32) -> bool,
    ) -> Option<(usize, Conflict)> {
        let range = self.pieces(run.offset, run.lane_bytes * run.lanes);
        self.conflict_of_read(range, self.lane_shift(run.lane_bytes), run.first, stamp, clocks, is_strong)
    }

    #[inline(always)]
    fn set_writer(&mut self, range: std::ops::Range<usize>, shift: u32, key: u32) {
        if range.len() == 4 && shift >= 2 {
            set(&mut self.writes, range, key);
            return;
        }
        for (place, write) in self.writes[range].iter_mut().enumerate() {
            *write = key + (place as u32 >> shift);
        }
    }

    /// A thread reads and writes at once.
    pub fn atomic(
        &mut self,
        run: SharedRun,
        stamp: Stamp,
        clocks: &Clocks,
        is_strong: impl Fn(u32) -> bool,
    ) -> Option<(usize, Conflict)> {
        let range = self.pieces(run.offset, run.lane_bytes);
        let unwritten = self.writes[range.clone()].iter().position(|write| *write == 0);
        let conflict = self.before_write(run, stamp, clocks, is_strong, |_, _| false);
        self.write(run, stamp);
        unwritten.map(|place| ((range.start + place) << self.granule_shift, Conflict::Uninitialised)).or(conflict)
    }

    /// An asynchronous copy to these bytes begins.
    #[inline(always)]
    pub fn begin_copy(&mut self, run: SharedRun, stamp: Stamp, clocks: &Clocks) -> Option<(usize, Conflict)> {
        let range = self.pieces(run.offset, run.lane_bytes * run.lanes);
        let shift = self.lane_shift(run.lane_bytes);
        let conflict = self.conflict_of_write(range.clone(), shift, run.first, stamp, clocks, |_| false, |_, _| false);
        let key = Accessor { warp: stamp.warp, lane: run.first as u32 }.in_flight();
        self.set_writer(range.clone(), shift, key);
        set(&mut self.write_steps, range, stamp.step);
        conflict
    }

    /// Copies were waited for: from now on they are writes of the lanes that began them.
    #[inline(always)]
    pub fn end_copy(&mut self, run: SharedRun, warp: u32, clocks: &Clocks) {
        let range = self.pieces(run.offset, run.lane_bytes * run.lanes);
        let key = Accessor { warp, lane: run.first as u32 }.key(clocks.clock(warp));
        self.set_writer(range, self.lane_shift(run.lane_bytes), key);
    }

    #[allow(clippy::too_many_arguments, reason = "what is known of an access, as it is")]
    #[inline(always)]
    fn conflict_of_write(
        &self,
        range: std::ops::Range<usize>,
        shift: u32,
        first: usize,
        stamp: Stamp,
        clocks: &Clocks,
        is_strong: impl Fn(u32) -> bool,
        unchanged: impl Fn(usize, usize) -> bool,
    ) -> Option<(usize, Conflict)> {
        let most = match range.len() {
            4 => self.latest::<4>(range.start),
            32 => self.latest::<32>(range.start),
            128 => self.latest::<128>(range.start),
            _ => range.clone().fold(0, |most, place| most.max(self.latest::<1>(place))),
        };
        if most < stamp.limit {
            return None;
        }
        self.first_conflict_of_write(range, shift, first, stamp, clocks, is_strong, unchanged)
    }

    #[allow(clippy::too_many_arguments, reason = "what is known of an access, as it is")]
    #[cold]
    fn first_conflict_of_write(
        &self,
        range: std::ops::Range<usize>,
        shift: u32,
        first: usize,
        stamp: Stamp,
        clocks: &Clocks,
        is_strong: impl Fn(u32) -> bool,
        unchanged: impl Fn(usize, usize) -> bool,
    ) -> Option<(usize, Conflict)> {
        let knowledge = clocks.knowledge(stamp.warp);
        for place in range.clone() {
            let lane = first as u32 + ((place - range.start) as u32 >> shift);
            let writer = Accessor { warp: stamp.warp, lane };
            let (write, read) = (self.writes[place], self.reads[place]);
            let (write_step, read_step) = (self.write_steps[place], self.read_steps[place]);
            let at = place << self.granule_shift;
            let strong = |other: u32| is_strong(stamp.step) && is_strong(other);
            if is_in_flight(write) {
                return Some((at, Conflict::InFlight { step: write_step, by: Accessor::of(write) }));
            }
            if !ordered(write, writer, knowledge) && !strong(write_step) && !unchanged(at, 1 << self.granule_shift) {
                let other = Accessor::of(write);
                return Some((at, Conflict::Race { step: write_step, other, wrote: true }));
            }
            if let Some(readers) = &self.readers {
                if let Some((other, step)) =
                    readers.unordered(place, writer, knowledge).filter(|(_, step)| !strong(*step))
                {
                    return Some((at, Conflict::Race { step, other, wrote: false }));
                }
            } else if !ordered(read, writer, knowledge) && !strong(read_step) {
                let other = Accessor::of(read);
                let race = Conflict::Race { step: read_step, other, wrote: false };
                // Of several readers the key names the last, which may be the writer itself.
                return Some((at, if read & (SEVERAL_WARPS | SEVERAL_LANES) == 0 { race } else { Conflict::Unsure }));
            }
        }
        None
    }
}

/// Whether a copy to a piece is on its way.
fn is_in_flight(write: u32) -> bool {
    write >> CLOCK_SHIFT == IN_FLIGHT
}

/// Who has read a piece, now that the thread in `key` has: earlier readers are forgotten where the thread knows of them.
#[inline(always)]
fn with_reader(read: u32, key: u32, stamp: Stamp) -> u32 {
    // A key has neither mark, so that a mark of the earlier reader is a difference.
    let differs = read ^ key;
    let same_thread = differs & (2 * SEVERAL_WARPS - 1) == 0;
    let same_warp = differs & (SEVERAL_WARPS | (SEVERAL_LANES - (1 << LANE_BITS))) == 0;
    let several = if same_warp { SEVERAL_LANES } else { SEVERAL_WARPS };
    let known = read < stamp.limit || (same_warp && read < stamp.own_limit);
    let several = if known || same_thread { 0 } else { several };
    // The later of the clocks counts for all of them.
    if several == 0 { key } else { key.max(read) | several }
}

/// Sets pieces; as many as a row of 16 bytes has without a call.
#[inline(always)]
fn set(pieces: &mut [u32], range: std::ops::Range<usize>, value: u32) {
    match pieces[range.clone()].as_chunks_mut::<4>() {
        ([row], []) => *row = [value; 4],
        _ => pieces[range].fill(value),
    }
}

/// Whether what is in a key came before what a thread does now.
fn ordered(key: u32, now: Accessor, knowledge: &Knowledge) -> bool {
    if key == 0 {
        return true;
    }
    let clock = key >> CLOCK_SHIFT;
    if key & SEVERAL_WARPS != 0 {
        return clock <= knowledge.least;
    }
    let by = Accessor::of(key);
    let known = knowledge.own.get(by.warp as usize).copied().unwrap_or_default();
    clock <= known || (by == now && key & SEVERAL_LANES == 0)
}

#[cfg(test)]
mod tests;
