//! Scalar accesses and local memory in loops.

use super::messages;

fn scalar(body: &str) -> Vec<String> {
    messages("scalar-access", body)
}

const BASE: &str = "ld.param.u64 %rd1, [a];\n cvta.to.global.u64 %rd2, %rd1;\n mov.u32 %r1, %tid.x;\n\
                    mul.wide.s32 %rd3, %r1, 16;\n add.s64 %rd5, %rd2, %rd3;\n";

fn loads(offsets: &[i64]) -> String {
    offsets.iter().map(|offset| format!("ld.global.f32 %f1, [%rd5+{offset}];\n")).collect()
}

#[test]
fn neighbouring_loads_are_found() {
    let messages = scalar(&format!("{BASE}{} ret;", loads(&[4, 0, 12, 8])));
    let wanted = "4 loads of 4 bytes at offsets 0, 4, 8, 12 from %rd5 could be one of 16 bytes if the address is \
                  16-byte aligned";
    assert_eq!(messages, [wanted]);
    let pair = scalar(&format!("{BASE}{} ret;", loads(&[8, 12])));
    assert!(pair[0].starts_with("2 loads of 4 bytes at offsets 8, 12 from %rd5 could be one of 8 bytes"));
    let many = scalar(&format!("{BASE}{} ret;", loads(&[0, 4, 8, 12, 16, 20, 24, 28, 32, 36, 40, 44])));
    assert!(
        many[0].starts_with("12 loads of 4 bytes at offsets 0, 4, 8, 12, 16, 20, 24, 28, … from %rd5 could be 3 of")
    );
    let stores = "st.global.b16 [%rd5], %rs1;\n st.global.b16 [%rd5+2], %rs1;\n st.global.b16 [%rd5+4], %rs1;\n\
                  st.global.b16 [%rd5+6], %rs1;\n ret;";
    assert!(scalar(&format!("{BASE}{stores}"))[0].starts_with("4 stores of 2 bytes at offsets 0, 2, 4, 6"));
}

#[test]
fn what_cannot_be_one_access_is_not_found() {
    let ragged = format!("{BASE}{} ret;", loads(&[4, 8]));
    let gap = format!("{BASE}{} ret;", loads(&[0, 8, 16]));
    let redefined = format!("{BASE}{} add.s64 %rd5, %rd5, 64;\n{} ret;", loads(&[0]), loads(&[4]));
    let guarded = format!("{BASE}{} @%p1 ld.global.f32 %f2, [%rd5+4];\n ret;", loads(&[0]));
    let blocks = format!("{BASE}{} @%p1 bra L;\n{} L: ret;", loads(&[0]), loads(&[4]));
    let local_between = format!("{BASE}{} st.local.f32 [%rd6], %f1;\n{} ret;", loads(&[0]), loads(&[4]));
    assert_eq!(scalar(&local_between).len(), 1);
    let store_between = format!("{BASE}{} st.global.f32 [%rd6], %f1;\n{} ret;", loads(&[0]), loads(&[4]));
    let volatile = format!("{BASE}{} ret;", loads(&[0, 4])).replace("ld.global", "ld.volatile.global");
    let types = format!("{BASE}{} ld.global.u32 %r2, [%rd5+4];\n ret;", loads(&[0]));
    let vectors = format!(
        "{BASE} ld.global.v4.f32 {{%f1, %f2, %f3, %f4}}, [%rd5];\n\
                           ld.global.v4.f32 {{%f1, %f2, %f3, %f4}}, [%rd5+16];\n ret;"
    );
    // Neighbouring threads read neighbouring words: every other thread's pair is not aligned.
    let overlapping = format!("{BASE}{} ret;", loads(&[0, 4])).replace("%r1, 16", "%r1, 4");
    for body in [ragged, gap, redefined, guarded, blocks, store_between, volatile, types, vectors, overlapping] {
        assert!(scalar(&body).is_empty(), "{body}");
    }
}

#[test]
fn constants_that_are_added_apart_are_followed() {
    let body = "add.s64 %rd6, %rd5, 4;\n add.s64 %rd7, %rd6, 4;\n add.s64 %rd8, %rd5, 12;\n\
                @%p1 ld.global.f32 %f1, [%rd5];\n @%p1 ld.global.f32 %f2, [%rd6];\n @%p1 ld.global.f32 %f3, [%rd7];\n\
                @%p1 ld.global.f32 %f4, [%rd8];\n ret;";
    let messages = scalar(&format!("{BASE}{body}"));
    assert_eq!(messages.len(), 1);
    assert!(
        messages[0].starts_with("4 loads of 4 bytes at offsets 0, 4, 8, 12 from %rd5 could be one"),
        "{}",
        messages[0]
    );
    // The address moves on under a guard.
    let moved = body.replace("@%p1 ld.global.f32 %f2", "@%p2 add.s64 %rd5, %rd5, 64;\n @%p1 ld.global.f32 %f2");
    assert!(scalar(&format!("{BASE}{moved}")).is_empty());
}

#[test]
fn pairs_that_are_aligned_to_pairs_only_are_found_as_pairs() {
    let body = format!("{BASE}{} ret;", loads(&[0, 4, 8, 12])).replace("%r1, 16", "%r1, 8");
    let messages = scalar(&body);
    assert_eq!(messages.len(), 1);
    assert!(messages[0].contains("could be 2 of 8 bytes if the address is 8-byte aligned"), "{}", messages[0]);
}

#[test]
fn local_memory_in_a_loop_is_found_once_for_each_loop() {
    let body = ".local .align 4 .b8 kept[64];\n mov.u64 %rd1, kept;\n st.local.u32 [%rd1], %r1;\n\
                L: ld.local.u32 %r1, [%rd1];\n st.local.u32 [%rd1+4], %r1;\n ld.local.u32 %r2, [%rd1];\n\
                @%p1 bra L;\n ret;";
    let messages = messages("local-memory-in-loop", body);
    assert_eq!(messages, ["2 loads and 1 store of local memory in the loop that begins at line 15"]);
    // Without optimisation the addresses are generic.
    let generic = body
        .replace(".local.u32", ".u32")
        .replace("mov.u64 %rd1, kept;", "mov.u64 %rd2, kept;\n cvta.local.u64 %rd1, %rd2;");
    assert_eq!(super::messages("local-memory-in-loop", &generic).len(), 1);
    let straight = body.replace("@%p1 bra L;", "");
    assert!(super::messages("local-memory-in-loop", &straight).is_empty());
}
