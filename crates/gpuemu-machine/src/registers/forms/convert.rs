//! `cvt`: which conversion it is, and what is rare of it. Sources and results may sit in registers wider than their
//! types: sources then are the low bits, results are extended by zeros or by their sign.

use gpuemu_ptx::syntax::ScalarType::{self, *};

use super::convert_fast as fast;
use super::lanes::Each;
use super::words::{Found, Words};
use crate::numerics::Rounding;
use crate::numerics::convert::{Conversion, Encoding};
use crate::registers::file::{LANES, RegisterFile, Slot};
use crate::registers::pure::{OperandShape, Pure, RegisterWidth};
use crate::registers::simd::Operation;

/// What a type of one number is kept as.
fn encoding(scalar: ScalarType) -> Option<Encoding> {
    Some(match scalar {
        F16 => Encoding::F16,
        Bf16 => Encoding::Bf16,
        F32 => Encoding::F32,
        F64 => Encoding::F64,
        Tf32 => Encoding::Tf32,
        S8 => Encoding::S8,
        U8 => Encoding::U8,
        S16 => Encoding::S16,
        U16 => Encoding::U16,
        S32 => Encoding::S32,
        U32 => Encoding::U32,
        S64 => Encoding::S64,
        U64 => Encoding::U64,
        _ => return None,
    })
}

/// What each of two numbers in one register is kept as.
fn encoding_of_pair(scalar: ScalarType) -> Option<Encoding> {
    Some(match scalar {
        F16x2 => Encoding::F16,
        Bf16x2 => Encoding::Bf16,
        E4m3x2 => Encoding::E4m3,
        E5m2x2 => Encoding::E5m2,
        _ => return None,
    })
}

/// The modifiers that say how to convert.
struct Modifiers {
    rounding: Option<Rounding>,
    integral: bool,
    flush: bool,
    saturate: bool,
    relu: bool,
    finite: bool,
}

impl Modifiers {
    fn take(words: &mut Words<'_>) -> Self {
        let rounding = words.take_as(|word| {
            Some(match word {
                "rn" => (Rounding::Nearest, false),
                "rna" => (Rounding::NearestAway, false),
                "rz" => (Rounding::Zero, false),
                "rm" => (Rounding::Down, false),
                "rp" => (Rounding::Up, false),
                "rni" => (Rounding::Nearest, true),
                "rzi" => (Rounding::Zero, true),
                "rmi" => (Rounding::Down, true),
                "rpi" => (Rounding::Up, true),
                _ => return None,
            })
        });
        Self {
            rounding: rounding.map(|(rounding, _)| rounding),
            integral: rounding.is_some_and(|(_, integral)| integral),
            flush: words.take("ftz"),
            saturate: words.take("sat"),
            relu: words.take("relu"),
            finite: words.take("satfinite"),
        }
    }

    fn conversion(&self, to: Encoding, from: Encoding) -> Conversion {
        Conversion {
            to,
            from,
            rounding: self.rounding.unwrap_or_default(),
            integral: self.integral,
            flush: self.flush,
            saturate: self.saturate,
            relu: self.relu,
            finite: self.finite,
        }
    }

    /// Whether there is such a conversion of one number.
    fn fits(&self, to: Encoding, from: Encoding) -> Result<(), &'static str> {
        let (from_format, to_format) = (from.format(), to.format());
        let rounds = self.rounding.is_some();
        match (from_format, to_format) {
            (Some(_), None) if !self.integral => return Err("it needs `.rni`, `.rzi`, `.rmi` or `.rpi`"),
            (None, Some(_)) if !rounds || self.integral => return Err("it needs `.rn`, `.rz`, `.rm` or `.rp`"),
            (None, None) if rounds => return Err("whole numbers are not rounded"),
            (Some(_), Some(_)) if from == to && rounds && !self.integral => {
                return Err("within one format only `.rni`, `.rzi`, `.rmi` and `.rpi` round");
            }
            (Some(given), Some(made)) if from != to => {
                let loses = made.mantissa_bits < given.mantissa_bits || made.exponent_bits < given.exponent_bits;
                if self.integral || loses != rounds {
                    return Err("it needs `.rn`, `.rz`, `.rm` or `.rp` if bits are lost, and nothing otherwise");
                }
            }
            _ => {}
        }
        if to == Encoding::Bf16 && matches!(from, Encoding::S8 | Encoding::U8) {
            return Err("`.bf16` is not made of 8 bits");
        }
        let narrow = matches!(to, Encoding::F16 | Encoding::Bf16 | Encoding::Tf32) && from == Encoding::F32;
        if (self.rounding == Some(Rounding::NearestAway)) && to != Encoding::Tf32 {
            return Err("`.rna` is for `.tf32`");
        }
        if (to == Encoding::Tf32 && from != Encoding::F32) || from == Encoding::Tf32 {
            return Err("`.tf32` is made of `.f32` alone");
        }
        if (self.relu || self.finite) && !narrow {
            return Err("`.relu` and `.satfinite` are for `.f32` to a shorter format");
        }
        if self.flush
            && ((from != Encoding::F32 && to != Encoding::F32) || matches!(to, Encoding::Bf16 | Encoding::Tf32))
        {
            return Err("`.ftz` is for `.f32`");
        }
        let short = |encoding| matches!(encoding, Encoding::Bf16 | Encoding::Tf32);
        if self.saturate && (self.relu || self.finite || short(to) || short(from) && from != to) {
            return Err("`.sat` is not for this conversion");
        }
        Ok(())
    }
}

/// The width of a register, or that of its type where a number stands.
fn width(shape: Option<&OperandShape>, scalar: ScalarType) -> Option<RegisterWidth> {
    match shape {
        Some(OperandShape::Register(width)) => Some(*width),
        _ => RegisterWidth::of(scalar),
    }
}

/// The type of a register of a width.
fn bits_of(width: RegisterWidth) -> ScalarType {
    match width {
        RegisterWidth::Predicate => Pred,
        RegisterWidth::B16 => B16,
        RegisterWidth::B32 => B32,
        RegisterWidth::B64 => B64,
    }
}

/// The type that an operand has: its own, or that of a wider register.
fn operand(shape: Option<&OperandShape>, scalar: ScalarType) -> Option<ScalarType> {
    let (given, own) = (width(shape, scalar)?, RegisterWidth::of(scalar)?);
    if given == own { Some(scalar) } else { (given > own).then(|| bits_of(given)) }
}

fn read(file: &RegisterFile, slot: Slot, width: u32) -> [u64; LANES] {
    match width {
        0 => file.b16(slot).map(u64::from),
        1 => file.b32(slot).map(u64::from),
        _ => *file.b64(slot),
    }
}

fn write(file: &mut RegisterFile, slot: Slot, width: u32, values: &[u64; LANES], mask: u32) {
    match width {
        0 => file.set_b16(slot, &values.map(|value| value as u16), mask),
        1 => file.set_b32(slot, &values.map(|value| value as u32), mask),
        _ => file.set_b64(slot, values, mask),
    }
}

const fn code(width: RegisterWidth) -> u32 {
    match width {
        RegisterWidth::Predicate | RegisterWidth::B16 => 0,
        RegisterWidth::B32 => 1,
        RegisterWidth::B64 => 2,
    }
}

/// Any conversion of one number. The widths of the registers are above the conversion.
struct Any;

impl Operation for Any {
    fn run(file: &mut RegisterFile, pure: &Pure, mask: u32) {
        let conversion = Conversion::unpack(pure.extra);
        let values = read(file, pure.slots[1], pure.extra >> 18 & 3).map(|bits| conversion.convert(bits));
        write(file, pure.slots[0], pure.extra >> 16 & 3, &values, mask);
    }
}

/// Two numbers of f32 into one register, the first one high. The bits of each are above the conversion.
struct Packed;

impl Operation for Packed {
    fn run(file: &mut RegisterFile, pure: &Pure, mask: u32) {
        let conversion = Conversion::unpack(pure.extra);
        let bits = pure.extra >> 16;
        let high = read(file, pure.slots[1], 1).map(|bits| conversion.convert(bits));
        let low = read(file, pure.slots[2], 1).map(|bits| conversion.convert(bits));
        let values = std::array::from_fn(|lane| high[lane] << bits | low[lane]);
        write(file, pure.slots[0], u32::from(bits == 16), &values, mask);
    }
}

/// Two numbers in one register into two others in one. The width of the results is above the conversion.
struct Repacked;

impl Operation for Repacked {
    fn run(file: &mut RegisterFile, pure: &Pure, mask: u32) {
        let conversion = Conversion::unpack(pure.extra);
        let bits = pure.extra >> 16;
        let given = 24 - bits;
        let both = |value: u64| {
            let low = conversion.convert(value & ((1 << given) - 1));
            conversion.convert(value >> given) << bits | low
        };
        let values = read(file, pure.slots[1], u32::from(given == 16)).map(both);
        write(file, pure.slots[0], u32::from(bits == 16), &values, mask);
    }
}

/// `cvt`
pub fn convert(words: &mut Words<'_>, operands: &[OperandShape]) -> Found {
    if words.take("pack") {
        return pack(words);
    }
    let modifiers = Modifiers::take(words);
    let (made, given) = (words.scalar()?, words.scalar()?);
    words.end()?;
    if let Some(pair) = encoding_of_pair(made) {
        return pairs(words, &modifiers, (made, pair), given);
    }
    let (Some(to), Some(from)) = (encoding(made), encoding(given)) else {
        return words.refuse(if encoding(made).is_none() { made } else { given });
    };
    if let Err(why) = modifiers.fits(to, from) {
        return words.unknown(why);
    }
    let (Some(result), Some(source)) = (operand(operands.first(), made), operand(operands.get(1), given)) else {
        return words.unknown("a register is narrower than its type");
    };
    let conversion = modifiers.conversion(to, from);
    if let Some(form) = fast::form(words, &conversion, (result, source)) {
        return form;
    }
    let code_of = |scalar| RegisterWidth::of(scalar).map_or(0, code);
    let extra = conversion.pack() | code_of(result) << 16 | code_of(source) << 18;
    words.slow::<Any>(&[result, source], extra)
}

fn pairs(words: &mut Words<'_>, modifiers: &Modifiers, (made, to): (ScalarType, Encoding), given: ScalarType) -> Found {
    let eight = matches!(to, Encoding::E4m3 | Encoding::E5m2);
    let rounds = match modifiers.rounding {
        Some(Rounding::Nearest) => !modifiers.integral,
        Some(Rounding::Zero) => !modifiers.integral && !eight && given == F32,
        _ => false,
    };
    if !rounds || modifiers.flush || modifiers.saturate {
        return words.unknown("two numbers at once are rounded by `.rn`, or to 16 bits by `.rz`, and nothing else");
    }
    let bits: u32 = if eight { 8 } else { 16 };
    if given == F32 {
        if eight && !modifiers.finite {
            return words.unknown("8-bit formats need `.satfinite`");
        }
        let conversion = modifiers.conversion(to, Encoding::F32);
        let types = &[made, F32, F32];
        let plain = conversion.rounding == Rounding::Nearest && !conversion.relu && !conversion.finite;
        return match to {
            Encoding::F16 if plain => words.form::<Each<fast::PackF16>>(types, 0),
            Encoding::Bf16 if plain => words.form::<Each<fast::PackBf16>>(types, 0),
            Encoding::E4m3 if !conversion.relu => words.form::<Each<fast::PackE4m3>>(types, 0),
            Encoding::E5m2 if !conversion.relu => words.form::<Each<fast::PackE5m2>>(types, 0),
            _ => words.slow::<Packed>(types, conversion.pack() | bits << 16),
        };
    }
    let known = match (made, given) {
        (E4m3x2 | E5m2x2, F16x2) => modifiers.finite,
        (F16x2, E4m3x2 | E5m2x2) => !modifiers.finite,
        _ => return words.refuse(given),
    };
    let Some(from) = encoding_of_pair(given).filter(|_| known) else {
        return words.unknown("8-bit formats are made with `.satfinite`, and read without");
    };
    let types = &[made, given];
    match (to, from) {
        (Encoding::E4m3, _) if !modifiers.relu => return words.form::<Each<fast::E4m3OfF16>>(types, 0),
        (Encoding::E5m2, _) if !modifiers.relu => return words.form::<Each<fast::E5m2OfF16>>(types, 0),
        (_, Encoding::E4m3) if !modifiers.relu => return words.form::<Each<fast::F16OfE4m3>>(types, 0),
        (_, Encoding::E5m2) if !modifiers.relu => return words.form::<Each<fast::F16OfE5m2>>(types, 0),
        _ => {}
    }
    words.slow::<Repacked>(types, modifiers.conversion(to, from).pack() | bits << 16)
}

/// `cvt.pack`: two whole numbers, kept within fewer bits, above what `c` holds.
struct Pack;

impl Operation for Pack {
    fn run(file: &mut RegisterFile, pure: &Pure, mask: u32) {
        let (bits, signed, third) = (pure.extra & 31, pure.extra >> 5 & 1 == 1, pure.extra >> 6 & 1 == 1);
        let (least, most) = if signed { (-(1 << (bits - 1)), (1 << (bits - 1)) - 1) } else { (0, (1 << bits) - 1) };
        let kept = |value: u32| (value as i32).clamp(least, most) as u32 & ((1 << bits) - 1);
        let (a, b, c) = (*file.b32(pure.slots[1]), *file.b32(pure.slots[2]), pure.slots[3]);
        let above = if third { file.b32(c).map(|word| word << (2 * bits)) } else { [0; LANES] };
        let values = std::array::from_fn(|lane| above[lane] | kept(a[lane]) << bits | kept(b[lane]));
        file.set_b32(pure.slots[0], &values, mask);
    }
}

fn pack(words: &mut Words<'_>) -> Found {
    if !words.take("sat") {
        return words.unknown("it needs `.sat`");
    }
    let (bits, signed) = words.need("a type to convert to", |word| {
        Some(match word {
            "u16" => (16, false),
            "s16" => (16, true),
            "u8" => (8, false),
            "s8" => (8, true),
            "u4" => (4, false),
            "s4" => (4, true),
            "u2" => (2, false),
            "s2" => (2, true),
            _ => return None,
        })
    })?;
    let given = words.scalar()?;
    let third = words.take("b32");
    if given != S32 || third != (bits < 16) {
        return words.unknown("it packs `.s32`, into 16 bits two of them, into fewer two and a third operand, `.b32`");
    }
    let extra = bits | u32::from(signed) << 5 | u32::from(third) << 6;
    let types = [B32, S32, S32, B32];
    words.slow::<Pack>(types.get(..3 + usize::from(third)).unwrap_or_default(), extra)
}
