//! Warps that meet: all of them, some of them, or only in passing. What that orders is no race, and what it does not is one.

use gpuemu_machine::{LaunchOptions, Program, Role};
use gpuemu_model::emulation::{AccessFault, AccessFinding};
use gpuemu_ptx::Source;

use super::launching::{along, assert_at, kernel, run, word, words};

/// `%d1` is the address of the buffer, `%r1` the thread's number, `%r2` its warp, `%r3` the address of `tile`, which is of
/// one word that thread 0 has written, and everybody knows of.
const TILE: &str = "\t.shared .align 4 .b8 tile[512];\n\tld.param.u64 %d1, [p];\n\tmov.u32 %r1, %tid.x;\n\tshr.u32 %r2, %r1, 5;\n\tmov.u32 %r3, tile;\n\
    \tsetp.eq.u32 %p1, %r1, 0;\n\tsetp.eq.u32 %p2, %r2, 0;\n\tsetp.lt.u32 %p3, %r2, 2;\n\tsetp.ge.u32 %p4, %r2, 2;\n\
    \t@%p1 st.shared.u32 [%r3], 7;\n\tbar.sync 0;\n";

fn findings(body: &str, threads: u32) -> Vec<AccessFinding> {
    let source = kernel(".param .u64 p", &format!("{TILE}{body}\n\tst.global.u32 [%d1], 1;"));
    run(&source, &along(1, threads, vec![words("out", Role::Output, &[], 1)])).unwrap().findings
}

#[test]
fn a_reader_that_did_not_come_to_a_barrier_of_some_warps_races() {
    let body = |readers: &str| {
        format!(
            "{readers} ld.shared.u32 %r4, [%r3];\n\t@%p3 bar.sync 1, 64;\n\t.loc 1 20 1\n\t@%p1 st.shared.u32 [%r3], 8;"
        )
    };
    assert_eq!(findings(&body("\t@%p3"), 96), [], "the two warps that read it met");
    let found = findings(&body("\t"), 96);
    assert_eq!(found.len(), 1, "{found:#?}");
    assert_at(&found[0], AccessFault::Race, 20);
    assert_eq!(found[0].other.as_ref().unwrap().thread.warp, 2);
}

#[test]
fn who_only_arrives_at_a_barrier_is_ordered_before_it_and_not_after() {
    let body = |before: &str, after: &str| {
        format!(
            "\t@%p2 bra $PRODUCER;\n\tbar.sync 1, 64;\n\t.loc 1 30 1\n\tld.shared.u32 %r4, [%r3];\n\tbra $END;\n\
             $PRODUCER:\n{before}\n\tbar.arrive 1, 64;\n{after}\n$END:"
        )
    };
    let store = "\t.loc 1 31 1\n\t@%p1 st.shared.u32 [%r3], 8;";
    assert_eq!(findings(&body(store, ""), 64), []);
    let found = findings(&body("", store), 64);
    assert_eq!(found.len(), 1, "{found:#?}");
    assert_eq!(found[0].fault, AccessFault::Race);
}

#[test]
fn a_warp_that_met_by_itself_before_is_not_ahead_of_the_others() {
    let alone = "\t@%p2 bar.warp.sync -1;\n".repeat(3);
    let body = format!("{alone}\tld.shared.u32 %r4, [%r3];\n\tbar.sync 0;\n\t@%p1 st.shared.u32 [%r3], 8;");
    assert_eq!(findings(&body, 96), []);
}

#[test]
fn lanes_that_read_before_their_warp_met_do_not_race_with_what_follows() {
    // Every lane adds its neighbour's word to its own, with one barrier of the warp between.
    let body = "\tmad.lo.u32 %r5, %r1, 4, %r3;\n\tst.shared.u32 [%r5], %r1;\n\tbar.sync 0;\n\tld.shared.u32 %r6, [%r5+4];\n\
                \tbar.warp.sync -1;\n\tld.shared.u32 %r7, [%r5];\n\tadd.u32 %r7, %r7, %r6;\n\tst.shared.u32 [%r5], %r7;";
    let source = |body: &str| {
        let body = format!("\t.shared .align 4 .b8 more[4];\n{TILE}\tst.shared.u32 [%r3+128], 0;\n{body}");
        kernel(".param .u64 p", &format!("{body}\n\tst.global.u32 [%d1], 1;"))
    };
    let launch = along(1, 32, vec![words("out", Role::Output, &[], 1)]);
    assert_eq!(run(&source(body), &launch).unwrap().findings, []);
    let without = body.replace("\tbar.warp.sync -1;\n", "");
    assert!(!run(&source(&without), &launch).unwrap().findings.is_empty());
}

#[test]
fn of_several_readers_one_is_named_that_is_not_the_writer() {
    for lanes in [32, 64] {
        // The writer reads last, so that it is the one that is remembered.
        let body = "\tsetp.ne.u32 %p6, %r1, 0;\n\t@%p6 ld.shared.u32 %r4, [%r3];\n\t@%p1 ld.shared.u32 %r4, [%r3];\n\
                    \t.loc 1 50 1\n\t@%p1 st.shared.u32 [%r3], 8;";
        // Another warp that reads later races with the write too, at its own line.
        let found = findings(body, lanes);
        let at_write = found.iter().find(|finding| finding.place.as_ref().is_some_and(|place| place.line == Some(50)));
        let race = at_write.unwrap_or_else(|| panic!("{found:#?}"));
        assert_at(race, AccessFault::Race, 50);
        let (writer, reader) = (race.thread.unwrap(), race.other.as_ref().unwrap().thread);
        assert_eq!(writer.thread, [0, 0, 0]);
        assert_ne!(reader.thread, writer.thread, "{lanes} threads");
    }
}

#[test]
fn a_barrier_that_no_block_has_is_always_reported() {
    let source = kernel(".param .u64 p", "\tmov.u32 %r1, 16;\n\t.loc 1 40 1\n\tbar.sync %r1;");
    let launch = along(1, 32, vec![words("out", Role::Output, &[], 1)]);
    let options = LaunchOptions { checks: Vec::new(), ..LaunchOptions::default() };
    let outcome = Program::decode(&source, None).unwrap().launch(&launch, &options).unwrap();
    assert_at(&outcome.findings[0], AccessFault::BarrierCount, 40);
}

fn loop_over_barriers() -> Source {
    let body = "\tld.param.u32 %r8, [n];\n$AGAIN:\n\tbar.sync 0;\n\tsub.u32 %r8, %r8, 1;\n\tsetp.ne.u32 %p5, %r8, 0;\n\t@%p5 bra $AGAIN;";
    kernel(".param .u64 p, .param .u32 n", &format!("{TILE}{body}\n\tst.global.u32 [%d1], 1;"))
}

#[test]
fn more_barriers_than_can_be_told_apart_are_not_called_checked() {
    let program = Program::decode(&loop_over_barriers(), None).unwrap();
    let outcome = |barriers: u32| {
        let launch = along(1, 32, vec![words("out", Role::Output, &[], 1), word(barriers)]);
        program.launch(&launch, &LaunchOptions::default()).unwrap()
    };
    assert_eq!(outcome(1000).not_checked, Vec::<String>::new());
    let many = outcome(1 << 20);
    assert_eq!(many.findings, []);
    assert_eq!(many.not_checked, ["races: a block had more barriers than they are told apart by"]);
}
