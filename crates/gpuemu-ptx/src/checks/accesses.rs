//! Accesses to global memory that a kernel writes, written down while it runs, and the races among them, found at its end.
//!
//! Lanes that lie side by side are one record. Looking at all records at the end, in the order of addresses, gives the same
//! findings however blocks were spread over workers.

use std::collections::BTreeMap;

use super::clocks::Clocks;

/// Most records of a launch; beyond them races are no longer looked for, and the outcome says so.
const MOST_RECORDS: usize = 16 << 20;

/// One access of lanes side by side.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct AccessRecord {
    /// The first byte.
    pub start: u64,
    /// Bytes.
    pub bytes: u32,
    /// The instruction.
    pub step: u32,
    /// The block.
    pub block: u64,
    /// The warp's clock.
    pub clock: u32,
    /// What the warp knew, by its number in the block.
    pub knowledge: u32,
    /// Where what was written is kept.
    pub data: u32,
    /// The warp.
    pub warp: u8,
    /// The first lane.
    pub lane: u8,
    /// Bytes of a lane.
    pub lane_bytes: u8,
    /// Whether it wrote.
    pub write: bool,
    /// Whether it is volatile, relaxed, or stronger; and then whether only within its block.
    pub strong: bool,
    /// As above.
    pub block_only: bool,
}

impl AccessRecord {
    fn end(&self) -> u64 {
        self.start + u64::from(self.bytes)
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
    /// What the warps of each block knew.
    clocks: Vec<(u64, Clocks)>,
    /// Whether some were left out.
    pub incomplete: bool,
}

impl AccessLog {
    /// Notes an access, and what it wrote.
    #[inline]
    pub fn push(&mut self, mut record: AccessRecord, written: &[u8]) {
        if self.records.len() >= MOST_RECORDS || self.data.len() + written.len() > u32::MAX as usize {
            self.incomplete = true;
            return;
        }
        record.data = self.data.len() as u32;
        self.data.extend_from_slice(written);
        self.records.push(record);
    }

    /// A block has come to its end: what its warps knew is kept if something refers to it.
    pub fn end_block(&mut self, block: u64, clocks: Clocks) {
        if self.records.iter().rev().any(|record| record.block == block) {
            self.clocks.push((block, clocks));
        }
    }

    /// Whether nothing was noted.
    pub fn is_empty(&self) -> bool {
        self.records.is_empty()
    }
}

/// A race: two records and the first byte that both touch.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct GlobalRace {
    /// The one that comes later in the code, or in the grid.
    pub record: AccessRecord,
    /// The other.
    pub other: AccessRecord,
    /// The byte.
    pub address: u64,
}

/// The races among all records: the first of each pair of instructions, and how many pairs there are.
pub fn find_races(logs: &[AccessLog]) -> Vec<(GlobalRace, u64)> {
    let mut all: Vec<(usize, AccessRecord)> =
        logs.iter().enumerate().flat_map(|(log, found)| found.records.iter().map(move |record| (log, *record))).collect();
    if !all.iter().any(|(_, record)| record.write) {
        return Vec::new();
    }
    all.sort_unstable_by_key(|(_, record)| (record.start, record.block, record.warp, record.step, record.clock, record.lane));
    let clocks: BTreeMap<u64, &Clocks> =
        logs.iter().flat_map(|log| log.clocks.iter().map(|(block, clocks)| (*block, clocks))).collect();
    let mut found: BTreeMap<(u32, u32), (GlobalRace, u64)> = BTreeMap::new();
    // Records that reach beyond the current start: writes, and reads.
    let (mut writes, mut reads): (Vec<usize>, Vec<usize>) = (Vec::new(), Vec::new());
    for (number, (log, record)) in all.iter().enumerate() {
        let start = record.start;
        writes.retain(|other| all[*other].1.end() > start);
        reads.retain(|other| all[*other].1.end() > start);
        let others = writes.iter().chain(reads.iter().filter(|_| record.write));
        for other in others {
            let (other_log, other) = &all[*other];
            let Some(address) = conflict(record, other, &clocks, &logs[*log], &logs[*other_log]) else { continue };
            let (record, other) = if (record.block, record.step) >= (other.block, other.step) {
                (*record, *other)
            } else {
                (*other, *record)
            };
            let race = GlobalRace { record, other, address };
            found.entry((record.step, other.step)).or_insert((race, 0)).1 += 1;
        }
        if record.write { writes.push(number) } else { reads.push(number) }
    }
    found.into_values().collect()
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
    let (from, to) = (left.start.max(right.start), left.end().min(right.end()));
    (from..to).find(|address| {
        if same_warp && left.lane_at(*address) == right.lane_at(*address) {
            return false;
        }
        let byte = |record: &AccessRecord, log: &AccessLog| {
            log.data.get(record.data as usize + (*address - record.start) as usize).copied()
        };
        // The same value written twice does no harm.
        !(left.write && right.write && !left.strong && !right.strong && byte(left, left_log) == byte(right, right_log))
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
        let mut log = AccessLog::default();
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
                clocks.meet(&[0, 1]);
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
