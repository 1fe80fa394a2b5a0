//! The linear layer of neural networks, alone and with an activation fused to it.

use super::product::{Products, push, transposed};
use crate::case::Strategy;
use crate::ops::elementwise::gelu::{erf_form, tanh_form};
use crate::ops::elementwise::sigmoid::sigmoid;
use crate::ops::elementwise::silu::silu;
use crate::ops::{Arithmetic, BuiltIn, Call, ExcuseKind, Expectation, OpError, Overflow, Rounded};
use crate::schema::{Property, Scalar, Schema, Units};

/// What follows the product.
#[derive(Clone, Copy, PartialEq)]
enum Activation {
    None,
    Relu,
    GeluErf,
    GeluTanh,
    Silu,
}

/// linear and its fused forms.
pub(in crate::ops) fn ops() -> [BuiltIn; 4] {
    let plain = schema("linear", "", "", "")
        .alias(&["dense", "fully_connected"])
        .holds(&[Property::Linear { input: "input" }, Property::Linear { input: "weight" }])
        .amplified_by(&[Strategy::Integers, Strategy::Regular]);
    let relu = schema("linear_relu", "relu", ", then max(z, 0), which keeps NaN", "relu")
        .alias(&["fused_linear_relu"])
        .amplified_by(&[Strategy::Integers, Strategy::Regular]);
    let gelu = with_parameter(
        "linear_gelu",
        "gelu",
        ", then gelu: 0.5*z*(1 + erf(z/sqrt(2))), or its tanh form; at -Inf NaN or 0",
        "gelu",
        "approximate_tanh:bool=false",
    )
    .alias(&["fused_linear_gelu", "fused_dense_gelu"])
    .help("approximate_tanh", "the tanh form, `approximate=\"tanh\"` in PyTorch; otherwise the erf form")
    .choices("approximate_tanh", &[Scalar::Bool(false), Scalar::Bool(true)])
    .amplified_by(&[Strategy::Tiny, Strategy::Regular]);
    let silu = schema("linear_silu", "silu", ", then z*sigmoid(z); at -Inf NaN or 0", "silu")
        .alias(&["fused_linear_silu", "linear_swish"])
        .amplified_by(&[Strategy::Tiny, Strategy::Regular]);
    [
        BuiltIn::new(plain, |call| expect(call, Activation::None)),
        BuiltIn::new(relu, |call| expect(call, Activation::Relu)),
        BuiltIn::new(gelu, |call| {
            expect(call, if call.flag("approximate_tanh") { Activation::GeluTanh } else { Activation::GeluErf })
        }),
        BuiltIn::new(silu, |call| expect(call, Activation::Silu)),
    ]
}

fn schema(name: &str, activation: &str, then: &str, keyword: &str) -> Schema {
    with_parameter(name, activation, then, keyword, "")
}

fn with_parameter(name: &str, activation: &str, then: &str, keyword: &str, parameter: &str) -> Schema {
    let space = if parameter.is_empty() { "" } else { " " };
    let signature = format!("input[...,K] weight[N,K] bias?[N]{space}{parameter} -> out[...,N]");
    let formula = format!("{activation}(input @ weight.T + bias)");
    let bound = if activation.is_empty() {
        "u*F(K+1)*(sum_k |input||weight| + |bias|): the sum may start with the bias".to_string()
    } else {
        format!(
            "d(z)*|{activation}'| + the error of {activation} itself, with d(z) = u*F(K+1)*(sum_k |input||weight| + \
            |bias|)"
        )
    };
    Schema::builtin(name, &signature)
        .describe(&format!("Rows times the transposed weight, plus a bias{then}."), &formula)
        .help("weight", "one row per output feature, as in torch.nn.functional.linear")
        .help("bias", "one number per output feature; nothing is added where it is absent")
        .keywords(&["gemm", "dense", "fully connected", "projection", "mlp", keyword])
        .reduces(&["K"])
        .bounded_by(&bound)
        .holds(&[Property::PermutationEquivariant, Property::BatchInvariant])
        .usual_bugs(&[
            "bias by row in place of column",
            "weight not transposed",
            "K tail not masked",
            "activation before the bias or before the last tile",
        ])
}

fn expect(call: &Call<'_>, activation: Activation) -> Result<Vec<Expectation>, OpError> {
    let (input, weight, bias) = (call.input("input")?, call.input("weight")?, call.optional("bias"));
    let (rows, inner, columns) = (call.batch_count(), call.size("K")?, call.size("N")?);
    let turned = transposed(weight, columns, inner);
    let product = Products::of(call, input, &turned, rows, inner, columns);
    let summation = call.summation(inner.max(1) + usize::from(bias.is_some()))?;
    let arithmetic = Arithmetic::of(call);
    let mut expectation = Expectation::with_capacity(product.values.len());
    for index in 0..product.values.len() {
        let addend = bias.map_or(0.0, |bias| bias[index % columns]);
        let mut z = product.element(call, index, addend, summation);
        if call.units.mid > 0.0 && z.value.is_finite() {
            // The product alone may be rounded before the bias, and the sum after it.
            z = z.widened(call.units.mid * product.values[index].abs() + call.units.mid_eta);
            if activation != Activation::None {
                z = arithmetic.intermediate(z);
            }
        }
        push_activated(&mut expectation, z, activation, &arithmetic.units);
    }
    Ok(vec![expectation])
}

fn push_activated(expectation: &mut Expectation, z: Rounded, activation: Activation, units: &Units) {
    let (name, x) = ("|input||weight|", z.value);
    let (value, slope, curvature, own) = match activation {
        Activation::None => return push(expectation, z, name),
        Activation::Relu => {
            let value = if x.is_nan() || x > 0.0 { x } else { 0.0 };
            let error = if x < -z.error || !value.is_finite() { 0.0 } else { z.error };
            return push_bounded(expectation, Rounded { value, error: error + units.flush, ..z }, name);
        }
        _ if x == f64::NEG_INFINITY => {
            // −Inf · 0 is NaN; the limit is 0.
            let infinite = z.overflow == Overflow::Before;
            let kind = ExcuseKind::Overflow { nan: true, infinite, value: Some(0.0) };
            return expectation.push_overflow(0.0, 0.0, kind, "-Inf times 0");
        }
        Activation::Silu => {
            let (value, own) = silu(x, units);
            let gate = sigmoid(x);
            (value, gate * (1.0 + x * sigmoid(-x)), 0.5, own)
        }
        Activation::GeluErf => gelu_erf(x, units),
        Activation::GeluTanh => gelu_tanh(x, units),
    };
    // No activation here is steeper than 1.13; where z is known well, the slope there counts.
    let steepest = if slope.is_nan() { 1.13 } else { (slope.abs() + curvature * z.error).min(1.13) };
    let error = if value.is_finite() { z.error * steepest + own } else { 0.0 };
    let unguarded = units.fast_erf > 0.0 && activation == Activation::GeluErf && x.abs() > 0.5 * units.max;
    let carried = z.overflow != Overflow::None || unguarded;
    let overflow = if carried { Overflow::Before } else { Overflow::None };
    push_bounded(expectation, Rounded { value, error, overflow }, name);
}

/// Pushes an activated element: a sum that overflowed to −Inf becomes 0.
fn push_bounded(expectation: &mut Expectation, y: Rounded, name: &'static str) {
    if y.overflow == Overflow::Before {
        let kind = ExcuseKind::Overflow { nan: true, infinite: true, value: Some(0.0) };
        expectation.push_overflow(y.value, y.error, kind, name);
    } else {
        push(expectation, y, name);
    }
}

/// Value, slope, largest curvature and own error of ½x(1 + erf(x/√2)).
fn gelu_erf(x: f64, units: &Units) -> (f64, f64, f64, f64) {
    let z = x * std::f64::consts::FRAC_1_SQRT_2;
    let density = if z.abs() > 27.0 { 0.0 } else { libm::exp(-z * z) };
    let (y, condition) = erf_form(x, units);
    let own = units.u * condition + (x.abs() + 1.0) * units.tiny;
    let slope = 0.5 * libm::erfc(-z) + if density == 0.0 { 0.0 } else { x * density * 0.398_942_280_401_432_7 };
    (y, slope, 0.8, own)
}

/// The same of ½x(1 + tanh(√(2/π)(x + 0.044715x³))).
fn gelu_tanh(x: f64, units: &Units) -> (f64, f64, f64, f64) {
    const SCALE: f64 = 0.797_884_560_802_865_4;
    const CUBIC: f64 = 0.044_715;
    let z = SCALE * (x + CUBIC * x * x * x);
    let t = libm::tanh(z);
    let flat = 1.0 - t * t;
    let (y, condition) = tanh_form(x, units);
    let steep = if flat == 0.0 { 0.0 } else { 0.5 * x * flat * SCALE * (1.0 + 3.0 * CUBIC * x * x) };
    (y, 0.5 * (1.0 + t) + steep, 0.8, units.u * condition + (x.abs() + 1.0) * units.tiny)
}
