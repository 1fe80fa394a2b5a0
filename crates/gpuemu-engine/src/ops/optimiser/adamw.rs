//! adamw: one step, over parameter and both moments.

use super::{Rate, decayed};
use crate::case::Strategy;
use crate::ops::{Arithmetic, BuiltIn, Call, Expectation, OpError, Overflow, Rounded};
use crate::schema::{Property, Scalar, Schema};

pub(in crate::ops) fn op() -> BuiltIn {
    BuiltIn::new(
        Schema::builtin(
            "adamw",
            "param[...] grad[...] exp_avg[...] exp_avg_sq[...] in non_negative lr:float=1e-3 beta1:float=0.9 \
             beta2:float=0.999 eps:float=1e-8 weight_decay:float=0.01 step:int=1 \
             -> param[...] exp_avg[...] exp_avg_sq[...]",
        )
        .alias(&["adamw_step", "fused_adamw"])
        .choices("lr", &[1e-3, 0.1].map(Scalar::Float))
        .choices("beta1", &[0.9, 0.5].map(Scalar::Float))
        .choices("beta2", &[0.999, 0.95].map(Scalar::Float))
        .choices("eps", &[1e-8, 1e-3].map(Scalar::Float))
        .choices("weight_decay", &[0.01, 0.0, 0.1].map(Scalar::Float))
        .choices("step", &[1, 10, 1000].map(Scalar::Int))
        .describe(
            "One step of AdamW in place, all state in the dtype of the parameter: decoupled weight decay first, then \
             both moments, bias corrections, and eps outside of the root. The new moments enter the update as \
             computed; only what is stored is rounded (a kernel that rounds them before declares `intermediate`).",
            "p = p*(1 - lr*weight_decay); m = beta1*m + (1-beta1)*g; v = beta2*v + (1-beta2)*g^2; \
             p = p - lr/(1-beta1^step) * m/(sqrt(v)/sqrt(1-beta2^step) + eps)",
        )
        .keywords(&["optimizer", "optimiser", "adam", "weight decay", "training", "in place", "moments"])
        .help("param", "parameter, updated in place")
        .help("grad", "gradient")
        .help("exp_avg", "first moment m, updated in place")
        .help("exp_avg_sq", "second moment v, updated in place")
        .help("lr", "learning rate")
        .help("beta1", "decay rate of the first moment")
        .help("beta2", "decay rate of the second moment")
        .help("eps", "added to the corrected root of v, outside of it")
        .help("weight_decay", "decoupled: the parameter is multiplied by 1 - lr*weight_decay")
        .help("step", "number of this step, 1 for the first")
        .bounded_by(
            "step by step, with 1 - beta and beta^step computed in the accumulator's dtype: m: u*(3*beta1*|m| + \
             (2*(1-beta1)+beta1)*|g|); v alike with g^2; param: u*3*|p| + |update|*(dm/m + dv/(2v) + \
             u*(step*beta^step + 4)/(1-beta^step) + u*(2Q+R+5))",
        )
        .holds(&[Property::PermutationEquivariant, Property::BatchInvariant])
        .amplified_by(&[Strategy::Regular, Strategy::Tiny])
        .usual_bugs(&[
            "bias correction missing or of the step before",
            "eps inside of the root",
            "weight decay added to the gradient (Adam with L2)",
            "root of the second correction missing",
            "old moments in the update",
        ]),
        expect,
    )
}

/// 1 − β^step.
fn correction(beta: f64, step: i64, arithmetic: &Arithmetic) -> Rounded {
    let value = libm::pow(beta, step as f64);
    // β is rounded before it is raised, and the power within two ulp.
    let error = arithmetic.units.u * value * (step.unsigned_abs() as f64 + 4.0) + arithmetic.units.tiny;
    arithmetic.subtract(Rounded::exact(1.0), Rounded { value, error, overflow: Overflow::None })
}

fn expect(call: &Call<'_>) -> Result<Vec<Expectation>, OpError> {
    let (param, grad) = (call.input("param")?, call.input("grad")?);
    let (first, second) = (call.input("exp_avg")?, call.input("exp_avg_sq")?);
    let (lr, eps, decay) = (call.float("lr")?, call.float("eps")?, call.float("weight_decay")?);
    let (beta1, beta2, step) = (call.float("beta1")?, call.float("beta2")?, call.int("step")?);
    let arithmetic = Arithmetic::of(call);
    let (rate1, rate2) = (Rate::of(beta1, &arithmetic), Rate::of(beta2, &arithmetic));
    let first_correction = correction(beta1, step, &arithmetic);
    let step_size = arithmetic.divide(arithmetic.constant(lr), first_correction);
    let second_correction = correction(beta2, step, &arithmetic);
    let root_correction = arithmetic.root(second_correction);
    let epsilon = arithmetic.constant(eps);
    let [mut new_param, mut new_first, mut new_second] = [(); 3].map(|()| Expectation::with_capacity(param.len()));
    for ((p, g), (m, v)) in param.iter().zip(grad).zip(first.iter().zip(second)) {
        let gradient = Rounded::exact(*g);
        let m = rate1.interpolate(*m, *g, &arithmetic);
        let v = rate2.blend(Rounded::exact(*v), arithmetic.multiply(gradient, gradient), &arithmetic);
        new_first.push_rounded(m, "the old moment, or its distance from the gradient");
        new_second.push_rounded(v, "the square of the gradient");
        let kept = decayed(*p, lr, decay, &arithmetic);
        let (m, v) = (arithmetic.intermediate(m), arithmetic.intermediate(v));
        let root = arithmetic.divide(arithmetic.root(v), root_correction);
        let denominator = arithmetic.add(arithmetic.slack(root, 2.0), epsilon);
        let update = if denominator.value.is_infinite() && denominator.overflow == Overflow::None {
            Rounded { value: m.value / denominator.value, error: 0.0, overflow: m.overflow }
        } else {
            // The step size may be applied to m first, and a subnormal product then be divided.
            let lost = (arithmetic.units.eta + arithmetic.units.flush) / denominator.value;
            arithmetic.multiply(step_size, arithmetic.divide(m, denominator)).widened(lost)
        };
        let mut result = arithmetic.subtract(kept, arithmetic.slack(update, 2.0));
        // The first correction may be applied before the division and the learning rate after it.
        let corrected = arithmetic.divide(m, first_correction);
        if arithmetic.divide(corrected, denominator).overflow != Overflow::None {
            result.overflow = result.overflow.max(Overflow::Before);
        }
        let beyond = arithmetic.divide(v, second_correction).overflow != Overflow::None;
        if beyond && !result.value.is_nan() {
            // An infinite second moment, corrected or not, makes the update 0.
            new_param.push_undetermined(result.value, "the (corrected) second moment");
        } else {
            new_param.push_rounded(result, "the corrected moment, or the update before the learning rate");
        }
    }
    Ok(vec![new_param, new_first, new_second])
}
