//! One query against its keys, at once or block by block, and the merge of partial results.

use gpuemu_engine::schema::SummationOrder;

use crate::kernels::attention::{finite_maximum, round_weight};
use crate::kernels::{Plan, add_up};
use crate::mutation::{Mutated, Mutation};
use crate::real::Real;
use crate::summation::sum;

/// What a query came to.
pub(super) struct Attended<R> {
    /// Its output; not a number where it saw nothing.
    pub out: Vec<R>,
    /// The log-sum-exp of its scores.
    pub lse: R,
    /// The sum of exponentials.
    pub total: R,
}

/// The factor on scores.
pub(super) fn scale<R: Real>(plan: &Plan, given: f64, width: usize) -> R {
    let usual = if given == 0.0 { 1.0 / (width as f64).sqrt() } else { given };
    R::new(if plan.mutation.is(Mutation::DropFactor) { 1.0 } else { usual * plan.mutation.constant() })
}

/// A score bounded by a tanh, where there is a bound.
pub(super) fn capped<R: Real>(score: R, softcap: f64) -> R {
    if softcap == 0.0 { score } else { R::new(softcap) * (score / R::new(softcap)).tanh() }
}

/// Attends to `count` keys. `score` makes a score of a key's dot product, or nothing where the key is hidden.
pub(super) fn attend<'a, R: Real>(
    plan: &Plan,
    q: &[R],
    count: usize,
    vector: impl Fn(usize) -> (&'a [R], &'a [R]),
    score: impl Fn(usize, R) -> Option<R>,
) -> Attended<R> {
    let block = match plan.style.order {
        SummationOrder::Online(size) => size.max(1),
        _ => count.max(1),
    };
    let online = matches!(plan.style.order, SummationOrder::Online(_));
    // Dot products and blocks of an online kernel are trees.
    let add = |terms: &[R]| if online { sum(terms, SummationOrder::Pairwise, None) } else { add_up(plan, terms) };
    let (mut maximum, mut total) = (R::lowest(), R::zero());
    let mut out = vec![R::zero(); q.len()];
    for start in (0..count).step_by(block) {
        let end = (start + block).min(count);
        let (mut scores, mut values) = (Vec::with_capacity(block), Vec::with_capacity(block));
        for key in start..end {
            let (k, v) = vector(key);
            let products: Vec<R> = q.iter().zip(k).map(|(x, y)| *x * *y).collect();
            let skipped = plan.mutation.is(Mutation::SkipElement) && key == count / 2 && count > 1;
            let scored = score(key, add(&products)).filter(|_| !skipped);
            scores.push(scored.unwrap_or(R::lowest()));
            values.push(v);
        }
        if let Some(Mutation::PadZero(multiple)) = plan.mutation {
            scores.resize(scores.len().next_multiple_of(multiple.max(1)), R::zero());
        }
        let largest = scores.iter().fold(maximum, |most, score| most.larger(*score));
        let reference = finite_maximum(largest);
        let weights: Vec<R> = scores.iter().map(|score| (*score - reference).exp(plan.style.exp)).collect();
        let rescale = if maximum == R::lowest() { R::zero() } else { (maximum - reference).exp(plan.style.exp) };
        total = total * rescale + add(&weights);
        let kept = if plan.mutation.is(Mutation::DropRescale) { R::one() } else { rescale };
        for (column, accumulator) in out.iter_mut().enumerate() {
            let rounded = weights.iter().map(|weight| round_weight(*weight, plan.style.intermediate));
            let terms: Vec<R> = rounded.zip(&values).map(|(weight, v)| weight * v[column]).collect();
            let added = add(&terms);
            *accumulator = match plan.mutation {
                Some(Mutation::Overwrite) => added,
                _ if start == 0 => added,
                _ => *accumulator * kept + added,
            };
        }
        maximum = largest;
    }
    for value in &mut out {
        *value = value.over(total, plan.style.division);
    }
    Attended { out, lse: finite_maximum(maximum) + total.ln(), total }
}

/// Merges partial results by their log-sum-exps.
pub(super) fn merge<R: Real>(plan: &Plan, outs: &[&[R]], lses: &[R], width: usize) -> Attended<R> {
    let maximum = lses.iter().fold(R::lowest(), |most, lse| if lse.is_nan() { *lse } else { most.larger(*lse) });
    let reference = if plan.mutation.is(Mutation::DropMaximum) { R::zero() } else { finite_maximum(maximum) };
    let last = lses.len().saturating_sub(1);
    let weigh = |(split, lse): (usize, &R)| {
        if plan.mutation.named("last split left out") && split == last && last > 0 {
            return R::zero();
        }
        match plan.mutation {
            Some(Mutation::Named("splits averaged")) => R::one(),
            Some(Mutation::Named("powers of two")) => (*lse - reference).exp2(plan.style.exp),
            _ => (*lse - reference).exp(plan.style.exp),
        }
    };
    let weights: Vec<R> = lses.iter().enumerate().map(weigh).collect();
    let total = add_up(plan, &weights);
    let column = |column: usize| {
        let terms: Vec<R> = weights.iter().zip(outs).map(|(weight, out)| *weight * out[column]).collect();
        add_up(plan, &terms).over(total, plan.style.division)
    };
    Attended { out: (0..width).map(column).collect(), lse: reference + total.ln(), total }
}
