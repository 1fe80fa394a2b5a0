//! A worker: runs blocks, one after the other or several in turns, and keeps what it saw.

use std::collections::HashSet;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::{Duration, Instant};

use gpuemu_model::emulation::{AccessFault, EmulationStatistics, ThreadPlace};

use super::block::{BARRIERS, BarrierState, Block};
use super::launch::{LaunchError, POISON, Trace};
use super::warp::{Fragment, Wait, Warp};
use crate::checks::taint::Reader;
use crate::checks::{AccessLog, Checks, Clocks, Collector, ReleaseTable, SharedShadow, Sighting, Suspects, Taint};
use crate::decode::instruction::{Action, BarrierAction};
use crate::decode::{DecodedEntry, SpecialRegister};
use crate::memory::GlobalMemory;
use crate::registers::{LANES, Level};

/// Instructions of a warp before another warp of its block has its turn.
const WARP_TURN: u64 = 20_000;
/// Instructions of a block before another block has its turn, where blocks can hear of each other: few, so that a lock that
/// does not hold lets two blocks in at once.
const BLOCK_TURN: u64 = 50;
/// Most bytes that all blocks together print; the rest is left out, and a line says so.
const MOST_PRINTED: usize = 16 << 20;
/// Most asynchronous copies of a worker's blocks that nothing has waited for.
const MOST_PENDING_COPIES: usize = 1 << 20;

/// What all workers of a launch share.
#[derive(Debug)]
pub struct Context<'p> {
    pub program: &'p DecodedEntry,
    /// Blocks in x, y and z.
    pub grid: [u32; 3],
    /// Threads of a block in x, y and z.
    pub block: [u32; 3],
    /// Bytes of shared memory, static and dynamic.
    pub shared_bytes: usize,
    pub dynamic_bytes: u32,
    pub parameters: Vec<u8>,
    pub memory: GlobalMemory<'p>,
    pub checks: Checks,
    /// Instructions that may run without a block coming to its end.
    pub most_steps: u64,
    /// When the launch has to have ended, and how long it may take.
    pub deadline: Option<(Instant, Duration)>,
    /// Most blocks that a worker keeps begun.
    pub most_resident: usize,
    /// A thread to trace.
    pub trace: Option<Trace>,
    /// Reads whose values are followed.
    pub suspects: Option<Suspects>,
    /// Whether every reader of shared memory is kept.
    pub every_reader: bool,
    /// The first block that stopped the launch; those after it are not begun.
    pub stopped: AtomicU64,
}

impl Context<'_> {
    /// Whether the launch has taken longer than it may.
    fn is_late(&self) -> bool {
        self.deadline.is_some_and(|(deadline, _)| Instant::now() > deadline)
    }
}

/// What one worker holds.
#[derive(Debug)]
pub struct Worker<'c, 'p> {
    pub(super) context: &'c Context<'p>,
    /// What the loop over instructions is compiled for.
    pub(super) level: Level,
    pub(super) collector: Collector,
    pub(super) log: AccessLog,
    pub(super) releases: ReleaseTable,
    /// What is followed through registers.
    pub(super) taint: Option<Taint>,
    /// Whether it takes every reader of shared memory to know whether there is a race.
    pub(super) unsure: bool,
    /// Whether a block had more barriers than races of shared memory are told apart by.
    unfollowed: bool,
    /// Bytes of the access that is under way, lane by lane.
    pub(super) stage: Box<[u64; 32 * 8]>,
    pub(super) trace: Vec<String>,
    printed: Vec<(u64, String)>,
    printed_bytes: usize,
    statistics: EmulationStatistics,
    pub(super) since_last_end: u64,
    /// Asynchronous copies that nothing has waited for.
    pub(super) pending_copies: usize,
    spare: Vec<Block>,
}

/// What came of a turn of a block.
enum Turn {
    Ended,
    NotYet,
}

impl<'c, 'p> Worker<'c, 'p> {
    /// One that has seen nothing.
    pub fn new(context: &'c Context<'p>) -> Self {
        Self {
            context,
            level: Level::detect(),
            collector: Collector::default(),
            // What was written is only asked for where there is a race to be judged.
            log: AccessLog::new(context.suspects.is_some()),
            releases: ReleaseTable::default(),
            taint: context.suspects.clone().map(Taint::of),
            unsure: false,
            unfollowed: false,
            stage: Box::new([0; 32 * 8]),
            trace: Vec::new(),
            printed: Vec::new(),
            printed_bytes: 0,
            statistics: EmulationStatistics::default(),
            since_last_end: 0,
            pending_copies: 0,
            spare: Vec::new(),
        }
    }

    /// Runs the blocks that it is given, until there are none left or the launch is stopped.
    pub fn run(&mut self, mut next: impl FnMut() -> Option<u64>) -> Result<(), (u64, LaunchError)> {
        let mut resident: Vec<Block> = Vec::new();
        let mut turn = 0;
        loop {
            if resident.is_empty() || (resident.len() < self.context.most_resident && turn >= resident.len()) {
                match next() {
                    Some(number) if number < self.context.stopped.load(Ordering::Relaxed) => {
                        resident.push(self.begin(number));
                        turn = resident.len() - 1;
                    }
                    // The launch has stopped: what is left of it is not looked through for ever.
                    Some(_) if self.context.is_late() => return Ok(()),
                    Some(_) => {}
                    None if resident.is_empty() => return Ok(()),
                    None => turn = 0,
                }
                if resident.is_empty() {
                    continue;
                }
            }
            turn %= resident.len();
            let number = resident[turn].number;
            let stopped = |error: LaunchError| {
                self.context.stopped.fetch_min(number, Ordering::Relaxed);
                (number, error)
            };
            match self.block_turn(&mut resident[turn]).map_err(stopped)? {
                Turn::Ended => {
                    let block = resident.remove(turn);
                    self.end(block);
                }
                Turn::NotYet => turn += 1,
            }
        }
    }

    fn begin(&mut self, number: u64) -> Block {
        let context = self.context;
        let mut block = self.spare.pop().unwrap_or_default();
        let [x, y, _] = context.grid.map(u64::from);
        block.number = number;
        block.place = [(number % x) as u32, (number / x % y) as u32, (number / x / y) as u32];
        block.shared.clear();
        block.shared.resize(context.shared_bytes, POISON);
        if context.checks.race || context.checks.init {
            if block.warps.is_empty() {
                block.shadow =
                    SharedShadow::new(context.shared_bytes, context.program.shared_granule, context.every_reader);
            } else {
                block.shadow.clear();
            }
        }
        let threads = context.block.iter().product::<u32>() as usize;
        let warps = threads.div_ceil(LANES);
        block.warps.resize_with(warps, Warp::default);
        for warp in 0..warps {
            let mine = (threads - warp * LANES).min(LANES);
            let lanes = if mine == LANES { u32::MAX } else { (1 << mine) - 1 };
            self.begin_warp(&mut block.warps[warp], warp as u32, lanes, block.place);
        }
        if block.barriers.is_empty() {
            block.barriers.resize(BARRIERS, BarrierState { arrived: vec![0; warps], ..BarrierState::default() });
        }
        for barrier in block.barriers.iter_mut().filter(|barrier| barrier.in_use()) {
            *barrier = BarrierState { arrived: vec![0; warps], ..BarrierState::default() };
        }
        block.clocks = Clocks::new(number, warps);
        block.turn = 0;
        block
    }

    fn begin_warp(&self, warp: &mut Warp, number: u32, lanes: u32, place: [u32; 3]) {
        let context = self.context;
        // A warp of an earlier block had the same constants, and the same threads: only what differs is set.
        let fresh = warp.file.rows().is_empty();
        warp.number = number;
        if fresh {
            warp.file.clone_from(&context.program.registers);
        }
        for (slot, rows) in &context.program.zeroed {
            warp.file.clear(*slot, *rows);
        }
        warp.fragments.clear();
        warp.fragments.push(Fragment { step: 0, lanes, wait: Wait::Ready, calls: Vec::new() });
        (warp.threads, warp.live) = (lanes, lanes);
        warp.local.reset(context.program.frame_bytes as usize, LANES, POISON);
        warp.copies.clear();
        warp.turn = 0;
        let changes = |special: &SpecialRegister| fresh || matches!(special, SpecialRegister::Ctaid(_));
        for (special, slot) in context.program.specials.iter().filter(|(special, _)| changes(special)) {
            let value = |lane: u32| -> u32 {
                match special {
                    SpecialRegister::Tid(axis) => Block::thread(number, lane, context.block)[usize::from(*axis)],
                    SpecialRegister::Ntid(axis) => context.block[usize::from(*axis)],
                    SpecialRegister::Ctaid(axis) => place[usize::from(*axis)],
                    SpecialRegister::Nctaid(axis) => context.grid[usize::from(*axis)],
                    SpecialRegister::Laneid => lane,
                    SpecialRegister::Warpid => number,
                    SpecialRegister::Nwarpid => 64,
                    SpecialRegister::Smid => 0,
                    SpecialRegister::Nsmid => 1,
                    SpecialRegister::Gridid => 0,
                    SpecialRegister::LanemaskEq => 1 << lane,
                    SpecialRegister::LanemaskLe => u32::MAX >> (31 - lane),
                    SpecialRegister::LanemaskLt => (1 << lane) - 1,
                    SpecialRegister::LanemaskGe => u32::MAX << lane,
                    SpecialRegister::LanemaskGt => !(u32::MAX >> (31 - lane)),
                    SpecialRegister::DynamicSharedBytes => context.dynamic_bytes,
                    SpecialRegister::TotalSharedBytes => context.shared_bytes as u32,
                }
            };
            if *special == SpecialRegister::Gridid {
                *warp.file.b64_mut(*slot) = [0; LANES];
            } else {
                *warp.file.b32_mut(*slot) = std::array::from_fn(|lane| value(lane as u32));
            }
        }
    }

    fn end(&mut self, mut block: Block) {
        self.statistics.blocks += 1;
        self.statistics.warp_instructions += block.instructions;
        self.statistics.lane_operations += block.lane_operations;
        (block.instructions, block.lane_operations) = (0, 0);
        self.since_last_end = 0;
        self.keep_printed(&mut block);
        self.pending_copies -= block.warps.iter().map(|warp| warp.copies.len()).sum::<usize>();
        block.warps.iter_mut().for_each(|warp| warp.copies.clear());
        if let Some(taint) = &mut self.taint {
            block.warps.iter().for_each(|warp| taint.end(block.number, warp.number));
        }
        self.unfollowed |= self.context.checks.race && !SharedShadow::follows(&block.clocks);
        self.log.end_block(block.number, std::mem::take(&mut block.clocks));
        self.spare.push(block);
    }

    fn keep_printed(&mut self, block: &mut Block) {
        let mut text = std::mem::take(&mut block.printed);
        if text.is_empty() || self.printed_bytes > MOST_PRINTED {
            return;
        }
        self.printed_bytes += text.len();
        if self.printed_bytes > MOST_PRINTED {
            text.push_str("\n(what other blocks printed is left out)\n");
        }
        self.printed.push((block.number, text));
    }

    /// Counts copies that a warp has begun.
    pub(super) fn add_copies(&mut self, count: usize) -> Result<(), LaunchError> {
        self.pending_copies += count;
        if self.pending_copies <= MOST_PENDING_COPIES {
            return Ok(());
        }
        let message = format!("more than {MOST_PENDING_COPIES} asynchronous copies were begun that nothing waited for");
        Err(LaunchError::Exhausted(message))
    }

    /// Lets a block go on: to its end, or until another one shall have its turn.
    fn block_turn(&mut self, block: &mut Block) -> Result<Turn, LaunchError> {
        let mut spent = 0;
        // Blocks that cannot hear of each other have nothing to wait for: they run to their end.
        let communicates = self.context.program.communicates;
        let (budget, warp_budget) = if communicates { (BLOCK_TURN, BLOCK_TURN) } else { (u64::MAX, WARP_TURN) };
        loop {
            let warps = block.warps.len();
            let mut progress = false;
            for _ in 0..warps {
                let number = block.turn % warps;
                block.turn = (number + 1) % warps;
                let mut warp = std::mem::take(&mut block.warps[number]);
                let result = self.warp_turn(block, &mut warp, warp_budget);
                block.warps[number] = warp;
                let steps = result?;
                progress |= steps > 0;
                spent += steps;
                self.since_last_end += steps;
                if self.since_last_end > self.context.most_steps {
                    return Err(self.endless(block));
                }
            }
            if let Some((_, limit)) = self.context.deadline
                && self.context.is_late()
            {
                return Err(LaunchError::Late(limit));
            }
            if block.ended() {
                return Ok(Turn::Ended);
            }
            let complete = block.complete_barriers();
            for number in &complete {
                self.complete(block, *number);
            }
            if !progress && complete.is_empty() {
                self.stuck(block);
                return Ok(Turn::Ended);
            }
            if spent > budget {
                return Ok(Turn::NotYet);
            }
        }
    }

    fn complete(&mut self, block: &mut Block, number: u32) {
        let votes = block.barriers[number as usize].votes;
        for warp in &mut block.warps {
            for fragment in warp.fragments.iter().filter(|fragment| fragment.wait == Wait::Barrier(number)) {
                if let Action::Barrier(barrier) = &self.context.program.steps[fragment.step as usize].action
                    && let Some((_, result)) = barrier.reduction
                {
                    let (true_votes, all_votes) = votes;
                    let all = |holds: bool| if holds { u32::MAX } else { 0 };
                    match barrier.action {
                        BarrierAction::Count => warp.file.set_b32(result, &[true_votes; LANES], fragment.lanes),
                        BarrierAction::All => {
                            warp.file.set_predicate(result, all(true_votes == all_votes), fragment.lanes);
                        }
                        _ => warp.file.set_predicate(result, all(true_votes > 0), fragment.lanes),
                    }
                }
            }
        }
        block.release(number);
    }

    /// Nobody can go on: whoever waits at a barrier waits for ever. The block is ended.
    fn stuck(&mut self, block: &mut Block) {
        let waiting =
            block.warps.iter().flat_map(|warp| warp.fragments.iter().map(move |fragment| (warp.number, fragment)));
        let waiting: Vec<(u32, u32, u32, u32)> = waiting
            .filter_map(|(warp, fragment)| match fragment.wait {
                Wait::Barrier(number) => Some((warp, fragment.lanes.trailing_zeros(), fragment.step, number)),
                _ => None,
            })
            .collect();
        if let Some((warp, lane, step, number)) = waiting.first().copied() {
            let state = &block.barriers[number as usize % BARRIERS];
            let expected = state.expected.unwrap_or_else(|| block.threads());
            let arrived = state.threads;
            let others: Vec<String> = waiting
                .iter()
                .filter(|(_, _, other, _)| *other != step)
                .map(|(warp, _, other, number)| {
                    format!(
                        "warp {warp} waits at barrier {number} (PTX line {})",
                        self.context.program.places.place(*other).ptx_line
                    )
                })
                .collect();
            let place = self.thread_place(block.place, warp, lane);
            let others = if others.is_empty() { String::new() } else { format!("; {}", others.join(", ")) };
            self.collector.note(block.number, Some(step), AccessFault::BarrierCount, None, || Sighting {
                fault: AccessFault::BarrierCount,
                message: format!("barrier {number} waits for {expected} threads for ever, {arrived} came{others}"),
                step: Some(step),
                thread: Some(place),
                address: None,
                buffer: None,
                offset: None,
                other: None,
            });
        }
        for warp in &mut block.warps {
            warp.fragments.clear();
        }
    }

    fn endless(&self, block: &Block) -> LaunchError {
        let fragment = block.warps.iter().find_map(|warp| Some((warp.number, warp.fragments.first()?)));
        let waiting = match fragment {
            Some((warp, fragment)) => {
                let place = self.context.program.places.place(fragment.step);
                let [x, y, z] = block.place;
                format!("block ({x}, {y}, {z}), warp {warp} is at {place}: {}", place.instruction)
            }
            None => "no warp is left".to_string(),
        };
        LaunchError::Endless { steps: self.context.most_steps, waiting }
    }

    /// A thread, for messages.
    pub(super) fn thread_place(&self, block: [u32; 3], warp: u32, lane: u32) -> ThreadPlace {
        ThreadPlace { block, thread: Block::thread(warp, lane, self.context.block), warp, lane }
    }

    /// What came of its blocks.
    pub fn finish(self, result: Result<(), (u64, LaunchError)>) -> Finished {
        Finished {
            result,
            collector: self.collector,
            log: self.log,
            used: self.taint.map(Taint::into_used).unwrap_or_default(),
            unsure: self.unsure,
            unfollowed: self.unfollowed,
            trace: self.trace,
            printed: self.printed,
            statistics: self.statistics,
        }
    }
}

/// What came of a worker's blocks.
#[derive(Debug)]
pub struct Finished {
    /// The block that stopped the launch, and why, if one did.
    pub result: Result<(), (u64, LaunchError)>,
    pub collector: Collector,
    /// Accesses to memory that is written.
    pub log: AccessLog,
    /// Readers whose values were used, of those that were followed.
    pub used: HashSet<Reader>,
    /// Whether it takes every reader of shared memory to know whether there is a race.
    pub unsure: bool,
    /// Whether a block had more barriers than races of shared memory are told apart by.
    pub unfollowed: bool,
    pub trace: Vec<String>,
    /// What blocks printed, by their number.
    pub printed: Vec<(u64, String)>,
    /// How much work it was.
    pub statistics: EmulationStatistics,
}
