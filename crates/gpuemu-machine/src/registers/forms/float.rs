//! Floating-point arithmetic. What kernels do all the time, rounded to nearest, is done by the processor itself; the
//! rest by `soft`.

use std::marker::PhantomData;

use gpuemu_ptx::syntax::ScalarType::{self, *};

use super::halves::{self, HalfFunction};
use super::lanes::{Each, Function, functions};
use super::soft::{self, Arithmetic};
use super::words::{Found, Words};
use crate::numerics::half::{self, NAN_32};
use crate::numerics::{ExtremeRules, FloatKind, FloatRules, Rounding};
use crate::registers::simd::Level;

/// An operand of f32.
#[inline(always)]
fn taken<const FLUSH: bool>(bits: u32) -> f32 {
    f32::from_bits(if FLUSH && bits & 0x7F80_0000 == 0 { bits & 0x8000_0000 } else { bits })
}

/// A result of f32: one NaN, and what the modifiers ask for.
#[inline(always)]
fn given<const FLUSH: bool, const SATURATE: bool>(value: f32) -> u32 {
    if SATURATE {
        let positive = if value > 0.0 { value } else { 0.0 };
        let bounded = if positive < 1.0 { positive } else { 1.0 };
        return taken::<FLUSH>(bounded.to_bits()).to_bits();
    }
    if value.is_nan() { NAN_32 } else { taken::<FLUSH>(value.to_bits()).to_bits() }
}

/// The same function of operands 2^64 times as large, for those whose results may be too small to be normal: rounded
/// to 24 bits it says whether the chip flushes it. Where it leaves the range of f32 the result is not small.
const RAISED: f32 = 18_446_744_073_709_551_616.0;

/// Zero where the raised result is below 2^-126, raised.
#[inline(always)]
fn unless_tiny<const FLUSH: bool>(value: f32, raised: f32) -> f32 {
    let tiny = FLUSH && raised.abs() < f32::from_bits(0x2080_0000);
    if tiny { f32::from_bits(value.to_bits() & 0x8000_0000) } else { value }
}

macro_rules! single {
    ($($name:ident($sources:pat in $types:ty) = $($taken:ident),+ => $body:expr;)+) => {
        $(struct $name<const FLUSH: bool, const SATURATE: bool>;

        impl<const FLUSH: bool, const SATURATE: bool> Function for $name<FLUSH, SATURATE> {
            type Sources = $types;
            type Results = u32;

            #[inline(always)]
            fn of($sources: $types, _: u32) -> u32 {
                $(let $taken = taken::<FLUSH>($taken);)+
                given::<FLUSH, SATURATE>($body)
            }
        })+
    };
}

single! {
    Sum32((a, b) in (u32, u32)) = a, b => a + b;
    Difference32((a, b) in (u32, u32)) = a, b => a - b;
    Product32((a, b) in (u32, u32)) = a, b => unless_tiny::<FLUSH>(a * b, a * RAISED * b);
    Quotient32((a, b) in (u32, u32)) = a, b => unless_tiny::<FLUSH>(a / b, a * RAISED / b);
    Reciprocal32((a,) in (u32,)) = a => 1.0 / a;
    Root32((a,) in (u32,)) = a => a.sqrt();
    Magnitude32((a,) in (u32,)) = a => a.abs();
    Opposite32((a,) in (u32,)) = a => -a;
    Fused32((a, b, c) in (u32, u32, u32)) = a, b, c => {
        unless_tiny::<FLUSH>(a.mul_add(b, c), (a * RAISED).mul_add(b, c * RAISED))
    };
    // Without an instruction for it the library's function is called for each lane: f64 is faster.
    FusedInF64((a, b, c) in (u32, u32, u32)) = a, b, c => {
        unless_tiny::<FLUSH>(half::fused_32(a, b, c), half::fused_32(a * RAISED, b, c * RAISED))
    };
}

/// The form for each combination of `.ftz` and `.sat`.
macro_rules! by_flags {
    ($words:expr, $rules:expr, $operands:expr, $name:ident) => {
        match ($rules.flush, $rules.saturate) {
            (false, false) => $words.form::<Each<$name<false, false>>>($operands, 0),
            (false, true) => $words.form::<Each<$name<false, true>>>($operands, 0),
            (true, false) => $words.form::<Each<$name<true, false>>>($operands, 0),
            (true, true) => $words.form::<Each<$name<true, true>>>($operands, 0),
        }
    };
}

/// As above, without `.sat`.
macro_rules! by_flush {
    ($words:expr, $rules:expr, $operands:expr, $name:ident) => {
        match $rules.flush {
            false => $words.form::<Each<$name<false, false>>>($operands, 0),
            true => $words.form::<Each<$name<true, false>>>($operands, 0),
        }
    };
}

/// A result of f64: what is no number takes the payload of `last`, then of `first`, as recorded.
#[inline(always)]
fn given_64(value: f64, first: f64, last: f64) -> u64 {
    const QUIET: u64 = 0x0008_0000_0000_0000;
    let of_first = if first.is_nan() { first.to_bits() | QUIET } else { 0xFFF8_0000_0000_0000 };
    let of_either = if last.is_nan() { last.to_bits() | QUIET } else { of_first };
    if value.is_nan() { of_either } else { value.to_bits() }
}

functions! {
    Sum64(a: f64, b: f64) -> u64 = given_64(a + b, a, b);
    Difference64(a: f64, b: f64) -> u64 = given_64(a - b, a, b);
    Product64(a: f64, b: f64) -> u64 = given_64(a * b, a, b);
    Quotient64(a: f64, b: f64) -> u64 = given_64(a / b, b, a);
    Reciprocal64(a: f64) -> u64 = given_64(1.0 / a, a, a);
    Root64(a: f64) -> u64 = given_64(a.sqrt(), a, a);
    // Recorded: the NaN of b goes before that of c, and that before the one of a.
    Fused64(a: f64, b: f64, c: f64) -> u64 = given_64(a.mul_add(b, c), if c.is_nan() { c } else { a }, b);
    CopySign32(a: u32, b: u32) -> u32 = a & 0x8000_0000 | b & 0x7FFF_FFFF;
    CopySign64(a: u64, b: u64) -> u64 = a & 1 << 63 | b & !(1 << 63);
}

/// A 16-bit format: in it these functions round to nearest.
trait Narrow {
    fn widen(bits: u16) -> f32;
    fn narrow(value: f32) -> u16;
    fn product(a: u16, b: u16) -> u16;
    fn fused(a: u16, b: u16, c: u16) -> u16;
}

/// f16: sums and products of two are right when rounded to f32 first, which has more than twice the bits.
struct NarrowF16<const FLUSH: bool>;

impl<const FLUSH: bool> NarrowF16<FLUSH> {
    #[inline(always)]
    fn flushed(bits: u16) -> u16 {
        if FLUSH && bits & 0x7C00 == 0 { bits & 0x8000 } else { bits }
    }
}

impl<const FLUSH: bool> Narrow for NarrowF16<FLUSH> {
    #[inline(always)]
    fn widen(bits: u16) -> f32 {
        half::widen_f16(Self::flushed(bits))
    }

    #[inline(always)]
    fn narrow(value: f32) -> u16 {
        // 2^-14 less half of the last of 11 bits: what is below would not have been rounded up to a normal number.
        let tiny = FLUSH && value.abs() < f32::from_bits(0x387F_F000);
        half::narrow_f16(if tiny { f32::from_bits(value.to_bits() & 0x8000_0000) } else { value })
    }

    #[inline(always)]
    fn product(a: u16, b: u16) -> u16 {
        Self::narrow(Self::widen(a) * Self::widen(b))
    }

    #[inline(always)]
    fn fused(a: u16, b: u16, c: u16) -> u16 {
        Self::narrow(half::odd_sum_32(Self::widen(a) * Self::widen(b), Self::widen(c)))
    }
}

/// bf16 has the range of f32, so small products need more than f32.
struct NarrowBf16;

impl Narrow for NarrowBf16 {
    #[inline(always)]
    fn widen(bits: u16) -> f32 {
        half::widen_bf16(bits)
    }

    #[inline(always)]
    fn narrow(value: f32) -> u16 {
        half::narrow_bf16(value)
    }

    #[inline(always)]
    fn product(a: u16, b: u16) -> u16 {
        half::narrow_64_bf16(f64::from(Self::widen(a)) * f64::from(Self::widen(b)))
    }

    #[inline(always)]
    fn fused(a: u16, b: u16, c: u16) -> u16 {
        half::fused_bf16(a, b, c)
    }
}

macro_rules! narrow {
    ($($name:ident($sources:pat) = $body:expr;)+) => {
        $(struct $name<N>(PhantomData<N>);

        impl<N: Narrow> HalfFunction for $name<N> {
            #[inline(always)]
            fn of($sources: [u16; 3], _: u32) -> u16 {
                $body
            }
        })+
    };
}

narrow! {
    Sum16([a, b, _]) = N::narrow(N::widen(a) + N::widen(b));
    Difference16([a, b, _]) = N::narrow(N::widen(a) - N::widen(b));
    Product16([a, b, _]) = N::product(a, b);
    Fused16([a, b, c]) = N::fused(a, b, c);
}

/// The format that a type is computed in.
pub fn kind(scalar: ScalarType) -> Option<FloatKind> {
    Some(match scalar {
        F16 | F16x2 => FloatKind::F16,
        Bf16 | Bf16x2 => FloatKind::Bf16,
        F32 => FloatKind::F32,
        F64 => FloatKind::F64,
        _ => return None,
    })
}

/// Takes the modifiers that a format has.
fn take_rules(words: &mut Words<'_>, arithmetic: Arithmetic, scalar: ScalarType) -> Result<FloatRules, String> {
    use Arithmetic::*;
    let Some(kind) = kind(scalar) else { return words.refuse(scalar) };
    let half = matches!(kind, FloatKind::F16 | FloatKind::Bf16);
    let rounds = !matches!(arithmetic, Magnitude | Opposite);
    let rounding = if rounds { words.rounding() } else { None };
    if half && matches!(arithmetic, Quotient | Reciprocal | Root) {
        return words.refuse(scalar);
    }
    if rounding.is_none() && matches!(arithmetic, Fused | Quotient | Reciprocal | Root) {
        return words.unknown("it must say how to round, as in `.rn`");
    }
    let rounding = rounding.unwrap_or_default();
    if half && rounding != Rounding::Nearest {
        return words.unknown("16-bit formats round to nearest, `.rn`");
    }
    let saturates = matches!(arithmetic, Sum | Difference | Product | Fused);
    Ok(FloatRules {
        kind,
        rounding,
        flush: matches!(kind, FloatKind::F16 | FloatKind::F32) && words.take("ftz"),
        saturate: saturates && matches!(kind, FloatKind::F16 | FloatKind::F32) && words.take("sat"),
        relu: half && arithmetic == Fused && words.take("relu"),
    })
}

/// `add`, `sub`, `mul`, `fma`, `mad`, `div`, `rcp`, `sqrt`, `abs`, `neg`
pub fn arithmetic(words: &mut Words<'_>, arithmetic: Arithmetic, scalar: ScalarType) -> Found {
    let rules = take_rules(words, arithmetic, scalar)?;
    let fast = rules.rounding == Rounding::Nearest && !rules.relu;
    if !fast {
        return soft::arithmetic(words, arithmetic, rules, scalar);
    }
    match (rules.kind, arithmetic) {
        (FloatKind::F32, _) => single(words, arithmetic, rules),
        (FloatKind::F64, Arithmetic::Sum) => words.form::<Each<Sum64>>(&[F64; 3], 0),
        (FloatKind::F64, Arithmetic::Difference) => words.form::<Each<Difference64>>(&[F64; 3], 0),
        (FloatKind::F64, Arithmetic::Product) => words.form::<Each<Product64>>(&[F64; 3], 0),
        (FloatKind::F64, Arithmetic::Quotient) => words.form::<Each<Quotient64>>(&[F64; 3], 0),
        (FloatKind::F64, Arithmetic::Fused) => words.form::<Each<Fused64>>(&[F64; 4], 0),
        (FloatKind::F64, Arithmetic::Reciprocal) => words.form::<Each<Reciprocal64>>(&[F64; 2], 0),
        (FloatKind::F64, Arithmetic::Root) => words.form::<Each<Root64>>(&[F64; 2], 0),
        (FloatKind::F16, _) if !rules.saturate && rules.flush => {
            narrow::<NarrowF16<true>>(words, arithmetic, rules, scalar)
        }
        (FloatKind::F16, _) if !rules.saturate => narrow::<NarrowF16<false>>(words, arithmetic, rules, scalar),
        (FloatKind::Bf16, _) => narrow::<NarrowBf16>(words, arithmetic, rules, scalar),
        _ => soft::arithmetic(words, arithmetic, rules, scalar),
    }
}

fn single(words: &mut Words<'_>, arithmetic: Arithmetic, rules: FloatRules) -> Found {
    let emulated = cfg!(target_arch = "x86_64") && words.level == Level::Baseline;
    match arithmetic {
        Arithmetic::Sum => by_flags!(words, rules, &[F32; 3], Sum32),
        Arithmetic::Difference => by_flags!(words, rules, &[F32; 3], Difference32),
        Arithmetic::Product => by_flags!(words, rules, &[F32; 3], Product32),
        Arithmetic::Fused if emulated => by_flags!(words, rules, &[F32; 4], FusedInF64),
        Arithmetic::Fused => by_flags!(words, rules, &[F32; 4], Fused32),
        Arithmetic::Quotient => by_flush!(words, rules, &[F32; 3], Quotient32),
        Arithmetic::Reciprocal => by_flush!(words, rules, &[F32; 2], Reciprocal32),
        Arithmetic::Root => by_flush!(words, rules, &[F32; 2], Root32),
        Arithmetic::Magnitude => by_flush!(words, rules, &[F32; 2], Magnitude32),
        Arithmetic::Opposite => by_flush!(words, rules, &[F32; 2], Opposite32),
    }
}

fn narrow<N: Narrow>(words: &mut Words<'_>, arithmetic: Arithmetic, rules: FloatRules, scalar: ScalarType) -> Found {
    match arithmetic {
        Arithmetic::Sum => halves::binary::<Sum16<N>>(words, scalar, 0),
        Arithmetic::Difference => halves::binary::<Difference16<N>>(words, scalar, 0),
        Arithmetic::Product => halves::binary::<Product16<N>>(words, scalar, 0),
        Arithmetic::Fused => halves::ternary::<Fused16<N>>(words, scalar, 0),
        Arithmetic::Magnitude | Arithmetic::Opposite => {
            let extra = u32::from(rules.kind == FloatKind::Bf16)
                | u32::from(arithmetic == Arithmetic::Opposite) << 1
                | u32::from(rules.flush) << 2;
            halves::unary::<Sign16>(words, scalar, extra)
        }
        _ => soft::arithmetic(words, arithmetic, rules, scalar),
    }
}

/// `min` and `max` of 16-bit formats: the rules are in `extra`, as they were packed, and are the same for all lanes.
struct Extreme16;

impl HalfFunction for Extreme16 {
    #[inline(always)]
    fn of([a, b, _]: [u16; 3], extra: u32) -> u16 {
        let rules = ExtremeRules::unpack(extra);
        let infinity: u16 = if rules.kind == FloatKind::F16 { 0x7C00 } else { 0x7F80 };
        let (a_is_nan, b_is_nan) = (a & 0x7FFF > infinity, b & 0x7FFF > infinity);
        let flushed = |bits: u16| if rules.flush & (bits & infinity == 0) { bits & 0x8000 } else { bits };
        let (a, b) = (flushed(a), flushed(b));
        let signs = (a ^ b) & 0x8000;
        let kept = if rules.combine_signs { 0x7FFF } else { 0xFFFF };
        let (a, b) = (a & kept, b & kept);
        let key = |bits: u16| bits as i16 ^ (bits as i16 >> 15 & i16::MAX);
        let first = (key(a) < key(b)) != rules.largest;
        let number = if b_is_nan | (first & !a_is_nan) { a } else { b };
        let signed = number | if rules.combine_signs { signs } else { 0 };
        let nan = if rules.keep_nan { a_is_nan | b_is_nan } else { a_is_nan & b_is_nan };
        if nan { half::NAN } else { signed }
    }
}

/// `abs` and `neg` of 16-bit formats: `extra` says which, in which format, and whether to flush.
struct Sign16;

impl HalfFunction for Sign16 {
    #[inline(always)]
    fn of([a, ..]: [u16; 3], extra: u32) -> u16 {
        let infinity: u16 = if extra & 1 == 0 { 0x7C00 } else { 0x7F80 };
        let signed = if extra & 2 == 0 { a & 0x7FFF } else { a ^ 0x8000 };
        let flushed = if (extra & 4 != 0) & (a & infinity == 0) { signed & 0x8000 } else { signed };
        if a & 0x7FFF > infinity { half::NAN } else { flushed }
    }
}

/// `min` and `max` of f32.
struct Extreme32<const LARGEST: bool, const FLUSH: bool, const KEEP_NAN: bool>;

impl<const LARGEST: bool, const FLUSH: bool, const KEEP_NAN: bool> Function for Extreme32<LARGEST, FLUSH, KEEP_NAN> {
    type Sources = (u32, u32);
    type Results = u32;

    #[inline(always)]
    fn of((a, b): (u32, u32), _: u32) -> u32 {
        let (a_is_nan, b_is_nan) = (f32::from_bits(a).is_nan(), f32::from_bits(b).is_nan());
        let (a, b) = (taken::<FLUSH>(a).to_bits(), taken::<FLUSH>(b).to_bits());
        // Patterns in the order of their numbers; -0 is below 0.
        let key = |bits: u32| bits as i32 ^ (bits as i32 >> 31 & i32::MAX);
        let first = (key(a) < key(b)) != LARGEST;
        let number = if b_is_nan | (first & !a_is_nan) { a } else { b };
        let nan = if KEEP_NAN { a_is_nan | b_is_nan } else { a_is_nan & b_is_nan };
        if nan { NAN_32 } else { number }
    }
}

/// `min`, `max`
pub fn extreme(words: &mut Words<'_>, scalar: ScalarType, largest: bool) -> Found {
    let Some(kind) = kind(scalar) else { return words.refuse(scalar) };
    let single = kind == FloatKind::F32;
    let rules = ExtremeRules {
        kind,
        largest,
        flush: (single || kind == FloatKind::F16) && words.take("ftz"),
        keep_nan: kind != FloatKind::F64 && words.take("NaN"),
        combine_signs: kind != FloatKind::F64 && words.take("xorsign"),
    };
    if rules.combine_signs && !words.take("abs") {
        return words.unknown("`.xorsign` needs `.abs`");
    }
    match kind {
        FloatKind::F16 | FloatKind::Bf16 => return halves::binary::<Extreme16>(words, scalar, rules.pack()),
        FloatKind::F32 if !rules.combine_signs => {}
        _ => return soft::extreme(words, rules, scalar),
    }
    let operands = &[F32; 3];
    match (largest, rules.flush, rules.keep_nan) {
        (false, false, false) => words.form::<Each<Extreme32<false, false, false>>>(operands, 0),
        (false, false, true) => words.form::<Each<Extreme32<false, false, true>>>(operands, 0),
        (false, true, false) => words.form::<Each<Extreme32<false, true, false>>>(operands, 0),
        (false, true, true) => words.form::<Each<Extreme32<false, true, true>>>(operands, 0),
        (true, false, false) => words.form::<Each<Extreme32<true, false, false>>>(operands, 0),
        (true, false, true) => words.form::<Each<Extreme32<true, false, true>>>(operands, 0),
        (true, true, false) => words.form::<Each<Extreme32<true, true, false>>>(operands, 0),
        (true, true, true) => words.form::<Each<Extreme32<true, true, true>>>(operands, 0),
    }
}

/// `copysign`: the sign of the first, the rest of the second.
pub fn copy_sign(words: &mut Words<'_>) -> Found {
    match words.scalar()? {
        F32 => words.form::<Each<CopySign32>>(&[F32; 3], 0),
        F64 => words.form::<Each<CopySign64>>(&[F64; 3], 0),
        other => words.refuse(other),
    }
}
