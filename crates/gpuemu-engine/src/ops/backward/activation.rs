//! The backward of silu, gelu and swiglu.

use super::NAN_TOO;
use crate::case::Strategy;
use crate::ops::elementwise::gelu::doubled_share_condition;
use crate::ops::elementwise::sigmoid::{sigmoid, sigmoid_condition};
use crate::ops::elementwise::silu::{MINUS_INFINITY, silu};
use crate::ops::elementwise::tanh::tanh_condition;
use crate::ops::rounded::ANY_OVERFLOW;
use crate::ops::{Arithmetic, BuiltIn, Call, Expectation, OpError, Overflow, Rounded};
use crate::schema::{Property, Scalar, Schema};

const INFINITE: &str = "the slope at infinity: infinity times 0";

fn described(schema: Schema) -> Schema {
    schema
        .keywords(&["gradient", "backward", "activation", "training"])
        .help("grad_output", "upstream gradient")
        .holds(&[
            Property::PermutationEquivariant,
            Property::BatchInvariant,
            Property::Homogeneous { input: "grad_output", degree: 1 },
        ])
        .amplified_by(&[Strategy::Regular])
}

const SILU_BOUND: &str = "|dy|*ds + 2*u*|y|, with ds = (1 + |x|(1-s))*dsigmoid + s*|x|*(dsigmoid + u) + \
    u*(3*s*|x|(1-s) + 2*|s'|), s = sigmoid(x), s' = s*(1 + x(1-s))";

pub(in crate::ops) fn silu_op() -> BuiltIn {
    BuiltIn::new(
        described(Schema::builtin("silu_backward", "grad_output[...] input[...] -> grad_input[...]"))
            .alias(&["swish_backward"])
            .describe(
                "Gradient of silu (swish) from its input; at +Inf NaN or the gradient, at -Inf NaN or 0.",
                "grad_output*sigmoid(x)*(1 + x*(1 - sigmoid(x)))",
            )
            .help("input", "input of the forward")
            .bounded_by(SILU_BOUND)
            .usual_bugs(&["the term x*s*(1-s) missing", "sign of that term", "upstream gradient forgotten"]),
        |call| unary(call, silu_slope),
    )
}

/// gelu_backward, of the erf form or the tanh form.
pub(in crate::ops) fn gelu_op() -> BuiltIn {
    let signature = "grad_output[...] input[...] approximate:bool=false -> grad_input[...]";
    BuiltIn::new(
        described(Schema::builtin("gelu_backward", signature))
            .choices("approximate", &[Scalar::Bool(false), Scalar::Bool(true)])
            .describe(
                "Gradient of gelu from its input, of the erf form or (`approximate`) the tanh form; at +Inf NaN or the \
                 gradient, at -Inf NaN or 0.",
                "grad_output*(cdf(x) + x*pdf(x)); approximate: \
                 grad_output*0.5*(1 + t + x*(1 - t^2)*z'), t = tanh(z), z = sqrt(2/pi)*(x + 0.044715*x^3)",
            )
            .help("input", "input of the forward")
            .help("approximate", "whether the forward was the tanh form")
            .bounded_by(
                "|dy|*ds + 2*u*|y|, with ds = dcdf + |x|*pdf*u*(E + 2*x^2 + 4) + u*|s'|; approximate: \
                 ds = dtanh/2 + |x*z'|*(|t|*dtanh + u*(1 + 3*(1-t^2))) + u*(|1+t| + |s'|)",
            )
            .usual_bugs(&[
                "the term with the density missing",
                "erf and tanh form mixed up",
                "derivative of the cubic term dropped",
            ]),
        |call| {
            let approximate = call.flag("approximate");
            unary(call, |arithmetic, x| if approximate { tanh_slope(arithmetic, x) } else { erf_slope(arithmetic, x) })
        },
    )
}

pub(in crate::ops) fn swiglu_op() -> BuiltIn {
    let signature = "grad_output[...,H] gate[...,H] up[...,H] -> grad_gate[...,H] grad_up[...,H]";
    BuiltIn::new(
        described(Schema::builtin("swiglu_backward", signature))
            .alias(&["silu_and_mul_backward"])
            .describe(
                "Gradients of silu(gate)*up with respect to both; at an infinite gate NaN or the limit.",
                "grad_gate = grad_output*up*sigmoid(gate)*(1 + gate*(1 - sigmoid(gate))); \
                 grad_up = grad_output*silu(gate)",
            )
            .help("gate", "the half that silu was applied to")
            .help("up", "the other half")
            .bounded_by("grad_up: |dy|*dsilu + 2*u*|y|; grad_gate: |dy*up|*ds + 3*u*|y|, ds as for silu_backward")
            .usual_bugs(&[
                "halves swapped",
                "gradient of the gate without `up`",
                "slope of the sigmoid in place of that of silu",
            ]),
        expect_swiglu,
    )
}

/// σ(x)·(1 + x·(1 − σ(x))) of a finite x.
fn silu_slope(arithmetic: &Arithmetic, x: f64) -> Rounded {
    let units = &arithmetic.units;
    let gate = sigmoid(x);
    // σ(−x) keeps its digits where 1 − σ(x) cancels; the kernel's does not, unless its σ(x) is 1.
    let rest = sigmoid(-x);
    let gate_error = units.u * sigmoid_condition(x, gate, units) + 2.0 * units.tiny;
    let rest_error = if rest < 0.25 * units.u { rest } else { gate_error + units.u };
    let value = gate * (1.0 + x * rest);
    let bent = x.abs() * rest;
    let error = (1.0 + bent) * gate_error
        + gate * x.abs() * rest_error
        + units.u * (3.0 * gate * bent + 2.0 * value.abs())
        + 2.0 * (units.eta + units.flush);
    Rounded { value, error, overflow: Overflow::None }
}

/// Φ(x) + x·φ(x) of a finite x.
fn erf_slope(arithmetic: &Arithmetic, x: f64) -> Rounded {
    let units = &arithmetic.units;
    let z = x * std::f64::consts::FRAC_1_SQRT_2;
    let bell = if z.abs() > 27.0 { 0.0 } else { libm::exp(-z * z) };
    // 1/√(2π).
    let density = 0.398_942_280_401_432_7 * bell;
    let below = 0.5 * libm::erfc(-z);
    let value = below + x * density;
    let below_error = 0.5 * units.u * doubled_share_condition(z, units);
    let density_error = units.u * density * (units.exp + 4.0 * z * z + 4.0) + units.tiny;
    let density_error = if density == 0.0 { units.tiny } else { density_error };
    let error = below_error + x.abs() * density_error + units.u * value.abs() + units.tiny;
    Rounded { value, error, overflow: Overflow::None }
}

/// ½(1 + t) + ½x(1 − t²)z′ of a finite x.
fn tanh_slope(arithmetic: &Arithmetic, x: f64) -> Rounded {
    let units = &arithmetic.units;
    let (scale, cubic) = (0.797_884_560_802_865_4, 0.044_715);
    let z = scale * (x + cubic * x * x * x);
    let t = libm::tanh(z);
    // sech² keeps its digits where 1 − t² cancels.
    let slope = if z.abs() > 350.0 { 0.0 } else { 1.0 / libm::cosh(z).powi(2) };
    let inner = scale * (1.0 + 3.0 * cubic * x * x);
    let bent = (0.5 * x * inner).abs();
    let below = sigmoid(2.0 * z);
    let value = below + if slope == 0.0 { 0.0 } else { 0.5 * x * slope * inner };
    let argument = if slope == 0.0 { 0.0 } else { 5.0 * slope * z.abs() };
    let tanh_error = units.u * (tanh_condition(z, t, units) + argument);
    // 1 − t² is 0 where t is ±1.
    let saturated = libm::exp(-2.0 * z.abs()) < 0.25 * units.u;
    let slope_error = if saturated { slope } else { 2.0 * t.abs() * tanh_error + units.u * (2.0 + 6.0 * slope) };
    let error = 0.5 * tanh_error
        + if slope_error == 0.0 { 0.0 } else { bent * slope_error }
        + units.u * (below + value.abs())
        + units.tiny * (1.0 + bent);
    // x³ overflows to infinity, the tanh of it is 1, and 0 times z′ is NaN.
    let cube = (x * x * x).abs() > Expectation::OVERFLOW_SHARE * units.max;
    Rounded { value, error, overflow: if cube { Overflow::Before } else { Overflow::None } }
}

fn unary(call: &Call<'_>, slope: impl Fn(&Arithmetic, f64) -> Rounded) -> Result<Vec<Expectation>, OpError> {
    let (gradient, input) = (call.input("grad_output")?, call.input("input")?);
    let arithmetic = Arithmetic::of(call);
    let mut expectation = Expectation::with_capacity(input.len());
    for (dy, x) in gradient.iter().zip(input) {
        if x.is_infinite() {
            push_limit(&mut expectation, Rounded::exact(*dy), *x > 0.0);
            continue;
        }
        let slope = slope(&arithmetic, *x);
        let product = arithmetic.slack(arithmetic.multiply(Rounded::exact(*dy), slope), 1.0);
        push_product(&mut expectation, product, slope);
    }
    Ok(vec![expectation])
}

/// At an infinite x the slope is 1 or 0, and kernels that multiply infinity by 0 return NaN.
fn push_limit(expectation: &mut Expectation, factor: Rounded, upper: bool) {
    let limit = if upper { factor.value } else { factor.value * 0.0 };
    if factor.overflow == Overflow::Lost {
        expectation.push_undetermined(limit, INFINITE);
    } else if limit.is_nan() {
        expectation.push(limit, 0.0);
    } else if factor.overflow != Overflow::None {
        expectation.push_overflow(limit, factor.error, ANY_OVERFLOW, INFINITE);
    } else {
        expectation.push_overflow(limit, if upper { factor.error } else { 0.0 }, NAN_TOO, INFINITE);
    }
}

/// A product with a slope: where that may be 0, infinity times it is NaN or has the other sign.
fn push_product(expectation: &mut Expectation, product: Rounded, slope: Rounded) {
    if product.overflow != Overflow::Lost && product.value.is_infinite() && slope.value.abs() <= slope.error {
        expectation.push_overflow(product.value, 0.0, ANY_OVERFLOW, "infinity times a slope of about 0");
    } else {
        expectation.push_rounded(product, "a product before the last factor");
    }
}

fn expect_swiglu(call: &Call<'_>) -> Result<Vec<Expectation>, OpError> {
    let (gradient, gate, up) = (call.input("grad_output")?, call.input("gate")?, call.input("up")?);
    let arithmetic = Arithmetic::of(call);
    let units = &arithmetic.units;
    let mut grad_gate = Expectation::with_capacity(gate.len());
    let mut grad_up = Expectation::with_capacity(gate.len());
    for ((dy, x), up) in gradient.iter().zip(gate).zip(up) {
        let (dy, up) = (Rounded::exact(*dy), Rounded::exact(*up));
        let product = arithmetic.intermediate(arithmetic.multiply(dy, up));
        if x.is_infinite() {
            push_limit(&mut grad_gate, product, *x > 0.0);
        } else {
            let slope = silu_slope(&arithmetic, *x);
            let mut result = arithmetic.slack(arithmetic.multiply(product, slope), 1.0);
            // The factors in another order: each pair may overflow, and lose a subnormal to be multiplied.
            result.error += (units.eta + units.flush) * (dy.value.abs() + up.value.abs());
            let pairs = [arithmetic.multiply(dy, slope), arithmetic.multiply(up, slope)];
            if pairs.iter().any(|pair| pair.overflow != Overflow::None) {
                result.overflow = result.overflow.max(Overflow::Before);
            }
            push_product(&mut grad_gate, result, slope);
        }
        if *x == f64::NEG_INFINITY && !dy.value.is_nan() {
            let value = if dy.value.is_infinite() { f64::NAN } else { 0.0 };
            grad_up.push_overflow(value, 0.0, MINUS_INFINITY, "-Inf times 0");
            continue;
        }
        let (value, error) = silu(*x, units);
        let activated = arithmetic.intermediate(Rounded { value, error, overflow: Overflow::None });
        let result = arithmetic.slack(arithmetic.multiply(dy, activated), 1.0);
        push_product(&mut grad_up, result, activated);
    }
    Ok(vec![grad_gate, grad_up])
}
