//! The smaller and the larger of two numbers.

use super::float::FloatKind;

/// How `min` and `max` compare.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct ExtremeRules {
    pub kind: FloatKind,
    /// Whether the larger one is wanted.
    pub largest: bool,
    /// `.ftz`: subnormal operands are zero.
    pub flush: bool,
    /// `.NaN`: NaN if one operand is. Otherwise the operand that is a number wins.
    pub keep_nan: bool,
    /// `.xorsign.abs`: magnitudes are compared, and the signs are combined.
    pub combine_signs: bool,
}

impl ExtremeRules {
    /// The bits that [`ExtremeRules::unpack`] reads.
    pub fn pack(self) -> u32 {
        FloatKind::ALL.iter().position(|kind| *kind == self.kind).unwrap_or(0) as u32
            | u32::from(self.largest) << 2
            | u32::from(self.flush) << 3
            | u32::from(self.keep_nan) << 4
            | u32::from(self.combine_signs) << 5
    }

    /// The rules that were packed.
    pub fn unpack(bits: u32) -> Self {
        Self {
            kind: FloatKind::ALL[bits as usize & 3],
            largest: bits >> 2 & 1 == 1,
            flush: bits >> 3 & 1 == 1,
            keep_nan: bits >> 4 & 1 == 1,
            combine_signs: bits >> 5 & 1 == 1,
        }
    }

    /// Which of the two it is.
    #[inline(always)]
    pub fn choose(&self, a: u64, b: u64) -> u64 {
        let kind = self.kind;
        let sign = kind.format().sign_bit();
        let (a_is_nan, b_is_nan) = (kind.is_nan(a), kind.is_nan(b));
        let both = a_is_nan && b_is_nan;
        if both || (self.keep_nan && (a_is_nan || b_is_nan)) {
            return kind.nan_of(&[a, b]);
        }
        let (mut one, mut two) = if self.flush { (kind.flushed(a), kind.flushed(b)) } else { (a, b) };
        let signs = (one ^ two) & sign;
        if self.combine_signs {
            (one, two) = (one & !sign, two & !sign);
        }
        // Patterns in the order of their numbers: -0 is below 0, as the chip has it.
        let key = |bits: u64| {
            let top = (bits << (64 - kind.format().bits())) as i64;
            top ^ (top >> 63 & i64::MAX)
        };
        let first = b_is_nan || (!a_is_nan && (key(one) < key(two)) != self.largest);
        let chosen = if first { one } else { two };
        if self.combine_signs { chosen | signs } else { chosen }
    }
}
