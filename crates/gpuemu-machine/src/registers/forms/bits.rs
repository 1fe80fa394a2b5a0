//! Logic, shifts, and fields of bits.

use gpuemu_ptx::syntax::ScalarType::{self, *};
use gpuemu_ptx::syntax::{Instruction, Operand};

use super::lanes::{Each, functions};
use super::words::{Found, Words};
use crate::numerics::bits;
use crate::registers::file::RegisterFile;
use crate::registers::pure::Pure;
use crate::registers::simd::Operation;

macro_rules! width {
    ($module:ident: $unsigned:ty, $signed:ty) => {
        mod $module {
            use crate::registers::forms::lanes::functions;

            functions! {
                And(a: $unsigned, b: $unsigned) -> $unsigned = a & b;
                Or(a: $unsigned, b: $unsigned) -> $unsigned = a | b;
                Xor(a: $unsigned, b: $unsigned) -> $unsigned = a ^ b;
                Not(a: $unsigned) -> $unsigned = !a;
                NotLogical(a: $unsigned) -> $unsigned = <$unsigned>::from(a == 0);
                // Amounts beyond the width shift everything out.
                Left(a: $unsigned, b: u32) -> $unsigned = if b < <$unsigned>::BITS { a << b } else { 0 };
                RightUnsigned(a: $unsigned, b: u32) -> $unsigned = if b < <$unsigned>::BITS { a >> b } else { 0 };
                RightSigned(a: $signed, b: u32) -> $signed = a >> b.min(<$unsigned>::BITS - 1);
            }
        }
    };
}

width!(width16: u16, i16);
width!(width32: u32, i32);
width!(width64: u64, i64);

/// Predicates are combined 32 lanes at once.
macro_rules! predicates {
    ($($name:ident($a:ident $(, $b:ident)?) = $body:expr;)+) => {
        $(struct $name;

        impl Operation for $name {
            #[inline(always)]
            fn run(file: &mut RegisterFile, pure: &Pure, mask: u32) {
                let $a = file.predicate(pure.slots[1]);
                $(let $b = file.predicate(pure.slots[2]);)?
                file.set_predicate(pure.slots[0], $body, mask);
            }
        })+
    };
}

predicates! {
    AndPredicate(a, b) = a & b;
    OrPredicate(a, b) = a | b;
    XorPredicate(a, b) = a ^ b;
    NotPredicate(a) = !a;
}

functions! {
    Population32(a: u32) -> u32 = a.count_ones();
    Population64(a: u64) -> u32 = a.count_ones();
    LeadingZeros32(a: u32) -> u32 = a.leading_zeros();
    LeadingZeros64(a: u64) -> u32 = a.leading_zeros();
    Reverse32(a: u32) -> u32 = a.reverse_bits();
    Reverse64(a: u64) -> u64 = a.reverse_bits();
    FindUnsigned32[extra](a: u32) -> u32 = bits::find(a.into(), 32, extra == 1);
    FindSigned32[extra](a: i32) -> u32 = bits::find(u64::from((a ^ a >> 31) as u32), 32, extra == 1);
    FindUnsigned64[extra](a: u64) -> u32 = bits::find(a, 64, extra == 1);
    FindSigned64[extra](a: i64) -> u32 = bits::find((a ^ a >> 63) as u64, 64, extra == 1);
    FindNth(mask: u32, base: u32, offset: i32) -> u32 = bits::find_nth(mask, base, offset);
    ExtractUnsigned32(a: u32, b: u32, c: u32) -> u32 = bits::extract_u32(a, b, c);
    ExtractSigned32(a: u32, b: u32, c: u32) -> u32 = bits::extract_s32(a, b, c);
    ExtractUnsigned64(a: u64, b: u32, c: u32) -> u64 = bits::extract_u64(a, b, c);
    ExtractSigned64(a: u64, b: u32, c: u32) -> u64 = bits::extract_s64(a, b, c);
    Insert32(a: u32, b: u32, c: u32, d: u32) -> u32 = bits::insert_32(a, b, c, d);
    Insert64(a: u64, b: u64, c: u32, d: u32) -> u64 = bits::insert_64(a, b, c, d);
    Mask[extra](a: u32, b: u32) -> u32 = bits::mask(a, b, extra == 1);
    SizeExtend[extra](a: u32, b: u32) -> u32 = bits::size_extend(a, b, extra & 1 == 1, extra & 2 == 2);
    Dot4[extra](a: u32, b: u32, c: u32) -> u32 = bits::dot4(a, b, c, (extra & 1 == 1, extra & 2 == 2));
    Dot2[extra](a: u32, b: u32, c: u32) -> u32 = bits::dot2(a, b, c, (extra & 1 == 1, extra & 2 == 2), extra & 4 == 4);
    Permute(a: u32, b: u32, c: u32) -> u32 = bits::permute(a, b, c);
    PermuteByMode[extra](a: u32, b: u32, c: u32) -> u32 = {
        let mode = MODES.get(extra as usize).and_then(|mode| bits::permute_mode(mode)).unwrap_or_default();
        bits::permute(a, b, u32::from(mode[(c & 3) as usize]))
    };
    FunnelLeftWrap(a: u32, b: u32, c: u32) -> u32 = ((u64::from(b) << 32 | u64::from(a)) << (c & 31) >> 32) as u32;
    FunnelLeftClamp(a: u32, b: u32, c: u32) -> u32 = ((u64::from(b) << 32 | u64::from(a)) << c.min(32) >> 32) as u32;
    FunnelRightWrap(a: u32, b: u32, c: u32) -> u32 = ((u64::from(b) << 32 | u64::from(a)) >> (c & 31)) as u32;
    FunnelRightClamp(a: u32, b: u32, c: u32) -> u32 = ((u64::from(b) << 32 | u64::from(a)) >> c.min(32)) as u32;
    Logic3[extra](a: u32, b: u32, c: u32, table: u32) -> u32 = {
        let _ = table;
        bits::logic3(a, b, c, extra)
    };
    Logic3AndPredicate[extra](a: u32, b: u32, c: u32, table: u32, q: bool) -> (u32, bool) = {
        let _ = table;
        let value = bits::logic3(a, b, c, extra);
        (value, (value != 0) & q)
    };
    Logic3OrPredicate[extra](a: u32, b: u32, c: u32, table: u32, q: bool) -> (u32, bool) = {
        let _ = table;
        let value = bits::logic3(a, b, c, extra);
        (value, (value != 0) | q)
    };
}

const MODES: [&str; 6] = ["f4e", "b4e", "rc8", "ecl", "ecr", "rc16"];

/// The form of a function that has one for each width and for predicates.
macro_rules! any {
    ($words:expr, $scalar:expr, $name:ident, $predicate:ident, $operands:expr) => {
        match $scalar {
            B16 => $words.form::<Each<width16::$name>>($operands, 0),
            B32 => $words.form::<Each<width32::$name>>($operands, 0),
            B64 => $words.form::<Each<width64::$name>>($operands, 0),
            Pred => $words.form::<$predicate>($operands, 0),
            other => $words.refuse(other),
        }
    };
}

/// `and`, `or`, `xor`, `not`, `cnot`
pub fn logic(words: &Words<'_>, base: &str, scalar: ScalarType) -> Found {
    match base {
        "and" => any!(words, scalar, And, AndPredicate, &[scalar; 3]),
        "or" => any!(words, scalar, Or, OrPredicate, &[scalar; 3]),
        "xor" => any!(words, scalar, Xor, XorPredicate, &[scalar; 3]),
        "not" => any!(words, scalar, Not, NotPredicate, &[scalar; 2]),
        _ => match scalar {
            B16 => words.form::<Each<width16::NotLogical>>(&[B16; 2], 0),
            B32 => words.form::<Each<width32::NotLogical>>(&[B32; 2], 0),
            B64 => words.form::<Each<width64::NotLogical>>(&[B64; 2], 0),
            other => words.refuse(other),
        },
    }
}

/// `shl`, `shr`
pub fn shift(words: &Words<'_>, left: bool, scalar: ScalarType) -> Found {
    let operands = &[scalar, scalar, U32];
    match (left, scalar) {
        (true, B16) => words.form::<Each<width16::Left>>(operands, 0),
        (true, B32) => words.form::<Each<width32::Left>>(operands, 0),
        (true, B64) => words.form::<Each<width64::Left>>(operands, 0),
        (false, B16 | U16) => words.form::<Each<width16::RightUnsigned>>(operands, 0),
        (false, B32 | U32) => words.form::<Each<width32::RightUnsigned>>(operands, 0),
        (false, B64 | U64) => words.form::<Each<width64::RightUnsigned>>(operands, 0),
        (false, S16) => words.form::<Each<width16::RightSigned>>(operands, 0),
        (false, S32) => words.form::<Each<width32::RightSigned>>(operands, 0),
        (false, S64) => words.form::<Each<width64::RightSigned>>(operands, 0),
        (_, other) => words.refuse(other),
    }
}

/// `shf`
pub fn funnel(words: &mut Words<'_>) -> Found {
    let left = words.need("`.l` or `.r`", |word| match word {
        "l" => Some(true),
        "r" => Some(false),
        _ => None,
    })?;
    let clamps = clamps(words)?;
    let scalar = words.scalar()?;
    match (scalar, left, clamps) {
        (B32, true, false) => words.form::<Each<FunnelLeftWrap>>(&[B32, B32, B32, U32], 0),
        (B32, true, true) => words.form::<Each<FunnelLeftClamp>>(&[B32, B32, B32, U32], 0),
        (B32, false, false) => words.form::<Each<FunnelRightWrap>>(&[B32, B32, B32, U32], 0),
        (B32, false, true) => words.form::<Each<FunnelRightClamp>>(&[B32, B32, B32, U32], 0),
        (other, ..) => words.refuse(other),
    }
}

fn clamps(words: &mut Words<'_>) -> Result<bool, String> {
    words.need("`.clamp` or `.wrap`", |word| match word {
        "clamp" => Some(true),
        "wrap" => Some(false),
        _ => None,
    })
}

/// `lop3`. The table is a number of the instruction, not of a register.
pub fn logic3(words: &mut Words<'_>, instruction: &Instruction<'_>) -> Found {
    let joins = words.take_as(|word| match word {
        "and" => Some(false),
        "or" => Some(true),
        _ => None,
    });
    let scalar = words.scalar()?;
    if scalar != B32 {
        return words.refuse(scalar);
    }
    let table = match instruction.operands.get(4) {
        Some(Operand::Integer(integer)) if integer.bits < 256 => integer.bits as u32,
        _ => return words.unknown("its table must be a number from 0 to 255"),
    };
    match joins {
        None => words.form::<Each<Logic3>>(&[B32, B32, B32, B32, U32], table),
        Some(false) => words.form::<Each<Logic3AndPredicate>>(&[B32, Pred, B32, B32, B32, U32, Pred], table),
        Some(true) => words.form::<Each<Logic3OrPredicate>>(&[B32, Pred, B32, B32, B32, U32, Pred], table),
    }
}

/// `prmt`
pub fn permute(words: &mut Words<'_>) -> Found {
    let mode = words.take_as(|word| MODES.iter().position(|mode| *mode == word));
    match (words.scalar()?, mode) {
        (B32, None) => words.form::<Each<Permute>>(&[B32; 4], 0),
        (B32, Some(mode)) => words.form::<Each<PermuteByMode>>(&[B32; 4], mode as u32),
        (other, _) => words.refuse(other),
    }
}

/// `popc`, `clz`, `brev`
pub fn count(words: &mut Words<'_>, base: &str) -> Found {
    match (base, words.scalar()?) {
        ("popc", B32) => words.form::<Each<Population32>>(&[U32, B32], 0),
        ("popc", B64) => words.form::<Each<Population64>>(&[U32, B64], 0),
        ("clz", B32) => words.form::<Each<LeadingZeros32>>(&[U32, B32], 0),
        ("clz", B64) => words.form::<Each<LeadingZeros64>>(&[U32, B64], 0),
        ("brev", B32) => words.form::<Each<Reverse32>>(&[B32, B32], 0),
        ("brev", B64) => words.form::<Each<Reverse64>>(&[B64, B64], 0),
        (_, other) => words.refuse(other),
    }
}

/// `bfind`
pub fn find(words: &mut Words<'_>) -> Found {
    let extra = u32::from(words.take("shiftamt"));
    match words.scalar()? {
        U32 => words.form::<Each<FindUnsigned32>>(&[U32, U32], extra),
        S32 => words.form::<Each<FindSigned32>>(&[U32, S32], extra),
        U64 => words.form::<Each<FindUnsigned64>>(&[U32, U64], extra),
        S64 => words.form::<Each<FindSigned64>>(&[U32, S64], extra),
        other => words.refuse(other),
    }
}

/// `fns`, `bfi`, `bfe`
pub fn field(words: &mut Words<'_>, base: &str) -> Found {
    match (base, words.scalar()?) {
        ("fns", B32) => words.slow::<Each<FindNth>>(&[B32, B32, B32, S32], 0),
        ("bfi", B32) => words.form::<Each<Insert32>>(&[B32, B32, B32, U32, U32], 0),
        ("bfi", B64) => words.form::<Each<Insert64>>(&[B64, B64, B64, U32, U32], 0),
        ("bfe", U32) => words.form::<Each<ExtractUnsigned32>>(&[U32, U32, U32, U32], 0),
        ("bfe", S32) => words.form::<Each<ExtractSigned32>>(&[S32, S32, U32, U32], 0),
        ("bfe", U64) => words.form::<Each<ExtractUnsigned64>>(&[U64, U64, U32, U32], 0),
        ("bfe", S64) => words.form::<Each<ExtractSigned64>>(&[S64, S64, U32, U32], 0),
        (_, other) => words.refuse(other),
    }
}

/// `bmsk`, `szext`
pub fn extend(words: &mut Words<'_>, base: &str) -> Found {
    let clamps = clamps(words)?;
    match (base, words.scalar()?) {
        ("bmsk", B32) => words.form::<Each<Mask>>(&[B32, U32, U32], u32::from(clamps)),
        ("szext", scalar @ (U32 | S32)) => {
            words.form::<Each<SizeExtend>>(&[scalar, scalar, U32], u32::from(clamps) | u32::from(scalar == S32) << 1)
        }
        (_, other) => words.refuse(other),
    }
}

/// `dp4a`, `dp2a`
pub fn dot(words: &mut Words<'_>, halves: bool) -> Found {
    let upper = match (halves, words.take("lo"), words.take("hi")) {
        (false, false, false) | (true, true, false) => false,
        (true, false, true) => true,
        _ => return words.unknown("`dp2a` needs `.lo` or `.hi`, `dp4a` neither"),
    };
    let (a, b) = (words.scalar()?, words.scalar()?);
    if let Some(other) = [a, b].into_iter().find(|scalar| !matches!(scalar, U32 | S32)) {
        return words.refuse(other);
    }
    let extra = u32::from(a == S32) | u32::from(b == S32) << 1 | u32::from(upper) << 2;
    let sum = if a == S32 || b == S32 { S32 } else { U32 };
    if halves {
        words.form::<Each<Dot2>>(&[sum, a, b, sum], extra)
    } else {
        words.form::<Each<Dot4>>(&[sum, a, b, sum], extra)
    }
}
