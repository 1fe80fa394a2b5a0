//! One kernel for each fault, which must be reported at its line, and a twin without it, which must not.

use gpuemu_machine::{Argument, Buffer, Role};
use gpuemu_model::emulation::AccessFault;

use super::launching::{along, assert_at, kernel, only_finding, run, word, words, words_of};

/// `%d3` is the address of the thread's word in the buffer of the first parameter, `%r3` its number.
const OWN_WORD: &str = "\t.loc 1 10 1\n\tld.param.u64 %d1, [p];\n\tmov.u32 %r1, %ctaid.x;\n\tmov.u32 %r2, %ntid.x;\n\tmov.u32 %r4, %tid.x;\n\
    \tmad.lo.u32 %r3, %r1, %r2, %r4;\n\tmul.wide.u32 %d2, %r3, 4;\n\tadd.s64 %d3, %d1, %d2;\n";

#[test]
fn a_store_outside_that_leaves_every_value_right() {
    // The guard is one too wide: the last thread writes the word behind the buffer.
    let source = |bound: &str| {
        kernel(
            ".param .u64 p, .param .u32 n",
            &format!(
                "{OWN_WORD}\tld.param.u32 %r5, [n];\n\tsetp.{bound}.u32 %p1, %r3, %r5;\n\t.loc 1 12 1\n\t@%p1 st.global.u32 [%d3], %r3;"
            ),
        )
    };
    let launch = along(2, 64, vec![words("out", Role::Output, &[], 100), word(100)]);
    let finding = only_finding(&source("le"), &launch);
    assert_at(&finding, AccessFault::OutOfBounds, 12);
    assert_eq!((finding.buffer.as_deref(), finding.offset), (Some("out"), Some(400)));
    assert_eq!(
        finding.message,
        "write of 4 bytes outside of 'out': 0 bytes after its end (element 100, the buffer has 100)"
    );
    let thread = finding.thread.unwrap();
    assert_eq!((thread.block, thread.thread, thread.warp, thread.lane), ([1, 0, 0], [36, 0, 0], 1, 4));
    let outcome = run(&source("le"), &launch).unwrap();
    assert_eq!(words_of(&outcome.buffers[0]), (0..100).collect::<Vec<_>>(), "every value is right");
    assert_eq!(run(&source("lt"), &launch).unwrap().findings, []);
}

#[test]
fn an_offset_of_32_bits_that_overflows() {
    // From element 2^29 on the offset is 2^31 and more, which a signed number of 32 bits does not hold.
    let narrow = "\tshl.b32 %r6, %r5, 2;\n\tcvt.s64.s32 %d2, %r6;\n\tadd.s64 %d3, %d1, %d2;\n\t.loc 1 22 1\n\tst.global.u32 [%d3], %r5;";
    let wide = "\tmul.wide.u32 %d2, %r5, 4;\n\tadd.s64 %d3, %d1, %d2;\n\t.loc 1 22 1\n\tst.global.u32 [%d3], %r5;";
    let source = |body: &str| {
        kernel(".param .u64 p, .param .u32 i", &format!("\tld.param.u64 %d1, [p];\n\tld.param.u32 %r5, [i];\n{body}"))
    };
    // A buffer of 2.2 billion words, of which the machine holds only what is touched.
    let huge = words("out", Role::Output, &[], 2_200_000_000);
    let launch = along(1, 1, vec![huge.clone(), word((1 << 29) + 3)]);
    let findings = run(&source(narrow), &launch).unwrap().findings;
    let finding = findings.iter().find(|finding| finding.fault == AccessFault::OutOfBounds).unwrap();
    assert_at(finding, AccessFault::OutOfBounds, 22);
    assert!(finding.message.contains("before its beginning"), "{}", finding.message);
    // The other one writes where it should, and nowhere else.
    let launch = along(1, 1, vec![huge, word((1 << 31) + 5)]);
    let finding = only_finding(&source(wide), &launch);
    assert_eq!(finding.message, "2199999999 of 2200000000 elements of 'out' were never written, the first at 0");
}

#[test]
fn a_misaligned_access() {
    let source = kernel(
        ".param .u64 p",
        &format!("{OWN_WORD}\t.loc 1 31 1\n\tld.global.v2.u32 {{%r5, %r6}}, [%d3];\n\tst.global.u32 [%d3], %r5;"),
    );
    let contents: Vec<u32> = (0..64).collect();
    let launch = along(1, 32, vec![words("data", Role::InputOutput, &contents, 64)]);
    let findings = run(&source, &launch).unwrap().findings;
    let misaligned: Vec<_> = findings.iter().filter(|finding| finding.fault == AccessFault::Misaligned).collect();
    assert_eq!(misaligned.len(), 1, "{findings:#?}");
    assert_at(misaligned[0], AccessFault::Misaligned, 31);
    assert_eq!(misaligned[0].occurrences, 16);
}

#[test]
fn reads_of_memory_that_nothing_wrote() {
    let global = kernel(
        ".param .u64 p",
        &format!("{OWN_WORD}\t.loc 1 41 1\n\tld.global.u32 %r5, [%d3];\n\tst.global.u32 [%d3], %r5;"),
    );
    let launch = along(1, 32, vec![words("out", Role::Output, &[], 32)]);
    let finding = only_finding(&global, &launch);
    assert_at(&finding, AccessFault::Uninitialised, 41);
    assert_eq!(finding.message, "read of 'out' at element 0, which nothing has written");

    let shared = |store: &str| {
        kernel(
            ".param .u64 p",
            &format!(
                "\t.shared .align 4 .b8 tile[128];\n{OWN_WORD}\tmov.u32 %r5, tile;\n\tmad.lo.u32 %r6, %r4, 4, %r5;\n{store}\n\
                 \tbar.sync 0;\n\t.loc 1 43 1\n\tld.shared.u32 %r7, [%r6];\n\tst.global.u32 [%d3], %r7;"
            ),
        )
    };
    let finding = only_finding(&shared("\tsetp.lt.u32 %p1, %r4, 30;\n\t@%p1 st.shared.u32 [%r6], %r4;"), &launch);
    assert_at(&finding, AccessFault::Uninitialised, 43);
    assert_eq!((finding.buffer.as_deref(), finding.offset), (Some("tile"), Some(120)));
    assert_eq!(run(&shared("\tst.shared.u32 [%r6], %r4;"), &launch).unwrap().findings, []);

    let local = kernel(
        ".param .u64 p",
        &format!(
            "\t.local .align 4 .b8 own[8];\n{OWN_WORD}\t.loc 1 45 1\n\tld.local.u32 %r5, [own+4];\n\tst.global.u32 [%d3], %r5;"
        ),
    );
    assert_at(&only_finding(&local, &launch), AccessFault::Uninitialised, 45);
}

#[test]
fn an_output_that_is_written_in_part() {
    let source = kernel(".param .u64 p", &format!("{OWN_WORD}\tst.global.u32 [%d3], %r3;"));
    let finding = only_finding(&source, &along(1, 32, vec![words("out", Role::Output, &[], 40)]));
    assert_eq!(finding.fault, AccessFault::NeverWritten);
    assert_eq!(finding.message, "8 of 40 elements of 'out' were never written, the first at 32");
}

#[test]
fn a_store_to_an_input_changes_nothing() {
    let source = kernel(".param .u64 p", &format!("{OWN_WORD}\t.loc 1 51 1\n\tst.global.u32 [%d3], 7;"));
    let contents: Vec<u32> = (0..32).collect();
    let finding = only_finding(&source, &along(1, 32, vec![words("x", Role::Input, &contents, 32)]));
    assert_at(&finding, AccessFault::ReadOnly, 51);
}

#[test]
fn null_and_wild_pointers() {
    let source = kernel(".param .u64 p", "\tld.param.u64 %d1, [p];\n\t.loc 1 61 1\n\tst.global.u32 [%d1+8], 7;");
    for (pointer, word) in [(0u64, "a null pointer"), (0x7f00_dead_0000, "no buffer")] {
        let finding = only_finding(&source, &along(1, 1, vec![Argument::Value(pointer.to_le_bytes().to_vec())]));
        assert_at(&finding, AccessFault::Unmapped, 61);
        assert!(finding.message.contains(word), "{}", finding.message);
    }
}

#[test]
fn a_race_in_shared_memory() {
    let source = |barrier: &str| {
        kernel(
            ".param .u64 p",
            &format!(
                "\t.shared .align 4 .b8 tile[256];\n{OWN_WORD}\tmov.u32 %r5, tile;\n\tmad.lo.u32 %r6, %r4, 4, %r5;\n\
                 \t.loc 1 70 1\n\tst.shared.u32 [%r6], %r4;\n{barrier}\n\
                 \txor.b32 %r7, %r4, 33;\n\tmad.lo.u32 %r6, %r7, 4, %r5;\n\t.loc 1 72 1\n\tld.shared.u32 %r8, [%r6];\n\tst.global.u32 [%d3], %r8;"
            ),
        )
    };
    let launch = along(1, 64, vec![words("out", Role::Output, &[], 64)]);
    let findings = run(&source(""), &launch).unwrap().findings;
    let race = findings.iter().find(|finding| finding.other.as_ref().is_some_and(|other| other.write)).unwrap();
    let other = race.other.as_ref().unwrap();
    assert_at(race, AccessFault::Race, 72);
    assert!(other.write && other.place.line == Some(70), "{race:#?}");
    assert_eq!(other.thread.thread[0] ^ 33, race.thread.unwrap().thread[0]);
    assert_eq!(run(&source("\tbar.sync 0;"), &launch).unwrap().findings, []);
    // A barrier of each warp does not order the two warps.
    assert!(!run(&source("\tbar.warp.sync -1;"), &launch).unwrap().findings.is_empty());
}

#[test]
fn lanes_of_a_warp_need_a_barrier_too() {
    let source = |barrier: &str| {
        kernel(
            ".param .u64 p",
            &format!(
                "\t.shared .align 4 .b8 tile[128];\n{OWN_WORD}\tmov.u32 %r5, tile;\n\tmad.lo.u32 %r6, %r4, 4, %r5;\n\
                 \tst.shared.u32 [%r6], %r4;\n{barrier}\n\txor.b32 %r7, %r4, 1;\n\tmad.lo.u32 %r6, %r7, 4, %r5;\n\
                 \t.loc 1 82 1\n\tld.shared.u32 %r8, [%r6];\n\tst.global.u32 [%d3], %r8;"
            ),
        )
    };
    let launch = along(1, 32, vec![words("out", Role::Output, &[], 32)]);
    assert_at(&only_finding(&source(""), &launch), AccessFault::Race, 82);
    assert_eq!(run(&source("\tbar.warp.sync -1;"), &launch).unwrap().findings, []);
}

#[test]
fn a_race_of_blocks_in_global_memory() {
    let source = kernel(
        ".param .u64 p",
        &format!(
            "{OWN_WORD}\tand.b32 %r6, %r3, 31;\n\tmul.wide.u32 %d2, %r6, 4;\n\tadd.s64 %d3, %d1, %d2;\n\t.loc 1 91 1\n\tst.global.u32 [%d3], %r3;"
        ),
    );
    let finding = only_finding(&source, &along(4, 32, vec![words("out", Role::Output, &[], 32)]));
    assert_at(&finding, AccessFault::Race, 91);
    assert_eq!(finding.other.unwrap().thread.block, [0, 0, 0]);
    // All blocks write the same: no harm.
    let same = kernel(".param .u64 p", "\tld.param.u64 %d1, [p];\n\tst.global.u32 [%d1], 5;");
    assert_eq!(run(&same, &along(4, 1, vec![words("flag", Role::Output, &[], 1)])).unwrap().findings, []);
}

#[test]
fn a_copy_that_is_not_waited_for() {
    let source = |wait: &str| {
        kernel(
            ".param .u64 p, .param .u64 q",
            &format!(
                "\t.shared .align 16 .b8 tile[512];\n{OWN_WORD}\tld.param.u64 %d5, [q];\n\tmul.wide.u32 %d6, %r4, 16;\n\tadd.s64 %d5, %d5, %d6;\n\
                 \tmov.u32 %r5, tile;\n\tmad.lo.u32 %r6, %r4, 16, %r5;\n\tcp.async.cg.shared.global [%r6], [%d5], 16;\n\tcp.async.commit_group;\n\
                 {wait}\n\txor.b32 %r7, %r6, 16;\n\t.loc 1 95 1\n\tld.shared.u32 %r7, [%r7];\n\tst.global.u32 [%d3], %r7;"
            ),
        )
    };
    let contents: Vec<u32> = (0..128).collect();
    let launch = along(1, 32, vec![words("out", Role::Output, &[], 32), words("x", Role::Input, &contents, 128)]);
    let finding = only_finding(&source(""), &launch);
    assert_at(&finding, AccessFault::CopyInFlight, 95);
    let copied_by = finding.other.unwrap().thread;
    assert_eq!((finding.thread.unwrap().lane, copied_by.lane), (0, 1), "the thread that began the copy is named");
    assert_at(&only_finding(&source("\tcp.async.wait_group 1;"), &launch), AccessFault::CopyInFlight, 95);
    let outcome = run(&source("\tcp.async.wait_group 0;\n\tbar.warp.sync -1;"), &launch).unwrap();
    assert_eq!(outcome.findings, []);
    assert_eq!(words_of(&outcome.buffers[0])[31], 120);
}

#[test]
fn barriers_that_not_all_reach() {
    let divergent = kernel(
        ".param .u64 p",
        &format!(
            "{OWN_WORD}\tsetp.lt.u32 %p1, %r4, 16;\n\t@%p1 bra $IN;\n\tbra $OUT;\n$IN:\n\t.loc 1 101 1\n\tbar.sync 0;\n$OUT:\n\tst.global.u32 [%d3], %r3;"
        ),
    );
    let launch = along(1, 32, vec![words("out", Role::Output, &[], 32)]);
    let findings = run(&divergent, &launch).unwrap().findings;
    assert_at(&findings[0], AccessFault::DivergentBarrier, 101);
    // Two warps at two barriers wait for ever.
    let stuck = kernel(
        ".param .u64 p",
        &format!(
            "{OWN_WORD}\tsetp.lt.u32 %p1, %r4, 32;\n\t@%p1 bra $FIRST;\n\t.loc 1 103 1\n\tbar.sync 1;\n\tbra $END;\n$FIRST:\n\t.loc 1 104 1\n\tbar.sync 2;\n$END:\n\tst.global.u32 [%d3], %r3;"
        ),
    );
    let launch = along(1, 64, vec![words("out", Role::Output, &[], 64)]);
    let findings = run(&stuck, &launch).unwrap().findings;
    let count = findings.iter().find(|finding| finding.fault == AccessFault::BarrierCount).unwrap();
    assert!(count.message.contains("waits for 64 threads for ever, 32 came"), "{}", count.message);
}

#[test]
fn a_shuffle_from_a_lane_that_is_not_there() {
    let source = |members: &str| {
        kernel(
            ".param .u64 p",
            &format!(
                "{OWN_WORD}\tsetp.lt.u32 %p1, %r4, 16;\n\tmov.u32 %r5, 0;\n\t.loc 1 111 1\n\t@%p1 shfl.sync.bfly.b32 %r5, %r4, 16, 31, {members};\n\tst.global.u32 [%d3], %r5;"
            ),
        )
    };
    let launch = along(1, 32, vec![words("out", Role::Output, &[], 32)]);
    let findings = run(&source("0x0000ffff"), &launch).unwrap().findings;
    assert_at(&findings[0], AccessFault::InactiveLane, 111);
    let findings = run(&source("0xffffffff"), &launch).unwrap().findings;
    assert!(findings.iter().any(|finding| finding.fault == AccessFault::MemberMask), "{findings:#?}");
}

#[test]
fn a_buffer_that_starts_anywhere_is_told_apart_from_its_neighbours() {
    let source =
        kernel(".param .u64 p, .param .u64 q", "\tld.param.u64 %d1, [p];\n\t.loc 1 121 1\n\tst.global.u8 [%d1+3], 7;");
    let bytes = |name: &str, offset| {
        Argument::Buffer(Buffer {
            name: name.to_string(),
            role: Role::InputOutput,
            bytes: 3,
            contents: vec![0; 3],
            offset,
            pointer: 0,
            element_bytes: 1,
        })
    };
    let finding = only_finding(&source, &along(1, 1, vec![bytes("a", 509), bytes("b", 0)]));
    assert_at(&finding, AccessFault::OutOfBounds, 121);
    assert_eq!(finding.buffer.as_deref(), Some("a"));
}
