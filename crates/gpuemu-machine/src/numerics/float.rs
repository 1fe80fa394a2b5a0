//! Arithmetic of floating-point formats under the modifiers of PTX: any rounding, flushing, saturation.

use gpuemu_tensor::FloatFormat;

use super::exact::{Exact, Value};
use super::rounding::{Rounding, round, round_flushed};

/// The formats that PTX computes in.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum FloatKind {
    /// IEEE binary16.
    F16,
    /// bfloat16.
    Bf16,
    /// IEEE binary32.
    F32,
    /// IEEE binary64.
    F64,
}

impl FloatKind {
    /// All of them; the place of each is its number in packed modifiers.
    pub const ALL: [FloatKind; 4] = [FloatKind::F16, FloatKind::Bf16, FloatKind::F32, FloatKind::F64];

    pub const fn format(self) -> &'static FloatFormat {
        match self {
            FloatKind::F16 => &FloatFormat::F16,
            FloatKind::Bf16 => &FloatFormat::BF16,
            FloatKind::F32 => &FloatFormat::F32,
            FloatKind::F64 => &FloatFormat::F64,
        }
    }

    /// The NaN that arithmetic makes. The chip sets every bit but the sign, except in f64, where it does as x86 does.
    pub const fn nan(self) -> u64 {
        match self {
            FloatKind::F64 => 0xFFF8_0000_0000_0000,
            _ => self.format().sign_bit() - 1,
        }
    }

    pub const fn one(self) -> u64 {
        (self.format().bias() as u64) << self.format().mantissa_bits
    }

    /// Whether a pattern is no number.
    pub const fn is_nan(self, bits: u64) -> bool {
        bits & (self.format().sign_bit() - 1) > self.format().overflow_bits()
    }

    /// Zero of the same sign for a subnormal number; everything else as it is.
    pub const fn flushed(self, bits: u64) -> u64 {
        if bits & self.format().overflow_bits() == 0 { bits & self.format().sign_bit() } else { bits }
    }

    /// What arithmetic makes of operands of which one is no number: f64 keeps the payload of the last one, quietened;
    /// the others have one NaN. The chip takes the second of two (recorded for sums and products).
    pub fn nan_of(self, operands: &[u64]) -> u64 {
        match self {
            FloatKind::F64 => operands
                .iter()
                .rev()
                .find(|bits| self.is_nan(**bits))
                .map_or(self.nan(), |bits| bits | 0x0008_0000_0000_0000),
            _ => self.nan(),
        }
    }
}

/// How an instruction computes.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct FloatRules {
    pub kind: FloatKind,
    pub rounding: Rounding,
    /// `.ftz`: subnormal operands and results are zero.
    pub flush: bool,
    /// `.sat`: the result is kept within 0 and 1, and NaN is 0.
    pub saturate: bool,
    /// `.relu`: what is negative becomes 0, NaN stays.
    pub relu: bool,
}

impl FloatRules {
    /// The bits that [`FloatRules::unpack`] reads.
    pub fn pack(self) -> u32 {
        let place = |found: Option<usize>| found.unwrap_or(0) as u32;
        place(FloatKind::ALL.iter().position(|kind| *kind == self.kind))
            | place(Rounding::ALL.iter().position(|rounding| *rounding == self.rounding)) << 2
            | u32::from(self.flush) << 5
            | u32::from(self.saturate) << 6
            | u32::from(self.relu) << 7
    }

    /// The rules that were packed; the lowest 8 bits count.
    pub fn unpack(bits: u32) -> Self {
        Self {
            kind: FloatKind::ALL[bits as usize & 3],
            rounding: Rounding::ALL.get(bits as usize >> 2 & 7).copied().unwrap_or_default(),
            flush: bits >> 5 & 1 == 1,
            saturate: bits >> 6 & 1 == 1,
            relu: bits >> 7 & 1 == 1,
        }
    }

    fn read(&self, bits: u64) -> Value {
        Value::read(self.kind.format(), if self.flush { self.kind.flushed(bits) } else { bits })
    }

    fn rounded(&self, exact: &Exact) -> u64 {
        let round = if self.flush { round_flushed } else { round };
        round(exact, self.kind.format(), self.rounding)
    }

    fn infinite(&self, negative: bool) -> u64 {
        let format = self.kind.format();
        format.overflow_bits() | if negative { format.sign_bit() } else { 0 }
    }

    /// What the modifiers make of a result.
    pub fn finished(&self, bits: u64) -> u64 {
        let format = self.kind.format();
        let mut bits = if self.flush { self.kind.flushed(bits) } else { bits };
        let negative = bits & format.sign_bit() != 0;
        if self.saturate {
            bits = if self.kind.is_nan(bits) || negative { 0 } else { bits.min(self.kind.one()) };
        }
        if self.relu && negative && !self.kind.is_nan(bits) {
            bits = 0;
        }
        bits
    }

    /// `a + b`
    pub fn sum(&self, a: u64, b: u64) -> u64 {
        self.finished(match (self.read(a), self.read(b)) {
            (Value::Nan, _) | (_, Value::Nan) => self.kind.nan_of(&[a, b]),
            (Value::Infinite(one), Value::Infinite(two)) if one != two => self.kind.nan(),
            (Value::Infinite(negative), _) | (_, Value::Infinite(negative)) => self.infinite(negative),
            (Value::Finite(one), Value::Finite(two)) => self.rounded(&one.plus(two, self.rounding)),
        })
    }

    /// `a - b`. A NaN that is taken away keeps its sign.
    pub fn difference(&self, a: u64, b: u64) -> u64 {
        let sign = if self.kind.is_nan(b) { 0 } else { self.kind.format().sign_bit() };
        self.sum(a, b ^ sign)
    }

    /// `a * b`
    pub fn product(&self, a: u64, b: u64) -> u64 {
        self.finished(match (self.read(a), self.read(b)) {
            (Value::Nan, _) | (_, Value::Nan) => self.kind.nan_of(&[a, b]),
            (Value::Infinite(one), Value::Infinite(two)) => self.infinite(one != two),
            (Value::Infinite(negative), Value::Finite(finite)) | (Value::Finite(finite), Value::Infinite(negative)) => {
                if finite.is_zero() {
                    self.kind.nan()
                } else {
                    self.infinite(negative != finite.negative)
                }
            }
            (Value::Finite(one), Value::Finite(two)) => self.rounded(&one.times(two)),
        })
    }

    /// `a * b + c`, rounded once. Recorded: the NaN of `b` goes before that of `c`, and that before the one of `a`.
    pub fn fused(&self, a: u64, b: u64, c: u64) -> u64 {
        let (one, two, three) = (self.read(a), self.read(b), self.read(c));
        self.finished(match (one, two, three) {
            (Value::Nan, ..) | (_, Value::Nan, _) | (.., Value::Nan) => self.kind.nan_of(&[a, c, b]),
            (Value::Finite(one), Value::Finite(two), Value::Finite(three)) => {
                self.rounded(&one.times(two).plus(three, self.rounding))
            }
            (Value::Finite(_), Value::Finite(_), Value::Infinite(negative)) => self.infinite(negative),
            (Value::Infinite(_), Value::Finite(zero), _) | (Value::Finite(zero), Value::Infinite(_), _)
                if zero.is_zero() =>
            {
                self.kind.nan()
            }
            _ => {
                let sign = self.kind.format().sign_bit();
                let negative = (a ^ b) & sign != 0;
                match three {
                    Value::Infinite(other) if other != negative => self.kind.nan(),
                    _ => self.infinite(negative),
                }
            }
        })
    }

    /// `a / b`. Of two NaNs the chip keeps the first here: division is a subroutine.
    pub fn quotient(&self, a: u64, b: u64) -> u64 {
        self.finished(match (self.read(a), self.read(b)) {
            (Value::Nan, _) | (_, Value::Nan) => self.kind.nan_of(&[b, a]),
            (Value::Infinite(_), Value::Infinite(_)) => self.kind.nan(),
            (Value::Infinite(one), Value::Finite(two)) => self.infinite(one != two.negative),
            (Value::Finite(one), Value::Infinite(two)) => self.rounded(&Exact::zero(one.negative != two)),
            (Value::Finite(one), Value::Finite(two)) => match (one.is_zero(), two.is_zero()) {
                (true, true) => self.kind.nan(),
                (false, true) => self.infinite(one.negative != two.negative),
                _ => self.rounded(&one.over(two)),
            },
        })
    }

    /// `1 / a`
    pub fn reciprocal(&self, a: u64) -> u64 {
        self.quotient(self.kind.one(), a)
    }

    pub fn root(&self, a: u64) -> u64 {
        self.finished(match self.read(a) {
            Value::Nan => self.kind.nan_of(&[a]),
            Value::Infinite(false) => self.infinite(false),
            Value::Finite(exact) if !exact.negative || exact.is_zero() => self.rounded(&exact.root()),
            _ => self.kind.nan(),
        })
    }

    /// `|a|`; f64 keeps the sign of NaN, the others have one NaN.
    pub fn magnitude(&self, a: u64) -> u64 {
        if self.kind.is_nan(a) {
            return self.kind.nan_of(&[a]);
        }
        self.finished(a & !self.kind.format().sign_bit())
    }

    /// `-a`; as for the magnitude, a NaN keeps its sign.
    pub fn opposite(&self, a: u64) -> u64 {
        if self.kind.is_nan(a) {
            return self.kind.nan_of(&[a]);
        }
        self.finished(a ^ self.kind.format().sign_bit())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn rules_come_back_from_their_bits() {
        for kind in FloatKind::ALL {
            for rounding in Rounding::ALL {
                for flags in 0..8 {
                    let (flush, saturate, relu) = (flags & 1 == 1, flags & 2 == 2, flags & 4 == 4);
                    let rules = FloatRules { kind, rounding, flush, saturate, relu };
                    assert_eq!(FloatRules::unpack(rules.pack()), rules);
                }
            }
        }
    }
}
