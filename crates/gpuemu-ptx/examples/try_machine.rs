#![allow(missing_docs, clippy::unwrap_used, clippy::print_stdout)]
use gpuemu_ptx::Source;
use gpuemu_ptx::machine::*;
use gpuemu_ptx::tensor_core::TensorCore;
use std::time::Instant;
fn buf(name: &str, role: Role, contents: Vec<u8>, bytes: u64, eb: u32) -> Argument {
    Argument::Buffer(Buffer { name: name.into(), role, bytes, contents, offset: 0, pointer: 0, element_bytes: eb })
}
fn f32s(n: usize, seed: u32) -> Vec<u8> {
    let mut s = seed;
    (0..n).flat_map(|_| { s = s.wrapping_mul(1664525).wrapping_add(1013904223); (((s >> 8) as f32 / (1u32 << 24) as f32) * 2.0 - 1.0).to_le_bytes() }).collect()
}
fn f16s(n: usize, seed: u32) -> Vec<u8> {
    let mut s = seed;
    (0..n).flat_map(|_| { s = s.wrapping_mul(1664525).wrapping_add(1013904223); let h: u16 = ((s >> 31) << 15) as u16 | (0x3000 + ((s >> 12) & 0x0bff) as u16); h.to_le_bytes() }).collect()
}
fn i(v: i32) -> Argument { Argument::Value(v.to_le_bytes().to_vec()) }
fn null() -> Argument { Argument::Value(vec![0; 8]) }
fn main() {
    let which = std::env::args().nth(1).unwrap();
    let workers: usize = std::env::args().nth(2).map_or(0, |w| w.parse().unwrap());
    let checks = std::env::args().nth(3).is_none_or(|c| c != "nochecks");
    let tc = if std::env::args().nth(4).is_some_and(|c| c == "h100") { TensorCore::H100 } else { TensorCore::Ieee };
    let source = Source::read(std::path::Path::new(&format!("/tmp/bench/{which}.ptx"))).unwrap();
    let t = Instant::now();
    let program = match Program::decode(&source, None) { Ok(p) => p, Err(e) => { println!("{e}"); return; } };
    println!("decode {:?} rows {}", t.elapsed(), program.decoded().registers.rows().len());
    let launch = match which.as_str() {
        "add" => Launch { grid: [1024, 1, 1], block: [128, 1, 1], shared_bytes: 0, arguments: vec![buf("x", Role::Input, f32s(1 << 20, 1), 4 << 20, 4), buf("y", Role::Input, f32s(1 << 20, 2), 4 << 20, 4), buf("out", Role::Output, vec![], 4 << 20, 4), i(1 << 20), null(), null()] },
        "softmax" => Launch { grid: [128, 1, 1], block: [128, 1, 1], shared_bytes: 16, arguments: vec![buf("out", Role::Output, vec![], 128 * 4096, 4), buf("x", Role::Input, f32s(128 * 1024, 1), 128 * 4096, 4), i(1024), null(), null()] },
        "matmul" => Launch { grid: [8, 8, 1], block: [128, 1, 1], shared_bytes: 16384, arguments: vec![buf("a", Role::Input, f16s(512 * 512, 1), 512 * 1024, 2), buf("b", Role::Input, f16s(512 * 512, 2), 512 * 1024, 2), buf("c", Role::Output, vec![], 512 * 1024, 2), i(512), i(512), i(512), null(), null()] },
        _ => Launch { grid: [8, 4, 1], block: [128, 1, 1], shared_bytes: 40960, arguments: vec![buf("q", Role::Input, f16s(4 * 512 * 64, 1), 4 * 512 * 128, 2), buf("k", Role::Input, f16s(4 * 512 * 64, 2), 4 * 512 * 128, 2), buf("v", Role::Input, f16s(4 * 512 * 64, 3), 4 * 512 * 128, 2), buf("o", Role::Output, vec![], 4 * 512 * 128, 2), i(512), Argument::Value(0.125f32.to_le_bytes().to_vec()), null(), null()] },
    };
    let mut options = LaunchOptions { workers, tensor_core: tc, ..LaunchOptions::default() };
    if !checks { options.checks.clear(); }
    for _ in 0..5 {
        let t = Instant::now();
        match program.launch(&launch, &options) {
            Ok(o) => {
                let e = t.elapsed();
                println!("{e:?} findings {} warp-instr {} lane-ops/s {:.2} G", o.findings.len(), o.statistics.warp_instructions, o.statistics.lane_operations as f64 / e.as_secs_f64() / 1e9);
                for f in o.findings.iter().take(3) { println!("{f:?}"); }
                let out = o.buffers.iter().max_by_key(|_| 0).unwrap();
                let k = match which.as_str() { "softmax" => 0, "flash" => 3, _ => 2 };
                let _ = out;
                let b = &o.buffers[k];
                println!("{:x?}", &b[..16]);
            }
            Err(e) => { println!("{e}"); break; }
        }
    }
}
