//! A block: its warps, its shared memory, and its barriers.

use crate::checks::{Brought, Clocks, SharedShadow};
use crate::registers::LANES;

use super::warp::{Wait, Warp};

/// Barriers of a block.
pub const BARRIERS: usize = 16;

/// Who has come to a barrier.
#[derive(Debug, Clone, Default)]
pub struct BarrierState {
    /// Lanes of each warp that have arrived.
    pub arrived: Vec<u32>,
    /// Threads that have arrived, warps counted whole where the barrier does.
    pub threads: u32,
    /// How many it waits for; none: all of the block that have not ended.
    pub expected: Option<u32>,
    /// Threads whose predicate is true, and how many have one.
    pub votes: (u32, u32),
    /// The instruction that the first came by.
    pub step: u32,
    /// What those brought that have gone on without waiting.
    pub brought: Option<Brought>,
}

impl BarrierState {
    /// Whether anybody has come.
    pub fn in_use(&self) -> bool {
        self.threads > 0
    }
}

/// A block that runs.
#[derive(Debug, Default)]
pub struct Block {
    /// Its number in the grid.
    pub number: u64,
    /// Its place in the grid.
    pub place: [u32; 3],
    pub shared: Vec<u8>,
    pub shadow: SharedShadow,
    pub warps: Vec<Warp>,
    pub barriers: Vec<BarrierState>,
    /// What its warps know of each other.
    pub clocks: Clocks,
    pub printed: String,
    /// Instructions of its warps.
    pub instructions: u64,
    /// Instructions of their lanes.
    pub lane_operations: u64,
    /// Tells accesses of one instruction from those of the same one when it comes again.
    pub instance: u32,
    /// The warp that goes on next.
    pub turn: usize,
}

impl Block {
    /// Whether all threads have ended.
    pub fn ended(&self) -> bool {
        self.warps.iter().all(Warp::ended)
    }

    /// All threads of the block.
    pub fn threads(&self) -> u32 {
        self.warps.iter().map(|warp| warp.threads.count_ones()).sum()
    }

    /// The barriers that everybody has come to.
    pub fn complete_barriers(&self) -> Vec<u32> {
        let in_use = self.barriers.iter().enumerate().filter(|(_, barrier)| barrier.in_use());
        let complete = in_use.filter(|(_, barrier)| match barrier.expected {
            Some(expected) => barrier.threads >= expected,
            None => {
                // Threads that have ended are not waited for; those of them that arrived before count once.
                let gone: u32 = self
                    .warps
                    .iter()
                    .zip(&barrier.arrived)
                    .map(|(warp, arrived)| (warp.threads & !warp.live & !arrived).count_ones())
                    .sum();
                barrier.threads + gone >= self.threads()
            }
        });
        complete.map(|(number, _)| number as u32).collect()
    }

    /// Lets everybody at a barrier go on, and gives the barrier as it was.
    pub fn release(&mut self, number: u32) -> BarrierState {
        let Some(state) = self.barriers.get_mut(number as usize) else { return BarrierState::default() };
        let warps = state.arrived.len();
        let state = std::mem::replace(state, BarrierState { arrived: vec![0; warps], ..BarrierState::default() });
        let full = state.expected.is_none();
        // Those that ended before count as if they had come: nothing of theirs is under way any more.
        let waits = |warp: &Warp| warp.fragments.iter().any(|fragment| fragment.wait == Wait::Barrier(number));
        let met = self.warps.iter().filter(|warp| waits(warp) || (full && warp.live == 0));
        let met: Vec<u32> = met.map(|warp| warp.number).collect();
        self.clocks.meet(&met, state.brought.clone());
        for warp in &mut self.warps {
            for fragment in &mut warp.fragments {
                if fragment.wait == Wait::Barrier(number) {
                    fragment.wait = Wait::Ready;
                    fragment.step += 1;
                }
            }
        }
        state
    }

    /// The thread of a lane of a warp, for a block of a size.
    pub fn thread(warp: u32, lane: u32, size: [u32; 3]) -> [u32; 3] {
        let number = warp * LANES as u32 + lane;
        let (x, y) = (size[0].max(1), size[1].max(1));
        [number % x, number / x % y, number / x / y]
    }
}
