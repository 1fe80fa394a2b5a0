//! Kernels of Triton in the PTX machine, beside Triton's own interpreter on the same kernels with the same block sizes.

use std::collections::BTreeMap;
use std::hint::black_box;
use std::path::{Path, PathBuf};
use std::process::Command;

use gpuemu_machine::tensor_core::TensorCore;
use gpuemu_machine::{Argument, Buffer, Launch, LaunchOptions, Program, Role};
use gpuemu_ptx::Source;
use gpuemu_tensor::Stream;

use crate::row::Row;
use crate::timing::median_seconds;

/// Launches that are timed.
const REPEATS: usize = 21;
const PEER: &str = "Triton's interpreter, the same kernel and block sizes";

fn folder() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("examples/bench/machine")
}

/// Seconds of a launch in Triton's interpreter, by kernel; nothing where there is no Triton.
fn interpreted() -> BTreeMap<String, f64> {
    let Some(python) = std::env::var_os("GPUEMU_BENCH_KERNELS_PYTHON") else {
        eprintln!("no Triton to measure beside: `cargo xtask bench` sets GPUEMU_BENCH_KERNELS_PYTHON");
        return BTreeMap::new();
    };
    let output = Command::new(python).arg("-B").arg(folder().join("interpreted.py")).output();
    match output {
        Ok(output) if output.status.success() => serde_json::from_slice(&output.stdout).unwrap_or_default(),
        Ok(output) => {
            eprintln!("Triton's interpreter could not be measured: {}", String::from_utf8_lossy(&output.stderr));
            BTreeMap::new()
        }
        Err(error) => {
            eprintln!("Triton's interpreter could not be started: {error}");
            BTreeMap::new()
        }
    }
}

fn buffer(name: &str, role: Role, contents: Vec<u8>, bytes: u64, element_bytes: u32) -> Argument {
    Argument::Buffer(Buffer { name: name.to_string(), role, bytes, contents, offset: 0, pointer: 0, element_bytes })
}

fn floats(name: &str, count: u64) -> Argument {
    let mut stream = Stream::new(0, name);
    let contents = (0..count).flat_map(|_| (stream.below(1 << 20) as f32 / 524_288.0 - 1.0).to_le_bytes()).collect();
    buffer(name, Role::Input, contents, 4 * count, 4)
}

/// Halves between -2 and 2.
fn halves(name: &str, count: u64) -> Argument {
    let mut stream = Stream::new(0, name);
    let half = |bits: u64| ((bits & 1) << 15 | (0x3000 + (bits >> 1) % 0x1000)) as u16;
    let contents = (0..count).flat_map(|_| half(stream.below(1 << 20)).to_le_bytes()).collect();
    buffer(name, Role::Input, contents, 2 * count, 2)
}

fn number(value: i32) -> Argument {
    Argument::Value(value.to_le_bytes().to_vec())
}

fn launch(grid: [u32; 3], shared_bytes: u32, mut arguments: Vec<Argument>) -> Launch {
    // The two parameters that Triton adds.
    arguments.extend([Argument::Value(vec![0; 8]), Argument::Value(vec![0; 8])]);
    Launch { grid, block: [128, 1, 1], shared_bytes, arguments }
}

/// A kernel, its launch, and what the row is called.
fn kernels() -> Vec<(&'static str, &'static str, Launch, bool)> {
    let output = |count: u64, bytes: u32| buffer("out", Role::Output, Vec::new(), count * u64::from(bytes), bytes);
    let vectors = vec![floats("x", 1 << 20), floats("y", 1 << 20), output(1 << 20, 4), number(1 << 20)];
    let rows = vec![output(128 * 1024, 4), floats("x", 128 * 1024), number(1024)];
    let matrices = vec![
        halves("a", 512 * 512),
        halves("b", 512 * 512),
        output(512 * 512, 2),
        number(512),
        number(512),
        number(512),
    ];
    let heads = 4 * 512 * 64;
    let scale = Argument::Value(0.125f32.to_le_bytes().to_vec());
    let attention =
        vec![halves("q", heads), halves("k", heads), halves("v", heads), output(heads, 2), number(512), scale];
    vec![
        ("add", "vector add, 1M, BLOCK 1024", launch([1024, 1, 1], 0, vectors), false),
        ("softmax", "softmax 128 x 1024", launch([128, 1, 1], 16, rows), false),
        ("matmul", "fp16 matmul 512^3, tiles 64 x 64 x 32", launch([8, 8, 1], 16384, matrices), true),
        ("flash_attention", "flash attention 4 x 512 x 64, tiles 64 x 64", launch([8, 4, 1], 40960, attention), true),
    ]
}

/// The rows of this group.
pub fn rows() -> Vec<Row> {
    let peers = interpreted();
    let cores = std::thread::available_parallelism().map_or(1, usize::from);
    let mut rows = Vec::new();
    for (name, words, launch, tensor_cores) in kernels() {
        let peer = peers.get(name).copied();
        let source = match Source::read(&folder().join(format!("{name}.ptx"))) {
            Ok(source) => source,
            Err(error) => {
                eprintln!("{error}");
                continue;
            }
        };
        let program = match Program::decode(&source, None) {
            Ok(program) => program,
            Err(error) => {
                eprintln!("{error}");
                continue;
            }
        };
        let options = |tensor_core, workers, checked: bool| {
            let usual = LaunchOptions::default();
            let checks = if checked { usual.checks.clone() } else { Vec::new() };
            LaunchOptions { tensor_core, workers, checks, ..usual }
        };
        let seconds = |options: LaunchOptions| {
            median_seconds(REPEATS, || {
                let outcome = program.launch(&launch, &options);
                assert!(black_box(outcome).is_ok_and(|outcome| outcome.findings.is_empty()));
            })
        };
        let operations = program.launch(&launch, &options(TensorCore::Ieee, 1, false));
        let operations = operations.map_or(0, |outcome| outcome.statistics.lane_operations) as f64;
        let all = seconds(options(TensorCore::Ieee, 0, true));
        let model = if tensor_cores { ", ieee tensor cores" } else { "" };
        let note = format!("{cores} cores, every access checked; aim 60x");
        rows.push(Row::time(&format!("{words}{model}"), all, peer, PEER, &note));
        if tensor_cores {
            let exact = seconds(options(TensorCore::H100, 0, true));
            let note = format!("{cores} cores, every access checked; aim 25x");
            rows.push(Row::time(&format!("{words}, h100 tensor cores, bit for bit"), exact, peer, PEER, &note));
        }
        let one = seconds(options(TensorCore::Ieee, 1, true));
        let scaling = format!("one core; {cores} cores are {:.2} times as fast", one / all);
        let unchecked = operations / seconds(options(TensorCore::Ieee, 1, false)) / 1e9;
        let rate = operations / one / 1e9;
        let peer = "without checks";
        rows.push(Row::rate(&format!("{words}: lane operations"), "G/s", rate, Some(unchecked), peer, &scaling));
    }
    rows
}
