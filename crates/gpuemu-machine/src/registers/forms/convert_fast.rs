//! The conversions that kernels do all the time.

use std::marker::PhantomData;

use gpuemu_ptx::syntax::ScalarType;

use super::lanes::{Cell, Each, Function, functions};
use super::words::{Found, Words};
use crate::numerics::Rounding;
use crate::numerics::convert::{Conversion, Encoding};
use crate::numerics::eight::{narrow_e4m3, narrow_e5m2, widen_e4m3, widen_e5m2};
use crate::numerics::half::{NAN_32, narrow_bf16, narrow_f16, widen_bf16, widen_f16};

functions! {
    SingleOfF16(a: u16) -> f32 = widen_f16(a);
    SingleOfBf16(a: u16) -> f32 = widen_bf16(a);
    F16OfSingle(a: f32) -> u16 = narrow_f16(a);
    Bf16OfSingle(a: f32) -> u16 = narrow_bf16(a);
    PackF16(high: f32, low: f32) -> u32 = u32::from(narrow_f16(high)) << 16 | u32::from(narrow_f16(low));
    PackBf16(high: f32, low: f32) -> u32 = u32::from(narrow_bf16(high)) << 16 | u32::from(narrow_bf16(low));
    PackE4m3(high: f32, low: f32) -> u16 = u16::from(narrow_e4m3(high)) << 8 | u16::from(narrow_e4m3(low));
    PackE5m2(high: f32, low: f32) -> u16 = u16::from(narrow_e5m2(high)) << 8 | u16::from(narrow_e5m2(low));
    E4m3OfF16(both: u32) -> u16 = {
        let part = |half: u32| u16::from(narrow_e4m3(widen_f16(half as u16)));
        part(both >> 16) << 8 | part(both)
    };
    E5m2OfF16(both: u32) -> u16 = {
        let part = |half: u32| u16::from(narrow_e5m2(widen_f16(half as u16)));
        part(both >> 16) << 8 | part(both)
    };
    F16OfE4m3(both: u16) -> u32 = u32::from(widen_e4m3((both >> 8) as u8)) << 16 | u32::from(widen_e4m3(both as u8));
    F16OfE5m2(both: u16) -> u32 = u32::from(widen_e5m2((both >> 8) as u8)) << 16 | u32::from(widen_e5m2(both as u8));
    SingleOfDouble(a: f64) -> u32 = {
        let bits = a.to_bits();
        let nan = (bits >> 32) as u32 & 0x8000_0000 | 0x7FC0_0000 | (bits >> 29) as u32 & 0x003F_FFFF;
        if a.is_nan() { nan } else { (a as f32).to_bits() }
    };
    DoubleOfSingle(a: f32) -> u64 = {
        let bits = u64::from(a.to_bits());
        let nan = (bits & 0x8000_0000) << 32 | 0x7FF8_0000_0000_0000 | (bits & 0x003F_FFFF) << 29;
        if a.is_nan() { nan } else { f64::from(a).to_bits() }
    };
    SingleOfS32(a: i32) -> f32 = a as f32;
    SingleOfU32(a: u32) -> f32 = a as f32;
    SingleOfS16(a: i16) -> f32 = f32::from(a);
    SingleOfU16(a: u16) -> f32 = f32::from(a);
    SingleOfS8(a: u32) -> f32 = f32::from(a as i8);
    SingleOfU8(a: u32) -> f32 = f32::from(a as u8);
    SingleOfS8In16(a: u16) -> f32 = f32::from(a as i8);
    SingleOfU8In16(a: u16) -> f32 = f32::from(a as u8);
    SingleOfS64(a: i64) -> f32 = a as f32;
    SingleOfU64(a: u64) -> f32 = a as f32;
    DoubleOfS32(a: i32) -> f64 = f64::from(a);
    DoubleOfU32(a: u32) -> f64 = f64::from(a);
    DoubleOfS64(a: i64) -> f64 = a as f64;
    DoubleOfU64(a: u64) -> f64 = a as f64;
    S32Nearest(a: f32) -> i32 = signed(f64::from(a).round_ties_even());
    S32Zero(a: f32) -> i32 = signed(f64::from(a).trunc());
    S32Down(a: f32) -> i32 = signed(f64::from(a).floor());
    S32Up(a: f32) -> i32 = signed(f64::from(a).ceil());
    U32Nearest(a: f32) -> u32 = unsigned(f64::from(a).round_ties_even());
    U32Zero(a: f32) -> u32 = unsigned(f64::from(a).trunc());
    WholeNearest(a: f32) -> u32 = one_nan(a.round_ties_even());
    WholeZero(a: f32) -> u32 = one_nan(a.trunc());
    WholeDown(a: f32) -> u32 = one_nan(a.floor());
    WholeUp(a: f32) -> u32 = one_nan(a.ceil());
    Saturated(a: f32) -> f32 = {
        let positive = if a > 0.0 { a } else { 0.0 };
        if positive < 1.0 { positive } else { 1.0 }
    };
}

/// A whole number in 32 bits: out of range it ends at the bounds, and NaN is 0, as the chip has it. `as` does the same,
/// but is not vectorised; put behind the point of 2^52 and a half, a whole number is its own bits.
#[inline(always)]
fn bounded(whole: f64, least: f64, most: f64) -> u32 {
    let above = if whole > least { whole } else { least };
    let within = if above < most { above } else { most };
    let number = if whole.is_nan() { 0.0 } else { within };
    (number + 6_755_399_441_055_744.0).to_bits() as u32
}

#[inline(always)]
fn signed(whole: f64) -> i32 {
    bounded(whole, -2_147_483_648.0, 2_147_483_647.0) as i32
}

#[inline(always)]
fn unsigned(whole: f64) -> u32 {
    bounded(whole, 0.0, 4_294_967_295.0)
}

#[inline(always)]
fn one_nan(value: f32) -> u32 {
    if value.is_nan() { NAN_32 } else { value.to_bits() }
}

/// A register as 64 bits.
trait Word: Cell {
    fn raise(self) -> u64;
    fn lower(bits: u64) -> Self;
}

macro_rules! words {
    ($($word:ty),+) => {
        $(impl Word for $word {
            #[inline(always)]
            fn raise(self) -> u64 {
                self as u64
            }

            #[inline(always)]
            fn lower(bits: u64) -> Self {
                bits as $word
            }
        })+
    };
}

words!(u16, u32, u64);

/// Whole numbers of one width from those of another. `extra` holds, for the source and then for the result, how many
/// of 64 bits are not its own, and whether it has a sign.
struct Resize<R, S>(PhantomData<(R, S)>);

impl<R: Word, S: Word> Function for Resize<R, S> {
    type Sources = (S,);
    type Results = R;

    #[inline(always)]
    fn of((source,): (S,), extra: u32) -> R {
        let extended = |bits: u64, how: u32| {
            let shift = how & 63;
            let up = bits << shift;
            if how & 64 != 0 { (up as i64 >> shift) as u64 } else { up >> shift }
        };
        R::lower(extended(extended(source.raise(), extra), extra >> 7))
    }
}

fn resize(words: &Words<'_>, conversion: &Conversion, (result, source): (ScalarType, ScalarType)) -> Option<Found> {
    let how = |(bits, signed): (u32, bool)| (64 - bits) & 63 | u32::from(signed) << 6;
    let extra = how(conversion.from.integer()?) | how(conversion.to.integer()?) << 7;
    let types = &[result, source];
    Some(match (result.bytes()?, source.bytes()?) {
        (1 | 2, 1 | 2) => words.form::<Each<Resize<u16, u16>>>(types, extra),
        (1 | 2, 4) => words.form::<Each<Resize<u16, u32>>>(types, extra),
        (1 | 2, _) => words.form::<Each<Resize<u16, u64>>>(types, extra),
        (4, 1 | 2) => words.form::<Each<Resize<u32, u16>>>(types, extra),
        (4, 4) => words.form::<Each<Resize<u32, u32>>>(types, extra),
        (4, _) => words.form::<Each<Resize<u32, u64>>>(types, extra),
        (_, 1 | 2) => words.form::<Each<Resize<u64, u16>>>(types, extra),
        (_, 4) => words.form::<Each<Resize<u64, u32>>>(types, extra),
        _ => words.form::<Each<Resize<u64, u64>>>(types, extra),
    })
}

/// The fast form of a conversion, if it has one. The types are those of the registers.
pub fn form(words: &Words<'_>, conversion: &Conversion, types: (ScalarType, ScalarType)) -> Option<Found> {
    use Encoding::*;
    let (to, from, rounding) = (conversion.to, conversion.from, conversion.rounding);
    if conversion.relu || conversion.finite {
        return None;
    }
    if conversion.saturate {
        let only = to == F32 && from == F32 && !conversion.flush && !conversion.integral;
        return (only && natural(types, (F32, F32))).then(|| words.form::<Each<Saturated>>(&[types.0, types.1], 0));
    }
    if to.integer().is_some() && from.integer().is_some() {
        return resize(words, conversion, types);
    }
    let eight = matches!(from, S8 | U8);
    if !(natural(types, (to, from)) || eight && natural((types.0, types.0), (to, to))) {
        return None;
    }
    // Subnormal numbers are rounded to zero, flushed or not.
    let whole = to == S32 && matches!(rounding, Rounding::Nearest | Rounding::Zero);
    if conversion.flush && !whole {
        return None;
    }
    let types = &[types.0, types.1];
    let nearest = rounding == Rounding::Nearest && !conversion.integral;
    Some(match (to, from, rounding) {
        (F32, F16, _) => words.form::<Each<SingleOfF16>>(types, 0),
        (F32, Bf16, _) => words.form::<Each<SingleOfBf16>>(types, 0),
        (F16, F32, _) if nearest => words.form::<Each<F16OfSingle>>(types, 0),
        (Bf16, F32, _) if nearest => words.form::<Each<Bf16OfSingle>>(types, 0),
        (F32, F64, _) if nearest => words.form::<Each<SingleOfDouble>>(types, 0),
        (F64, F32, _) => words.form::<Each<DoubleOfSingle>>(types, 0),
        (F32, S32, _) if nearest => words.form::<Each<SingleOfS32>>(types, 0),
        (F32, U32, _) if nearest => words.form::<Each<SingleOfU32>>(types, 0),
        (F32, S16, _) if nearest => words.form::<Each<SingleOfS16>>(types, 0),
        (F32, U16, _) if nearest => words.form::<Each<SingleOfU16>>(types, 0),
        (F32, S8, _) if nearest && types[1].bytes() == Some(4) => words.form::<Each<SingleOfS8>>(types, 0),
        (F32, U8, _) if nearest && types[1].bytes() == Some(4) => words.form::<Each<SingleOfU8>>(types, 0),
        (F32, S8, _) if nearest && types[1].bytes() < Some(4) => words.form::<Each<SingleOfS8In16>>(types, 0),
        (F32, U8, _) if nearest && types[1].bytes() < Some(4) => words.form::<Each<SingleOfU8In16>>(types, 0),
        (F32, S64, _) if nearest => words.form::<Each<SingleOfS64>>(types, 0),
        (F32, U64, _) if nearest => words.form::<Each<SingleOfU64>>(types, 0),
        (F64, S32, _) if nearest => words.form::<Each<DoubleOfS32>>(types, 0),
        (F64, U32, _) if nearest => words.form::<Each<DoubleOfU32>>(types, 0),
        (F64, S64, _) if nearest => words.form::<Each<DoubleOfS64>>(types, 0),
        (F64, U64, _) if nearest => words.form::<Each<DoubleOfU64>>(types, 0),
        (S32, F32, Rounding::Nearest) => words.form::<Each<S32Nearest>>(types, 0),
        (S32, F32, Rounding::Zero) => words.form::<Each<S32Zero>>(types, 0),
        (S32, F32, Rounding::Down) => words.form::<Each<S32Down>>(types, 0),
        (S32, F32, Rounding::Up) => words.form::<Each<S32Up>>(types, 0),
        (U32, F32, Rounding::Nearest) => words.form::<Each<U32Nearest>>(types, 0),
        (U32, F32, Rounding::Zero) => words.form::<Each<U32Zero>>(types, 0),
        (F32, F32, Rounding::Nearest) if conversion.integral => words.form::<Each<WholeNearest>>(types, 0),
        (F32, F32, Rounding::Zero) if conversion.integral => words.form::<Each<WholeZero>>(types, 0),
        (F32, F32, Rounding::Down) if conversion.integral => words.form::<Each<WholeDown>>(types, 0),
        (F32, F32, Rounding::Up) if conversion.integral => words.form::<Each<WholeUp>>(types, 0),
        _ => return None,
    })
}

/// Whether registers are as wide as what is in them.
fn natural((result, source): (ScalarType, ScalarType), (to, from): (Encoding, Encoding)) -> bool {
    let bytes = |encoding: Encoding| match (encoding.format(), encoding.integer()) {
        (Some(format), _) => u64::from(format.bits().div_ceil(8)),
        (_, Some((bits, _))) => u64::from(bits / 8),
        _ => 0,
    };
    result.bytes() == Some(bytes(to)) && source.bytes() == Some(bytes(from))
}
