//! lion: one step, over parameter and moment.

use super::{Rate, decayed};
use crate::case::Strategy;
use crate::ops::{Arithmetic, BuiltIn, Call, Expectation, OpError, Overflow, Rounded};
use crate::schema::{Property, Scalar, Schema};

pub(in crate::ops) fn op() -> BuiltIn {
    BuiltIn::new(
        Schema::builtin(
            "lion",
            "param[...] grad[...] exp_avg[...] lr:float=1e-4 beta1:float=0.9 beta2:float=0.99 weight_decay:float=0.0 \
             -> param[...] exp_avg[...]",
        )
        .alias(&["lion_step", "fused_lion"])
        .choices("lr", &[1e-4, 0.1].map(Scalar::Float))
        .choices("beta1", &[0.9, 0.95].map(Scalar::Float))
        .choices("beta2", &[0.99, 0.98].map(Scalar::Float))
        .choices("weight_decay", &[0.0, 0.1].map(Scalar::Float))
        .describe(
            "One step of Lion in place, all state in the dtype of the parameter: decoupled weight decay, then a step \
             of lr against the sign of the moment blended with the gradient by beta1; the moment itself follows with \
             beta2. The sign of 0 is 0; where rounding decides the sign, and where it is that of NaN, nothing is said.",
            "p = p*(1 - lr*weight_decay) - lr*sign(beta1*m + (1-beta1)*g); m = beta2*m + (1-beta2)*g",
        )
        .keywords(&["optimizer", "optimiser", "sign", "momentum", "training", "in place"])
        .help("param", "parameter, updated in place")
        .help("grad", "gradient")
        .help("exp_avg", "moment m, updated in place")
        .help("lr", "learning rate")
        .help("beta1", "share of the old moment in what the sign is taken of")
        .help("beta2", "decay rate of the moment")
        .help("weight_decay", "decoupled: the parameter is multiplied by 1 - lr*weight_decay")
        .bounded_by("param: u*(3*|p| + 2*lr); exp_avg: u*(3*beta2*|m| + (2*(1-beta2)+beta2)*|g|)")
        .holds(&[Property::PermutationEquivariant, Property::BatchInvariant])
        .amplified_by(&[Strategy::Regular, Strategy::Mixed])
        .usual_bugs(&[
            "beta1 and beta2 swapped",
            "sign of the new moment in place of the blend",
            "weight decay inside of the sign",
            "sign of 0 taken for 1",
        ]),
        expect,
    )
}

fn expect(call: &Call<'_>) -> Result<Vec<Expectation>, OpError> {
    let (param, grad, moment) = (call.input("param")?, call.input("grad")?, call.input("exp_avg")?);
    let (lr, decay) = (call.float("lr")?, call.float("weight_decay")?);
    let arithmetic = Arithmetic::of(call);
    let blended = Rate::of(call.float("beta1")?, &arithmetic);
    let followed = Rate::of(call.float("beta2")?, &arithmetic);
    let length = arithmetic.constant(lr);
    let mut new_param = Expectation::with_capacity(param.len());
    let mut new_moment = Expectation::with_capacity(param.len());
    for ((p, g), m) in param.iter().zip(grad).zip(moment) {
        let moment = followed.interpolate(*m, *g, &arithmetic);
        new_moment.push_rounded(moment, "the old moment, or its distance from the gradient");
        let blend = blended.interpolate(*m, *g, &arithmetic);
        let sign = if blend.value == 0.0 { 0.0 } else { blend.value.signum() };
        let step = arithmetic.multiply(Rounded::exact(sign), length);
        let result = arithmetic.subtract(decayed(*p, lr, decay, &arithmetic), step);
        if blend.value.is_nan() || blend.overflow != Overflow::None {
            new_param.push_undetermined(result.value, "the sign of what may be NaN");
        } else if blend.error > 0.0 && blend.value.abs() <= blend.error {
            new_param.push_undetermined(result.value, "a sign that rounding decides");
        } else {
            new_param.push_rounded(result, "the decayed parameter");
        }
    }
    Ok(vec![new_param, new_moment])
}
