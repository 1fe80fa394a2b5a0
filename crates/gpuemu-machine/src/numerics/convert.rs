//! `cvt`: every conversion of one number.

use gpuemu_tensor::FloatFormat;

use super::exact::{Exact, Value};
use super::rounding::{Rounding, TF32, round, round_flushed, shift_right};

/// What a number is kept as.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
#[allow(missing_docs, reason = "the variants are their own names")]
pub enum Encoding {
    F16,
    Bf16,
    F32,
    F64,
    Tf32,
    E4m3,
    E5m2,
    S8,
    U8,
    S16,
    U16,
    S32,
    U32,
    S64,
    U64,
}

impl Encoding {
    const ALL: [Encoding; 15] = {
        use Encoding::*;
        [F16, Bf16, F32, F64, Tf32, E4m3, E5m2, S8, U8, S16, U16, S32, U32, S64, U64]
    };

    /// Its layout, if it is a floating-point one.
    pub const fn format(self) -> Option<&'static FloatFormat> {
        Some(match self {
            Encoding::F16 => &FloatFormat::F16,
            Encoding::Bf16 => &FloatFormat::BF16,
            Encoding::F32 => &FloatFormat::F32,
            Encoding::F64 => &FloatFormat::F64,
            Encoding::Tf32 => &TF32,
            Encoding::E4m3 => &FloatFormat::E4M3FN,
            Encoding::E5m2 => &FloatFormat::E5M2,
            _ => return None,
        })
    }

    /// Bits of a whole number, and whether it has a sign.
    pub const fn integer(self) -> Option<(u32, bool)> {
        Some(match self {
            Encoding::S8 => (8, true),
            Encoding::U8 => (8, false),
            Encoding::S16 => (16, true),
            Encoding::U16 => (16, false),
            Encoding::S32 => (32, true),
            Encoding::U32 => (32, false),
            Encoding::S64 => (64, true),
            Encoding::U64 => (64, false),
            _ => return None,
        })
    }
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Conversion {
    pub to: Encoding,
    /// What it is given.
    pub from: Encoding,
    pub rounding: Rounding,
    /// `.rni` and the like between floating-point numbers: to a whole number.
    pub integral: bool,
    /// `.ftz`: subnormal numbers of f32 are zero, given or made.
    pub flush: bool,
    /// `.sat`: kept within the range of a whole number, or within 0 and 1.
    pub saturate: bool,
    /// `.relu`: what is negative becomes 0.
    pub relu: bool,
    /// `.satfinite`: what is too large becomes the largest number.
    pub finite: bool,
}

impl Conversion {
    /// The bits that [`Conversion::unpack`] reads: 16 of them.
    pub fn pack(self) -> u32 {
        let place = |encoding| Encoding::ALL.iter().position(|other| *other == encoding).unwrap_or(0) as u32;
        let rounding = Rounding::ALL.iter().position(|rounding| *rounding == self.rounding).unwrap_or(0) as u32;
        place(self.to)
            | place(self.from) << 4
            | rounding << 8
            | u32::from(self.integral) << 11
            | u32::from(self.flush) << 12
            | u32::from(self.saturate) << 13
            | u32::from(self.relu) << 14
            | u32::from(self.finite) << 15
    }

    /// The conversion that was packed.
    pub fn unpack(bits: u32) -> Self {
        let encoding = |bits: u32| Encoding::ALL.get(bits as usize & 15).copied().unwrap_or(Encoding::U64);
        Self {
            to: encoding(bits),
            from: encoding(bits >> 4),
            rounding: Rounding::ALL.get(bits as usize >> 8 & 7).copied().unwrap_or_default(),
            integral: bits >> 11 & 1 == 1,
            flush: bits >> 12 & 1 == 1,
            saturate: bits >> 13 & 1 == 1,
            relu: bits >> 14 & 1 == 1,
            finite: bits >> 15 & 1 == 1,
        }
    }

    /// Converts the low bits of a register; a whole number is extended by its sign to 64 bits.
    pub fn convert(&self, bits: u64) -> u64 {
        match (self.from.format(), self.to.format()) {
            (Some(from), Some(to)) => self.between_floats(from, to, bits),
            (Some(from), None) => self.whole(from, bits),
            (None, Some(to)) => self.finished(to, round(&Exact::integer(self.read_integer(bits)), to, self.rounding)),
            (None, None) => self.between_integers(bits),
        }
    }

    fn read_integer(&self, bits: u64) -> i128 {
        let (width, signed) = self.from.integer().unwrap_or((64, false));
        extend(bits, width, signed)
    }

    fn between_integers(&self, bits: u64) -> u64 {
        let (width, signed) = self.to.integer().unwrap_or((64, false));
        let value = self.read_integer(bits);
        let value = if self.saturate { clamp(value, width, signed) } else { value };
        extend(value as u64, width, signed) as u64
    }

    /// What is given, flushed where that is asked for.
    fn given(&self, from: &FloatFormat, bits: u64) -> u64 {
        let bits = if self.from == Encoding::Tf32 { bits >> 13 } else { bits };
        let bits = bits & (from.sign_bit() << 1).wrapping_sub(1);
        let subnormal = bits & from.overflow_bits() == 0;
        // Recorded: nothing is flushed on the way to f16, as rounding up shows.
        let flushes = self.flush && self.from == Encoding::F32 && self.to != Encoding::F16;
        if flushes && subnormal { bits & from.sign_bit() } else { bits }
    }

    fn whole(&self, from: &FloatFormat, bits: u64) -> u64 {
        let (width, signed) = self.to.integer().unwrap_or((64, false));
        let value = match Value::read(from, self.given(from, bits)) {
            // Conversions in the 64-bit unit give its "integer indefinite", the others 0.
            Value::Nan if width == 64 || self.from == Encoding::F64 => {
                return extend(1 << (width - 1), width, signed) as u64;
            }
            Value::Nan => 0,
            Value::Infinite(negative) => {
                if negative {
                    i128::MIN
                } else {
                    i128::MAX
                }
            }
            Value::Finite(exact) => {
                let magnitude = match exact.exponent {
                    // Larger than every whole number that is asked for.
                    65.. if !exact.is_zero() => i128::MAX as u128,
                    0.. => exact.significand << exact.exponent.min(65),
                    below => shift_right(exact.significand, below.unsigned_abs(), exact.negative, self.rounding),
                };
                let magnitude = magnitude as i128;
                if exact.negative { -magnitude } else { magnitude }
            }
        };
        extend(clamp(value, width, signed) as u64, width, signed) as u64
    }

    fn between_floats(&self, from: &FloatFormat, to: &FloatFormat, bits: u64) -> u64 {
        let bits = self.given(from, bits);
        let sign = if bits & from.sign_bit() != 0 { to.sign_bit() } else { 0 };
        let result = match Value::read(from, bits) {
            Value::Nan => return self.finished(to, self.nan(from, to, bits)),
            Value::Infinite(_) if !to.has_infinity => sign | to.max_bits(),
            Value::Infinite(_) => sign | to.overflow_bits(),
            Value::Finite(exact) if self.integral && exact.exponent < 0 => {
                let shift = exact.exponent.unsigned_abs();
                let whole = shift_right(exact.significand, shift, exact.negative, self.rounding);
                round(&Exact { exponent: 0, significand: whole, ..exact }, to, self.rounding)
            }
            Value::Finite(exact) if self.flush && self.to == Encoding::F32 => round_flushed(&exact, to, self.rounding),
            Value::Finite(exact) => round(&exact, to, self.rounding),
        };
        self.finished(to, result)
    }

    /// What NaN becomes, as recorded: f64 to and from the others keeps sign and payload, quietened; bf16 in f32 is the
    /// same bits; `.rna` to tf32 cuts the low bits off, whatever is left; everything else has one NaN.
    fn nan(&self, from: &FloatFormat, to: &FloatFormat, bits: u64) -> u64 {
        let sign = if bits & from.sign_bit() != 0 { to.sign_bit() } else { 0 };
        let (given, made) = (from.mantissa_bits, to.mantissa_bits);
        let payload = bits & ((1 << given) - 1);
        let payload = if made >= given { payload << (made - given) } else { payload >> (given - made) };
        match (self.to, self.from) {
            (Encoding::F64, Encoding::F32) if self.flush => 0x7FFF_FFFF_E000_0000,
            (Encoding::F64, _) | (_, Encoding::F64) => sign | to.overflow_bits() | 1 << (made - 1) | payload,
            (Encoding::F32, Encoding::Bf16) if !self.saturate && !self.flush => sign | to.overflow_bits() | payload,
            (Encoding::Tf32, _) if self.rounding == Rounding::NearestAway => sign | to.overflow_bits() | payload,
            _ => to.sign_bit() - 1,
        }
    }

    fn finished(&self, to: &FloatFormat, bits: u64) -> u64 {
        let magnitude = bits & (to.sign_bit() - 1);
        let negative = bits & to.sign_bit() != 0;
        let nan = magnitude > to.overflow_bits() || (!to.has_infinity && magnitude == to.overflow_bits());
        let mut bits = bits;
        if self.flush && self.to == Encoding::F32 && magnitude & to.overflow_bits() == 0 {
            bits &= to.sign_bit();
        }
        // Recorded: with `.rna` not only infinity but every NaN moves down by one.
        if self.finite && magnitude >= to.overflow_bits() && (!nan || self.rounding == Rounding::NearestAway) {
            bits -= 1;
        }
        if self.saturate {
            let one = (to.bias() as u64) << to.mantissa_bits;
            bits = if nan || negative { 0 } else { bits.min(one) };
        }
        if self.relu && negative && !nan {
            bits = 0;
        }
        if self.to == Encoding::Tf32 { bits << 13 } else { bits }
    }
}

/// The low bits as a number.
fn extend(bits: u64, width: u32, signed: bool) -> i128 {
    let shift = 64 - width;
    if signed { i128::from((bits << shift) as i64 >> shift) } else { i128::from(bits << shift >> shift) }
}

fn clamp(value: i128, width: u32, signed: bool) -> i128 {
    let (least, most) = if signed { (-(1 << (width - 1)), (1 << (width - 1)) - 1) } else { (0, (1_i128 << width) - 1) };
    value.clamp(least, most)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn conversions_come_back_from_their_bits() {
        for (place, to) in Encoding::ALL.into_iter().enumerate() {
            let from = Encoding::ALL[14 - place];
            for flags in 0..32 {
                let flag = |bit: u32| flags >> bit & 1 == 1;
                let conversion = Conversion {
                    to,
                    from,
                    rounding: Rounding::ALL[place % 5],
                    integral: flag(0),
                    flush: flag(1),
                    saturate: flag(2),
                    relu: flag(3),
                    finite: flag(4),
                };
                assert_eq!(Conversion::unpack(conversion.pack()), conversion);
            }
        }
    }
}
