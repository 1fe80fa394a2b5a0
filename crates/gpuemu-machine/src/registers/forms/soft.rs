//! Floating-point forms that are rare: directed rounding, saturation, `.relu`. Computed exactly and rounded once.

use gpuemu_ptx::syntax::ScalarType;

use super::halves::{self, HalfFunction};
use super::lanes::{Each, functions};
use super::words::{Found, Words};
use crate::numerics::{ExtremeRules, FloatKind, FloatRules};
use crate::registers::simd::Level;

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Arithmetic {
    /// `add`
    Sum,
    /// `sub`
    Difference,
    /// `mul`
    Product,
    /// `fma`
    Fused,
    /// `div`
    Quotient,
    /// `rcp`
    Reciprocal,
    /// `sqrt`
    Root,
    /// `abs`
    Magnitude,
    /// `neg`
    Opposite,
}

impl Arithmetic {
    const ALL: [Arithmetic; 9] = {
        use Arithmetic::*;
        [Sum, Difference, Product, Fused, Quotient, Reciprocal, Root, Magnitude, Opposite]
    };

    fn sources(self) -> usize {
        match self {
            Arithmetic::Fused => 3,
            Arithmetic::Sum | Arithmetic::Difference | Arithmetic::Product | Arithmetic::Quotient => 2,
            _ => 1,
        }
    }
}

/// The rules are in the lowest 8 bits, what is computed above them.
fn compute(sources: [u64; 3], extra: u32) -> u64 {
    let rules = FloatRules::unpack(extra);
    let [a, b, c] = sources;
    match Arithmetic::ALL.get(extra as usize >> 8).copied().unwrap_or(Arithmetic::Opposite) {
        Arithmetic::Sum => rules.sum(a, b),
        Arithmetic::Difference => rules.difference(a, b),
        Arithmetic::Product => rules.product(a, b),
        Arithmetic::Fused => rules.fused(a, b, c),
        Arithmetic::Quotient => rules.quotient(a, b),
        Arithmetic::Reciprocal => rules.reciprocal(a),
        Arithmetic::Root => rules.root(a),
        Arithmetic::Magnitude => rules.magnitude(a),
        Arithmetic::Opposite => rules.opposite(a),
    }
}

struct Soft16;

impl HalfFunction for Soft16 {
    #[inline(always)]
    fn of(sources: [u16; 3], extra: u32) -> u16 {
        compute(sources.map(u64::from), extra) as u16
    }
}

functions! {
    Unary32[extra](a: u32) -> u32 = compute([a.into(), 0, 0], extra) as u32;
    Binary32[extra](a: u32, b: u32) -> u32 = compute([a.into(), b.into(), 0], extra) as u32;
    Ternary32[extra](a: u32, b: u32, c: u32) -> u32 = compute([a.into(), b.into(), c.into()], extra) as u32;
    Unary64[extra](a: u64) -> u64 = compute([a, 0, 0], extra);
    Binary64[extra](a: u64, b: u64) -> u64 = compute([a, b, 0], extra);
    Ternary64[extra](a: u64, b: u64, c: u64) -> u64 = compute([a, b, c], extra);
    Extreme32[extra](a: u32, b: u32) -> u32 = ExtremeRules::unpack(extra).choose(a.into(), b.into()) as u32;
    Extreme64[extra](a: u64, b: u64) -> u64 = ExtremeRules::unpack(extra).choose(a, b);
}

/// The form of any arithmetic on a type of these rules.
pub fn arithmetic(words: &mut Words<'_>, arithmetic: Arithmetic, rules: FloatRules, scalar: ScalarType) -> Found {
    let place = Arithmetic::ALL.iter().position(|other| *other == arithmetic).unwrap_or(0) as u32;
    let extra = rules.pack() | place << 8;
    let count = arithmetic.sources();
    let operands = [scalar; 4];
    let operands = operands.get(..=count).unwrap_or_default();
    words.level = Level::Baseline;
    match (rules.kind, count) {
        (FloatKind::F16 | FloatKind::Bf16, 1) => halves::unary::<Soft16>(words, scalar, extra),
        (FloatKind::F16 | FloatKind::Bf16, 2) => halves::binary::<Soft16>(words, scalar, extra),
        (FloatKind::F16 | FloatKind::Bf16, _) => halves::ternary::<Soft16>(words, scalar, extra),
        (FloatKind::F32, 1) => words.form::<Each<Unary32>>(operands, extra),
        (FloatKind::F32, 2) => words.form::<Each<Binary32>>(operands, extra),
        (FloatKind::F32, _) => words.form::<Each<Ternary32>>(operands, extra),
        (FloatKind::F64, 1) => words.form::<Each<Unary64>>(operands, extra),
        (FloatKind::F64, 2) => words.form::<Each<Binary64>>(operands, extra),
        (FloatKind::F64, _) => words.form::<Each<Ternary64>>(operands, extra),
    }
}

/// The form of `min` or `max` by these rules.
pub fn extreme(words: &mut Words<'_>, rules: ExtremeRules, scalar: ScalarType) -> Found {
    let extra = rules.pack();
    words.level = Level::Baseline;
    match rules.kind {
        FloatKind::F16 | FloatKind::Bf16 => words.refuse(scalar),
        FloatKind::F32 => words.form::<Each<Extreme32>>(&[scalar; 3], extra),
        FloatKind::F64 => words.form::<Each<Extreme64>>(&[scalar; 3], extra),
    }
}
