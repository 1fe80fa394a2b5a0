//! Sizes of dims, drawn by class: degenerate, tile residues, ragged multiples, primes, powers of
//! two and their neighbours, long reductions. Mirrored in `python/gpuemu/rng.py`.

use gpuemu_tensor::Stream;

use crate::schema::{DimensionSpec, Schema, Sizes};

const PRIMES: [usize; 13] = [2, 3, 5, 7, 11, 13, 17, 31, 61, 127, 251, 509, 1021];

/// One term of a case's cost: the product of some dims, over a divisor.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct CostTerm {
    /// Indices of dims whose sizes are multiplied.
    pub dimensions: Vec<usize>,
    /// What the product is divided by.
    pub divisor: usize,
}

/// Draws one size of a dim.
pub fn draw_size(stream: &mut Stream, dimension: &DimensionSpec) -> usize {
    if let Some(size) = stream.pick(&dimension.choices) {
        return *size;
    }
    if !dimension.preferred.is_empty() && stream.chance(1, 2) {
        return stream.pick(&dimension.preferred).copied().unwrap_or(1);
    }
    let long = if dimension.reduced { 3 } else { 0 };
    let size = match stream.weighted(&[2, 5, 3, 3, 3, 4, long]) {
        0 => usize::from(!stream.chance(1, 4)),
        1 => (8 << stream.below(8)) - 1 + stream.below(3) as usize,
        2 => {
            let tile = 8 << stream.below(5);
            (2 + stream.below(4) as usize) * tile + 1 + stream.below(tile as u64 - 1) as usize
        }
        3 => PRIMES[stream.below(PRIMES.len() as u64) as usize],
        4 => (1 << stream.below(11)) - 1 + stream.below(3) as usize,
        5 => 2 + stream.below(15) as usize,
        _ => 1024 + stream.below(3073) as usize,
    };
    size.clamp(dimension.minimum, dimension.maximum)
}

/// Draws the sizes of all dims and shrinks them until the case's cost is within the budget.
pub fn draw_sizes(stream: &mut Stream, dimensions: &[DimensionSpec], cost: &[CostTerm], budget: usize) -> Vec<usize> {
    let mut sizes: Vec<usize> = dimensions.iter().map(|dimension| draw_size(stream, dimension)).collect();
    let distinct = stream.chance(1, 2);
    let focus = stream.below(dimensions.len() as u64) as usize;
    if distinct {
        for index in 1..sizes.len() {
            let larger = sizes[index] + 1;
            if sizes[index] > 1 && sizes[..index].contains(&sizes[index]) && dimensions[index].allows(larger) {
                sizes[index] = larger;
            }
        }
    }
    while cost_of(&sizes, cost) > budget {
        let shrinkable = |index: usize| {
            let dimension = &dimensions[index];
            let smaller = sizes[index] / 2;
            let allowed = if dimension.choices.is_empty() {
                sizes[index] > dimension.minimum.max(1)
            } else {
                dimension.choices.iter().any(|choice| *choice < sizes[index] && *choice >= 1)
            };
            allowed.then_some((index, smaller))
        };
        // The largest dim gives way first; the one in focus last.
        let largest = (0..sizes.len())
            .filter(|index| *index != focus)
            .filter_map(shrinkable)
            .max_by(|left, right| sizes[left.0].cmp(&sizes[right.0]).then(right.0.cmp(&left.0)));
        let Some((index, smaller)) = largest.or_else(|| (focus < sizes.len()).then(|| shrinkable(focus)).flatten())
        else {
            break;
        };
        let dimension = &dimensions[index];
        sizes[index] = if dimension.choices.is_empty() {
            smaller.max(dimension.minimum).max(1)
        } else {
            let fitting = dimension.choices.iter().filter(|choice| **choice < sizes[index] && **choice >= 1);
            fitting.max().copied().unwrap_or(sizes[index])
        };
    }
    sizes
}

/// What a case costs: about its elements, counting work beyond them.
pub fn cost_of(sizes: &[usize], cost: &[CostTerm]) -> usize {
    let mut total = 0usize;
    for term in cost {
        let product = term.dimensions.iter().fold(1usize, |product, index| product.saturating_mul(sizes[*index]));
        total = total.saturating_add(product / term.divisor.max(1));
    }
    total
}

/// The dims of a schema with those that `...` stands for, and the cost of a case in them.
pub fn cost_terms(schema: &Schema, batch_rank: usize) -> (Vec<DimensionSpec>, Vec<CostTerm>) {
    // Beside named dims a batch is a count of rows; alone it is all there is.
    let batch_maximum = if schema.dimensions.is_empty() { DimensionSpec::DEFAULT_MAXIMUM } else { 64 };
    let mut dimensions: Vec<DimensionSpec> = (0..batch_rank)
        .map(|index| DimensionSpec { maximum: batch_maximum, ..DimensionSpec::named(&format!("...{index}")) })
        .collect();
    dimensions.extend(schema.dimensions.iter().cloned());
    let index_of = |name: &str| dimensions.iter().position(|dimension| dimension.name == name);
    let mut cost = Vec::new();
    for tensor in schema.inputs.iter().chain(&schema.outputs) {
        let mut indices: Vec<usize> = if tensor.batch { (0..batch_rank).collect() } else { Vec::new() };
        indices.extend(tensor.dimensions.iter().flat_map(|expression| expression.names()).filter_map(index_of));
        cost.push(CostTerm { dimensions: indices, divisor: 1 });
    }
    // Work grows with the product of all dims (a matmul's M·N·K), at a fraction of an element each.
    cost.push(CostTerm { dimensions: (0..dimensions.len()).collect(), divisor: 8 });
    (dimensions, cost)
}

/// Draws the sizes of a case of an op.
pub fn draw_case_sizes(stream: &mut Stream, schema: &Schema, budget: usize) -> Sizes {
    let batch_rank = if schema.has_batch() { stream.weighted(&[1, 3, 4, 1]) } else { 0 };
    let (dimensions, cost) = cost_terms(schema, batch_rank);
    let drawn = draw_sizes(stream, &dimensions, &cost, budget);
    let mut sizes = Sizes { batch: drawn[..batch_rank].to_vec(), named: Vec::new() };
    for (dimension, size) in dimensions.iter().zip(&drawn).skip(batch_rank) {
        sizes.named.push((dimension.name.clone(), *size));
    }
    sizes
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn sizes_stay_within_the_budget_and_the_limits() {
        let schema =
            Schema::from_signature("matmul", "a[M,K] b[K,N] -> out[M,N]").unwrap().at_least("K", 1).reduces(&["K"]);
        let mut seen_zero = false;
        for seed in 0..2000 {
            let sizes = draw_case_sizes(&mut Stream::new(seed, "shape"), &schema, 20_000);
            let [m, k, n] = ["M", "K", "N"].map(|name| sizes.get(name).unwrap());
            assert!(k >= 1);
            assert!(m * k + k * n + m * n + m * n * k / 8 <= 20_000, "{sizes}");
            seen_zero |= m == 0 || n == 0;
        }
        assert!(seen_zero);
    }

    #[test]
    fn a_list_of_choices_is_never_left() {
        let mut schema = Schema::from_signature("rows", "input[B,H] -> out[B,H]").unwrap();
        schema.dimensions[1].choices = vec![3, 256, 1025];
        for seed in 0..300 {
            let sizes = draw_case_sizes(&mut Stream::new(seed, "shape"), &schema, 3_000);
            assert!([3, 256, 1025].contains(&sizes.get("H").unwrap()));
        }
    }
}
