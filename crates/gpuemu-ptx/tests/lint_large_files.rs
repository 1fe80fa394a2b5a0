//! Files of a size that nobody writes: the linter takes time in proportion to them.
#![allow(clippy::unwrap_used, clippy::panic, reason = "tests fail by panicking")]

use std::fmt::Write as _;
use std::time::{Duration, Instant};

use gpuemu_config::ArtifactChecks;
use gpuemu_model::artifact::{EntryMetrics, KernelArtifact, LintResult};
use gpuemu_ptx::Source;
use gpuemu_ptx::lint::lint;

/// Far more than a slow machine needs, far less than squared time would take.
const LONGEST: Duration = Duration::from_secs(60);

fn checked(body: &str) -> LintResult {
    let text = format!(
        ".version 8.0\n.target sm_80\n.address_size 64\n.visible .entry kernel(.param .u64 a, .param .u32 n)\n{{\n\
         .reg .pred %p<2>;\n.reg .b32 %r<1000000>;\n.reg .b64 %rd<1000000>;\n.reg .f32 %f<9>;\n{body}ret;\n}}\n"
    );
    let source = Source::new("large.ptx", text);
    let module = source.parse().unwrap_or_else(|error| panic!("{error}"));
    let artifact = KernelArtifact {
        kernel: "large".into(),
        source: "large.ptx".into(),
        producer: "as written".into(),
        target: "sm_80".into(),
        ptx_version: "8.0".into(),
        digest: String::new(),
        entries: vec![EntryMetrics { entry: "kernel".into(), ..EntryMetrics::default() }],
        tools: Vec::new(),
        not_measured: Vec::new(),
    };
    let begin = Instant::now();
    let result = lint(&source, &module, &artifact, &ArtifactChecks::default(), &[]).unwrap();
    assert!(begin.elapsed() < LONGEST, "{:?}", begin.elapsed());
    result
}

const THREAD: &str = "mov.u32 %r1, %tid.x;\nsetp.lt.s32 %p1, %r1, 4;\n";

#[test]
fn a_million_labels() {
    let mut body = String::from(THREAD);
    for label in 0..1_000_000 {
        writeln!(body, "L{label}:").unwrap();
    }
    body += "bra L999999;\n";
    assert_eq!(checked(&body).findings, []);
}

#[test]
fn a_chain_of_branches_that_all_leave_before_a_barrier() {
    let mut body = String::from(THREAD);
    for label in 0..200_000 {
        writeln!(body, "L{label}: @%p1 bra END;").unwrap();
    }
    body += "bar.sync 0;\nEND:\n";
    let result = checked(&body);
    assert_eq!(result.findings.len(), 1);
    assert_eq!(result.findings[0].rule, "divergent-barrier");
}

#[test]
fn branches_that_are_nested_deeply_with_a_barrier_after_each() {
    let mut body = String::from(THREAD);
    for label in 0..200_000 {
        writeln!(body, "@%p1 bra L{label};").unwrap();
    }
    for label in (0..200_000).rev() {
        writeln!(body, "bar.sync 0;\nL{label}:").unwrap();
    }
    // Each depends on the outermost branch as well.
    let findings = checked(&body).findings;
    assert_eq!(findings.len(), 1);
    assert!(findings[0].message.starts_with("`bar.sync` (and 199999 other barriers) depends on the `bra` at line 12,"));
}

#[test]
fn loops_that_are_nested_deeply() {
    let mut body = String::from(THREAD);
    for label in 0..100_000 {
        writeln!(body, "L{label}: mov.u32 %r2, {label};").unwrap();
    }
    for label in (0..100_000).rev() {
        writeln!(body, "@%p1 bra L{label};").unwrap();
    }
    assert_eq!(checked(&body).findings, []);
}

#[test]
fn jumps_that_cross_each_other() {
    let mut body = String::from(THREAD);
    // A fixed jumble: every jump goes far, forwards or backwards.
    for label in 0..100_000u64 {
        writeln!(body, "L{label}: @%p1 bra L{};", (label * 48_271 + 11) % 100_000).unwrap();
    }
    // All ways lead to this barrier.
    body += "bar.sync 0;\n";
    assert_eq!(checked(&body).findings, []);
}

#[test]
fn an_offset_that_is_the_sum_of_very_many() {
    let mut body = String::from("ld.param.u64 %rd1, [a];\nld.param.u32 %r1, [n];\nmov.u32 %r2, %ctaid.x;\n");
    body += "mul.lo.s32 %r3, %r1, %r2;\n";
    for number in 4..200_000 {
        writeln!(body, "add.s32 %r{number}, %r{}, %r1;", number - 1).unwrap();
    }
    body += "mad.wide.s32 %rd2, %r199999, 4, %rd1;\nld.global.f32 %f1, [%rd2];\n";
    assert_eq!(checked(&body).findings.len(), 1);
}

/// Each of very many offsets is a long sum: following all of them is given up, and that is said.
#[test]
fn very_many_offsets_of_very_many_parts() {
    let mut body = String::from("ld.param.u64 %rd1, [a];\nld.param.u32 %r1, [n];\nmov.u32 %r2, %ctaid.x;\n");
    body += "mul.lo.s32 %r3, %r1, %r2;\n";
    for number in 4..50_000 {
        writeln!(body, "add.s32 %r{number}, %r{}, %r1;", number - 1).unwrap();
        writeln!(body, "mad.wide.s32 %rd{number}, %r{number}, 4, %rd1;\nld.global.f32 %f1, [%rd{number}];").unwrap();
    }
    let result = checked(&body);
    assert_eq!(result.findings.len(), 1);
    assert_eq!(result.not_checked.len(), 1);
    assert_eq!(result.not_checked[0].rule, "address-overflow");
}

#[test]
fn one_register_that_is_written_very_often() {
    let mut body = String::from("ld.param.u64 %rd1, [a];\nmov.u32 %r1, %tid.x;\n");
    for number in 0..200_000 {
        writeln!(body, "L{number}: add.s32 %r1, %r1, {number};\n@%p1 bra L{};", (number * 7 + 3) % 200_000).unwrap();
    }
    body += "mad.wide.s32 %rd2, %r1, 4, %rd1;\nld.global.f32 %f1, [%rd2];\n";
    assert_eq!(checked(&body).findings, []);
}

/// Jumps that share a long table have more ways to go than fit into memory.
#[test]
fn very_many_jumps_by_one_long_table() {
    let mut body = String::from("ts: .branchtargets ");
    let labels: Vec<String> = (0..50_000).map(|label| format!("L{label}")).collect();
    body += &labels.join(", ");
    body += ";\n";
    for label in &labels {
        writeln!(body, "{label}: @%p1 brx.idx %r1, ts;").unwrap();
    }
    let result = checked(&body);
    let names: Vec<&str> = result.not_checked.iter().map(|missing| missing.rule.as_str()).collect();
    assert_eq!(names, ["divergent-barrier", "local-memory-in-loop"]);
}

#[test]
fn a_call_with_very_many_results() {
    let registers: Vec<String> = (1..100_000).map(|register| format!("%r{register}")).collect();
    let body = format!("call ({}), kernel, ({});\n", registers.join(", "), registers.join(", "));
    assert_eq!(checked(&body).findings, []);
}
