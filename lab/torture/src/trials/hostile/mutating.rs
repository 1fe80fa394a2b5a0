//! The short form: every kept input, and changes of them, in this process.

use std::cell::RefCell;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::atomic::{AtomicUsize, Ordering};

use gpuemu_tensor::Stream;
use gpuemu_tensor::rng::case_seed;
use gpuemu_torture::hostile::{TARGETS, Target, inputs, mutated};

use crate::trial::grouped;

/// The most memory that all of it may take.
const MOST_MEGABYTES: u64 = 3072;

thread_local! {
    static LAST_PANIC: RefCell<String> = const { RefCell::new(String::new()) };
}

/// Runs all targets; the figures, or the first input that did harm.
pub fn run(seed: u64) -> Result<Vec<String>, String> {
    let hook = std::panic::take_hook();
    std::panic::set_hook(Box::new(|panic| LAST_PANIC.with(|last| *last.borrow_mut() = panic.to_string())));
    let next = AtomicUsize::new(0);
    let threads = std::thread::available_parallelism().map_or(1, usize::from);
    let results: Vec<Result<u64, String>> = std::thread::scope(|scope| {
        let work = || {
            let take = || TARGETS.get(next.fetch_add(1, Ordering::Relaxed));
            std::iter::from_fn(take).map(|target| try_target(target, seed)).collect::<Vec<_>>()
        };
        let workers: Vec<_> = (0..threads).map(|_| scope.spawn(work)).collect();
        workers.into_iter().flat_map(|worker| worker.join().unwrap_or_default()).collect()
    });
    std::panic::set_hook(hook);
    if results.len() != TARGETS.len() {
        return Err("a thread of the trial itself panicked".to_string());
    }
    let executions: u64 = results.into_iter().sum::<Result<u64, String>>()?;
    let peak = peak_megabytes()?;
    if peak > MOST_MEGABYTES {
        return Err(format!("{peak} MiB of memory were taken, more than {MOST_MEGABYTES}"));
    }
    Ok(vec![
        format!("{} inputs at {} places", grouped(executions), TARGETS.len()),
        "0 panics".to_string(),
        format!("most memory {peak} MiB"),
    ])
}

fn try_target(target: &Target, seed: u64) -> Result<u64, String> {
    let kept = inputs(target.name)?;
    for (name, bytes) in &kept {
        try_input(target, bytes).map_err(|problem| format!("{}/{name}: {problem}", target.name))?;
    }
    let changed = target.thousands_short * 1000;
    for number in 0..changed {
        let mut stream = Stream::new(case_seed(seed, number), target.name);
        let (Some((_, input)), Some((_, other))) = (stream.pick(&kept), stream.pick(&kept)) else { continue };
        let bytes = mutated(&mut stream, input, other, target.words);
        if let Err(problem) = try_input(target, &bytes) {
            let file = std::env::temp_dir().join(format!("gpuemu-hostile-{}-{seed}-{number}", target.name));
            let kept = std::fs::write(&file, &bytes);
            let place = kept.map_or_else(|error| error.to_string(), |()| file.display().to_string());
            return Err(format!("{}: {problem}; the input is kept: {place}", target.name));
        }
    }
    Ok(kept.len() as u64 + changed)
}

fn try_input(target: &Target, bytes: &[u8]) -> Result<(), String> {
    catch_unwind(AssertUnwindSafe(|| (target.run)(bytes))).map_err(|_| LAST_PANIC.with(|last| last.borrow().clone()))
}

/// The most memory that this process ever held.
fn peak_megabytes() -> Result<u64, String> {
    let status = std::fs::read_to_string("/proc/self/status").map_err(|error| error.to_string())?;
    let line = status.lines().find_map(|line| line.strip_prefix("VmHWM:"));
    let kilobytes = line.and_then(|line| line.split_whitespace().next()).and_then(|number| number.parse::<u64>().ok());
    kilobytes
        .map(|kilobytes| kilobytes / 1024)
        .ok_or_else(|| "the system does not say how much memory is held".to_string())
}
