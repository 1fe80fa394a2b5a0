//! Every launch of a pack, run by the machine and held to the recording.

use std::sync::Mutex;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};

use gpuemu_model::emulation::AccessFault;
use gpuemu_ptx::source::Source;

use super::above_sm_89::above_sm_89;
use super::bounds::{Reordering, documented_ulps};
use super::compare::{Comparison, Measure};
use super::launches::launch;
use super::manifest::{Arrays, Entry, Parameter, RecordedBuffer};
use super::pack::{Pack, PackError};
use super::report::{ConformanceOutcome, ConformanceReport, LaunchResult};
use crate::{Argument, BlockOrder, Launch, LaunchError, LaunchOptions, Outcome, Program};

/// The orders in which the blocks of a launch are begun whose result depends on it.
const ORDERS: [BlockOrder; 4] =
    [BlockOrder::Ascending, BlockOrder::Descending, BlockOrder::Shuffled(1), BlockOrder::Shuffled(2)];

/// Runs a pack. Whoever asks is told of each launch that is done; launches run side by side, each on one core.
pub fn run(
    pack: &Pack,
    options: &LaunchOptions,
    done: &(dyn Fn(&LaunchResult) + Sync),
) -> Result<ConformanceReport, PackError> {
    let cores = std::thread::available_parallelism().map_or(1, usize::from);
    let threads = if options.workers == 0 { cores } else { options.workers }.min(pack.entries.len()).max(1);
    let options = LaunchOptions { workers: 1, trace: None, ..options.clone() };
    let (next, failed) = (AtomicUsize::new(0), AtomicBool::new(false));
    let results = Mutex::new(Vec::with_capacity(pack.entries.len()));
    let work = || {
        while !failed.load(Ordering::Relaxed) {
            let index = next.fetch_add(1, Ordering::Relaxed);
            let Some(entry) = pack.entries.get(index) else { break };
            let result = judge(pack, entry, &options);
            match &result {
                Ok(result) => done(result),
                Err(_) => failed.store(true, Ordering::Relaxed),
            }
            // A poisoned lock is that of a thread that panicked, which ends this too.
            if let Ok(mut results) = results.lock() {
                results.push((index, result));
            }
        }
    };
    std::thread::scope(|scope| {
        for _ in 0..threads {
            scope.spawn(work);
        }
    });
    let mut results = results.into_inner().unwrap_or_default();
    results.sort_by_key(|(index, _)| *index);
    let launches = results.into_iter().map(|(_, result)| result).collect::<Result<Vec<_>, _>>()?;
    Ok(ConformanceReport::new(launches))
}

fn judge(pack: &Pack, entry: &Entry, options: &LaunchOptions) -> Result<LaunchResult, PackError> {
    let path = pack.folder.join(&entry.ptx);
    let source = Source::read(&path).map_err(|error| PackError::new(&path, error.message))?;
    let mut arrays = Arrays::new(&pack.folder, entry);
    let launch = launch(entry, &mut arrays)?;
    let program = match Program::decode(&source, Some(&entry.entry)) {
        Ok(program) => program,
        Err(error) => {
            let refused = match above_sm_89(&source) {
                Some((opcode, line)) => {
                    let detail = format!("{opcode} (line {line}) needs sm_90: {error}");
                    result(entry, ConformanceOutcome::Skipped, detail)
                }
                None => result(entry, ConformanceOutcome::Wrong, error.to_string()),
            };
            return Ok(refused);
        }
    };
    let recorded = recorded(entry, &mut arrays)?;
    let orders = if entry.is_reordered() { ORDERS.as_slice() } else { &ORDERS[..1] };
    let mut worst: Option<LaunchResult> = None;
    for order in orders {
        let options = LaunchOptions { order: *order, ..options.clone() };
        let one = match program.launch(&launch, &options) {
            Ok(outcome) => compared(entry, &launch, &recorded, &outcome),
            Err(error) => failed(entry, &error),
        };
        if worst.as_ref().is_none_or(|worst| severity(one.outcome) > severity(worst.outcome)) {
            worst = Some(one);
        }
    }
    Ok(worst.unwrap_or_else(|| result(entry, ConformanceOutcome::Wrong, "it was not run".to_string())))
}

/// Which of the outcomes of several orders counts.
fn severity(outcome: ConformanceOutcome) -> u8 {
    match outcome {
        ConformanceOutcome::BitEqual => 0,
        ConformanceOutcome::ExpectedError | ConformanceOutcome::Skipped => 1,
        ConformanceOutcome::WithinBound => 2,
        ConformanceOutcome::Wrong => 3,
    }
}

impl Entry {
    /// Whether the order of its blocks decides what comes of it.
    fn is_reordered(&self) -> bool {
        self.deterministic == Some(false) || self.float_atomics_across_ctas
    }

    /// What it is counted under: its kernel, its family of instructions, or itself.
    fn group(&self) -> &str {
        self.kernel.as_deref().or(self.family.as_deref()).unwrap_or(&self.id)
    }

    fn buffers(&self) -> impl Iterator<Item = &RecordedBuffer> {
        self.params.iter().filter_map(|parameter| match parameter {
            Parameter::Buffer(buffer) => Some(buffer),
            _ => None,
        })
    }
}

/// What the buffers of a launch were recorded to hold afterwards, and after another run.
type Recorded = Vec<(Option<Vec<u8>>, Option<Vec<u8>>)>;

fn recorded(entry: &Entry, arrays: &mut Arrays<'_>) -> Result<Recorded, PackError> {
    let mut outcomes = |buffer: &RecordedBuffer| {
        let first = arrays.after(buffer, buffer.out_key.as_ref())?;
        Ok((first, arrays.after(buffer, buffer.out2_key.as_ref())?))
    };
    entry.buffers().map(&mut outcomes).collect()
}

fn result(entry: &Entry, outcome: ConformanceOutcome, detail: String) -> LaunchResult {
    LaunchResult {
        id: entry.id.clone(),
        set: entry.set.clone(),
        group: entry.group().to_string(),
        outcome,
        detail,
        mismatches: None,
        elements: None,
        findings: Vec::new(),
    }
}

/// A launch that came to no end.
fn failed(entry: &Entry, error: &LaunchError) -> LaunchResult {
    let own = matches!(error, LaunchError::Assertion { .. } | LaunchError::Trap { .. });
    let expected = own && entry.expect_error.is_some();
    let outcome = if expected { ConformanceOutcome::ExpectedError } else { ConformanceOutcome::Wrong };
    result(entry, outcome, error.to_string())
}

fn compared(entry: &Entry, launch: &Launch, recorded: &Recorded, outcome: &Outcome) -> LaunchResult {
    if let Some(expected) = &entry.expect_error {
        let detail = format!("it came to its end, but was recorded to fail: {expected}");
        return result(entry, ConformanceOutcome::Wrong, detail);
    }
    let blocks = launch.grid.iter().map(|size| u64::from(*size)).fold(1, u64::saturating_mul);
    let mut comparison = Comparison::default();
    let mut missing = None;
    for (index, (buffer, (first, second))) in entry.buffers().zip(recorded).enumerate() {
        let Some(first) = first else { continue };
        let Some(actual) = outcome.buffers.get(index) else {
            missing.get_or_insert_with(|| format!("nothing came back of the buffer {}", buffer.name));
            continue;
        };
        let measure = match (buffer.float(), documented_ulps(entry.op.as_deref())) {
            (Some(dtype), Some(ulps)) => Measure::Ulps(dtype, ulps),
            // A buffer of numbers that are not added in any order has one outcome only.
            (Some(dtype), None) if entry.is_reordered() => {
                let mut seen = vec![first.as_slice()];
                seen.extend(second.as_deref());
                seen.extend(contents(launch, index));
                Measure::Reordered(dtype, Reordering::new(dtype, blocks, &seen), second.as_deref())
            }
            _ => Measure::Bits,
        };
        comparison.add(buffer, actual, first, measure);
    }
    let outcome_word = if comparison.beyond > 0 || missing.is_some() || comparison.elements == 0 {
        ConformanceOutcome::Wrong
    } else if comparison.different > 0 {
        ConformanceOutcome::WithinBound
    } else {
        ConformanceOutcome::BitEqual
    };
    let nothing = (comparison.elements == 0).then(|| "no output was recorded to compare with".to_string());
    let detail = missing.or(comparison.first).or(nothing).unwrap_or_default();
    LaunchResult {
        mismatches: Some(comparison.different),
        elements: Some(comparison.elements),
        // What was never written holds poison in the recording too, bit for bit.
        findings: outcome.findings.iter().filter(|found| found.fault != AccessFault::NeverWritten).cloned().collect(),
        ..result(entry, outcome_word, detail)
    }
}

/// What a buffer held before, by its number among the buffers.
fn contents(launch: &Launch, index: usize) -> Option<&[u8]> {
    let mut buffers = launch.arguments.iter().filter_map(|argument| match argument {
        Argument::Buffer(buffer) => Some(buffer.contents.as_slice()),
        Argument::Within { .. } | Argument::Value(_) => None,
    });
    buffers.nth(index)
}

#[cfg(test)]
mod tests {
    use gpuemu_model::emulation::{CodePlace, EmulationStatistics, ThreadPlace};
    use serde_json::{Value, json};

    use super::*;

    fn entry(changes: Value) -> Entry {
        let mut entry = json!({
            "id": "k/0", "set": "kernel", "kernel": "k", "ptx": "k.ptx", "entry": "k", "grid": [3, 1, 1], "block": [1, 1, 1],
            "shared": 0, "data_file": "k.npz", "deterministic": true, "unknown": "ignored",
            "params": [
                {"kind": "buffer", "name": "x", "dtype": "i32", "role": "in", "elems": 1, "key": "x"},
                {"kind": "buffer", "name": "o", "dtype": "f32", "role": "inout", "elems": 2, "key": "o", "out_key": "p"},
                {"kind": "scratch", "name": "s", "dtype": "u64", "value": 0},
            ],
        });
        for (key, value) in changes.as_object().unwrap() {
            entry[key] = value.clone();
        }
        serde_json::from_value(entry).unwrap()
    }

    fn bytes(values: [f32; 2]) -> Vec<u8> {
        values.iter().flat_map(|value| value.to_le_bytes()).collect()
    }

    /// What is made of an outcome where 1 and 2 were recorded.
    fn outcome(entry: &Entry, values: [f32; 2]) -> LaunchResult {
        let launch = Launch { grid: entry.grid, block: entry.block, shared_bytes: 0, arguments: Vec::new() };
        let recorded = vec![(None, None), (Some(bytes([1.0, 2.0])), Some(bytes([1.0, 2.25])))];
        let outcome = Outcome {
            buffers: vec![vec![0; 4], bytes(values)],
            findings: Vec::new(),
            more_findings: 0,
            not_checked: Vec::new(),
            printed: String::new(),
            trace: Vec::new(),
            statistics: EmulationStatistics::default(),
        };
        compared(entry, &launch, &recorded, &outcome)
    }

    #[test]
    fn a_fixed_order_is_held_to_every_bit() {
        let entry = entry(json!({}));
        let right = outcome(&entry, [1.0, 2.0]);
        assert_eq!((right.outcome, right.mismatches, right.elements), (ConformanceOutcome::BitEqual, Some(0), Some(2)));
        let wrong = outcome(&entry, [1.0, 2.000_000_2]);
        assert_eq!((wrong.outcome, wrong.mismatches), (ConformanceOutcome::Wrong, Some(1)));
        assert_eq!(wrong.detail, "o[1]: 0x40000001 (2.000000238418579), recorded 0x40000000 (2.0)");
    }

    #[test]
    fn another_order_is_held_to_its_bound() {
        let entry = entry(json!({"deterministic": false}));
        assert!(entry.is_reordered());
        assert_eq!(outcome(&entry, [1.0, 2.25]).outcome, ConformanceOutcome::BitEqual);
        assert_eq!(outcome(&entry, [1.0, 2.1]).outcome, ConformanceOutcome::WithinBound);
        // Three blocks: two roundings, each of an ulp of 2.25.
        let allowed = 2.0 * 2f32.powi(-22);
        assert_eq!(outcome(&entry, [1.0 + allowed, 2.0]).outcome, ConformanceOutcome::WithinBound);
        assert_eq!(outcome(&entry, [1.0 + 1.5 * allowed, 2.0]).outcome, ConformanceOutcome::Wrong);
    }

    #[test]
    fn what_has_no_model_is_held_to_its_documented_error() {
        let params = json!([
            {"kind": "buffer", "name": "i", "dtype": "u64", "interp": "f64", "role": "in", "elems": 1, "key": "i"},
            {"kind": "buffer", "name": "o", "dtype": "u32", "interp": "f32", "role": "out", "elems": 2, "out_key": "o"},
        ]);
        let entry = entry(json!({"op": "rsqrt.approx.f64", "params": params}));
        assert_eq!(outcome(&entry, [1.0, 2.000_000_2]).outcome, ConformanceOutcome::WithinBound);
        assert_eq!(outcome(&entry, [1.0, 2.000_000_6]).outcome, ConformanceOutcome::Wrong);
    }

    #[test]
    fn an_expected_error_has_to_come_and_another_must_not() {
        let place = CodePlace { instruction: "trap".to_string(), ptx_line: 3, file: None, line: None };
        let thread = ThreadPlace { block: [0; 3], thread: [0; 3], warp: 0, lane: 0 };
        let trap = LaunchError::Trap { place, thread };
        let expecting = entry(json!({"expect_error": "t < V"}));
        assert_eq!(failed(&expecting, &trap).outcome, ConformanceOutcome::ExpectedError);
        assert_eq!(failed(&entry(json!({})), &trap).outcome, ConformanceOutcome::Wrong);
        let endless = LaunchError::Endless { steps: 1, waiting: String::new() };
        assert_eq!(failed(&expecting, &endless).outcome, ConformanceOutcome::Wrong);
        let ended = outcome(&expecting, [1.0, 2.0]);
        assert_eq!(ended.outcome, ConformanceOutcome::Wrong);
        assert_eq!(ended.detail, "it came to its end, but was recorded to fail: t < V");
    }
}
