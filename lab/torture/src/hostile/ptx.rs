//! PTX: parsed, printed, measured, checked, decoded and run.

use gpuemu_config::ArtifactChecks;
use gpuemu_machine::{Argument, Buffer, Launch, LaunchOptions, Program, Role};
use gpuemu_model::artifact::KernelArtifact;
use gpuemu_ptx::lint::lint;
use gpuemu_ptx::{Source, metrics};

use super::Target;

pub const TARGET: Target = Target {
    name: "ptx",
    run,
    words: &[
        "ld.global.f32 ",
        "st.global.b32 ",
        "ld.shared.u32 ",
        "atom.global.add.u32 ",
        "bar.sync 0;",
        "bra ",
        "@%p1 ",
        "setp.lt.s32 ",
        "shfl.sync.bfly.b32 ",
        "cvt.rn.f16.f32 ",
        "mma.sync.aligned.m16n8k16.row.col.f32.f16.f16.f32 ",
        "cp.async.cg.shared.global ",
        "cp.async.wait_all;",
        "call.uni ",
        ".local .align 16 .b8 depot[524288];",
        ".shared .b8 tile[232448];",
        ".global .b8 g[1000000];",
        ".const .b8 c[8] = {1,2};",
        ".param .u64 q",
        ".reqntid 1024",
        ".maxntid 32",
        ".extern .shared .b8 dyn[];",
        ".align 1073741824 ",
        "[18446744073709551615]",
        "<4294967295>",
        "%tid.x",
        "%clock",
        "0f7FC00000",
        "-9223372036854775808",
        ".v4",
        "ret;",
        "exit;",
        "trap;",
        "brx.idx %r1, targets;",
        "mul.wide.s32 ",
        "ldmatrix.sync.aligned.m8n8.x4.shared.b16 ",
        "vote.sync.ballot.b32 ",
        "%laneid",
    ],
    thousands: 500,
    thousands_short: 30,
};

/// Bytes of each buffer that a kernel is given.
const BUFFER_BYTES: u64 = 256;

fn run(bytes: &[u8]) {
    let Ok(source) = Source::from_bytes("hostile.ptx", bytes.to_vec()) else { return };
    let Ok(module) = source.parse() else { return };
    let printed = Source::new("printed.ptx", module.to_string());
    match printed.parse() {
        Ok(again) => assert!(again == module, "what was printed says something else:\n{}", printed.text),
        Err(error) => assert_eq!(error.to_string(), "", "what was printed cannot be read"),
    }
    if let Ok(entries) = metrics::measure(&source, &module) {
        let artifact =
            KernelArtifact { target: module.architecture().to_string(), entries, ..KernelArtifact::default() };
        let _ = lint(&source, &module, &artifact, &ArtifactChecks::default(), &[]);
    }
    for entry in module.entries().take(3) {
        if let Ok(program) = Program::decode(&source, Some(entry.name)) {
            launch(&program);
        }
    }
}

fn launch(program: &Program) {
    let argument = |(place, bytes): (usize, u64)| match bytes {
        8 => Argument::Buffer(Buffer {
            name: format!("b{place}"),
            role: [Role::Input, Role::Output, Role::InputOutput][place % 3],
            bytes: BUFFER_BYTES,
            contents: vec![place as u8; BUFFER_BYTES as usize],
            offset: 0,
            pointer: 0,
            element_bytes: 4,
        }),
        bytes => Argument::Value(vec![place as u8; bytes as usize]),
    };
    let sizes = program.parameters().iter().map(|parameter| parameter.bytes).enumerate();
    let block = program.decoded().required_block.unwrap_or([33, 1, 1]);
    let launch = Launch { grid: [2, 1, 1], block, shared_bytes: 64, arguments: sizes.map(argument).collect() };
    // One worker: a panic is this thread's.
    let options = LaunchOptions { workers: 1, most_steps: 2_000, most_findings: 4, ..LaunchOptions::default() };
    if let Ok(outcome) = program.launch(&launch, &options) {
        let given = launch.arguments.iter().filter(|argument| matches!(argument, Argument::Buffer(_))).count();
        assert_eq!(outcome.buffers.len(), given);
        assert!(outcome.buffers.iter().all(|bytes| bytes.is_empty() || bytes.len() as u64 == BUFFER_BYTES));
    }
}
