//! sgd with momentum: one step, over parameter and buffer.

use crate::case::Strategy;
use crate::ops::{Arithmetic, BuiltIn, Call, Expectation, OpError, Rounded};
use crate::schema::{Property, Scalar, Schema};

pub(in crate::ops) fn op() -> BuiltIn {
    BuiltIn::new(
        Schema::builtin(
            "sgd",
            "param[...] grad[...] momentum_buffer[...] lr:float=1e-3 momentum:float=0.9 dampening:float=0.0 \
             weight_decay:float=0.0 nesterov:bool=false -> param[...] momentum_buffer[...]",
        )
        .alias(&["sgd_step", "sgd_momentum", "fused_sgd"])
        .choices("lr", &[1e-3, 0.1].map(Scalar::Float))
        .choices("momentum", &[0.9, 0.5, 0.0].map(Scalar::Float))
        .choices("dampening", &[0.0, 0.1].map(Scalar::Float))
        .choices("weight_decay", &[0.0, 0.01].map(Scalar::Float))
        .choices("nesterov", &[Scalar::Bool(false), Scalar::Bool(true)])
        .describe(
            "One step of SGD in place, all state in the dtype of the parameter: weight decay is added to the gradient \
             (L2), the buffer follows, and the parameter moves against it, with `nesterov` against the gradient plus \
             momentum times the new buffer. The buffer is one of an earlier step, so dampening applies; with momentum \
             0 it stays as it is. The new buffer enters the update as computed.",
            "g = grad + weight_decay*p; b = momentum*b + (1 - dampening)*g; p = p - lr*(nesterov ? g + momentum*b : b)",
        )
        .keywords(&["optimizer", "optimiser", "momentum", "nesterov", "stochastic gradient descent", "in place"])
        .help("param", "parameter, updated in place")
        .help("grad", "gradient")
        .help("momentum_buffer", "buffer of an earlier step, updated in place")
        .help("lr", "learning rate")
        .help("momentum", "decay rate of the buffer; 0 for plain gradient descent")
        .help("dampening", "share of the gradient that does not enter the buffer")
        .help("weight_decay", "L2 penalty: this times the parameter is added to the gradient")
        .help("nesterov", "whether the step looks ahead by momentum times the new buffer")
        .bounded_by(
            "step by step: g: u*(|grad| + 3*weight_decay*|p|); b: dg + u*(2*momentum*|b| + 3*|g|); \
             param: lr*db + u*(2*lr*|b| + |p|)",
        )
        .holds(&[Property::PermutationEquivariant, Property::BatchInvariant])
        .amplified_by(&[Strategy::Regular, Strategy::Mixed])
        .usual_bugs(&[
            "weight decay missing in the buffer",
            "nesterov with the old buffer",
            "dampening applied to the buffer",
            "learning rate inside of the buffer",
        ]),
        expect,
    )
}

const OVERFLOW: &str = "a product of gradient, buffer or parameter";

fn expect(call: &Call<'_>) -> Result<Vec<Expectation>, OpError> {
    let (param, grad, buffer) = (call.input("param")?, call.input("grad")?, call.input("momentum_buffer")?);
    let (lr, momentum, decay) = (call.float("lr")?, call.float("momentum")?, call.float("weight_decay")?);
    let (dampening, nesterov) = (call.float("dampening")?, call.flag("nesterov"));
    let arithmetic = Arithmetic::of(call);
    let [rate, kept, penalty] = [lr, momentum, decay].map(|value| arithmetic.constant(value));
    let added = arithmetic.subtract(Rounded::exact(1.0), arithmetic.constant(dampening));
    let mut new_param = Expectation::with_capacity(param.len());
    let mut new_buffer = Expectation::with_capacity(param.len());
    for ((p, g), b) in param.iter().zip(grad).zip(buffer) {
        let parameter = Rounded::exact(*p);
        let mut gradient = Rounded::exact(*g);
        if decay != 0.0 {
            gradient = arithmetic.add(gradient, arithmetic.multiply(penalty, parameter));
        }
        let mut direction = gradient;
        if momentum == 0.0 {
            new_buffer.push(*b, 0.0);
        } else {
            let old = arithmetic.multiply(kept, Rounded::exact(*b));
            let share = if dampening == 0.0 { gradient } else { arithmetic.multiply(added, gradient) };
            let followed = arithmetic.add(old, share);
            new_buffer.push_rounded(followed, OVERFLOW);
            let followed = arithmetic.intermediate(followed);
            direction = if nesterov { arithmetic.add(gradient, arithmetic.multiply(kept, followed)) } else { followed };
        }
        let moved = arithmetic.subtract(parameter, arithmetic.multiply(rate, direction));
        new_param.push_rounded(moved, OVERFLOW);
    }
    Ok(vec![new_param, new_buffer])
}
