//! Comparisons and choices: `setp`, `set`, `selp`, `slct`, `testp`.

use std::marker::PhantomData;

use gpuemu_ptx::syntax::ScalarType::{self, *};

use super::lanes::{Cell, Each, functions};
use super::words::{Found, Words};
use crate::numerics::half::{widen_bf16, widen_f16};
use crate::numerics::{Comparison, FloatKind};
use crate::registers::file::{LANES, RegisterFile, Slot};
use crate::registers::pure::{OperandShape, Pure};
use crate::registers::simd::Operation;

/// A type of values that are compared.
trait Compared {
    type Cell: Cell;
    type Value: PartialOrd + Copy;
    fn value(cell: Self::Cell) -> Self::Value;
}

/// Compared as they are.
struct Plain<T>(PhantomData<T>);

impl<T: Cell + PartialOrd> Compared for Plain<T> {
    type Cell = T;
    type Value = T;

    #[inline(always)]
    fn value(cell: T) -> T {
        cell
    }
}

macro_rules! compared {
    ($($name:ident($cell:ident: $bits:ty) -> $value:ty = $body:expr;)+) => {
        $(struct $name;

        impl Compared for $name {
            type Cell = $bits;
            type Value = $value;

            #[inline(always)]
            fn value($cell: $bits) -> $value {
                $body
            }
        })+
    };
}

compared! {
    FlushedF32(bits: u32) -> f32 = f32::from_bits(flushed_32(bits));
    HalfF16(bits: u16) -> f32 = widen_f16(bits);
    HalfFlushedF16(bits: u16) -> f32 = widen_f16(flushed_16(bits));
    HalfBf16(bits: u16) -> f32 = widen_bf16(bits);
    LowF16(bits: u32) -> f32 = widen_f16(bits as u16);
    HighF16(bits: u32) -> f32 = widen_f16((bits >> 16) as u16);
    LowFlushedF16(bits: u32) -> f32 = widen_f16(flushed_16(bits as u16));
    HighFlushedF16(bits: u32) -> f32 = widen_f16(flushed_16((bits >> 16) as u16));
    LowBf16(bits: u32) -> f32 = widen_bf16(bits as u16);
    HighBf16(bits: u32) -> f32 = widen_bf16((bits >> 16) as u16);
}

#[inline(always)]
const fn flushed_32(bits: u32) -> u32 {
    if bits & 0x7F80_0000 == 0 { bits & 0x8000_0000 } else { bits }
}

#[inline(always)]
const fn flushed_16(bits: u16) -> u16 {
    if bits & 0x7C00 == 0 { bits & 0x8000 } else { bits }
}

/// For which lanes a comparison holds.
#[inline(always)]
fn compare<C: Compared>(file: &RegisterFile, a: Slot, b: Slot, comparison: Comparison) -> u32 {
    let (a, b) = (C::Cell::view(file, a), C::Cell::view(file, b));
    let mut bits = 0;
    for lane in 0..LANES {
        let holds = comparison.holds(C::value(C::Cell::at(a, lane)), C::value(C::Cell::at(b, lane)));
        bits |= u32::from(holds) << lane;
    }
    bits
}

/// `setp` with one result and no other predicate: nearly all of them, so the comparison is part of the type.
struct SetOne<C, const COMPARISON: u32>(PhantomData<C>);

impl<C: Compared, const COMPARISON: u32> Operation for SetOne<C, COMPARISON> {
    #[inline(always)]
    fn run(file: &mut RegisterFile, pure: &Pure, mask: u32) {
        let bits = compare::<C>(file, pure.slots[1], pure.slots[2], Comparison(COMPARISON));
        file.set_predicate(pure.slots[0], bits, mask);
    }
}

/// What `extra` says: the comparison in 4 bits, how another predicate joins in 2, whether there are two results.
#[derive(Clone, Copy)]
struct Extra(u32);

impl Extra {
    fn new(comparison: Comparison, joins: Option<u32>, paired: bool) -> Self {
        Self(comparison.0 | joins.map_or(0, |joins| joins + 1) << 4 | u32::from(paired) << 6)
    }

    fn comparison(self) -> Comparison {
        Comparison(self.0 & 15)
    }

    /// The outcome of a comparison and another predicate.
    fn joined(self, bits: u32, file: &RegisterFile, other: Slot) -> u32 {
        match self.0 >> 4 & 3 {
            1 => bits & file.predicate(other),
            2 => bits | file.predicate(other),
            3 => bits ^ file.predicate(other),
            _ => bits,
        }
    }

    fn paired(self) -> bool {
        self.0 >> 6 & 1 == 1
    }
}

/// Any other `setp`: the second result is that of the opposite comparison.
struct SetAny<C>(PhantomData<C>);

impl<C: Compared> Operation for SetAny<C> {
    #[inline(always)]
    fn run(file: &mut RegisterFile, pure: &Pure, mask: u32) {
        let extra = Extra(pure.extra);
        let first = 1 + usize::from(extra.paired());
        let bits = compare::<C>(file, pure.slots[first], pure.slots[first + 1], extra.comparison());
        let other = pure.slots[first + 2];
        let (holds, fails) = (extra.joined(bits, file, other), extra.joined(!bits, file, other));
        file.set_predicate(pure.slots[0], holds, mask);
        if extra.paired() {
            file.set_predicate(pure.slots[1], fails, mask);
        }
    }
}

/// `setp` of two halves: a result for each.
struct SetHalves<L, H>(PhantomData<(L, H)>);

impl<L: Compared, H: Compared> Operation for SetHalves<L, H> {
    #[inline(always)]
    fn run(file: &mut RegisterFile, pure: &Pure, mask: u32) {
        let extra = Extra(pure.extra);
        let (a, b, other) = (pure.slots[2], pure.slots[3], pure.slots[4]);
        let low = extra.joined(compare::<L>(file, a, b, extra.comparison()), file, other);
        let high = extra.joined(compare::<H>(file, a, b, extra.comparison()), file, other);
        file.set_predicate(pure.slots[0], low, mask);
        file.set_predicate(pure.slots[1], high, mask);
    }
}

/// `set`: what holds is `extra >> 16`, one of [`TRUTHS`].
struct SetValue<C, R>(PhantomData<(C, R)>);

/// What `set` gives where the comparison holds: all ones, or the number 1.
const TRUTHS: [u32; 4] = [u32::MAX, 0x3F80_0000, 0x3C00, 0x3F80];

fn truth(pure: &Pure) -> u32 {
    TRUTHS[pure.extra as usize >> 16 & 3]
}

impl<C: Compared> Operation for SetValue<C, u32> {
    #[inline(always)]
    fn run(file: &mut RegisterFile, pure: &Pure, mask: u32) {
        let extra = Extra(pure.extra);
        let bits = compare::<C>(file, pure.slots[1], pure.slots[2], extra.comparison());
        let bits = extra.joined(bits, file, pure.slots[3]);
        let values = std::array::from_fn(|lane| if bits >> lane & 1 == 1 { truth(pure) } else { 0 });
        file.set_b32(pure.slots[0], &values, mask);
    }
}

impl<C: Compared> Operation for SetValue<C, u16> {
    #[inline(always)]
    fn run(file: &mut RegisterFile, pure: &Pure, mask: u32) {
        let extra = Extra(pure.extra);
        let bits = compare::<C>(file, pure.slots[1], pure.slots[2], extra.comparison());
        let bits = extra.joined(bits, file, pure.slots[3]);
        let values = std::array::from_fn(|lane| if bits >> lane & 1 == 1 { truth(pure) as u16 } else { 0 });
        file.set_b16(pure.slots[0], &values, mask);
    }
}

impl<L: Compared, H: Compared> Operation for SetValue<(L, H), u32> {
    #[inline(always)]
    fn run(file: &mut RegisterFile, pure: &Pure, mask: u32) {
        let extra = Extra(pure.extra);
        let (a, b, other) = (pure.slots[1], pure.slots[2], pure.slots[3]);
        let low = extra.joined(compare::<L>(file, a, b, extra.comparison()), file, other);
        let high = extra.joined(compare::<H>(file, a, b, extra.comparison()), file, other);
        let half = |bits: u32, lane: usize| if bits >> lane & 1 == 1 { truth(pure) & 0xFFFF } else { 0 };
        let values = std::array::from_fn(|lane| half(low, lane) | half(high, lane) << 16);
        file.set_b32(pure.slots[0], &values, mask);
    }
}

/// Takes the comparison, `.and`, `.or` or `.xor`, and `.ftz`.
fn take_comparison(words: &mut Words<'_>, scalar: ScalarType) -> Result<(Comparison, Option<u32>, bool), String> {
    let comparison = words.need("a comparison that its type has", |word| match scalar {
        _ if scalar.is_float() => Comparison::of_floats(word),
        U16 | U32 | U64 => Comparison::of_integers(word, false),
        S16 | S32 | S64 => Comparison::of_integers(word, true),
        _ => Comparison::of_integers(word, false).filter(|_| matches!(word, "eq" | "ne")),
    })?;
    let joins = words.take_as(|word| match word {
        "and" => Some(0),
        "or" => Some(1),
        "xor" => Some(2),
        _ => None,
    });
    Ok((comparison, joins, matches!(scalar, F32 | F16 | F16x2) && words.take("ftz")))
}

/// The form of the fast `setp` for each comparison of a type.
macro_rules! one {
    ($words:expr, $comparison:expr, $operands:expr, $compared:ty: $($bits:literal)+) => {
        match $comparison.0 {
            $($bits => $words.form::<SetOne<$compared, $bits>>($operands, 0),)+
            _ => $words.form::<SetAny<$compared>>($operands, Extra::new($comparison, None, false).0),
        }
    };
}

/// `setp`
pub fn set_predicate(words: &mut Words<'_>, operands: &[OperandShape]) -> Found {
    let scalar = words.scalar()?;
    let (comparison, joins, flushes) = take_comparison(words, scalar)?;
    let paired = matches!(operands.first(), Some(OperandShape::Pair(_)));
    let mut types = vec![Pred; 1 + usize::from(paired)];
    types.extend([scalar; 2]);
    types.extend(joins.map(|_| Pred));
    let (types, extra) = (types.as_slice(), Extra::new(comparison, joins, paired).0);
    if matches!(scalar, F16x2 | Bf16x2) {
        return match (scalar, flushes) {
            _ if !paired => words.unknown("it needs two results, as in `p|q`"),
            (F16x2, false) => words.slow::<SetHalves<LowF16, HighF16>>(types, extra),
            (F16x2, true) => words.slow::<SetHalves<LowFlushedF16, HighFlushedF16>>(types, extra),
            _ => words.slow::<SetHalves<LowBf16, HighBf16>>(types, extra),
        };
    }
    if !paired && joins.is_none() && !flushes {
        match scalar {
            S32 => return one!(words, comparison, types, Plain<i32>: 1 2 3 4 5 6),
            U32 | B32 => return one!(words, comparison, types, Plain<u32>: 1 2 3 4 5 6),
            S64 => return one!(words, comparison, types, Plain<i64>: 1 2 3 4 5 6),
            U64 | B64 => return one!(words, comparison, types, Plain<u64>: 1 2 3 4 5 6),
            F32 => return one!(words, comparison, types, Plain<f32>: 1 2 3 4 5 6 7 8 9 10 11 12 13 14),
            _ => {}
        }
    }
    match (scalar, flushes) {
        (S16, _) => words.form::<SetAny<Plain<i16>>>(types, extra),
        (U16 | B16, _) => words.form::<SetAny<Plain<u16>>>(types, extra),
        (S32, _) => words.form::<SetAny<Plain<i32>>>(types, extra),
        (U32 | B32, _) => words.form::<SetAny<Plain<u32>>>(types, extra),
        (S64, _) => words.form::<SetAny<Plain<i64>>>(types, extra),
        (U64 | B64, _) => words.form::<SetAny<Plain<u64>>>(types, extra),
        (F32, false) => words.form::<SetAny<Plain<f32>>>(types, extra),
        (F32, true) => words.form::<SetAny<FlushedF32>>(types, extra),
        (F64, _) => words.form::<SetAny<Plain<f64>>>(types, extra),
        (F16, false) => words.form::<SetAny<HalfF16>>(types, extra),
        (F16, true) => words.form::<SetAny<HalfFlushedF16>>(types, extra),
        (Bf16, _) => words.form::<SetAny<HalfBf16>>(types, extra),
        (other, _) => words.refuse(other),
    }
}

/// `set`
pub fn set_value(words: &mut Words<'_>) -> Found {
    let (made, scalar) = (words.scalar()?, words.scalar()?);
    let (comparison, joins, flushes) = take_comparison(words, scalar)?;
    let narrow = matches!(scalar, F16 | Bf16);
    let truth = match made {
        U32 | S32 => 0,
        U16 | S16 if narrow => 0,
        F32 if !narrow => 1,
        F16 if scalar != Bf16 => 2,
        F16x2 if scalar == F16x2 => 2,
        Bf16 if scalar != F16 => 3,
        Bf16x2 if scalar == Bf16x2 => 3,
        other => return words.refuse(other),
    };
    let mut types = vec![made, scalar, scalar];
    types.extend(joins.map(|_| Pred));
    let (types, extra) = (types.as_slice(), Extra::new(comparison, joins, false).0 | truth << 16);
    macro_rules! by_width {
        ($compared:ty) => {
            match made.bytes() {
                Some(2) => words.slow::<SetValue<$compared, u16>>(types, extra),
                _ => words.slow::<SetValue<$compared, u32>>(types, extra),
            }
        };
    }
    match (scalar, flushes) {
        (F16x2 | Bf16x2, _) if made == F32 => words.refuse(made),
        (F16x2, false) => words.slow::<SetValue<(LowF16, HighF16), u32>>(types, extra),
        (F16x2, true) => words.slow::<SetValue<(LowFlushedF16, HighFlushedF16), u32>>(types, extra),
        (Bf16x2, _) => words.slow::<SetValue<(LowBf16, HighBf16), u32>>(types, extra),
        (S16, _) => by_width!(Plain<i16>),
        (U16 | B16, _) => by_width!(Plain<u16>),
        (S32, _) => by_width!(Plain<i32>),
        (U32 | B32, _) => by_width!(Plain<u32>),
        (S64, _) => by_width!(Plain<i64>),
        (U64 | B64, _) => by_width!(Plain<u64>),
        (F32, false) => by_width!(Plain<f32>),
        (F32, true) => by_width!(FlushedF32),
        (F64, _) => by_width!(Plain<f64>),
        (F16, false) => by_width!(HalfF16),
        (F16, true) => by_width!(HalfFlushedF16),
        (Bf16, _) => by_width!(HalfBf16),
        (other, _) => words.refuse(other),
    }
}

functions! {
    Select16(a: u16, b: u16, p: bool) -> u16 = if p { a } else { b };
    Select32(a: u32, b: u32, p: bool) -> u32 = if p { a } else { b };
    Select64(a: u64, b: u64, p: bool) -> u64 = if p { a } else { b };
    BySign16(a: u16, b: u16, c: i32) -> u16 = if c >= 0 { a } else { b };
    BySign32(a: u32, b: u32, c: i32) -> u32 = if c >= 0 { a } else { b };
    BySign64(a: u64, b: u64, c: i32) -> u64 = if c >= 0 { a } else { b };
    // -0 counts as not negative, NaN as negative.
    BySignFloat16[flushes](a: u16, b: u16, c: u32) -> u16 = if is_positive(c, flushes) { a } else { b };
    BySignFloat32[flushes](a: u32, b: u32, c: u32) -> u32 = if is_positive(c, flushes) { a } else { b };
    BySignFloat64[flushes](a: u64, b: u64, c: u32) -> u64 = if is_positive(c, flushes) { a } else { b };
    TestF32[test](a: u32) -> bool = passes(FloatKind::F32, a.into(), test);
    TestF64[test](a: u64) -> bool = passes(FloatKind::F64, a, test);
}

#[inline(always)]
fn is_positive(bits: u32, flushes: u32) -> bool {
    f32::from_bits(if flushes == 1 { flushed_32(bits) } else { bits }) >= 0.0
}

const TESTS: [&str; 6] = ["finite", "infinite", "number", "notanumber", "normal", "subnormal"];

/// `testp`: zero is a normal number.
#[inline(always)]
fn passes(kind: FloatKind, bits: u64, test: u32) -> bool {
    let format = kind.format();
    let magnitude = bits & (format.sign_bit() - 1);
    let (infinite, normal) = (format.overflow_bits(), 1 << format.mantissa_bits);
    match test {
        0 => magnitude < infinite,
        1 => magnitude == infinite,
        2 => magnitude <= infinite,
        3 => magnitude > infinite,
        4 => magnitude == 0 || (normal..infinite).contains(&magnitude),
        _ => magnitude > 0 && magnitude < normal,
    }
}

/// `selp`
pub fn select(words: &mut Words<'_>) -> Found {
    let scalar = words.scalar()?;
    let types = &[scalar, scalar, scalar, Pred];
    match scalar {
        B16 | U16 | S16 => words.form::<Each<Select16>>(types, 0),
        B32 | U32 | S32 | F32 => words.form::<Each<Select32>>(types, 0),
        B64 | U64 | S64 | F64 => words.form::<Each<Select64>>(types, 0),
        other => words.refuse(other),
    }
}

/// `slct`
pub fn select_by_sign(words: &mut Words<'_>) -> Found {
    let (scalar, sign) = (words.scalar()?, words.scalar()?);
    let flushes = u32::from(sign == F32 && words.take("ftz"));
    let types = &[scalar, scalar, scalar, sign];
    match (scalar, sign) {
        (B16 | U16 | S16, S32) => words.form::<Each<BySign16>>(types, 0),
        (B32 | U32 | S32 | F32, S32) => words.form::<Each<BySign32>>(types, 0),
        (B64 | U64 | S64 | F64, S32) => words.form::<Each<BySign64>>(types, 0),
        (B16 | U16 | S16, F32) => words.form::<Each<BySignFloat16>>(types, flushes),
        (B32 | U32 | S32 | F32, F32) => words.form::<Each<BySignFloat32>>(types, flushes),
        (B64 | U64 | S64 | F64, F32) => words.form::<Each<BySignFloat64>>(types, flushes),
        _ => words.refuse(sign),
    }
}

/// `testp`
pub fn test(words: &mut Words<'_>) -> Found {
    let test = words.need("a test, such as `.finite`", |word| TESTS.iter().position(|test| *test == word))? as u32;
    match words.scalar()? {
        F32 => words.form::<Each<TestF32>>(&[Pred, F32], test),
        F64 => words.form::<Each<TestF64>>(&[Pred, F64], test),
        other => words.refuse(other),
    }
}
