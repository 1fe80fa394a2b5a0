//! Sums in a declared order, in the arithmetic of the kernel.

use gpuemu_engine::schema::SummationOrder;
use gpuemu_tensor::DType;

use crate::real::Real;

/// Adds up terms in an order; running sums are rounded to `narrow` where given.
pub fn sum<R: Real>(terms: &[R], order: SummationOrder, narrow: Option<DType>) -> R {
    let add = |left: R, right: R| match narrow {
        None => left + right,
        Some(dtype) => R::new(dtype.decode(dtype.encode((left + right).value()))),
    };
    let sequence = |terms: &[R]| terms.iter().fold(R::zero(), |sum, term| add(sum, *term));
    match order {
        SummationOrder::Sequential => sequence(terms),
        SummationOrder::Tile(size) => terms.chunks(size.max(1)).fold(R::zero(), |sum, tile| add(sum, sequence(tile))),
        SummationOrder::TileTree(size) | SummationOrder::Online(size) => {
            terms.chunks(size.max(1)).fold(R::zero(), |sum, tile| add(sum, tree(tile, &add)))
        }
        SummationOrder::Split(parts) => {
            let part = terms.len().div_ceil(parts.max(1)).max(1);
            terms.chunks(part).fold(R::zero(), |sum, part| add(sum, sequence(part)))
        }
        SummationOrder::Lanes32 => {
            let mut lanes = [R::zero(); 32];
            for chunk in terms.chunks(32) {
                for (lane, term) in lanes.iter_mut().zip(chunk) {
                    *lane = add(*lane, *term);
                }
            }
            tree(&lanes, &add)
        }
        SummationOrder::Pairwise => tree(terms, &add),
    }
}

/// A balanced tree, as warp shuffles and `tl.sum` make it: the upper half onto the lower.
fn tree<R: Real>(terms: &[R], add: &impl Fn(R, R) -> R) -> R {
    if terms.is_empty() {
        return R::zero();
    }
    let mut level = terms.to_vec();
    while level.len() > 1 {
        let half = level.len().next_power_of_two() / 2;
        for index in half..level.len() {
            level[index - half] = add(level[index - half], level[index]);
        }
        level.truncate(half);
    }
    level[0]
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_order_adds_every_term_once() {
        let orders = [
            SummationOrder::Sequential,
            SummationOrder::Tile(16),
            SummationOrder::TileTree(16),
            SummationOrder::Split(4),
            SummationOrder::Lanes32,
            SummationOrder::Pairwise,
            SummationOrder::Online(16),
        ];
        for count in [0usize, 1, 2, 31, 33, 100, 1000] {
            let terms: Vec<f64> = (1..=count).map(|term| term as f64).collect();
            for order in orders {
                assert_eq!(sum(&terms, order, None), (count * (count + 1) / 2) as f64, "{order:?} {count}");
            }
        }
    }

    #[test]
    fn a_narrow_accumulator_stops_counting() {
        let ones = vec![1.0f32; 1000];
        assert_eq!(sum(&ones, SummationOrder::Sequential, Some(DType::BF16)), 256.0);
    }
}
