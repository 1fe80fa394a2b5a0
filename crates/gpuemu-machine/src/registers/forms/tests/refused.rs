//! What is not known is refused, and what is wrong is said.

use super::*;

/// Why an instruction is refused; nothing if it is not one of these.
fn refusal(code: &str) -> Option<String> {
    let mut found = None;
    instructions(code, |instruction| {
        let shapes: Vec<_> = instruction.operands.iter().map(shape).collect();
        found = match pure_form(instruction, &shapes, Approximation::Chip, Level::Baseline) {
            Ok(None) => None,
            Ok(Some(_)) => Some(format!("{code} is taken")),
            Err(why) => Some(why),
        };
    });
    found
}

#[test]
fn unknown_forms_say_what_is_wrong() {
    for (code, word) in [
        ("add.rq.f32 r0, r1, r2", "`.rq` is not known here"),
        ("add.rn.rn.f32 r0, r1, r2", "`.rn` is not known here"),
        ("add.rz.f16 h0, h1, h2", "16-bit formats round to nearest"),
        ("add.f32x2 d0, d1, d2", "does not exist for `.f32x2`"),
        ("add.ftz.f64 d0, d1, d2", "`.ftz` is not known here"),
        ("add.sat.u32 r0, r1, r2", "does not exist for `.u32`"),
        ("add.s32 r0, r1", "takes 3 operands, 2 are given"),
        ("add.s32 r0, r1, d2", "operand 3 does not fit `.s32`"),
        ("add.s32 5, r1, r2", "operand 1 does not fit `.s32`"),
        ("fma.f32 r0, r1, r2, r3", "must say how to round"),
        ("sqrt.f32 r0, r1", "must say how to round"),
        ("mul.s32 r0, r1, r2", "needs `.lo`, `.hi` or `.wide`"),
        ("mul.wide.s64 d0, d1, d2", "does not exist for `.s64`"),
        ("setp.equ.s32 p0, r1, r2", "needs a comparison that its type has"),
        ("setp.lo.s32 p0, r1, r2", "needs a comparison that its type has"),
        ("setp.lt.b32 p0, r1, r2", "needs a comparison that its type has"),
        ("setp.lt.f16x2 p0, r1, r2", "needs two results"),
        ("cvt.f16.f32 h0, r1", "needs `.rn`"),
        ("cvt.s32.f32 r0, r1", "needs `.rni`"),
        ("cvt.rn.s32.f32 r0, r1", "needs `.rni`"),
        ("cvt.rn.f32.f16 r0, h1", "and nothing otherwise"),
        ("cvt.u64.u32 r0, r1", "a register is narrower than its type"),
        ("cvt.rn.e4m3x2.f32 h0, r1, r2", "need `.satfinite`"),
        ("cvt.rs.f16x2.f32 r0, r1, r2, r3", "`.rs` is not known here"),
        ("lop3.b32 r0, r1, r2, r3, 256", "a number from 0 to 255"),
        ("prmt.b32.abc r0, r1, r2, r3", "`.abc` is not known here"),
        ("ex2.approx.ftz.f16 h0, h1", "no approximation for `.f16` with `.ftz`"),
        ("ex2.f32 r0, r1", "needs `.approx`"),
        ("mov.b32 {h0, h1, h2}, r0", "into 3 parts"),
        ("mov.f16 h0, h1", "does not exist for `.f16`"),
        ("add.s32 {r0, r1}, r2, r3", "takes no vector or pair"),
    ] {
        let why = refusal(code).unwrap_or_else(|| panic!("{code} is not one of these"));
        assert!(why.contains(word), "{code}: {why}");
    }
}

#[test]
fn what_touches_more_than_registers_is_left_alone() {
    for code in ["bar.sync 0", "shfl.sync.bfly.b32 r0, r1, 1, 31, -1", "ret", "membar.gl", "activemask.b32 r0"] {
        assert_eq!(refusal(code), None, "{code}");
    }
}
