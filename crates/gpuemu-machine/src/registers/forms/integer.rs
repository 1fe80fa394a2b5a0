//! Arithmetic of whole numbers.

use gpuemu_ptx::syntax::ScalarType::{self, *};

use super::lanes::{Each, functions};
use super::words::{Found, Words};

/// The functions of one width, with and without a sign.
macro_rules! width {
    ($module:ident: $unsigned:ty, $signed:ty, $wide:ty, $wide_signed:ty, $bits:literal) => {
        mod $module {
            use crate::registers::forms::lanes::functions;

            functions! {
                Add(a: $unsigned, b: $unsigned) -> $unsigned = a.wrapping_add(b);
                Subtract(a: $unsigned, b: $unsigned) -> $unsigned = a.wrapping_sub(b);
                MultiplyLow(a: $unsigned, b: $unsigned) -> $unsigned = a.wrapping_mul(b);
                MultiplyHighUnsigned(a: $unsigned, b: $unsigned) -> $unsigned =
                    ((<$wide>::from(a) * <$wide>::from(b)) >> $bits) as $unsigned;
                MultiplyHighSigned(a: $signed, b: $signed) -> $signed =
                    ((<$wide_signed>::from(a) * <$wide_signed>::from(b)) >> $bits) as $signed;
                MultiplyAddLow(a: $unsigned, b: $unsigned, c: $unsigned) -> $unsigned = a.wrapping_mul(b).wrapping_add(c);
                MultiplyAddHighUnsigned(a: $unsigned, b: $unsigned, c: $unsigned) -> $unsigned =
                    (((<$wide>::from(a) * <$wide>::from(b)) >> $bits) as $unsigned).wrapping_add(c);
                MultiplyAddHighSigned(a: $signed, b: $signed, c: $signed) -> $signed =
                    (((<$wide_signed>::from(a) * <$wide_signed>::from(b)) >> $bits) as $signed).wrapping_add(c);
                // By zero: all ones, as recorded.
                DivideUnsigned(a: $unsigned, b: $unsigned) -> $unsigned = a.checked_div(b).unwrap_or(<$unsigned>::MAX);
                DivideSigned(a: $signed, b: $signed) -> $signed = if b == 0 { -1 } else { a.wrapping_div(b) };
                RemainderUnsigned(a: $unsigned, b: $unsigned) -> $unsigned = a.checked_rem(b).unwrap_or(<$unsigned>::MAX);
                RemainderSigned(a: $signed, b: $signed) -> $signed = if b == 0 { -1 } else { a.wrapping_rem(b) };
                Magnitude(a: $signed) -> $signed = a.wrapping_abs();
                Negate(a: $unsigned) -> $unsigned = a.wrapping_neg();
                LeastUnsigned(a: $unsigned, b: $unsigned) -> $unsigned = a.min(b);
                LeastSigned(a: $signed, b: $signed) -> $signed = a.min(b);
                MostUnsigned(a: $unsigned, b: $unsigned) -> $unsigned = a.max(b);
                MostSigned(a: $signed, b: $signed) -> $signed = a.max(b);
                DistanceUnsigned(a: $unsigned, b: $unsigned, c: $unsigned) -> $unsigned = c.wrapping_add(a.abs_diff(b));
                DistanceSigned(a: $signed, b: $signed, c: $unsigned) -> $unsigned = c.wrapping_add(a.abs_diff(b));
            }
        }
    };
}

width!(width16: u16, i16, u32, i32, 16);
width!(width32: u32, i32, u64, i64, 32);
width!(width64: u64, i64, u128, i128, 64);

functions! {
    AddSaturated(a: i32, b: i32) -> i32 = a.saturating_add(b);
    SubtractSaturated(a: i32, b: i32) -> i32 = a.saturating_sub(b);
    MultiplyAddHighSaturated(a: i32, b: i32, c: i32) -> i32 =
        (((i64::from(a) * i64::from(b)) >> 32) as i32).saturating_add(c);
    WideUnsigned16(a: u16, b: u16) -> u32 = u32::from(a) * u32::from(b);
    WideSigned16(a: i16, b: i16) -> i32 = i32::from(a) * i32::from(b);
    WideUnsigned32(a: u32, b: u32) -> u64 = u64::from(a) * u64::from(b);
    WideSigned32(a: i32, b: i32) -> i64 = i64::from(a) * i64::from(b);
    WideAddUnsigned16(a: u16, b: u16, c: u32) -> u32 = (u32::from(a) * u32::from(b)).wrapping_add(c);
    WideAddSigned16(a: i16, b: i16, c: i32) -> i32 = (i32::from(a) * i32::from(b)).wrapping_add(c);
    WideAddUnsigned32(a: u32, b: u32, c: u64) -> u64 = (u64::from(a) * u64::from(b)).wrapping_add(c);
    WideAddSigned32(a: i32, b: i32, c: i64) -> i64 = (i64::from(a) * i64::from(b)).wrapping_add(c);
    LeastRelu(a: i32, b: i32) -> i32 = a.min(b).max(0);
    MostRelu(a: i32, b: i32) -> i32 = a.max(b).max(0);
}

/// What is computed in both halves of a word.
macro_rules! halves {
    ($($name:ident($a:ident: $cell:ty, $b:ident) = $body:expr;)+) => {
        functions! {
            $($name(one: u32, two: u32) -> u32 = {
                let half = |shift: u32| {
                    let ($a, $b) = ((one >> shift) as $cell, (two >> shift) as $cell);
                    u32::from($body as u16)
                };
                half(0) | half(16) << 16
            };)+
        }
    };
}

halves! {
    AddHalves(a: u16, b) = a.wrapping_add(b);
    LeastHalvesUnsigned(a: u16, b) = a.min(b);
    LeastHalvesSigned(a: i16, b) = a.min(b);
    MostHalvesUnsigned(a: u16, b) = a.max(b);
    MostHalvesSigned(a: i16, b) = a.max(b);
    LeastHalvesRelu(a: i16, b) = a.min(b).max(0);
    MostHalvesRelu(a: i16, b) = a.max(b).max(0);
}

/// The form of a function that has one for each width, for types with and without a sign.
macro_rules! either {
    ($words:expr, $scalar:expr, $unsigned:ident, $signed:ident, $operands:expr) => {
        match $scalar {
            U16 => $words.form::<Each<width16::$unsigned>>($operands, 0),
            S16 => $words.form::<Each<width16::$signed>>($operands, 0),
            U32 => $words.form::<Each<width32::$unsigned>>($operands, 0),
            S32 => $words.form::<Each<width32::$signed>>($operands, 0),
            U64 => $words.form::<Each<width64::$unsigned>>($operands, 0),
            S64 => $words.form::<Each<width64::$signed>>($operands, 0),
            other => $words.refuse(other),
        }
    };
}

/// As above, for types with a sign alone.
macro_rules! signed {
    ($words:expr, $scalar:expr, $signed:ident, $operands:expr) => {
        match $scalar {
            S16 => $words.form::<Each<width16::$signed>>($operands, 0),
            S32 => $words.form::<Each<width32::$signed>>($operands, 0),
            S64 => $words.form::<Each<width64::$signed>>($operands, 0),
            other => $words.refuse(other),
        }
    };
}

/// `.u16x2` and `.s16x2`, which are types of these instructions alone: whether it has a sign.
pub fn take_halves(words: &mut Words<'_>) -> Option<bool> {
    words.take_as(|word| match word {
        "u16x2" => Some(false),
        "s16x2" => Some(true),
        _ => None,
    })
}

/// `add`
pub fn add(words: &mut Words<'_>, scalar: ScalarType) -> Found {
    if words.take("sat") {
        return if scalar == S32 { words.form::<Each<AddSaturated>>(&[S32; 3], 0) } else { words.refuse(scalar) };
    }
    either!(words, scalar, Add, Add, &[scalar; 3])
}

/// `add.u16x2`, `add.s16x2`
pub fn add_halves(words: &Words<'_>) -> Found {
    words.form::<Each<AddHalves>>(&[B32; 3], 0)
}

/// `sub`
pub fn subtract(words: &mut Words<'_>, scalar: ScalarType) -> Found {
    if words.take("sat") {
        return if scalar == S32 { words.form::<Each<SubtractSaturated>>(&[S32; 3], 0) } else { words.refuse(scalar) };
    }
    either!(words, scalar, Subtract, Subtract, &[scalar; 3])
}

/// The type that a product has the whole of.
fn twice(scalar: ScalarType) -> ScalarType {
    match scalar {
        U16 => U32,
        S16 => S32,
        U32 => U64,
        _ => S64,
    }
}

/// `mul`
pub fn multiply(words: &mut Words<'_>, scalar: ScalarType) -> Found {
    if words.take("lo") {
        either!(words, scalar, MultiplyLow, MultiplyLow, &[scalar; 3])
    } else if words.take("hi") {
        either!(words, scalar, MultiplyHighUnsigned, MultiplyHighSigned, &[scalar; 3])
    } else if words.take("wide") {
        let operands = [twice(scalar), scalar, scalar];
        match scalar {
            U16 => words.form::<Each<WideUnsigned16>>(&operands, 0),
            S16 => words.form::<Each<WideSigned16>>(&operands, 0),
            U32 => words.form::<Each<WideUnsigned32>>(&operands, 0),
            S32 => words.form::<Each<WideSigned32>>(&operands, 0),
            other => words.refuse(other),
        }
    } else {
        words.unknown("it needs `.lo`, `.hi` or `.wide`")
    }
}

/// `mad`
pub fn multiply_add(words: &mut Words<'_>, scalar: ScalarType) -> Found {
    if words.take("lo") {
        either!(words, scalar, MultiplyAddLow, MultiplyAddLow, &[scalar; 4])
    } else if words.take("hi") {
        if words.take("sat") {
            return match scalar {
                S32 => words.form::<Each<MultiplyAddHighSaturated>>(&[S32; 4], 0),
                other => words.refuse(other),
            };
        }
        either!(words, scalar, MultiplyAddHighUnsigned, MultiplyAddHighSigned, &[scalar; 4])
    } else if words.take("wide") {
        let wide = twice(scalar);
        let operands = [wide, scalar, scalar, wide];
        match scalar {
            U16 => words.form::<Each<WideAddUnsigned16>>(&operands, 0),
            S16 => words.form::<Each<WideAddSigned16>>(&operands, 0),
            U32 => words.form::<Each<WideAddUnsigned32>>(&operands, 0),
            S32 => words.form::<Each<WideAddSigned32>>(&operands, 0),
            other => words.refuse(other),
        }
    } else {
        words.unknown("it needs `.lo`, `.hi` or `.wide`")
    }
}

/// `div`
pub fn divide(words: &Words<'_>, scalar: ScalarType) -> Found {
    either!(words, scalar, DivideUnsigned, DivideSigned, &[scalar; 3])
}

/// `rem`
pub fn remainder(words: &Words<'_>, scalar: ScalarType) -> Found {
    either!(words, scalar, RemainderUnsigned, RemainderSigned, &[scalar; 3])
}

/// `abs`
pub fn magnitude(words: &Words<'_>, scalar: ScalarType) -> Found {
    signed!(words, scalar, Magnitude, &[scalar; 2])
}

/// `neg`
pub fn negate(words: &Words<'_>, scalar: ScalarType) -> Found {
    signed!(words, scalar, Negate, &[scalar; 2])
}

/// `sad`
pub fn distance(words: &Words<'_>, scalar: ScalarType) -> Found {
    either!(words, scalar, DistanceUnsigned, DistanceSigned, &[scalar; 4])
}

/// `min`, `max`
pub fn extreme(words: &mut Words<'_>, scalar: ScalarType, largest: bool) -> Found {
    if words.take("relu") {
        return match (scalar, largest) {
            (S32, false) => words.form::<Each<LeastRelu>>(&[S32; 3], 0),
            (S32, true) => words.form::<Each<MostRelu>>(&[S32; 3], 0),
            (other, _) => words.refuse(other),
        };
    }
    if largest {
        either!(words, scalar, MostUnsigned, MostSigned, &[scalar; 3])
    } else {
        either!(words, scalar, LeastUnsigned, LeastSigned, &[scalar; 3])
    }
}

/// `min`, `max` of `.u16x2` and `.s16x2`
pub fn extreme_halves(words: &mut Words<'_>, signed: bool, largest: bool) -> Found {
    match (largest, signed, signed && words.take("relu")) {
        (false, false, _) => words.form::<Each<LeastHalvesUnsigned>>(&[B32; 3], 0),
        (false, true, false) => words.form::<Each<LeastHalvesSigned>>(&[B32; 3], 0),
        (false, true, true) => words.form::<Each<LeastHalvesRelu>>(&[B32; 3], 0),
        (true, false, _) => words.form::<Each<MostHalvesUnsigned>>(&[B32; 3], 0),
        (true, true, false) => words.form::<Each<MostHalvesSigned>>(&[B32; 3], 0),
        (true, true, true) => words.form::<Each<MostHalvesRelu>>(&[B32; 3], 0),
    }
}

/// The product of the low 24 bits, and the 32 bits of it that are wanted: the lowest, or those from bit 16 on.
#[inline(always)]
fn product24(a: u32, b: u32, extra: u32) -> u32 {
    let (signed, high) = (extra & 1 == 1, extra & 2 == 2);
    let part = |bits: u32| {
        let up = (bits << 8) as i32;
        if signed { i64::from(up >> 8) } else { i64::from(up as u32 >> 8) }
    };
    let product = part(a) * part(b);
    (if high { product >> 16 } else { product }) as u32
}

functions! {
    Product24[extra](a: u32, b: u32) -> u32 = product24(a, b, extra);
    ProductAdd24[extra](a: u32, b: u32, c: u32) -> u32 = {
        let product = product24(a, b, extra);
        if extra & 4 == 4 { (product as i32).saturating_add(c as i32) as u32 } else { product.wrapping_add(c) }
    };
}

/// `mul24`, `mad24`
pub fn product_of_24_bits(words: &mut Words<'_>, adds: bool) -> Found {
    let scalar = words.scalar()?;
    let high = match (words.take("lo"), words.take("hi")) {
        (true, false) => false,
        (false, true) => true,
        _ => return words.unknown("it needs `.lo` or `.hi`"),
    };
    if !matches!(scalar, U32 | S32) {
        return words.refuse(scalar);
    }
    let saturates = adds && high && scalar == S32 && words.take("sat");
    let extra = u32::from(scalar == S32) | u32::from(high) << 1 | u32::from(saturates) << 2;
    if adds {
        words.form::<Each<ProductAdd24>>(&[scalar; 4], extra)
    } else {
        words.form::<Each<Product24>>(&[scalar; 3], extra)
    }
}
