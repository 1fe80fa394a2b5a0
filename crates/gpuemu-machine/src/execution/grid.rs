//! A whole launch: arguments are checked and placed, blocks are spread over workers, and what came of them is put together.

use std::collections::HashSet;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::{Duration, Instant};

use gpuemu_model::emulation::{AccessFault, EmulationStatistics};

use super::block::Block;
use super::launch::{Argument, BlockOrder, Launch, LaunchError, LaunchOptions, Outcome, Role};
use super::worker::{Context, Finished, Worker};
use crate::checks::{Checks, Collector, RacePair, Sighting, Suspects, find_races};
use crate::decode::DecodedEntry;
use crate::memory::GlobalMemory;
use crate::registers::LANES;

/// Most threads of a block.
const MOST_THREADS: u64 = 1024;
/// Most shared memory of a block, static and dynamic: that of an H100, less what the system keeps.
const MOST_SHARED_BYTES: u64 = 227 * 1024;
/// Most blocks that a worker keeps begun, where blocks can hear of each other.
const MOST_RESIDENT: u64 = 512;
/// Most bytes that all blocks together hold which are begun at once. One block is always begun.
const MOST_RESIDENT_BYTES: u64 = 1 << 30;
/// Most bytes that one block holds: its registers, and twice its local and shared memory, for what is known of each byte.
const MOST_BLOCK_BYTES: u64 = 4 << 30;
/// Buffers above this whose contents were not given are not given back: the machine holds only what was touched of them.
const MOST_RETURNED: u64 = 1 << 30;

pub(super) fn run(program: &DecodedEntry, launch: &Launch, options: &LaunchOptions) -> Result<Outcome, LaunchError> {
    check(program, launch)?;
    let blocks = launch.grid.iter().map(|count| u64::from(*count)).product::<u64>();
    let cores = std::thread::available_parallelism().map_or(1, usize::from);
    let workers = if options.workers == 0 { cores } else { options.workers };
    // Where blocks hear of each other, or a thread is followed, the order must be the same every time.
    let alone = program.communicates || options.trace.is_some();
    let fitting = (MOST_RESIDENT_BYTES / block_bytes(program, launch)).max(1);
    let workers = if alone { 1 } else { workers.clamp(1, blocks.min(256).min(fitting) as usize) };
    let started = Instant::now();
    let order = BlockSequence::new(options.order, blocks);
    let deadline = options.most_time.and_then(|limit| Some((started.checked_add(limit)?, limit)));
    let run_with = |workers: usize, watch: Watch| {
        let rules = Rules { options, order: &order, deadline };
        run_with(program, launch, &rules, workers, watch)
    };
    let mut ran = run_with(workers, Watch::default())?;
    let every_reader = ran.unsure;
    if every_reader {
        ran = run_with(workers, Watch { every_reader, suspects: None })?;
    }
    if ran.races.is_empty() {
        return Ok(ran.outcome);
    }
    // What a race leaves behind depends on who was first: the same every time is only had from one worker. And a read that
    // races is only harmful if something depends on what it gave: that is followed in this second run.
    let mut suspects = Suspects::default();
    for (reader, lane) in ran.races.iter().flat_map(|pair| &pair.readers) {
        suspects.add(*reader, *lane);
    }
    run_with(1, Watch { every_reader, suspects: Some(suspects) }).map(|ran| ran.outcome)
}

/// What all runs of a launch have in common.
struct Rules<'o> {
    options: &'o LaunchOptions,
    order: &'o BlockSequence,
    deadline: Option<(Instant, Duration)>,
}

/// What a run watches that only some launches need.
#[derive(Default)]
struct Watch {
    /// Every reader of shared memory.
    every_reader: bool,
    /// Where the values of reads go that may race.
    suspects: Option<Suspects>,
}

/// What came of a run.
struct Ran {
    outcome: Outcome,
    races: Vec<RacePair>,
    /// Whether it takes every reader of shared memory to know of all races.
    unsure: bool,
}

fn run_with(
    program: &DecodedEntry,
    launch: &Launch,
    rules: &Rules<'_>,
    workers: usize,
    watch: Watch,
) -> Result<Ran, LaunchError> {
    let Rules { options, order, deadline } = *rules;
    let checks = Checks::of(&options.checks);
    let (memory, parameters) = place(program, launch, checks.init)?;
    let shared_bytes = program.static_shared_bytes as usize + launch.shared_bytes as usize;
    let context = Context {
        program,
        grid: launch.grid,
        block: launch.block,
        shared_bytes,
        dynamic_bytes: launch.shared_bytes,
        parameters,
        memory,
        checks,
        most_steps: options.most_steps,
        deadline,
        most_resident: (MOST_RESIDENT_BYTES / block_bytes(program, launch)).clamp(1, MOST_RESIDENT) as usize,
        trace: options.trace,
        suspects: watch.suspects,
        every_reader: watch.every_reader,
        stopped: AtomicU64::new(u64::MAX),
    };
    let next = AtomicU64::new(0);
    let take = || {
        let number = next.fetch_add(1, Ordering::Relaxed);
        // In ascending order nothing comes before the block that stopped the launch any more.
        let over = order.order == BlockOrder::Ascending && number >= context.stopped.load(Ordering::Relaxed);
        (number < order.blocks && !over).then(|| order.block(number))
    };
    let run_one = || {
        let mut worker = Worker::new(&context);
        let result = worker.run(take);
        worker.finish(result)
    };
    let results: Vec<_> = if workers <= 1 {
        vec![run_one()]
    } else {
        std::thread::scope(|scope| {
            let handles: Vec<_> = (0..workers).map(|_| scope.spawn(run_one)).collect();
            handles.into_iter().map(|handle| handle.join()).collect::<Result<Vec<_>, _>>()
        })
        .map_err(|_| LaunchError::Refused("a worker of the machine panicked: this is an error of gpuemu".to_string()))?
    };
    finish(context, launch, options, results)
}

fn finish(
    context: Context<'_>,
    launch: &Launch,
    options: &LaunchOptions,
    results: Vec<Finished>,
) -> Result<Ran, LaunchError> {
    let mut statistics = EmulationStatistics::default();
    let mut printed = Vec::new();
    let mut collector = Collector::default();
    let mut logs = Vec::new();
    let mut trace = Vec::new();
    let mut used = HashSet::new();
    let (mut unsure, mut unfollowed) = (false, false);
    let mut stopped: Option<(u64, LaunchError)> = None;
    for mut finished in results {
        if let Err((block, error)) = finished.result
            && stopped.as_ref().is_none_or(|(first, _)| block < *first)
        {
            stopped = Some((block, error));
        }
        statistics.blocks += finished.statistics.blocks;
        statistics.warp_instructions += finished.statistics.warp_instructions;
        statistics.lane_operations += finished.statistics.lane_operations;
        printed.append(&mut finished.printed);
        collector.merge(finished.collector);
        logs.push(finished.log);
        used.extend(finished.used);
        unsure |= finished.unsure;
        unfollowed |= finished.unfollowed;
        trace.append(&mut finished.trace);
    }
    if let Some((_, error)) = stopped {
        return Err(error);
    }
    let mut races = if context.checks.race { find_races(&logs) } else { Vec::new() };
    if context.suspects.is_some() {
        let harmful =
            |pair: &RacePair| pair.readers.is_empty() || pair.readers.iter().any(|(reader, _)| used.contains(reader));
        races.retain(harmful);
    }
    note_races(&context, &races, &mut collector);
    if context.checks.init {
        note_unwritten(&context, &mut collector);
    }
    printed.sort_by_key(|(block, _)| *block);
    let mut not_checked = Vec::new();
    if logs.iter().any(|log| log.incomplete) {
        not_checked.push("races in global memory: there were more accesses than are kept".to_string());
    }
    if unfollowed {
        not_checked.push("races: a block had more barriers than they are told apart by".to_string());
    }
    let (findings, more_findings) = collector.finish(&context.program.places, options.most_findings);
    let variables = context.program.variables.len();
    let buffers = launch.arguments.iter().filter_map(|argument| match argument {
        Argument::Buffer(buffer) => Some(buffer),
        Argument::Within { .. } | Argument::Value(_) => None,
    });
    let memory = context.memory.into_bytes().skip(variables);
    let returned = buffers.zip(memory).map(|(buffer, bytes)| {
        let sparse = buffer.bytes > MOST_RETURNED && buffer.contents.is_empty();
        if buffer.role == Role::Input || sparse { Vec::new() } else { bytes.into_vec() }
    });
    let outcome = Outcome {
        buffers: returned.collect(),
        findings,
        more_findings,
        not_checked,
        printed: printed.into_iter().map(|(_, text)| text).collect(),
        trace,
        statistics,
    };
    Ok(Ran { outcome, races, unsure })
}

fn note_races(context: &Context<'_>, races: &[RacePair], collector: &mut Collector) {
    let place_of = |number: u64| {
        let [x, y, _] = context.grid.map(u64::from);
        [(number % x) as u32, (number / x % y) as u32, (number / x / y) as u32]
    };
    for race in races {
        let thread = |record: &crate::checks::AccessRecord| {
            let (warp, lane) = (u32::from(record.warp), record.lane_at(race.address));
            gpuemu_model::emulation::ThreadPlace {
                block: place_of(record.block),
                thread: Block::thread(warp, lane, context.block),
                warp,
                lane,
            }
        };
        let (one, other) = (thread(&race.record), thread(&race.other));
        let allocation = context.memory.near(race.address);
        let verb = if race.record.write { "write" } else { "read" };
        let did = if race.other.write { "wrote" } else { "read" };
        let name = allocation.map_or("global memory", |allocation| allocation.name.as_str());
        let offset = allocation.map(|allocation| (race.address - allocation.base) as i64);
        let element = allocation.map_or(0, |found| (race.address - found.base) / u64::from(found.element_bytes));
        let (block, step, other_step) = (race.record.block, race.record.step, race.other.step);
        collector.note_times(race.pairs, block, Some(step), AccessFault::Race, Some(other_step), || Sighting {
            fault: AccessFault::Race,
            message: format!(
                "{verb} of '{name}' at element {element} that another thread {did}, and nothing orders the two"
            ),
            step: Some(race.record.step),
            thread: Some(one),
            address: Some(race.address),
            buffer: Some(name.to_string()),
            offset,
            other: Some((race.other.step, other, race.other.write)),
        });
    }
}

fn note_unwritten(context: &Context<'_>, collector: &mut Collector) {
    let outputs = context.memory.allocations().iter().filter(|found| found.output);
    for (number, allocation) in outputs.enumerate() {
        let Some(written) = &allocation.written else { continue };
        let Some(first) = written.first_unset() else { continue };
        let missing = written.unset();
        let element_bytes = u64::from(allocation.element_bytes);
        let all = allocation.len() / element_bytes;
        let name = allocation.name.clone();
        // Outputs have no place in the code: their number keeps them apart.
        collector.note(u64::MAX, None, AccessFault::NeverWritten, Some(number as u32), || Sighting {
            fault: AccessFault::NeverWritten,
            message: format!(
                "{} of {all} elements of '{name}' were never written, the first at {}",
                missing.div_ceil(element_bytes),
                first / element_bytes
            ),
            step: None,
            thread: None,
            address: Some(allocation.base + first),
            buffer: Some(name),
            offset: Some(first as i64),
            other: None,
        });
    }
}

/// Bytes that a block holds while it runs.
fn block_bytes(program: &DecodedEntry, launch: &Launch) -> u64 {
    let threads = launch.block.iter().map(|count| u64::from(*count)).product::<u64>();
    let warps = threads.div_ceil(LANES as u64);
    let registers = size_of_val(program.registers.rows()) as u64;
    let local = 2 * LANES as u64 * u64::from(program.frame_bytes);
    let shared = 2 * (u64::from(program.static_shared_bytes) + u64::from(launch.shared_bytes));
    (warps.saturating_mul(registers + local)).saturating_add(shared).max(1)
}

/// Whether a launch fits the kernel.
fn check(program: &DecodedEntry, launch: &Launch) -> Result<(), LaunchError> {
    let refuse = |message: String| Err(LaunchError::Refused(message));
    let [gx, gy, gz] = launch.grid;
    if gx == 0 || gy == 0 || gz == 0 {
        return refuse(format!("the grid {gx} x {gy} x {gz} has no blocks"));
    }
    if gx > i32::MAX as u32 || gy > 65535 || gz > 65535 {
        return refuse(format!("the grid {gx} x {gy} x {gz} is too large: at most 2147483647 x 65535 x 65535"));
    }
    let [bx, by, bz] = launch.block;
    let threads = u64::from(bx) * u64::from(by) * u64::from(bz);
    if threads == 0 {
        return refuse(format!("the block {bx} x {by} x {bz} has no threads"));
    }
    if threads > MOST_THREADS || bz > 64 {
        return refuse(format!(
            "the block {bx} x {by} x {bz} has {threads} threads, at most {MOST_THREADS} are possible"
        ));
    }
    if let Some(required) = program.required_block.filter(|required| *required != launch.block) {
        let [x, y, z] = required;
        return refuse(format!("the kernel needs blocks of {x} x {y} x {z} threads, not {bx} x {by} x {bz}"));
    }
    if let Some(most) = program.most_threads.filter(|most| threads > *most) {
        return refuse(format!("the kernel allows blocks of {most} threads, not {threads}"));
    }
    let (fixed, dynamic) = (u64::from(program.static_shared_bytes), u64::from(launch.shared_bytes));
    if fixed + dynamic > MOST_SHARED_BYTES {
        return refuse(format!(
            "{fixed} bytes of static and {dynamic} of dynamic shared memory are more than the {MOST_SHARED_BYTES} that a block can have"
        ));
    }
    let bytes = block_bytes(program, launch);
    if bytes > MOST_BLOCK_BYTES {
        return refuse(format!(
            "a block would hold {bytes} bytes of registers, local and shared memory, at most {MOST_BLOCK_BYTES} are possible"
        ));
    }
    if launch.arguments.len() != program.parameters.len() {
        let listed: Vec<String> =
            program.parameters.iter().map(|parameter| format!("{} ({})", parameter.name, parameter.scalar)).collect();
        return refuse(format!(
            "'{}' has {} parameters, {} arguments are given; the parameters are {}",
            program.name,
            program.parameters.len(),
            launch.arguments.len(),
            listed.join(", ")
        ));
    }
    for (parameter, argument) in program.parameters.iter().zip(&launch.arguments) {
        match argument {
            Argument::Buffer(buffer) if parameter.bytes != 8 => {
                return refuse(format!(
                    "buffer '{}' is given for parameter '{}', which has {} bytes and is no pointer",
                    buffer.name, parameter.name, parameter.bytes
                ));
            }
            Argument::Within { argument, .. }
                if !matches!(launch.arguments.get(*argument), Some(Argument::Buffer(_))) =>
            {
                return refuse(format!(
                    "parameter '{}' points into argument {argument}, which is no buffer",
                    parameter.name
                ));
            }
            Argument::Within { .. } if parameter.bytes != 8 => {
                return refuse(format!(
                    "parameter '{}' has {} bytes and is no pointer",
                    parameter.name, parameter.bytes
                ));
            }
            Argument::Value(bytes) if bytes.len() as u64 != parameter.bytes => {
                return refuse(format!(
                    "parameter '{}' has {} bytes, {} are given",
                    parameter.name,
                    parameter.bytes,
                    bytes.len()
                ));
            }
            _ => {}
        }
    }
    Ok(())
}

/// Places variables and buffers in memory, and fills in the parameters.
fn place<'l>(
    program: &DecodedEntry,
    launch: &'l Launch,
    watch_writes: bool,
) -> Result<(GlobalMemory<'l>, Vec<u8>), LaunchError> {
    let mut memory = GlobalMemory::default();
    for variable in &program.variables {
        memory.add_variable(&variable.name, variable.bytes, &variable.contents, variable.read_only);
    }
    let mut addresses = Vec::with_capacity(launch.arguments.len());
    for argument in &launch.arguments {
        addresses.push(match argument {
            Argument::Buffer(buffer) => memory.add_buffer(buffer, watch_writes).map_err(LaunchError::Refused)?,
            Argument::Within { .. } | Argument::Value(_) => 0,
        });
    }
    let mut parameters = vec![0; program.parameter_bytes as usize];
    for ((parameter, argument), address) in program.parameters.iter().zip(&launch.arguments).zip(&addresses) {
        let pointer = |address: u64| address.to_le_bytes().to_vec();
        let bytes = match argument {
            Argument::Value(bytes) => bytes.clone(),
            Argument::Buffer(_) => pointer(*address),
            Argument::Within { argument, offset } => {
                pointer(addresses.get(*argument).copied().unwrap_or_default().wrapping_add(*offset))
            }
        };
        let start = parameter.offset as usize;
        if let Some(target) = parameters.get_mut(start..start + bytes.len()) {
            target.copy_from_slice(&bytes);
        }
    }
    Ok((memory, parameters))
}

/// The order in which blocks are begun.
struct BlockSequence {
    blocks: u64,
    order: BlockOrder,
    /// A step that is prime to the number of blocks: every block comes once.
    step: u64,
    start: u64,
}

impl BlockSequence {
    fn new(order: BlockOrder, blocks: u64) -> Self {
        let mut step = 1;
        let mut start = 0;
        if let BlockOrder::Shuffled(seed) = order {
            let mixed = seed.wrapping_mul(0x9E37_79B9_7F4A_7C15) ^ (seed >> 29);
            start = mixed % blocks.max(1);
            step = ((mixed >> 7) % blocks.max(1)) | 1;
            while greatest_common_divisor(step, blocks.max(1)) != 1 {
                step += 2;
            }
        }
        Self { blocks, order, step, start }
    }

    fn block(&self, number: u64) -> u64 {
        match self.order {
            BlockOrder::Ascending => number,
            BlockOrder::Descending => self.blocks - 1 - number,
            BlockOrder::Shuffled(_) => {
                let place = u128::from(number) * u128::from(self.step) + u128::from(self.start);
                (place % u128::from(self.blocks)) as u64
            }
        }
    }
}

fn greatest_common_divisor(mut left: u64, mut right: u64) -> u64 {
    while right != 0 {
        (left, right) = (right, left % right);
    }
    left
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_block_comes_once_in_any_order() {
        for order in [BlockOrder::Ascending, BlockOrder::Descending, BlockOrder::Shuffled(7), BlockOrder::Shuffled(0)] {
            for blocks in [1, 2, 12, 97, 100] {
                let sequence = BlockSequence::new(order, blocks);
                let mut all: Vec<u64> = (0..blocks).map(|number| sequence.block(number)).collect();
                all.sort_unstable();
                assert_eq!(all, (0..blocks).collect::<Vec<_>>());
            }
        }
    }
}
