//! How many blocks of a kernel fit on a multiprocessor.
//!
//! The figures are those of NVIDIA's published tables: "Technical Specifications per Compute Capability" of the CUDA
//! programming guide, and the allocation sizes of its occupancy calculator. Barriers are no limit here, although they
//! are one on the machine where a kernel uses many of them.

use gpuemu_config::architecture_number;
use gpuemu_model::artifact::Occupancy;

/// The most shared memory that a block may declare with a size that the code fixes, on every architecture. More has
/// to be asked for at launch.
pub const LARGEST_STATIC_SHARED_BYTES: u64 = 48 << 10;

const THREADS_OF_A_WARP: u64 = 32;
const MOST_THREADS_OF_A_BLOCK: u64 = 1024;
const MOST_REGISTERS_OF_A_THREAD: u64 = 255;
/// The same on every architecture of the table.
const REGISTERS: u64 = 64 << 10;
/// Registers are handed out to a warp in pieces of this size.
const REGISTER_PIECE: u64 = 256;
/// A multiprocessor has this many parts, each with an equal share of the registers.
const PARTS: u64 = 4;

struct Multiprocessor {
    architecture: u32,
    warps: u64,
    blocks: u64,
    shared_bytes: u64,
}

const fn multiprocessor(architecture: u32, warps: u64, blocks: u64, shared_kilobytes: u64) -> Multiprocessor {
    Multiprocessor { architecture, warps, blocks, shared_bytes: shared_kilobytes << 10 }
}

const MULTIPROCESSORS: [Multiprocessor; 14] = [
    multiprocessor(70, 64, 32, 96),
    multiprocessor(72, 64, 32, 96),
    multiprocessor(75, 32, 16, 64),
    multiprocessor(80, 64, 32, 164),
    multiprocessor(86, 48, 16, 100),
    multiprocessor(87, 48, 16, 164),
    multiprocessor(88, 48, 16, 100),
    multiprocessor(89, 48, 24, 100),
    multiprocessor(90, 64, 32, 228),
    multiprocessor(100, 64, 32, 228),
    multiprocessor(103, 64, 32, 228),
    multiprocessor(110, 48, 24, 228),
    multiprocessor(120, 48, 24, 100),
    multiprocessor(121, 48, 24, 100),
];

impl Multiprocessor {
    fn of(architecture: &str) -> Option<&'static Self> {
        let number = architecture_number(architecture)?;
        MULTIPROCESSORS.iter().find(|multiprocessor| multiprocessor.architecture == number)
    }

    /// Shared memory of each block that the system keeps for itself.
    fn reserved_shared_bytes(&self) -> u64 {
        if self.architecture >= 80 { 1 << 10 } else { 0 }
    }

    /// Shared memory is handed out in pieces of this size.
    fn shared_piece(&self) -> u64 {
        if self.architecture >= 80 { 128 } else { 256 }
    }

    fn largest_shared_bytes(&self) -> u64 {
        self.shared_bytes - self.reserved_shared_bytes()
    }

    fn blocks_by_shared_memory(&self, bytes: u64) -> u64 {
        if bytes > self.largest_shared_bytes() {
            return 0;
        }
        match (bytes + self.reserved_shared_bytes()).next_multiple_of(self.shared_piece()) {
            0 => u64::MAX,
            taken => self.shared_bytes / taken,
        }
    }
}

/// The most shared memory that a block may have, asked for at launch. Nothing for an architecture that is not known.
pub fn largest_shared_bytes(architecture: &str) -> Option<u64> {
    Multiprocessor::of(architecture).map(Multiprocessor::largest_shared_bytes)
}

/// How many blocks fit. Nothing for an architecture that is not known, and for a block of no threads.
pub fn estimate(
    architecture: &str,
    block_threads: u64,
    registers: Option<u64>,
    shared_bytes: u64,
) -> Option<Occupancy> {
    let multiprocessor = Multiprocessor::of(architecture)?;
    let warps = match block_threads {
        0 => return None,
        threads => threads.div_ceil(THREADS_OF_A_WARP),
    };
    let by_threads = if block_threads > MOST_THREADS_OF_A_BLOCK { 0 } else { multiprocessor.warps / warps };
    let limits = [
        ("threads", by_threads),
        ("blocks", multiprocessor.blocks),
        ("registers", registers.map_or(u64::MAX, |registers| blocks_by_registers(registers, warps))),
        ("shared memory", multiprocessor.blocks_by_shared_memory(shared_bytes)),
    ];
    let (limited_by, blocks) = limits.into_iter().min_by_key(|(_, blocks)| *blocks)?;
    Some(Occupancy {
        architecture: architecture.to_string(),
        block_threads,
        shared_bytes,
        registers,
        blocks,
        share: (blocks * warps.min(multiprocessor.warps)) as f64 / multiprocessor.warps as f64,
        limited_by: limited_by.to_string(),
    })
}

fn blocks_by_registers(registers: u64, warps: u64) -> u64 {
    if registers > MOST_REGISTERS_OF_A_THREAD {
        return 0;
    }
    let of_a_warp = (registers * THREADS_OF_A_WARP).next_multiple_of(REGISTER_PIECE);
    // A launch is refused as if every part of the multiprocessor had to give the same.
    if of_a_warp.saturating_mul(warps.next_multiple_of(PARTS)) > REGISTERS {
        return 0;
    }
    match (REGISTERS / PARTS).checked_div(of_a_warp) {
        None => u64::MAX,
        Some(warps_of_a_part) => warps_of_a_part * PARTS / warps,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn blocks(architecture: &str, threads: u64, registers: u64, shared: u64) -> (u64, f64, String) {
        let occupancy = estimate(architecture, threads, Some(registers), shared).unwrap();
        (occupancy.blocks, occupancy.share, occupancy.limited_by)
    }

    #[test]
    fn registers_limit() {
        assert_eq!(blocks("sm_80", 256, 64, 0), (4, 0.5, "registers".to_string()));
        assert_eq!(blocks("sm_90", 1024, 64, 0), (1, 0.5, "registers".to_string()));
        assert_eq!(blocks("sm_90", 1024, 65, 0), (0, 0.0, "registers".to_string()));
        // 33 registers are rounded up to 40: 12 warps in each part, not 15.
        assert_eq!(blocks("sm_80", 256, 33, 0), (6, 0.75, "registers".to_string()));
        assert_eq!(blocks("sm_80", 32, 256, 0).0, 0);
        // One warp needs the room of four.
        assert_eq!(blocks("sm_80", 32, 255, 0).0, 8);
    }

    #[test]
    fn threads_and_blocks_limit() {
        assert_eq!(blocks("sm_80", 1024, 32, 0), (2, 1.0, "threads".to_string()));
        assert_eq!(blocks("sm_86", 1024, 32, 0), (1, 32.0 / 48.0, "threads".to_string()));
        assert_eq!(blocks("sm_86", 32, 16, 0), (16, 16.0 / 48.0, "blocks".to_string()));
        assert_eq!(blocks("sm_75", 1024, 32, 0), (1, 1.0, "threads".to_string()));
        assert_eq!(blocks("sm_89", 32, 16, 0).0, 24);
        assert_eq!(blocks("sm_80", 1025, 16, 0), (0, 0.0, "threads".to_string()));
        // Threads of a last warp that is not full take a whole one.
        assert_eq!(blocks("sm_80", 33, 16, 0), (32, 1.0, "threads".to_string()));
    }

    #[test]
    fn shared_memory_limits_with_what_the_system_keeps() {
        assert_eq!(blocks("sm_80", 128, 32, 48 << 10), (3, 12.0 / 64.0, "shared memory".to_string()));
        assert_eq!(blocks("sm_80", 128, 32, 163 << 10).0, 1);
        assert_eq!(blocks("sm_80", 128, 32, (163 << 10) + 1).0, 0);
        // 82 KB twice would be all that there is, without the kilobyte of each block.
        assert_eq!(blocks("sm_80", 128, 32, 82 << 10).0, 1);
        assert_eq!(blocks("sm_70", 128, 32, 48 << 10).0, 2);
    }

    #[test]
    fn the_largest_shared_memory_of_a_block() {
        let kilobytes = |architecture| largest_shared_bytes(architecture).map(|bytes| bytes >> 10);
        let known = [("sm_70", 96), ("sm_75", 64), ("sm_80", 163), ("sm_86", 99), ("sm_87", 163), ("sm_89", 99)];
        for (architecture, expected) in known.into_iter().chain([("sm_90a", 227), ("sm_100f", 227), ("sm_120", 99)]) {
            assert_eq!(kilobytes(architecture), Some(expected), "{architecture}");
        }
        for unknown in ["sm_20", "80", "sm_", "compute_80", "sm_99999999999999999999"] {
            assert_eq!(kilobytes(unknown), None, "{unknown}");
        }
    }

    #[test]
    fn what_is_not_known_limits_nothing_and_no_input_overflows() {
        let occupancy = estimate("sm_80", 256, None, 0).unwrap();
        assert_eq!((occupancy.blocks, occupancy.limited_by.as_str()), (8, "threads"));
        assert_eq!(estimate("sm_80", 0, Some(32), 0), None);
        assert_eq!(estimate("sm_80", u64::MAX, Some(u64::MAX), u64::MAX).unwrap().blocks, 0);
        assert_eq!(estimate("sm_80", u64::MAX, Some(255), 0).unwrap().blocks, 0);
        assert_eq!(estimate("sm_80", 256, Some(0), 0).unwrap().blocks, 8);
    }
}
