//! Barriers under branches.

use gpuemu_config::ArtifactChecks;

use super::{lint_text, messages};
use crate::flow::uses::tests::module_text;

fn found(body: &str) -> Vec<String> {
    messages("divergent-barrier", body)
}

#[test]
fn a_barrier_in_a_branch_on_the_thread_is_found() {
    let body = "mov.u32 %r1, %tid.x;\n setp.lt.s32 %p1, %r1, 16;\n @!%p1 bra SKIP;\n bar.sync 0;\n SKIP: ret;";
    let messages = found(body);
    assert_eq!(messages.len(), 1);
    assert!(messages[0].starts_with("`bar.sync` depends on the `bra` at line 14, which may differ"), "{}", messages[0]);
    // The way that skips the barrier does nothing but return.
    assert!(messages[0].ends_with("threads that leave the kernel there never reach it"));
    let inner = body.replace("SKIP: ret;", "SKIP: st.global.u32 [%rd1], %r1;\n @%p2 bra SKIP;\n ret;");
    assert!(found(&inner)[0].ends_with("threads that go another way do not reach it, or not as often"));
}

#[test]
fn a_barrier_in_a_branch_that_all_take_alike_is_right() {
    let uniform = "ld.param.u32 %r1, [n];\n mov.u32 %r2, %ctaid.x;\n setp.lt.s32 %p1, %r2, %r1;\n @!%p1 bra SKIP;\n\
                   bar.sync 0;\n SKIP: ret;";
    let after_join = "mov.u32 %r1, %tid.x;\n setp.lt.s32 %p1, %r1, 16;\n @!%p1 bra SKIP;\n mov.u32 %r2, 1;\n\
                      SKIP: bar.sync 0;\n ret;";
    let loop_of_all = "ld.param.u32 %r1, [n];\n mov.u32 %r2, 0;\n L: bar.sync 0;\n add.s32 %r2, %r2, 1;\n\
                       setp.lt.s32 %p1, %r2, %r1;\n @%p1 bra L;\n ret;";
    let some = "mov.u32 %r1, %tid.x;\n setp.lt.s32 %p1, %r1, 64;\n @!%p1 bra SKIP;\n bar.sync 1, 64;\n\
                bar.warp.sync 0xffffffff;\n bar.arrive 2, 64;\n SKIP: ret;";
    // A sum in shared memory, halving the threads that add.
    let halving = "mov.u32 %r1, %tid.x;\n mov.u32 %r2, %ntid.x;\n shr.u32 %r3, %r2, 1;\n\
                   L: setp.ge.u32 %p1, %r1, %r3;\n\
                   @%p1 bra SKIP;\n ld.shared.f32 %f1, [%rd1];\n st.shared.f32 [%rd1], %f1;\n SKIP: bar.sync 0;\n\
                   shr.u32 %r3, %r3, 1;\n setp.ne.s32 %p2, %r3, 0;\n @%p2 bra L;\n ret;";
    for body in [uniform, after_join, loop_of_all, some, halving] {
        assert!(found(body).is_empty(), "{body}");
    }
}

#[test]
fn a_loop_whose_turns_differ_and_a_branch_inside_are_found() {
    let body = "mov.u32 %r1, %tid.x;\n L: barrier.sync 0;\n add.s32 %r1, %r1, 32;\n setp.lt.s32 %p1, %r1, 100;\n\
                @%p1 bra L;\n ret;";
    assert_eq!(found(body).len(), 1);
    let inside = "mov.u32 %r1, %tid.x;\n setp.lt.s32 %p1, %r1, 16;\n ld.param.u32 %r2, [n];\n\
                  setp.eq.s32 %p2, %r2, 0;\n\
                  @!%p1 bra OUT;\n @%p2 bra OUT;\n bar.sync 0;\n OUT: ret;";
    let messages = found(inside);
    assert_eq!(messages.len(), 1);
    assert!(messages[0].contains("at line 16"), "{}", messages[0]);
}

#[test]
fn a_guard_that_differs_is_found_and_one_that_does_not_is_right() {
    let body = "mov.u32 %r1, %tid.x;\n setp.lt.s32 %p1, %r1, 16;\n @%p1 bar.sync 0;\n ret;";
    assert!(found(body)[0].contains("stands under %p1"));
    assert!(found(&body.replace("%tid.x", "%ctaid.x")).is_empty());
}

#[test]
fn threads_that_leave_early_are_told_once_for_all_barriers_after() {
    let body = "mov.u32 %r1, %tid.x;\n setp.gt.s32 %p1, %r1, 16;\n @%p1 exit;\n bar.sync 0;\n bar.sync 0;\n\
                bar.red.popc.u32 %r2, 0, %p1;\n ret;";
    let messages = found(body);
    assert_eq!(messages.len(), 1);
    assert!(messages[0].contains("(and 2 other barriers) depends on the `exit` at line 14"), "{}", messages[0]);
    assert!(messages[0].ends_with("threads that leave the kernel there never reach it"));
}

#[test]
fn a_call_of_a_function_with_a_barrier_is_a_barrier() {
    let functions =
        ".func inner()\n{\nbar.sync 0;\nret;\n}\n.func outer()\n{\ncall.uni inner;\nret;\n}\n.visible .entry";
    let body = "mov.u32 %r1, %tid.x;\n setp.lt.s32 %p1, %r1, 16;\n @!%p1 bra SKIP;\n call.uni outer;\n SKIP: ret;";
    let text = module_text("", body).replace(".visible .entry", functions);
    let findings = lint_text(&text, &ArtifactChecks::default(), &[]).findings;
    assert_eq!(findings.len(), 1);
    assert!(
        findings[0].message.starts_with("the call of 'outer', which has a barrier, depends on the `bra` at line 24")
    );
    let without = text.replace("bar.sync 0;", "bar.warp.sync 0xffffffff;");
    assert_eq!(lint_text(&without, &ArtifactChecks::default(), &[]).findings, []);
}

#[test]
fn behind_a_call_through_a_register_may_be_any_function() {
    let body = "mov.u64 %rd1, helper;\n proto: .callprototype ()_ ();\n call %rd1, (), proto;\n ret;";
    let function = ".func helper()\n{\n.reg .pred %p<2>;\n.reg .b32 %r<2>;\nmov.u32 %r1, %tid.x;\n\
                    setp.lt.s32 %p1, %r1, 3;\n@%p1 bar.sync 0;\nret;\n}\n.visible .entry";
    let text = module_text("", body).replace(".visible .entry", function);
    let findings = lint_text(&text, &ArtifactChecks::default(), &[]).findings;
    assert_eq!(findings.len(), 1);
    assert!(findings[0].message.ends_with("(in function 'helper')"), "{}", findings[0].message);
}
