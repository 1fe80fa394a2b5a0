//! What right kernels do: calls, locks between blocks and lanes, printing, tables of branches, every order.

use gpuemu_machine::{BlockOrder, LaunchOptions, Program, Role, Trace};
use gpuemu_ptx::Source;

use super::launching::{along, kernel, run, word, words, words_of};

#[test]
fn functions_are_called_with_their_own_memory() {
    let text = ".version 8.0\n.target sm_80\n.address_size 64\n\
        .func (.param .b32 result) twice(.param .b32 x)\n{\n\t.reg .b32 %r<3>;\n\tld.param.b32 %r1, [x];\n\tadd.u32 %r2, %r1, %r1;\n\tst.param.b32 [result], %r2;\n\tret;\n}\n\
        .visible .entry kernel(.param .u64 p)\n{\n\t.reg .pred %p<2>;\n\t.reg .b32 %r<5>;\n\t.reg .b64 %d<4>;\n\tld.param.u64 %d1, [p];\n\tmov.u32 %r1, %tid.x;\n\
        \tsetp.lt.u32 %p1, %r1, 7;\n\tmov.u32 %r2, 1000;\n\t@%p1 bra $SKIP;\n\t{\n\t.param .b32 a;\n\t.param .b32 b;\n\tst.param.b32 [a], %r1;\n\tcall.uni (b), twice, (a);\n\tld.param.b32 %r2, [b];\n\t}\n\
        $SKIP:\n\tmul.wide.u32 %d2, %r1, 4;\n\tadd.s64 %d3, %d1, %d2;\n\tst.global.u32 [%d3], %r2;\n\tret;\n}\n";
    let outcome =
        run(&Source::new("call.ptx", text), &along(1, 40, vec![words("out", Role::Output, &[], 40)])).unwrap();
    assert_eq!(outcome.findings, []);
    let expected: Vec<u32> = (0..40).map(|thread| if thread < 7 { 1000 } else { 2 * thread }).collect();
    assert_eq!(words_of(&outcome.buffers[0]), expected);
}

#[test]
fn blocks_that_wait_for_each_other_come_to_their_end() {
    // Each block waits until the next one has come: from the first on, in any order, all must be begun.
    let source = kernel(
        ".param .u64 p",
        "\tld.param.u64 %d1, [p];\n\tmov.u32 %r1, %ctaid.x;\n\tmov.u32 %r2, %nctaid.x;\n\tatom.global.gpu.acq_rel.add.u32 %r3, [%d1], 1;\n\
         $AGAIN:\n\tld.acquire.gpu.global.u32 %r4, [%d1];\n\tsetp.lt.u32 %p1, %r4, %r2;\n\t@%p1 bra $AGAIN;",
    );
    let program = Program::decode(&source, None).unwrap();
    for order in [BlockOrder::Ascending, BlockOrder::Descending, BlockOrder::Shuffled(3)] {
        let options = LaunchOptions { order, ..LaunchOptions::default() };
        let outcome =
            program.launch(&along(50, 1, vec![words("count", Role::InputOutput, &[0], 1)]), &options).unwrap();
        assert_eq!((outcome.findings.len(), words_of(&outcome.buffers[0])[0]), (0, 50));
    }
}

#[test]
fn a_lock_among_the_lanes_of_a_warp_is_passed_on() {
    // Lanes that spin are behind the one that holds the lock: it must have its turn.
    let source = kernel(
        ".param .u64 p",
        "\tld.param.u64 %d1, [p];\n$AGAIN:\n\tatom.global.acquire.gpu.cas.b32 %r1, [%d1], 0, 1;\n\tsetp.ne.u32 %p1, %r1, 0;\n\t@%p1 bra $AGAIN;\n\
         \tld.relaxed.gpu.global.u32 %r2, [%d1+4];\n\tadd.u32 %r2, %r2, 1;\n\tst.relaxed.gpu.global.u32 [%d1+4], %r2;\n\
         \tatom.global.release.gpu.exch.b32 %r3, [%d1], 0;",
    );
    let outcome = run(&source, &along(1, 32, vec![words("lock", Role::InputOutput, &[0, 0], 2)])).unwrap();
    assert_eq!(words_of(&outcome.buffers[0]), [0, 32]);
}

#[test]
fn what_is_released_may_be_read() {
    // The last block to come sums what all have written: a barrier, a release, an acquire, a barrier.
    let body = |order: &str| {
        format!(
            "\t.shared .align 4 .b8 last[4];\n\tld.param.u64 %d1, [p];\n\tld.param.u64 %d2, [q];\n\tmov.u32 %r1, %ctaid.x;\n\tmov.u32 %r2, %tid.x;\n\tmov.u32 %r3, %nctaid.x;\n\
             \tmad.lo.u32 %r4, %r1, 64, %r2;\n\tmul.wide.u32 %d3, %r4, 4;\n\tadd.s64 %d4, %d1, %d3;\n\tst.global.u32 [%d4], %r4;\n\tbar.sync 0;\n\
             \tsetp.ne.u32 %p1, %r2, 0;\n\t@%p1 bra $WAIT;\n\tatom.global.{order}gpu.add.u32 %r5, [%d2], 1;\n\tst.shared.u32 [last], %r5;\n$WAIT:\n\tbar.sync 0;\n\tld.shared.u32 %r6, [last];\n\
             \tadd.u32 %r6, %r6, 1;\n\tsetp.ne.u32 %p2, %r6, %r3;\n\t@%p2 ret;\n\tmul.wide.u32 %d3, %r2, 4;\n\tadd.s64 %d4, %d1, %d3;\n\
             \tld.global.u32 %r7, [%d4];\n\tld.global.u32 %r8, [%d4+256];\n\tadd.u32 %r7, %r7, %r8;\n\tadd.s64 %d5, %d2, %d3;\n\tst.global.u32 [%d5+4], %r7;"
        )
    };
    let launch =
        along(2, 64, vec![words("parts", Role::Output, &[], 128), words("sum", Role::InputOutput, &[0; 65], 65)]);
    let outcome = run(&kernel(".param .u64 p, .param .u64 q", &body("acq_rel.")), &launch).unwrap();
    assert_eq!(outcome.findings, []);
    assert_eq!(words_of(&outcome.buffers[1])[1..4], [64, 66, 68]);
    // Relaxed, nothing is ordered.
    let outcome = run(&kernel(".param .u64 p, .param .u64 q", &body("relaxed.")), &launch).unwrap();
    assert!(!outcome.findings.is_empty());
    // With fences around it, it is.
    let fenced = body("relaxed.")
        .replace("\tatom.global", "\tmembar.gl;\n\tatom.global")
        .replace("\tst.shared.u32 [last]", "\tmembar.gl;\n\tst.shared.u32 [last]");
    assert_eq!(run(&kernel(".param .u64 p, .param .u64 q", &fenced), &launch).unwrap().findings, []);
}

#[test]
fn branches_by_table_and_partial_warps() {
    let source = kernel(
        ".param .u64 p",
        "\tld.param.u64 %d1, [p];\n\tmov.u32 %r1, %tid.x;\n\trem.u32 %r2, %r1, 3;\n$TABLE: .branchtargets $A, $B, $C;\n\tbrx.idx %r2, $TABLE;\n\
         $A:\n\tmov.u32 %r3, 10;\n\tbra $END;\n$B:\n\tmov.u32 %r3, 20;\n\tbra $END;\n$C:\n\tmov.u32 %r3, 30;\n$END:\n\
         \tmul.wide.u32 %d2, %r1, 4;\n\tadd.s64 %d3, %d1, %d2;\n\tst.global.u32 [%d3], %r3;",
    );
    let outcome = run(&source, &along(1, 45, vec![words("out", Role::Output, &[], 45)])).unwrap();
    assert_eq!(outcome.findings, []);
    let expected: Vec<u32> = (0..45).map(|thread| 10 * (thread % 3 + 1)).collect();
    assert_eq!(words_of(&outcome.buffers[0]), expected);
}

#[test]
fn a_trace_tells_what_one_thread_did() {
    let source = kernel(
        ".param .u64 p, .param .u32 n",
        "\tld.param.u32 %r2, [n];\n\tmov.u32 %r1, %tid.x;\n\tmul.lo.u32 %r3, %r1, %r2;\n\tsetp.gt.u32 %p1, %r3, 50;",
    );
    let program = Program::decode(&source, None).unwrap();
    let trace = Trace { block: [1, 0, 0], thread: [5, 0, 0], most_lines: 100 };
    let options = LaunchOptions { trace: Some(trace), ..LaunchOptions::default() };
    let launch = along(2, 32, vec![words("out", Role::InputOutput, &[0], 1), word(11)]);
    let outcome = program.launch(&launch, &options).unwrap();
    assert!(
        outcome.trace.iter().any(|line| line.contains("mul.lo.u32 %r3, %r1, %r2  ; %r3 = 0x00000037 (55,")),
        "{:#?}",
        outcome.trace
    );
    assert!(outcome.trace.iter().any(|line| line.contains("%p1 = true")), "{:#?}", outcome.trace);
}

#[test]
fn several_threads_may_read_what_one_of_them_writes_back() {
    // Both warps read the same word; the second does nothing with it. As compilers write it.
    let source = |stores: &str| {
        kernel(
            ".param .u64 p, .param .u64 q",
            &format!(
                "\tld.param.u64 %d1, [p];\n\tld.param.u64 %d5, [q];\n\tmov.u32 %r1, %tid.x;\n\tand.b32 %r2, %r1, 31;\n\tmul.wide.u32 %d2, %r2, 4;\n\tadd.s64 %d3, %d1, %d2;\n\
                 \tld.global.u32 %r3, [%d3];\n\tadd.u32 %r4, %r3, 1;\n\tsetp.lt.u32 %p1, %r1, 32;\n\t@%p1 st.global.u32 [%d3], %r4;\n{stores}"
            ),
        )
    };
    let launch =
        along(1, 64, vec![words("x", Role::InputOutput, &[1; 32], 32), words("y", Role::InputOutput, &[0; 64], 64)]);
    assert_eq!(run(&source(""), &launch).unwrap().findings, []);
    let used = source("\tmul.wide.u32 %d6, %r1, 4;\n\tadd.s64 %d7, %d5, %d6;\n\tst.global.u32 [%d7], %r3;");
    assert_eq!(run(&used, &launch).unwrap().findings.len(), 1, "the second warp goes on with what it read");
}
