//! moe_topk_softmax and grouped_topk: which experts a token goes to, and with what weight.

use gpuemu_tensor::DType;

use crate::case::Strategy;
use crate::ops::indexing::order::{compare, ranking};
use crate::ops::normalisation::softmax::{FOLDED, RowSum};
use crate::ops::{BuiltIn, Call, Expectation, OpError};
use crate::schema::{Property, Scalar, Schema};

pub(super) fn ops() -> Vec<BuiltIn> {
    vec![topk_softmax(), grouped_topk()]
}

const BOUND: &str = "y*u*(F+3*(s+W)+2*E+Q+1) as softmax has it, over the chosen alone where renormalised; an index is left open where another expert's probability is within the error of an exponential";

const BOTH: [Scalar; 2] = [Scalar::Bool(true), Scalar::Bool(false)];

fn described(schema: Schema) -> Schema {
    schema
        .dtypes(&[DType::F32, DType::F16, DType::BF16])
        .reduces(&["E"])
        .choices("renormalize", &BOTH)
        .help("gating_output", "the router's logits, one for each expert")
        .help("k", "experts for each token")
        .help("renormalize", "whether the weights of the chosen experts are divided by their sum")
        .help("topk_weights", "probabilities of the chosen experts, the largest first")
        .help("topk_ids", "the chosen experts")
        .keywords(&["mixture of experts", "router", "gate", "top-k", "softmax"])
        .bounded_by(BOUND)
        .holds(&[Property::ShiftInvariant { input: "gating_output" }])
        .amplified_by(&[Strategy::Regular, Strategy::Tiny])
}

fn topk_softmax() -> BuiltIn {
    BuiltIn::new(
        described(Schema::builtin(
            "moe_topk_softmax",
            "gating_output[T,E] k:int=2 renormalize:bool=true -> topk_weights:float32[T,k] topk_ids:int32[T,k]",
        ))
        .alias(&["topk_softmax", "fused_topk"])
        .at_least("E", 8)
        .at_most("E", 512)
        .choices("k", &[Scalar::Int(2), Scalar::Int(1), Scalar::Int(4), Scalar::Int(8)])
        .describe(
            "Softmax over all experts, then the k largest in order, the lower index first among equal logits; renormalised to a sum of 1 or not. A row with NaN or +Inf or without a number gives NaN, to whichever experts.",
            "p = softmax(gating_output), topk_weights = top_k(p), over their sum where renormalize",
        )
        .usual_bugs(&[
            "renormalised where it should not be, or the other way round",
            "padding of the experts in the denominator",
            "the same expert twice among equal logits",
            "weights of the logits' dtype in place of float32",
        ]),
        |call| {
            let experts: Vec<usize> = (0..call.size("E")?).collect();
            expect(call, |_, _| Candidates::These(experts.clone()))
        },
    )
}

fn grouped_topk() -> BuiltIn {
    BuiltIn::new(
        described(Schema::builtin(
            "grouped_topk",
            "gating_output[T,E] num_expert_group:int=4 topk_group:int=2 k:int=2 renormalize:bool=true -> topk_weights:float32[T,k] topk_ids:int32[T,k]",
        ))
        .alias(&["moe_grouped_topk", "fused_grouped_topk"])
        .sizes("E", &[32, 64, 160, 256])
        .choices("num_expert_group", &[Scalar::Int(4), Scalar::Int(2), Scalar::Int(8)])
        .choices("topk_group", &[Scalar::Int(2), Scalar::Int(1)])
        .choices("k", &[Scalar::Int(2), Scalar::Int(1), Scalar::Int(4)])
        .describe(
            "Softmax over all experts, which stand in groups of neighbours; the k largest, in order, out of the `topk_group` groups whose largest probabilities are largest (DeepSeek-V2). The lower index comes first among equal logits and among groups of equal maxima. A row with NaN or +Inf or without a number gives NaN, to whichever experts.",
            "p = softmax(gating_output), groups = top_k(max(p, group)), topk_weights = top_k(p inside groups), over their sum where renormalize",
        )
        .help("num_expert_group", "groups that the experts are divided into")
        .help("topk_group", "groups that experts are chosen from")
        .usual_bugs(&[
            "groups chosen by their sum or mean",
            "softmax over the chosen groups alone where not renormalised",
            "experts of other groups not masked",
        ]),
        |call| {
            let (groups, taken) = (call.int("num_expert_group")?.max(1), call.int("topk_group")?.max(0));
            expect(call, |row, scores| grouped(row, scores, groups as usize, taken as usize))
        },
    )
}

/// The experts that a token may go to.
enum Candidates {
    These(Vec<usize>),
    /// Rounding decides between groups.
    Open,
}

/// Probabilities, and how far a kernel's may be from one another: what all of them share does not change their order.
struct Scores {
    probability: Vec<f64>,
    own_error: Vec<f64>,
}

impl Scores {
    fn of(row: &[f64], row_sum: &RowSum, exponentials: &[f64], call: &Call<'_>) -> Self {
        let units = call.units;
        let probability: Vec<f64> = exponentials.iter().map(|e| e / row_sum.sum).collect();
        let own = |(x, p): (&f64, &f64)| {
            let distance = if *p == 0.0 { 0.0 } else { row_sum.distance(*x) };
            p * units.u * (units.exp + units.argument * distance + units.division + 1.0) + 2.0 * units.tiny
        };
        let own_error = row.iter().zip(&probability).map(own).collect();
        Self { probability, own_error }
    }

    /// Whether a kernel may find either of two different logits the larger.
    fn close(&self, row: &[f64], left: usize, right: usize) -> bool {
        let apart = (self.probability[left] - self.probability[right]).abs();
        row[left] != row[right] && apart <= self.own_error[left] + self.own_error[right]
    }
}

fn grouped(row: &[f64], scores: &Scores, groups: usize, taken: usize) -> Candidates {
    let size = row.len() / groups;
    if size == 0 {
        return Candidates::Open;
    }
    let best = |members: &[f64]| ranking(members, true, compare).first().copied().unwrap_or(0);
    let best: Vec<usize> = (0..groups).map(|group| group * size + best(&row[group * size..][..size])).collect();
    let maxima: Vec<f64> = best.iter().map(|expert| row[*expert]).collect();
    let order = ranking(&maxima, true, compare);
    let (chosen, others) = order.split_at(taken.min(groups));
    if chosen.iter().any(|group| others.iter().any(|other| scores.close(row, best[*group], best[*other]))) {
        return Candidates::Open;
    }
    let mut experts: Vec<usize> = chosen.iter().flat_map(|group| group * size..(group + 1) * size).collect();
    experts.sort_unstable();
    Candidates::These(experts)
}

fn expect(call: &Call<'_>, candidates: impl Fn(&[f64], &Scores) -> Candidates) -> Result<Vec<Expectation>, OpError> {
    let (input, width, taken) = (call.input("gating_output")?, call.size("E")?, call.size("k")?);
    let rows = call.size("T")?;
    let mut weights = Expectation::with_capacity(rows * taken);
    let mut ids = Expectation::with_capacity(rows * taken);
    let mut exponentials = vec![0.0; width];
    for row in input.chunks_exact(width.max(1)) {
        let Some(row_sum) = RowSum::of(row, &mut exponentials, call) else {
            (0..taken).for_each(|_| weights.push(f64::NAN, 0.0));
            (0..taken).for_each(|_| ids.push_undetermined(0.0, "expert of a row of NaN"));
            continue;
        };
        let scores = Scores::of(row, &row_sum, &exponentials, call);
        let open = |reason: &'static str, weights: &mut Expectation, ids: &mut Expectation| {
            for place in 0..taken {
                weights.push_undetermined(0.0, reason);
                ids.push_undetermined(place as f64, reason);
            }
        };
        match candidates(row, &scores) {
            _ if row_sum.undetermined => open(FOLDED, &mut weights, &mut ids),
            Candidates::Open => open("groups of nearly equal maxima", &mut weights, &mut ids),
            Candidates::These(experts) => {
                let logits: Vec<f64> = experts.iter().map(|expert| row[*expert]).collect();
                let order: Vec<usize> = ranking(&logits, true, compare).iter().map(|place| experts[*place]).collect();
                let masked = experts.len() < row.len();
                push_ids(row, &scores, &order, taken, masked, &mut ids);
                push_weights(call, row, &row_sum, &scores, &order[..taken.min(order.len())], &mut weights)?;
            }
        }
    }
    Ok(vec![weights, ids])
}

/// The experts of a row; another one too where rounding decides.
fn push_ids(row: &[f64], scores: &Scores, order: &[usize], taken: usize, masked: bool, ids: &mut Expectation) {
    // Runs of neighbours that are equal or may change places.
    let mut runs: Vec<(usize, usize)> = Vec::new();
    for place in 0..order.len() {
        let joined = place > 0 && {
            let (before, here) = (order[place - 1], order[place]);
            row[before] == row[here] || scores.close(row, before, here)
        };
        match runs.last_mut().filter(|_| joined) {
            Some(run) => run.1 = place + 1,
            None => runs.push((place, place + 1)),
        }
    }
    for (start, end) in runs {
        let run = &order[start..end];
        let equal = run.iter().all(|expert| row[*expert] == row[run[0]]);
        for &expert in run.iter().take(taken.saturating_sub(start)) {
            // Masked experts count as probability 0.
            if masked && scores.probability[expert] <= 2.0 * scores.own_error[expert] {
                ids.push_undetermined(expert as f64, "probability as small as that of a masked expert");
            } else if equal {
                ids.push(expert as f64, 0.0);
            } else if let [one, other] = run {
                let neighbour = if expert == *one { *other } else { *one };
                ids.push_either(expert as f64, neighbour as f64, "experts of nearly equal probability");
            } else {
                ids.push_undetermined(expert as f64, "experts of nearly equal probability");
            }
        }
    }
}

fn push_weights(
    call: &Call<'_>,
    row: &[f64],
    row_sum: &RowSum,
    scores: &Scores,
    chosen: &[usize],
    weights: &mut Expectation,
) -> Result<(), OpError> {
    let units = call.units;
    let width = row.len() as f64;
    if !call.flag("renormalize") {
        let common = call.summation(row.len().max(1))? + units.argument * row_sum.spread + units.exp;
        for expert in chosen {
            let p = scores.probability[*expert];
            let underflow = units.tiny * (1.0 + p * width / row_sum.sum);
            weights.push(p, units.u * p * common + scores.own_error[*expert] + underflow);
        }
        return Ok(());
    }
    let total: f64 = chosen.iter().map(|expert| scores.probability[*expert]).sum();
    let carried: f64 = chosen.iter().map(|expert| scores.own_error[*expert]).sum();
    for expert in chosen {
        let y = scores.probability[*expert] / total;
        // A handful is added up in any order; what the probabilities share cancels.
        let rounding = units.u * y * (chosen.len() as f64 + units.division + 2.0);
        weights.push(y, (scores.own_error[*expert] + y * carried) / total + rounding + units.tiny);
    }
    Ok(())
}
