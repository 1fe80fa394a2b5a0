//! Kernels that want everything: memory, time, the process that runs them. They get what a kernel may have.

use std::time::{Duration, Instant};

use gpuemu_machine::{Launch, LaunchError, LaunchOptions, Outcome, Program, Role};
use gpuemu_model::emulation::AccessFault;
use gpuemu_ptx::Source;

use super::launching::{along, kernel, run, words};

/// A module with declarations of its own.
fn module(declarations: &str, parameters: &str, body: &str) -> Source {
    let text = kernel(parameters, body).text.replace(".visible .entry", &format!("{declarations}\n.visible .entry"));
    Source::new("kernel.ptx", text)
}

fn refused(source: &Source) -> String {
    match Program::decode(source, None) {
        Err(error) => error.to_string(),
        Ok(_) => panic!("it was decoded:\n{}", source.text),
    }
}

fn run_with(source: &Source, launch: &Launch, options: LaunchOptions) -> Result<Outcome, LaunchError> {
    Program::decode(source, None).unwrap_or_else(|error| panic!("{error}")).launch(launch, &options)
}

#[test]
fn declarations_beyond_all_memory_are_refused() {
    let large = ".global .b8 a[1073741825];";
    assert!(refused(&module(large, "", "ret;")).contains("a module has 1073741824 bytes of variables"));
    let many: String = (0..5000).map(|number| format!(".global .b8 a{number}[1000000];")).collect();
    assert!(refused(&module(&many, "", "ret;")).contains("a module has 1073741824 bytes of variables"));
    for parameters in [
        ".param .align 8 .b8 p[4611686018427387904]",
        ".param .u32 n, .param .align 9223372036854775808 .b8 p[8]",
        ".param .align 8 .b8 p[32765]",
    ] {
        assert!(refused(&kernel(parameters, "ret;")).contains("an entry has 32764 bytes"), "{parameters}");
    }
    let local = kernel("", ".local .align 4611686018427387904 .b8 a[8];\n.local .b8 b[524289];\nret;");
    assert!(refused(&local).contains("a thread has 524288 bytes"));
    let shared = kernel("", ".shared .b8 a[4];\n.shared .align 9223372036854775808 .b8 b[4];\nret;");
    assert!(refused(&shared).contains("does not fit shared memory"));
}

#[test]
fn a_large_variable_takes_no_room_until_it_is_written() {
    let source = module(
        ".global .align 4 .b8 a[1073741824];",
        ".param .u64 p",
        "\tld.param.u64 %d1, [p];\n\tld.global.u32 %r1, [a+1073741820];\n\tst.global.u32 [%d1], %r1;",
    );
    let begun = Instant::now();
    let outcome = run(&source, &along(1, 1, vec![words("out", Role::Output, &[], 1)])).unwrap();
    assert_eq!(outcome.buffers[0], [0; 4]);
    assert!(begun.elapsed() < Duration::from_secs(5), "{:?}", begun.elapsed());
}

#[test]
fn shared_memory_beyond_that_of_a_block_is_not_launched() {
    let dynamic = ".extern .shared .align 9223372036854775808 .b8 a[];\n.shared .b8 b[1];";
    for declarations in [".shared .b8 a[4294967290];\n.shared .b8 b[1];", dynamic] {
        let source = module(declarations, "", "\tmov.u32 %r1, a;\n\tmov.u32 %r2, b;");
        let launched = run(&source, &along(1, 1, Vec::new()));
        assert!(matches!(&launched, Err(LaunchError::Refused(why)) if why.contains("shared memory")), "{launched:?}");
    }
}

/// 12 blocks that hear of each other, of 1024 threads with 60 kB each: a few at a time, not 1.5 GB at once.
#[test]
fn local_memory_of_blocks_that_wait_is_not_taken_at_once() {
    let source = kernel(
        ".param .u64 p",
        "\t.local .b8 a[60000];\n\tld.param.u64 %d1, [p];\n\tatom.global.add.u32 %r1, [%d1], 1;",
    );
    let outcome = run(&source, &along(12, 1024, vec![words("count", Role::InputOutput, &[0], 1)])).unwrap();
    assert_eq!(outcome.buffers[0], 12_288u32.to_le_bytes());
}

#[test]
fn a_function_that_calls_itself_is_refused() {
    let around = ".func f (.reg .b32 a) { call.uni g, (a); ret; }\n.func g (.reg .b32 a) { call.uni f, (a); ret; }";
    let declared = format!(".func g (.reg .b32 a);\n{around}");
    assert!(refused(&module(&declared, "", "\tcall.uni f, (%r1);")).contains("calls itself"));
}

#[test]
fn a_launch_ends_in_its_time_however_many_blocks_it_has() {
    let source = kernel("", "\tadd.u32 %r1, %r1, 1;");
    let launch = Launch { grid: [i32::MAX as u32, 65_535, 65_535], ..along(1, 32, Vec::new()) };
    let limit = Duration::from_millis(200);
    let begun = Instant::now();
    let options = LaunchOptions { most_time: Some(limit), ..LaunchOptions::default() };
    assert_eq!(run_with(&source, &launch, options).unwrap_err(), LaunchError::Late(limit));
    assert!(begun.elapsed() < Duration::from_secs(20), "{:?}", begun.elapsed());
}

#[test]
fn a_trap_ends_a_launch_however_many_blocks_it_has() {
    // The other blocks pass: whoever runs them must hear of the one that does not.
    let source = kernel("", "\tmov.u32 %r1, %ctaid.x;\n\tsetp.eq.u32 %p1, %r1, 0;\n\t@%p1 trap;");
    let launch = Launch { grid: [i32::MAX as u32, 65_535, 65_535], ..along(1, 32, Vec::new()) };
    let begun = Instant::now();
    let stopped = run_with(&source, &launch, LaunchOptions::default()).unwrap_err();
    assert!(matches!(stopped, LaunchError::Trap { .. }), "{stopped:?}");
    assert!(begun.elapsed() < Duration::from_secs(20), "{:?}", begun.elapsed());
}

#[test]
fn copies_that_nothing_waits_for_are_bounded() {
    let source = module(
        ".shared .align 16 .b8 a[16];",
        ".param .u64 p",
        "\tld.param.u64 %d1, [p];\n\tmov.u32 %r1, a;\n$AGAIN:\n\tcp.async.ca.shared.global [%r1], [%d1], 4;\n\tbra $AGAIN;",
    );
    let launched = run_with(
        &source,
        &along(1, 1, vec![words("in", Role::Input, &[1], 1)]),
        LaunchOptions { checks: Vec::new(), ..LaunchOptions::default() },
    );
    assert!(matches!(&launched, Err(LaunchError::Exhausted(why)) if why.contains("asynchronous")), "{launched:?}");
}

/// A text of half a gigabyte, printed for ever.
#[test]
fn what_is_printed_is_bounded() {
    let format = "%65535d".repeat(9000);
    let bytes: Vec<String> = format.bytes().chain([0]).map(|byte| byte.to_string()).collect();
    let declarations = format!(
        ".extern .func (.param .b32 r) vprintf (.param .b64 a, .param .b64 b);\n.global .b8 text[{}] = {{{}}};",
        bytes.len(),
        bytes.join(",")
    );
    let source = module(
        &declarations,
        "",
        "$AGAIN:\n\t{ .param .b64 a0; .param .b64 a1; .param .b32 r0; mov.u64 %d1, text; st.param.b64 [a0], %d1;\n\
         \tst.param.b64 [a1], %d1; call.uni (r0), vprintf, (a0, a1); }\n\tbra $AGAIN;",
    );
    let options = LaunchOptions { most_steps: 1 << 22, ..LaunchOptions::default() };
    let begun = Instant::now();
    let launched = run_with(&source, &along(1, 32, Vec::new()), options);
    assert!(matches!(launched, Err(LaunchError::Endless { .. })), "{launched:?}");
    assert!(begun.elapsed() < Duration::from_secs(20), "{:?}", begun.elapsed());
}

/// Addresses of this process mean nothing to a kernel: what it reads there is a finding, and nothing of the process.
#[test]
fn memory_of_this_process_is_out_of_reach() {
    let secret = Box::new(0x5EC2_E75E_u32);
    let address = std::ptr::from_ref(&*secret) as u64;
    for space in ["", ".global", ".shared", ".local"] {
        let source = kernel(
            ".param .u64 p",
            &format!(
                "\tld.param.u64 %d1, [p];\n\tmov.u64 %d2, {address};\n\tld{space}.u32 %r1, [%d2];\n\
                 \tst.global.u32 [%d1], %r1;\n\tst{space}.u32 [%d2], 0;"
            ),
        );
        let outcome = run(&source, &along(1, 1, vec![words("out", Role::Output, &[], 1)])).unwrap();
        assert_ne!(outcome.buffers[0], secret.to_le_bytes(), "{space}");
        let found: Vec<AccessFault> = outcome.findings.iter().map(|finding| finding.fault).collect();
        assert!(found.len() >= 2, "{space}: {:?}", outcome.findings);
    }
    assert_eq!(*secret, 0x5EC2_E75E);
}
