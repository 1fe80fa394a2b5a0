//! gelu, in its erf form and its tanh form.

use crate::case::Strategy;
use crate::ops::elementwise::silu::MINUS_INFINITY;
use crate::ops::elementwise::tanh::tanh_condition;
use crate::ops::{BuiltIn, Call, ExcuseKind, Expectation, OpError};
use crate::schema::{Property, Schema, Units};

const INVERSE_SQRT_2: f64 = std::f64::consts::FRAC_1_SQRT_2;
/// √(2/π).
const TANH_SCALE: f64 = 0.797_884_560_802_865_4;
const TANH_CUBIC: f64 = 0.044_715;

pub(in crate::ops) fn erf_op() -> BuiltIn {
    BuiltIn::new(
        schema(
            "gelu",
            "0.5*x*(1 + erf(x/sqrt(2)))",
            "with erf: `approximate=\"none\"` of PyTorch, `approximate=False` of JAX and TensorFlow",
        )
        .alias(&["gelu_erf"])
        .bounded_by(
            "(u + u_mid)*(0.5*|x|*(2.26*|z|*exp(-z^2) + max(4*|e| + fast_erf/u + |1 + e|, 8*erfc(-z))) + 2*|y|) + \
                 (|x| + 1)*(tiny + eta_mid) with z = x/sqrt(2), e = erf(z), fast_erf = 2^-20 where declared: absolute in \
                 the left tail, where 1 + e cancels; 8*erfc(-z) for kernels that compute it so, with 4 ulp of error",
        ),
        expect_erf,
    )
}

pub(in crate::ops) fn tanh_op() -> BuiltIn {
    BuiltIn::new(
        schema(
            "gelu_tanh",
            "0.5*x*(1 + tanh(sqrt(2/pi)*(x + 0.044715*x^3)))",
            "with tanh: `approximate=\"tanh\"` of PyTorch, `approximate=True` of JAX (its default) and TensorFlow",
        )
        .alias(&["gelu_new", "gelu_pytorch_tanh", "gelu_fast"])
        .bounded_by(
            "(u + u_mid)*(0.5*|x|*(T + 5*(1 - t^2)*|z| + |1 + t|) + 2*|y|) + (|x| + 1)*(tiny + eta_mid) with \
             z = sqrt(2/pi)*(x + 0.044715*x^3), t = tanh(z), T = (Q + 2)*(1 + |t|) + 1 + 0.5*(1 - t^2)*(E + 4*|z|) + \
             fast_tanh*|t|/u, fast_tanh = 2^-11 where declared: absolute in the left tail, where 1 + t cancels",
        ),
        expect_tanh,
    )
}

fn schema(name: &str, formula: &str, convention: &str) -> Schema {
    Schema::builtin(name, "input[...] -> out[...]")
        .describe(&format!("Gaussian error linear unit, {convention}; at -Inf NaN or 0."), formula)
        .keywords(&["activation", "gaussian error linear unit", "transformer", "mlp", "approximate"])
        .holds(&[Property::PermutationEquivariant, Property::BatchInvariant])
        .amplified_by(&[Strategy::Regular])
        .usual_bugs(&["factor 0.5 dropped", "wrong cubic coefficient", "erf and tanh form mixed up"])
}

fn expect(call: &Call<'_>, polynomial: bool, formula: impl Fn(f64) -> (f64, f64)) -> Result<Vec<Expectation>, OpError> {
    let input = call.input("input")?;
    let mut expectation = Expectation::with_capacity(input.len());
    for x in input {
        if *x == f64::NEG_INFINITY {
            expectation.push_overflow(0.0, 0.0, MINUS_INFINITY, "-Inf times 0");
            continue;
        }
        let (y, condition) = formula(*x);
        let unguarded = polynomial && x.abs() > 0.5 * call.units.max;
        if unguarded {
            // A polynomial for erf meets Inf times 0, and x*(1 + erf) is twice the result.
            let image = ExcuseKind::Overflow { nan: x.is_infinite(), infinite: true, value: None };
            expectation.push_overflow(y, call.units.u * condition, image, "x*(1 + erf(x))");
            continue;
        }
        // Elementwise, so an intermediate dtype is that of the whole formula.
        let unit = call.units.u + call.units.mid;
        let underflow = (x.abs() + 1.0) * (call.units.tiny + call.units.mid_eta);
        expectation.push(y, unit * condition + underflow);
    }
    Ok(vec![expectation])
}

fn expect_erf(call: &Call<'_>) -> Result<Vec<Expectation>, OpError> {
    expect(call, call.precision.fast_erf, |x| erf_form(x, &call.units))
}

fn expect_tanh(call: &Call<'_>) -> Result<Vec<Expectation>, OpError> {
    expect(call, false, |x| tanh_form(x, &call.units))
}

/// y and δ/u of the erf form for x above −Inf, without the underflow term.
pub(in crate::ops) fn erf_form(x: f64, units: &Units) -> (f64, f64) {
    let z = x * INVERSE_SQRT_2;
    let y = 0.5 * x * libm::erfc(-z);
    (y, 0.5 * x.abs() * doubled_share_condition(z, units) + 2.0 * y.abs())
}

/// δ/u of twice the share of a normal distribution below x = √2·z, by whichever way loses more: 1 + erf(z) with an erf
/// of 2 ulp, which cancels on the left, or erfc(−z) of 4 ulp.
pub(in crate::ops) fn doubled_share_condition(z: f64, units: &Units) -> f64 {
    let e = libm::erf(z);
    let argument = if z.abs() > 27.0 { 0.0 } else { 2.26 * z.abs() * libm::exp(-z * z) };
    let sum = 4.0 * e.abs() + units.fast_erf / units.u + (1.0 + e).abs();
    argument + sum.max(8.0 * libm::erfc(-z))
}

/// y and δ/u of the tanh form for x above −Inf, without the underflow term.
pub(in crate::ops) fn tanh_form(x: f64, units: &Units) -> (f64, f64) {
    let z = TANH_SCALE * (x + TANH_CUBIC * x * x * x);
    let t = libm::tanh(z);
    let y = x * super::sigmoid::sigmoid(2.0 * z);
    let slope = 1.0 - t * t;
    let argument = if slope == 0.0 { 0.0 } else { 5.0 * slope * z.abs() };
    let condition = 0.5 * x.abs() * (tanh_condition(z, t, units) + argument + (1.0 + t).abs()) + 2.0 * y.abs();
    (y, condition)
}
