//! The gradients of attention, weights recomputed from the log-sum-exp.

use gpuemu_engine::runner::{Invocation, RunnerError};
use gpuemu_tensor::DType;

use super::row::{attend, scale};
use crate::kernels::attention::round_weight;
use crate::kernels::{Plan, add_up, input, size, write};
use crate::mutation::{Mutated, Mutation};
use crate::real::Real;
use crate::style::ExpRoute;

/// One head after the other; in it queries, then keys.
pub(super) fn backward<R: Real>(call: &mut Invocation<'_>, plan: &Plan) -> Result<(), RunnerError> {
    let [q, k, v, upstream] = ["q", "k", "v", "grad_output"].map(|name| input::<R>(call, name));
    let (q, k, v, upstream) = (q?, k?, v?, upstream?);
    let [queries, keys, width] = ["M", "N", "D"].map(|name| size(call, name));
    let (rows, columns) = (queries * width, keys * width);
    let given = call.parameters.float("scale").unwrap_or(0.0);
    let causal = call.parameters.flag("causal");
    let (mut grad_q, mut grad_k, mut grad_v) = (Vec::new(), Vec::new(), Vec::new());
    for head in 0..size(call, "B") * size(call, "H") {
        let one = Head {
            plan,
            q: &q[head * rows..][..rows],
            k: &k[head * columns..][..columns],
            v: &v[head * columns..][..columns],
            upstream: &upstream[head * rows..][..rows],
            scale: scale(plan, given, width),
            width,
            causal,
        };
        one.gradients(&mut grad_q, &mut grad_k, &mut grad_v);
    }
    write(plan, &mut call.outputs[0], &grad_q)?;
    write(plan, &mut call.outputs[1], &grad_k)?;
    write(plan, &mut call.outputs[2], &grad_v)
}

struct Head<'a, R> {
    plan: &'a Plan,
    q: &'a [R],
    k: &'a [R],
    v: &'a [R],
    upstream: &'a [R],
    scale: R,
    width: usize,
    causal: bool,
}

impl<R: Real> Head<'_, R> {
    fn dot(&self, x: &[R], y: &[R]) -> R {
        let products: Vec<R> = x.iter().zip(y).map(|(x, y)| *x * *y).collect();
        add_up(self.plan, &products)
    }

    /// P and dS of a query.
    fn query(&self, query: usize) -> (Vec<R>, Vec<R>) {
        let (plan, width) = (self.plan, self.width);
        let keys = self.k.len() / width;
        let own = |tensor: &'_ [R]| tensor[query * width..][..width].to_vec();
        let (q, upstream) = (own(self.q), own(self.upstream));
        let row = |tensor: &'static str, key: usize| {
            let tensor = if tensor == "k" { self.k } else { self.v };
            &tensor[key * width..][..width]
        };
        let sees = |key: usize| !self.causal || key <= query;
        let score = |key: usize, dot: R| sees(key).then(|| dot * self.scale);
        let forward = attend(plan, &q, keys, |key| (row("k", key), row("v", key)), score);
        let unmasked = plan.mutation.named("causal mask missing");
        let weights: Vec<R> = (0..keys)
            .map(|key| match sees(key) || unmasked {
                true => (self.dot(&q, row("k", key)) * self.scale - forward.lse).exp(plan.style.exp),
                false => R::zero(),
            })
            .collect();
        // Kernels that keep P have weights that sum to 1, and may take D from them.
        let kept = plan.style.exp == ExpRoute::Direct;
        let weights: Vec<R> = if kept {
            let total = add_up(plan, &weights);
            weights.iter().map(|weight| weight.over(total, plan.style.division)).collect()
        } else {
            weights
        };
        let inner: Vec<R> = (0..keys).map(|key| self.dot(&upstream, row("v", key))).collect();
        // D from the output, or from the weights.
        let centre = if kept {
            let terms: Vec<R> = weights.iter().zip(&inner).map(|(weight, inner)| *weight * *inner).collect();
            add_up(plan, &terms)
        } else {
            self.dot(&upstream, &forward.out)
        };
        let centre = if plan.mutation.named("row sum not subtracted") { R::zero() } else { centre };
        let slopes = weights.iter().zip(&inner).enumerate().map(|(key, (weight, inner))| {
            // What is not seen has no slope, whatever its score is.
            if sees(key) || unmasked { *weight * (*inner - centre) } else { R::zero() }
        });
        let slopes = slopes.map(|slope| round_weight(slope, plan.style.intermediate)).collect();
        (weights, slopes)
    }

    fn gradients(&self, grad_q: &mut Vec<R>, grad_k: &mut Vec<R>, grad_v: &mut Vec<R>) {
        let (plan, width) = (self.plan, self.width);
        let (queries, keys) = (self.q.len() / width, self.k.len() / width);
        let (weights, slopes): (Vec<Vec<R>>, Vec<Vec<R>>) = (0..queries).map(|query| self.query(query)).unzip();
        for slopes in &slopes {
            for column in 0..width {
                let terms: Vec<R> = (0..keys).map(|key| slopes[key] * self.k[key * width + column]).collect();
                grad_q.push(add_up(plan, &terms) * self.scale);
            }
        }
        let skipped = plan.mutation.is(Mutation::SkipElement).then_some(queries / 2);
        let scale = if plan.mutation.named("scale missing on grad_k") { R::one() } else { self.scale };
        for key in 0..keys {
            let over_queries = |factors: &[Vec<R>], tensor: &[R], column: usize, rounded: Option<DType>| {
                let kept = factors.iter().enumerate().filter(|(query, _)| Some(*query) != skipped);
                let term =
                    |(query, row): (usize, &Vec<R>)| round_weight(row[key], rounded) * tensor[query * width + column];
                add_up(plan, &kept.map(term).collect::<Vec<R>>())
            };
            for column in 0..width {
                grad_k.push(over_queries(&slopes, self.q, column, None) * scale);
                grad_v.push(over_queries(&weights, self.upstream, column, plan.style.intermediate));
            }
        }
    }
}
