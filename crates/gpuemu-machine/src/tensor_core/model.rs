//! Whose tensor cores are imitated, and by which rule each adds.

use serde::Deserialize;

use super::element::Element;
use super::product::{Family, MatrixProduct};

#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Hash, Deserialize)]
#[serde(rename_all = "snake_case")]
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
    /// Bits of the operands of a block: twice as many products of 16 bits are added at once as of 32.
    block_bits: usize,
    /// Bits below those of single precision that addends keep.
    pub(super) extra_bits: u32,
}

impl SumRule {
    /// Products that are added at once.
    pub(super) fn block(self, form: &MatrixProduct) -> usize {
        match (form.family, form.a) {
            // The compiler makes two instructions of 4 places along k of it.
            (Family::Wmma, Element::Tf32) => 4,
            // Elements of 8 bits are made half precision, every other two of them at a time.
            (_, Element::E4m3 | Element::E5m2) => (self.block_bits / 16).min(form.k / 2),
            (_, element) => (self.block_bits / element.bits() as usize).min(form.k),
        }
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
        for (opcode, blocks) in [
            ("mma.sync.aligned.m16n8k16.row.col.f32.f16.f16.f32", [8, 16]),
            ("mma.sync.aligned.m16n8k8.row.col.f32.bf16.bf16.f32", [8, 8]),
            ("mma.sync.aligned.m16n8k8.row.col.f32.tf32.tf32.f32", [4, 8]),
            ("mma.sync.aligned.m16n8k32.row.col.f32.e4m3.e4m3.f32", [8, 16]),
            ("mma.sync.aligned.m16n8k16.row.col.f32.e4m3.e4m3.f32", [8, 8]),
            ("wmma.mma.sync.aligned.row.col.m16n16k8.f32.tf32.tf32.f32", [4, 4]),
        ] {
            let form = MatrixProduct::from_opcode(opcode).unwrap().unwrap();
            let found = [TensorCore::A100, TensorCore::H100].map(|model| model.rule().unwrap().block(&form));
            assert_eq!(found, blocks, "{opcode}");
        }
    }
}
