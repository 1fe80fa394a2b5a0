//! Whose tensor cores are imitated, and by which rule each adds.

/// Whose tensor cores.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Hash)]
pub enum TensorCore {
    /// A100: blocks of 8 products of 16 bits, one extra bit, truncated.
    A100,
    /// H100 and H200: blocks of 16 products of 16 bits, two extra bits, truncated.
    #[default]
    H100,
    /// Fused multiply-adds in single precision, one after the other, each rounded to nearest.
    Ieee,
}

impl TensorCore {
    /// All of them.
    pub const ALL: [Self; 3] = [Self::A100, Self::H100, Self::Ieee];

    /// The name that users write.
    pub const fn name(self) -> &'static str {
        match self {
            Self::A100 => "a100",
            Self::H100 => "h100",
            Self::Ieee => "ieee",
        }
    }

    /// The tensor core of a name.
    pub fn from_name(name: &str) -> Option<Self> {
        Self::ALL.into_iter().find(|model| model.name() == name)
    }

    /// How a chip adds; none for IEEE arithmetic.
    pub(super) const fn rule(self) -> Option<SumRule> {
        match self {
            Self::A100 => Some(SumRule { block_bits: 128, extra_bits: 1 }),
            Self::H100 => Some(SumRule { block_bits: 256, extra_bits: 2 }),
            Self::Ieee => None,
        }
    }
}

/// How many products are added at once, and with how many bits more than single precision has.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct SumRule {
    /// Bits of the operands of a block: products of 16 bits come so many at once, those of 32 half as many.
    block_bits: usize,
    /// Bits below those of single precision that addends keep.
    pub(super) extra_bits: u32,
}

impl SumRule {
    /// Products that are added at once.
    pub(super) const fn block(self, element_bits: u32) -> usize {
        self.block_bits / element_bits as usize
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_are_read_back() {
        for model in TensorCore::ALL {
            assert_eq!(TensorCore::from_name(model.name()), Some(model));
        }
        assert_eq!(TensorCore::from_name("A100"), None);
    }

    #[test]
    fn blocks_are_as_long_as_the_chips() {
        let blocks = TensorCore::ALL.map(|model| model.rule().map(|rule| (rule.block(16), rule.block(32))));
        assert_eq!(blocks, [Some((8, 4)), Some((16, 8)), None]);
    }
}
