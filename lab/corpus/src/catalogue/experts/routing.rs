//! moe_topk_softmax and grouped_topk: one program for each token.

use gpuemu_engine::runner::{Invocation, RunnerError};

use crate::catalogue::indexing::next;
use crate::implementations::{Family, ORDERS};
use crate::kernel;
use crate::kernels::{Plan, add_up, input, size, write};
use crate::mutation::{Mutated, Mutation};
use crate::real::Real;
use crate::style::{ExpRoute, Style};

const OTHERWISE_NORMALISED: &str = "renormalised where it should not be, not where it should";
const EQUAL_REVERSED: &str = "the higher index first among equal logits";
const BY_SUM: &str = "groups chosen by their sum";
const GROUPS_ALONE: &str = "softmax over the chosen groups alone";

pub(super) fn families() -> Vec<Family> {
    use Mutation::{DropMask, DropMaximum, Named, OffByOne, PadZero, ScaleArgument, ScaleOutput, SkipElement};
    let mut styles = ORDERS.to_vec();
    styles.push(Style { folded: true, ..ORDERS[2] });
    let usual = [
        Named(OTHERWISE_NORMALISED),
        Named(EQUAL_REVERSED),
        OffByOne,
        DropMaximum,
        SkipElement,
        ScaleArgument(1.01),
        ScaleOutput(1.01),
    ];
    let flat = [&usual[..], &[PadZero(128)]].concat();
    let grouped = [&usual[..], &[Named(BY_SUM), Named(GROUPS_ALONE), DropMask]].concat();
    vec![
        Family::new(kernel!("moe_topk_softmax", topk_softmax), &styles, &flat),
        Family::new(kernel!("grouped_topk", grouped_topk), &styles, &grouped),
    ]
}

fn probabilities<R: Real>(plan: &Plan, row: &[R]) -> Vec<R> {
    let mut lanes = row.to_vec();
    if let Some(Mutation::PadZero(multiple)) = plan.mutation {
        lanes.resize(row.len().next_multiple_of(multiple), R::zero());
    }
    let mut maximum = lanes.iter().fold(R::lowest(), |best, x| best.larger(*x));
    if plan.mutation.is(Mutation::DropMaximum) {
        maximum = R::zero();
    }
    let scale = R::new(std::f64::consts::LOG2_E);
    let argument = R::new(plan.mutation.argument());
    let exponential = |x: &R| {
        if plan.style.folded {
            (*x * scale - maximum * scale).exp2(plan.style.exp)
        } else {
            ((*x - maximum) * argument).exp(plan.style.exp)
        }
    };
    let exponentials: Vec<R> = lanes.iter().map(exponential).collect();
    let mut terms = exponentials.clone();
    if plan.mutation.is(Mutation::SkipElement) {
        terms.remove(row.len() / 2);
    }
    let total = add_up(plan, &terms);
    exponentials[..row.len()].iter().map(|e| e.over(total, plan.style.division)).collect()
}

/// The index of the largest that is left; the lower one among equals.
fn largest<R: Real>(plan: &Plan, scores: &[Option<R>]) -> Option<usize> {
    let mut best: Option<(usize, R)> = None;
    for (index, score) in scores.iter().enumerate() {
        let Some(score) = score else { continue };
        let wins = match best {
            None => true,
            Some((_, held)) => *score > held || plan.mutation.named(EQUAL_REVERSED) && *score == held,
        };
        if wins {
            best = Some((index, *score));
        }
    }
    best.map(|(index, _)| index)
}

/// Chooses k experts one after the other and stores them with their weights.
fn choose<R: Real>(
    call: &mut Invocation<'_>,
    plan: &Plan,
    allowed: impl Fn(&[R], &[R]) -> Vec<bool>,
) -> Result<(), RunnerError> {
    let (logits, experts, taken) = (input::<R>(call, "gating_output")?, size(call, "E").max(1), size(call, "k"));
    let renormalise = call.parameters.flag("renormalize") != plan.mutation.named(OTHERWISE_NORMALISED);
    let (mut weights, mut ids) = (Vec::new(), Vec::new());
    for row in logits.chunks(experts) {
        let mut probability = probabilities(plan, row);
        let allowed = allowed(row, &probability);
        if plan.mutation.named(GROUPS_ALONE) {
            let masked = |(x, allowed): (&R, &bool)| if *allowed { *x } else { R::lowest() };
            probability = probabilities(plan, &row.iter().zip(&allowed).map(masked).collect::<Vec<R>>());
        }
        // Logits and probabilities have the same order, as long as nothing underflows.
        let by_logits = plan.style.exp == ExpRoute::Direct;
        let compared = if by_logits { row } else { &probability[..] };
        let mut left: Vec<Option<R>> =
            compared.iter().zip(&allowed).map(|(score, allowed)| allowed.then_some(*score)).collect();
        let mut chosen = Vec::with_capacity(taken);
        for _ in 0..taken {
            let Some(expert) = largest(plan, &left) else { break };
            left[expert] = None;
            let id = if plan.mutation.is(Mutation::OffByOne) { next(expert, experts) } else { expert };
            ids.push(R::new(id as f64));
            chosen.push(probability[expert]);
        }
        let total = chosen.iter().fold(R::zero(), |total, weight| total + *weight);
        weights.extend(chosen.iter().map(|w| if renormalise { w.over(total, plan.style.division) } else { *w }));
    }
    write(plan, &mut call.outputs[0], &weights)?;
    let unscaled = Plan { mutation: None, ..*plan };
    write(&unscaled, &mut call.outputs[1], &ids)
}

fn topk_softmax<R: Real>(call: &mut Invocation<'_>, plan: &Plan) -> Result<(), RunnerError> {
    choose(call, plan, |row: &[R], _| vec![true; row.len()])
}

fn grouped_topk<R: Real>(call: &mut Invocation<'_>, plan: &Plan) -> Result<(), RunnerError> {
    let parameter = |name: &str| call.parameters.int(name).unwrap_or(1).max(1) as usize;
    let (groups, taken) = (parameter("num_expert_group"), parameter("topk_group"));
    choose(call, plan, move |row: &[R], probability: &[R]| {
        if plan.mutation.is(Mutation::DropMask) {
            return vec![true; row.len()];
        }
        let width = (row.len() / groups).max(1);
        let by_logits = plan.style.exp == ExpRoute::Direct && !plan.mutation.named(BY_SUM);
        let compared = if by_logits { row } else { probability };
        let score = |group: &[R]| {
            Some(if plan.mutation.named(BY_SUM) {
                group.iter().fold(R::zero(), |total, p| total + *p)
            } else {
                group.iter().fold(R::lowest(), |best, p| best.larger(*p))
            })
        };
        let mut scores: Vec<Option<R>> = compared.chunks(width).map(score).collect();
        let mut allowed = vec![false; row.len()];
        for _ in 0..taken {
            if let Some(group) = largest(plan, &scores) {
                scores[group] = None;
                allowed[group * width..(group + 1) * width].fill(true);
            }
        }
        allowed
    })
}
