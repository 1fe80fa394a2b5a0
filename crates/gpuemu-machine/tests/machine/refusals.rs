//! Launches that come to no end, or never begin: each says why.

use gpuemu_machine::{Argument, LaunchError, Program, Role};
use gpuemu_ptx::Source;

use super::launching::{along, kernel, run, word, words};

fn refused(launch: &gpuemu_machine::Launch) -> String {
    let source = kernel(
        ".param .u64 p, .param .u32 n",
        "\tld.param.u64 %d1, [p];\n\tld.param.u32 %r1, [n];\n\tst.global.u32 [%d1], %r1;",
    );
    match run(&source, launch) {
        Err(LaunchError::Refused(message)) => message,
        other => panic!("{other:?}"),
    }
}

#[test]
fn launches_that_do_not_fit() {
    let arguments = || vec![words("out", Role::Output, &[], 1), word(1)];
    let right = along(1, 1, arguments());
    let with = |change: fn(&mut gpuemu_machine::Launch)| {
        let mut launch = right.clone();
        change(&mut launch);
        refused(&launch)
    };
    assert_eq!(with(|launch| launch.grid = [3, 0, 1]), "the grid 3 x 0 x 1 has no blocks");
    assert_eq!(with(|launch| launch.block = [0, 1, 1]), "the block 0 x 1 x 1 has no threads");
    assert_eq!(
        with(|launch| launch.block = [64, 32, 1]),
        "the block 64 x 32 x 1 has 2048 threads, at most 1024 are possible"
    );
    assert_eq!(
        with(|launch| launch.shared_bytes = 300_000),
        "0 bytes of static and 300000 of dynamic shared memory are more than the 232448 that a block can have"
    );
    assert_eq!(
        with(|launch| launch.arguments.truncate(1)),
        "'kernel' has 2 parameters, 1 arguments are given; the parameters are p (.u64), n (.u32)"
    );
    assert_eq!(
        with(|launch| launch.arguments[1] = Argument::Value(vec![0; 8])),
        "parameter 'n' has 4 bytes, 8 are given"
    );
    let pointer = with(|launch| launch.arguments[1] = launch.arguments[0].clone());
    assert!(pointer.contains("'n', which has 4 bytes and is no pointer"), "{pointer}");
}

#[test]
fn a_kernel_that_never_ends() {
    let source = kernel(".param .u64 p", "$AGAIN:\n\t.loc 1 7 1\n\tadd.u32 %r1, %r1, 1;\n\tbra $AGAIN;");
    match run(&source, &along(3, 64, vec![words("out", Role::Output, &[], 1)])) {
        Err(LaunchError::Endless { waiting, .. }) => assert!(waiting.contains("kernel.cu:7"), "{waiting}"),
        other => panic!("{other:?}"),
    }
    // A lock that nobody opens.
    let spins = kernel(
        ".param .u64 p",
        "\tld.param.u64 %d1, [p];\n$AGAIN:\n\tld.volatile.global.u32 %r1, [%d1];\n\tsetp.eq.u32 %p1, %r1, 0;\n\t@%p1 bra $AGAIN;",
    );
    let launch = along(2, 32, vec![words("lock", Role::InputOutput, &[0], 1)]);
    assert!(matches!(run(&spins, &launch), Err(LaunchError::Endless { .. })));
}

#[test]
fn traps_and_unknown_instructions() {
    let source =
        kernel(".param .u64 p", "\tmov.u32 %r1, %tid.x;\n\tsetp.eq.u32 %p1, %r1, 5;\n\t.loc 1 9 1\n\t@%p1 trap;");
    match run(&source, &along(4, 32, vec![words("out", Role::InputOutput, &[0], 1)])) {
        Err(LaunchError::Trap { place, thread }) => {
            assert_eq!((place.line, thread.block, thread.lane), (Some(9), [0, 0, 0], 5));
        }
        other => panic!("{other:?}"),
    }
    for (instruction, named) in [
        ("tex.2d.v4.f32.s32 {%f1, %f2, %f3, %f4}, [t, {%r1, %r2}];", "tex.2d"),
        ("wgmma.fence.sync.aligned;", "wgmma.fence"),
        ("add.rn.u32 %r1, %r2, %r3;", "add.rn.u32"),
        ("ld.global.cluster_thing.u32 %r1, [%d1];", "cluster_thing"),
    ] {
        let text = kernel(".param .u64 p", &format!("\t{instruction}"));
        let error = match Program::decode(&text, None) {
            Err(error) => error.to_string(),
            Ok(_) => panic!("{instruction} was decoded"),
        };
        assert!(error.contains("kernel.ptx:11:") && error.contains(named), "{error}");
    }
    let two = Source::new(
        "two.ptx",
        ".version 8.0\n.target sm_80\n.address_size 64\n.visible .entry a() { ret; }\n.visible .entry b() { ret; }\n",
    );
    assert_eq!(
        Program::decode(&two, None).unwrap_err().to_string(),
        "two.ptx: has several entries, name one of them: a, b"
    );
    assert_eq!(Program::decode(&two, Some("c")).unwrap_err().to_string(), "two.ptx: has no entry 'c', only a, b");
}
