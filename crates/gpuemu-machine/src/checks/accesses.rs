//! Accesses to global memory that a kernel writes, written down while it runs, and the races among them, found at its end.
//!
//! Lanes that lie side by side are one record. Looking at all records at the end, in the order of addresses, gives the same
//! findings however blocks were spread over workers.

use std::collections::{BTreeMap, HashSet};

use super::clocks::Clocks;
use super::taint::Reader;

/// Most records of a launch; beyond them races are no longer looked for, and the outcome says so.
const MOST_RECORDS: usize = 16 << 20;

/// Records that a new one is compared with: a thread that waits for another reads the same place over and over.
const RECENT: usize = 2;

/// Most bytes of a record: 32 lanes of the longest access.
const MOST_RECORD_BYTES: u64 = 32 * 64;

/// One access of lanes side by side.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct AccessRecord {
    pub start: u64,
    pub bytes: u32,
    pub step: u32,
    pub block: u64,
    pub clock: u32,
    /// What the warp knew, by its number in the block.
    pub knowledge: u32,
    /// Tells apart what one instruction does when it comes again.
    pub instance: u32,
    /// Where what was written is kept.
    pub data: u32,
    pub warp: u8,
    pub lane: u8,
    pub lane_bytes: u8,
    pub write: bool,
    /// Whether it is volatile, relaxed, or stronger; and then whether only within its block.
    pub strong: bool,
    pub block_only: bool,
}

impl AccessRecord {
    fn end(&self) -> u64 {
        self.start + u64::from(self.bytes)
    }

    /// Whether it tells nothing that another one has not told: the same access of the same lanes, ordered the same.
    fn repeats(&self, other: &Self) -> bool {
        let alike = Self { data: other.data, instance: other.instance, ..*self };
        alike == *other && (!self.write || self.strong)
    }

    /// The lane that accessed a byte.
    pub fn lane_at(&self, address: u64) -> u32 {
        u32::from(self.lane) + ((address - self.start) / u64::from(self.lane_bytes.max(1))) as u32
    }
}

/// The records of some blocks.
#[derive(Debug, Default)]
pub struct AccessLog {
    records: Vec<AccessRecord>,
    data: Vec<u8>,
    /// Blocks that something was noted of.
    blocks: HashSet<u64>,
    /// What the warps of each block knew.
    clocks: Vec<(u64, Clocks)>,
    /// Whether some were left out.
    pub incomplete: bool,
    /// Whether what was written is kept; without it, all writes of the same place count as different.
    keeps_data: bool,
}

impl AccessLog {
    /// One that keeps what was written, or not.
    pub fn new(keeps_data: bool) -> Self {
        Self { keeps_data, ..Self::default() }
    }

    /// Notes an access, and what it wrote.
    #[inline]
    pub fn push(&mut self, mut record: AccessRecord, written: &[u8]) {
        if self.records.iter().rev().take(RECENT).any(|last| record.repeats(last)) {
            return;
        }
        if self.records.len() >= MOST_RECORDS || self.data.len() + written.len() > u32::MAX as usize {
            self.incomplete = true;
            return;
        }
        record.data = self.data.len() as u32;
        if self.keeps_data {
            self.data.extend_from_slice(written);
        }
        if self.records.last().is_none_or(|last| last.block != record.block) {
            self.blocks.insert(record.block);
        }
        self.records.push(record);
    }

    /// A block has come to its end: what its warps knew is kept if something refers to it.
    pub fn end_block(&mut self, block: u64, clocks: Clocks) {
        if self.blocks.contains(&block) {
            self.clocks.push((block, clocks));
        }
    }

    /// Whether nothing was noted.
    pub fn is_empty(&self) -> bool {
        self.records.is_empty()
    }
}

/// A race of two instructions: two records and the first byte that both touch.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct RacePair {
    /// The one that comes later in the grid, or in the code.
    pub record: AccessRecord,
    pub other: AccessRecord,
    pub address: u64,
    /// Pairs of records of these instructions.
    pub pairs: u64,
    /// Every lane that reads what another one writes; none where both write.
    pub readers: Vec<(Reader, u32)>,
}

/// The races among all records, by the two instructions.
pub fn find_races(logs: &[AccessLog]) -> Vec<RacePair> {
    let mut all: Vec<(usize, AccessRecord)> = logs
        .iter()
        .enumerate()
        .flat_map(|(log, found)| found.records.iter().map(move |record| (log, *record)))
        .collect();
    all.sort_unstable_by_key(|(_, record)| {
        (record.start, record.block, record.warp, record.step, record.lane, record.clock, record.knowledge, record.data)
    });
    // What is read, or changed atomically, again and again says no more than once.
    all.dedup_by(|(_, later), (_, earlier)| later.repeats(earlier));
    let writes: Vec<usize> = (0..all.len()).filter(|number| all[*number].1.write).collect();
    if writes.is_empty() {
        return Vec::new();
    }
    let clocks: BTreeMap<u64, &Clocks> =
        logs.iter().flat_map(|log| log.clocks.iter().map(|(block, clocks)| (*block, clocks))).collect();
    let mut found: BTreeMap<(u32, u32), RacePair> = BTreeMap::new();
    for (number, (log, record)) in all.iter().enumerate() {
        // No record is longer than this: writes that begin earlier have ended.
        let from = writes.partition_point(|write| all[*write].1.start + MOST_RECORD_BYTES <= record.start);
        let reached = writes[from..].iter().take_while(|write| all[**write].1.start < record.end());
        for other in reached.filter(|write| **write != number) {
            let (other_log, other_record) = &all[*other];
            // Of two writes, the pair is looked at once.
            if other_record.end() <= record.start || (record.write && *other > number) {
                continue;
            }
            let Some(address) = conflict(record, other_record, &clocks, &logs[*log], &logs[*other_log]) else {
                continue;
            };
            note(&mut found, record, other_record, address);
        }
    }
    found.into_values().collect()
}

fn note(found: &mut BTreeMap<(u32, u32), RacePair>, left: &AccessRecord, right: &AccessRecord, address: u64) {
    let later = (left.block, left.step) >= (right.block, right.step);
    let (record, other) = if later { (*left, *right) } else { (*right, *left) };
    let pair = found.entry((record.step, other.step)).or_insert(RacePair {
        record,
        other,
        address,
        pairs: 0,
        readers: Vec::new(),
    });
    pair.pairs += 1;
    if let Some(read) = [record, other].into_iter().find(|one| !one.write) {
        let reader = (read.block, u32::from(read.warp), read.step);
        let (from, to) = (record.start.max(other.start), record.end().min(other.end()));
        pair.readers.extend((read.lane_at(from)..=read.lane_at(to - 1)).map(|lane| (reader, lane)));
    }
}

/// The first byte on which two records, one of them a write, are in conflict.
fn conflict(
    left: &AccessRecord,
    right: &AccessRecord,
    clocks: &BTreeMap<u64, &Clocks>,
    left_log: &AccessLog,
    right_log: &AccessLog,
) -> Option<u64> {
    let same_block = left.block == right.block;
    if left.strong && right.strong && (same_block || !(left.block_only || right.block_only)) {
        return None;
    }
    if ordered(left, right, clocks) || ordered(right, left, clocks) {
        return None;
    }
    let same_warp = same_block && left.warp == right.warp;
    if same_warp && left.step == right.step && left.instance == right.instance {
        // Of lanes that write the same place at once one wins, and that is no race.
        return None;
    }
    let (from, to) = (left.start.max(right.start), left.end().min(right.end()));
    (from..to).find(|address| {
        if same_warp && left.lane_at(*address) == right.lane_at(*address) {
            return false;
        }
        let byte = |record: &AccessRecord, log: &AccessLog| {
            log.data.get(record.data as usize + (*address - record.start) as usize).copied()
        };
        // The same value written twice does no harm.
        let kept = left_log.keeps_data && right_log.keeps_data;
        !(kept
            && left.write
            && right.write
            && !left.strong
            && !right.strong
            && byte(left, left_log) == byte(right, right_log))
    })
}

/// Whether a record comes before another one.
fn ordered(first: &AccessRecord, second: &AccessRecord, clocks: &BTreeMap<u64, &Clocks>) -> bool {
    let Some(knowledge) = clocks.get(&second.block).and_then(|clocks| clocks.by_number(second.knowledge)) else {
        return false;
    };
    let known = if first.block == second.block {
        knowledge.own.get(usize::from(first.warp)).copied().unwrap_or_default()
    } else {
        knowledge.foreign.get(&(first.block, u32::from(first.warp))).copied().unwrap_or_default()
    };
    known >= first.clock
}

#[cfg(test)]
mod tests {
    use super::*;

    fn record(block: u64, warp: u8, start: u64, write: bool, clocks: &Clocks) -> AccessRecord {
        AccessRecord {
            start,
            bytes: 8,
            step: if write { 5 } else { 3 },
            block,
            clock: clocks.clock(u32::from(warp)),
            knowledge: clocks.knowledge_number(u32::from(warp)),
            instance: 0,
            data: 0,
            warp,
            lane: 0,
            lane_bytes: 4,
            write,
            strong: false,
            block_only: false,
        }
    }

    fn races(build: impl FnOnce(&mut AccessLog, &mut Clocks)) -> usize {
        let mut log = AccessLog::new(true);
        let mut clocks = Clocks::new(0, 2);
        build(&mut log, &mut clocks);
        log.end_block(0, clocks);
        log.end_block(1, Clocks::new(1, 2));
        find_races(&[log]).len()
    }

    #[test]
    fn blocks_that_write_and_read_the_same_bytes_race() {
        let other = Clocks::new(1, 2);
        assert_eq!(
            races(|log, clocks| {
                log.push(record(0, 0, 100, true, clocks), &[1; 8]);
                log.push(record(1, 0, 104, false, &other), &[]);
            }),
            1
        );
        assert_eq!(
            races(|log, clocks| {
                log.push(record(0, 0, 100, true, clocks), &[1; 8]);
                log.push(record(1, 0, 108, false, &other), &[]);
                log.push(record(1, 0, 116, true, &other), &[2; 8]);
            }),
            0
        );
    }

    #[test]
    fn the_same_value_written_twice_is_no_race() {
        let other = Clocks::new(1, 2);
        for (value, expected) in [(1, 0), (2, 1)] {
            assert_eq!(
                races(|log, clocks| {
                    log.push(record(0, 0, 100, true, clocks), &[1; 8]);
                    log.push(record(1, 0, 100, true, &other), &[value; 8]);
                }),
                expected
            );
        }
    }

    #[test]
    fn a_barrier_orders_the_warps_of_a_block() {
        assert_eq!(
            races(|log, clocks| {
                log.push(record(0, 0, 100, true, clocks), &[1; 8]);
                clocks.meet(&[0, 1], None);
                log.push(record(0, 1, 100, false, clocks), &[]);
            }),
            0
        );
        assert_eq!(
            races(|log, clocks| {
                log.push(record(0, 0, 100, true, clocks), &[1; 8]);
                log.push(record(0, 1, 100, false, clocks), &[]);
            }),
            1
        );
    }

    #[test]
    fn a_thread_never_races_with_itself() {
        assert_eq!(
            races(|log, clocks| {
                log.push(record(0, 0, 100, false, clocks), &[]);
                log.push(record(0, 0, 100, true, clocks), &[1; 8]);
            }),
            0
        );
    }
}
