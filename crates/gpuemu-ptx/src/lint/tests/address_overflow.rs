//! Offsets in 32 bits, as compilers write them.

use gpuemu_config::ArtifactChecks;
use gpuemu_model::artifact::{LintFinding, Severity};

use super::{lint_body, lint_text};
use crate::flow::uses::tests::module_text;

fn found(body: &str) -> Vec<LintFinding> {
    let findings = lint_body(body).findings;
    findings.into_iter().filter(|finding| finding.rule == "address-overflow").collect()
}

/// `a[row * stride + column]` with row = blockIdx.x, column = threadIdx.x.
const HEAD: &str = "ld.param.u64 %rd1, [a];\n ld.param.u32 %r2, [stride];\n mov.u32 %r1, %ctaid.x;\n\
                    mov.u32 %r3, %tid.x;\n cvta.to.global.u64 %rd2, %rd1;\n";

#[test]
fn a_row_times_a_stride_in_32_bits_is_found_with_its_size() {
    let body = format!(
        "{HEAD} mad.lo.s32 %r4, %r1, %r2, %r3;\n mul.wide.s32 %rd3, %r4, 4;\n add.s64 %rd4, %rd2, %rd3;\n\
         ld.global.f32 %f1, [%rd4];\n ret;"
    );
    let findings = found(&body);
    assert_eq!(findings.len(), 1);
    assert_eq!(findings[0].severity, Severity::Warning);
    assert!(findings[0].heuristic);
    assert_eq!(
        findings[0].message,
        "the offset `%r1 * %r2 + %r3` is computed in 32 bits and wraps at 2,147,483,648: with elements of 4 bytes the \
         access is wrong from element 2,147,483,648 on, 8 GiB into a buffer; with rows of 4,096 elements that is row \
         524,288. Compute it in 64 bits (%r1 is %ctaid.x, %r2 is stride, %r3 is %tid.x)"
    );
    let line = module_text("", &body).lines().position(|line| line.contains("mad.lo")).unwrap() + 1;
    assert_eq!(findings[0].line, Some(line));
}

#[test]
fn the_same_in_64_bits_is_right() {
    let widened_first = "cvt.s64.s32 %rd10, %r1;\n cvt.s64.s32 %rd11, %r2;\n mul.lo.s64 %rd12, %rd10, %rd11;\n\
                         cvt.u64.u32 %rd13, %r3;\n add.s64 %rd14, %rd12, %rd13;\n shl.b64 %rd15, %rd14, 2;\n\
                         add.s64 %rd16, %rd2, %rd15;\n ld.global.f32 %f1, [%rd16];\n ret;";
    let multiplied_wide = "mul.wide.s32 %rd12, %r1, %r2;\n cvt.u64.u32 %rd13, %r3;\n add.s64 %rd14, %rd12, %rd13;\n\
                           shl.b64 %rd15, %rd14, 2;\n add.s64 %rd16, %rd2, %rd15;\n st.global.f32 [%rd16], %f1;\n ret;";
    let wide_stride = "ld.param.u64 %rd10, [wide];\n cvt.u64.u32 %rd11, %r1;\n mad.lo.s64 %rd12, %rd11, %rd10, %rd2;\n\
                       st.global.f32 [%rd12], %f1;\n ret;";
    for body in [widened_first, multiplied_wide, wide_stride] {
        assert_eq!(found(&format!("{HEAD}{body}")), [], "{body}");
    }
}

#[test]
fn an_unsigned_offset_wraps_later() {
    let body = "mul.lo.s32 %r4, %r1, %r2;\n mul.wide.u32 %rd3, %r4, 2;\n add.s64 %rd4, %rd2, %rd3;\n\
                ld.global.u16 %rs1, [%rd4];\n ret;";
    let findings = found(&format!("{HEAD}{body}"));
    assert!(
        findings[0].message.contains("wraps at 4,294,967,296: with elements of 2 bytes"),
        "{}",
        findings[0].message
    );
    assert!(findings[0].message.contains("8 GiB into a buffer"));
}

#[test]
fn an_offset_that_is_scaled_to_bytes_in_32_bits_wraps_sooner() {
    let body = "mad.lo.s32 %r4, %r1, %r2, %r3;\n shl.b32 %r5, %r4, 2;\n cvt.u64.u32 %rd3, %r5;\n\
                add.s64 %rd4, %rd2, %rd3;\n st.global.f32 [%rd4], %f1;\n ret;";
    let findings = found(&format!("{HEAD}{body}"));
    assert_eq!(findings.len(), 1);
    let wanted = "wraps at 4,294,967,296: with elements of 4 bytes the access is wrong from element 1,073,741,824 on, \
                  4 GiB into a buffer; with rows of 4,096 elements that is row 262,144";
    assert!(findings[0].message.contains(wanted), "{}", findings[0].message);
}

#[test]
fn a_tile_times_a_constant_is_a_note() {
    let body = "shl.b32 %r4, %r1, 10;\n or.b32 %r5, %r4, %r3;\n mul.wide.s32 %rd3, %r5, 4;\n\
                add.s64 %rd4, %rd2, %rd3;\n ld.global.f32 %f1, [%rd4];\n ret;";
    let findings = found(&format!("{HEAD}{body}"));
    assert_eq!(findings.len(), 1);
    assert_eq!(findings[0].severity, Severity::Note);
    assert!(findings[0].message.starts_with("the offset `%r1 << 10` is computed in 32 bits"));
    assert!(!findings[0].message.contains("rows of"));
}

#[test]
fn the_index_of_a_thread_in_the_grid_is_a_note() {
    let body = "mov.u32 %r5, %ntid.x;\n mad.lo.s32 %r4, %r1, %r5, %r3;\n mul.wide.s32 %rd3, %r4, 4;\n\
                add.s64 %rd4, %rd2, %rd3;\n ld.global.f32 %f1, [%rd4];\n ret;";
    let findings = found(&format!("{HEAD}{body}"));
    assert_eq!((findings.len(), findings[0].severity), (1, Severity::Note));
}

#[test]
fn a_factor_that_is_small_makes_a_note_that_says_what_the_other_has_to_reach() {
    let body = "and.b32 %r5, %r3, 15;\n mul.lo.s32 %r4, %r2, %r5;\n mul.wide.s32 %rd3, %r4, 4;\n\
                add.s64 %rd4, %rd2, %rd3;\n ld.global.f32 %f1, [%rd4];\n ret;";
    let findings = found(&format!("{HEAD}{body}"));
    assert_eq!((findings.len(), findings[0].severity), (1, Severity::Note));
    assert!(
        findings[0].message.contains("; %r5 is at most 15, so %r2 has to reach 143,165,577. "),
        "{}",
        findings[0].message
    );
}

#[test]
fn what_follows_a_product_in_32_bits_counts_for_its_bound() {
    // As `(blockIdx.x * blockDim.x + threadIdx.x) * 4` is written.
    let body = "mov.u32 %r5, %ntid.x;\n mad.lo.s32 %r4, %r1, %r5, %r3;\n shl.b32 %r6, %r4, 2;\n\
                mul.wide.s32 %rd3, %r6, 4;\n add.s64 %rd4, %rd2, %rd3;\n ld.global.f32 %f1, [%rd4];\n ret;";
    let findings = found(&format!("{HEAD}{body}"));
    assert_eq!((findings.len(), findings[0].severity), (1, Severity::Note));
    assert!(
        findings[0].message.contains("; %r5 is at most 1,024, so %r1 has to reach 524,288. "),
        "{}",
        findings[0].message
    );
}

#[test]
fn a_mask_that_rounds_down_does_not_hide_a_product() {
    let body = "mul.lo.s32 %r4, %r1, %r2;\n and.b32 %r5, %r4, 0xFFFFFFF8;\n mul.wide.s32 %rd3, %r5, 4;\n\
                add.s64 %rd4, %rd2, %rd3;\n ld.global.f32 %f1, [%rd4];\n ret;";
    assert_eq!(found(&format!("{HEAD}{body}")).len(), 1);
    assert_eq!(found(&format!("{HEAD}{}", body.replace("0xFFFFFFF8", "0xFFF8"))), []);
}

#[test]
fn what_cannot_wrap_is_not_found() {
    // Threads times a constant, blocks in y times a constant, and a parameter without any product.
    let threads = "shl.b32 %r4, %r3, 4;\n mul.wide.s32 %rd3, %r4, 4;";
    let blocks = "mov.u32 %r5, %ctaid.y;\n shl.b32 %r4, %r5, 10;\n mul.wide.s32 %rd3, %r4, 4;";
    let parameter = "add.s32 %r4, %r2, %r3;\n mul.wide.s32 %rd3, %r4, 4;";
    // pid - pid / groups * groups is a remainder.
    let remainder = "div.s32 %r5, %r1, %r2;\n mul.lo.s32 %r6, %r5, %r2;\n sub.s32 %r4, %r1, %r6;\n\
                     mul.wide.s32 %rd3, %r4, 4;";
    for body in [threads, blocks, parameter, remainder] {
        let body = format!("{HEAD}{body}\n add.s64 %rd4, %rd2, %rd3;\n ld.global.f32 %f1, [%rd4];\n ret;");
        assert_eq!(found(&body), [], "{body}");
    }
}

#[test]
fn an_offset_that_grows_by_a_stride_in_a_loop_is_found() {
    let body = "mov.u32 %r4, %r3;\n L: mul.wide.s32 %rd3, %r4, 4;\n add.s64 %rd4, %rd2, %rd3;\n\
                ld.global.f32 %f1, [%rd4];\n add.s32 %r9, %r4, %r2;\n mov.u32 %r4, %r9;\n setp.lt.s32 %p1, %r4, %r1;\n\
                @%p1 bra L;\n ret;";
    let findings = found(&format!("{HEAD}{body}"));
    assert_eq!((findings.len(), findings[0].severity), (1, Severity::Warning));
    assert!(findings[0].message.starts_with("the offset %r9 grows as `%r4 + %r2` in a loop, in 32 bits, and wraps at"));
    // A counter that grows by a constant or by the threads of a block ends where its bound is.
    for by in ["16", "%r8"] {
        let body = body.replace("%r4, %r2;", &format!("%r4, {by};"));
        assert_eq!(found(&format!("{HEAD} mov.u32 %r8, %ntid.x;\n{body}")), [], "{by}");
    }
}

#[test]
fn addresses_of_other_memory_are_not_concerned() {
    let body = "mad.lo.s32 %r4, %r1, %r2, %r3;\n mul.wide.s32 %rd3, %r4, 4;\n mov.u64 %rd5, tile;\n\
                add.s64 %rd4, %rd5, %rd3;\n ld.shared.f32 %f1, [%rd4];\n ret;";
    let shared = format!(".shared .align 4 .b8 tile[1024];\n{HEAD}{body}");
    assert_eq!(found(&shared), []);
    assert_eq!(found(&shared.replace("ld.shared.f32", "ld.f32")), []);
    let generic = shared.replace("mov.u64 %rd5, tile;", "mov.u64 %rd5, %rd1;").replace("ld.shared.f32", "ld.f32");
    assert_eq!(found(&generic).len(), 1);
}

#[test]
fn copies_and_atomics_are_followed_too() {
    let address = "mul.lo.s32 %r4, %r1, %r2;\n mad.wide.s32 %rd4, %r4, 2, %rd2;\n";
    for access in [
        "cp.async.cg.shared.global [%r9], [%rd4], 16;",
        "atom.global.add.f32 %f1, [%rd4], %f2;",
        "red.global.add.f32 [%rd4+8], %f2;",
        "ld.global.v4.b32 {%r10, %r11, %r12, %r13}, [%rd4];",
    ] {
        let findings = found(&format!("{HEAD}{address}{access}\n ret;"));
        assert_eq!(findings.len(), 1, "{access}");
        assert!(findings[0].message.contains("elements of 2 bytes") && findings[0].message.contains("4 GiB"));
    }
}

#[test]
fn offsets_of_one_source_line_are_told_once() {
    let body = format!(
        "{HEAD} .loc 1 7 3\n mul.lo.s32 %r4, %r1, %r2;\n mul.lo.s32 %r5, %r2, %r1;\n mad.wide.s32 %rd4, %r4, 4, %rd2;\n\
         mad.wide.s32 %rd5, %r5, 4, %rd2;\n ld.global.f32 %f1, [%rd4];\n ld.global.f32 %f1, [%rd5];\n ret;"
    );
    let text = module_text("", &body) + ".file 1 \"kernels.py\"\n";
    let result = lint_text(&text, &ArtifactChecks::default(), &[]);
    assert_eq!(result.findings.len(), 1);
    let origin = result.findings[0].origin.as_ref().unwrap();
    assert_eq!((origin.file.as_str(), origin.line, origin.column), ("kernels.py", 7, 3));
    assert!(result.findings[0].message.ends_with(". Another offset there does so too"));
    // Without the name of the file the directive is what they have in common; without it nothing.
    assert_eq!(found(&body).len(), 1);
    assert_eq!(found(&body.replace(".loc 1 7 3", "")).len(), 2);
}

#[test]
fn offsets_of_single_bytes_are_told_in_bytes() {
    // As Triton writes a copy of 8-bit elements: sixteen at once.
    let body = "mul.lo.s32 %r4, %r1, %r2;\n cvt.s64.s32 %rd3, %r4;\n add.s64 %rd4, %rd2, %rd3;\n\
                cp.async.cg.shared.global [%r9], [%rd4], 16;\n ret;";
    let findings = found(&format!("{HEAD}{body}"));
    let wanted = "wraps at 2,147,483,648: the access is wrong from byte 2,147,483,648 on, 2 GiB into a buffer; with \
                  rows of 4,096 bytes that is row 524,288";
    assert!(findings[0].message.contains(wanted), "{}", findings[0].message);
}
