//! What kind of size a dim has: kernels break at edges, and each kind is another edge.

use serde::Serialize;

/// A kind of size; a size may be of several.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum DimensionClass {
    Zero,
    One,
    /// 2, 4, 8, and so on.
    PowerOfTwo,
    /// One less or one more than a power of two from 8 on: the edges of tiles.
    BesidePowerOfTwo,
    /// A prime from 11 on: no tile divides it.
    Prime,
    /// A multiple of 16 that is no power of two: several whole tiles.
    WholeTiles,
    /// No multiple of 8, above 8: the last tile is partial.
    PartialTile,
    /// 1024 and above.
    Long,
}

impl DimensionClass {
    pub const ALL: [DimensionClass; 8] = [
        DimensionClass::Zero,
        DimensionClass::One,
        DimensionClass::PowerOfTwo,
        DimensionClass::BesidePowerOfTwo,
        DimensionClass::Prime,
        DimensionClass::WholeTiles,
        DimensionClass::PartialTile,
        DimensionClass::Long,
    ];

    /// The words used in the table.
    pub const fn words(self) -> &'static str {
        match self {
            DimensionClass::Zero => "0",
            DimensionClass::One => "1",
            DimensionClass::PowerOfTwo => "power of two",
            DimensionClass::BesidePowerOfTwo => "beside one",
            DimensionClass::Prime => "prime",
            DimensionClass::WholeTiles => "whole tiles",
            DimensionClass::PartialTile => "partial tile",
            DimensionClass::Long => "long",
        }
    }

    pub fn holds(self, size: usize) -> bool {
        match self {
            DimensionClass::Zero => size == 0,
            DimensionClass::One => size == 1,
            DimensionClass::PowerOfTwo => size > 1 && size.is_power_of_two(),
            DimensionClass::BesidePowerOfTwo => {
                size >= 7 && (size.saturating_add(1).is_power_of_two() || (size - 1).is_power_of_two() && size > 8)
            }
            DimensionClass::Prime => size > 10 && is_prime(size),
            DimensionClass::WholeTiles => size > 0 && size.is_multiple_of(16) && !size.is_power_of_two(),
            DimensionClass::PartialTile => size > 8 && !size.is_multiple_of(8),
            DimensionClass::Long => size >= 1024,
        }
    }
}

fn is_prime(size: usize) -> bool {
    (2..).take_while(|factor| factor * factor <= size).all(|factor| !size.is_multiple_of(factor))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn sizes_have_their_classes() {
        use DimensionClass::{BesidePowerOfTwo, Long, One, PartialTile, PowerOfTwo, Prime, WholeTiles, Zero};
        let of = |size: usize| -> Vec<DimensionClass> {
            DimensionClass::ALL.into_iter().filter(|class| class.holds(size)).collect()
        };
        assert_eq!((of(0), of(1), of(2), of(3)), (vec![Zero], vec![One], vec![PowerOfTwo], vec![]));
        assert_eq!(
            (of(7), of(8), of(9)),
            (vec![BesidePowerOfTwo], vec![PowerOfTwo], vec![BesidePowerOfTwo, PartialTile])
        );
        assert_eq!((of(48), of(24)), (vec![WholeTiles], vec![]));
        assert_eq!(of(127), [BesidePowerOfTwo, Prime, PartialTile]);
        assert_eq!((of(1024), of(1000)), (vec![PowerOfTwo, Long], vec![]));
        assert_eq!(of(2 * 1023), [PartialTile, Long]);
    }
}
