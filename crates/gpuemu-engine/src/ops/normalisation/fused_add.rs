//! A residual added, then normalised: fused_add_rmsnorm (in place) and fused_add_layernorm.

use crate::case::Strategy;
use crate::ops::normalisation::layernorm::push_normalised;
use crate::ops::normalisation::rmsnorm::normalise;
use crate::ops::{Arithmetic, BuiltIn, Call, Expectation, OpError, Rounded};
use crate::schema::{Property, Scalar, Schema};

const BOTH: [Scalar; 2] = [Scalar::Bool(false), Scalar::Bool(true)];

fn described(schema: Schema) -> Schema {
    schema
        .reduces(&["H"])
        .at_least("H", 1)
        .choices("round_residual", &BOTH)
        .choices("eps", &[Scalar::Float(1e-6), Scalar::Float(1e-5)])
        .help("residual", "added to the input before the norm")
        .help(
            "round_residual",
            "whether the sum is rounded to the tensors' dtype before it is normalised, as by kernels that add in that \
             dtype; otherwise the norm takes it as computed, and only what is stored is rounded",
        )
        .help("eps", "added under the root")
        .holds(&[Property::PermutationEquivariant, Property::BatchInvariant])
        .amplified_by(&[Strategy::Tiny, Strategy::Regular])
        .usual_bugs(&[
            "the residual stored is that before the addition",
            "the input normalised without its residual",
            "sum rounded before the norm, or not, against the convention",
            "mean over the padded width",
            "eps outside of the root",
        ])
}

pub(in crate::ops) fn rmsnorm_op() -> BuiltIn {
    let schema = Schema::builtin(
        "fused_add_rmsnorm",
        "input[...,H] residual[...,H] weight[H] eps:float=1e-6 round_residual:bool=false unit_offset:bool=false \
         -> input[...,H] residual[...,H]",
    );
    BuiltIn::new(
        described(schema)
            .alias(&["fused_add_rms_norm", "add_rmsnorm", "rmsnorm_residual"])
            .choices("unit_offset", &BOTH)
            .describe(
                "The residual becomes input + residual and the input that sum divided by its root mean square, both in \
                 place; `unit_offset` scales by 1 + weight.",
                "residual = input + residual; input = residual/sqrt(mean(residual^2) + eps)*weight",
            )
            .keywords(&["normalisation", "normalization", "root mean square", "residual", "in place", "transformer"])
            .help("input", "overwritten with the normalised sum")
            .help("weight", "factor of a column; 1 + weight with `unit_offset`")
            .help("unit_offset", "whether the factor is 1 + weight")
            .bounded_by(
                "residual: u*|y|; input: |y|*(g + u*(R+Q+3)) + |w|/rms*ds, with ds the error of the sum and g the \
                 relative error of 1/rms, to which ds contributes",
            ),
        expect_rmsnorm,
    )
}

pub(in crate::ops) fn layernorm_op() -> BuiltIn {
    let schema = Schema::builtin(
        "fused_add_layernorm",
        "input[...,H] residual[...,H] weight?[H] bias?[H] eps:float=1e-5 round_residual:bool=false \
         -> out[...,H] residual_out[...,H]",
    );
    BuiltIn::new(
        described(schema)
            .alias(&["fused_add_layer_norm", "add_layernorm", "layernorm_residual"])
            .describe(
                "input + residual, and that sum normalised to mean 0 and (biased) variance 1; the inputs stay as they \
                 are.",
                "residual_out = input + residual; out = (residual_out - mean)/sqrt(var + eps)*weight + bias",
            )
            .keywords(&["normalisation", "normalization", "residual", "layer norm", "transformer"])
            .help("weight", "factor of a column; 1 where absent")
            .help("bias", "addend of a column; 0 where absent")
            .help("residual_out", "the sum")
            .bounded_by(
                "residual_out: u*|y|; out: as layernorm, with the error of the sum added to that of the mean, of the \
                 variance and of each element",
            ),
        expect_layernorm,
    )
}

fn expect_rmsnorm(call: &Call<'_>) -> Result<Vec<Expectation>, OpError> {
    let (weight, width, eps) = (call.input("weight")?, call.size("H")?, call.float("eps")?);
    let offset = if call.flag("unit_offset") { 1.0 } else { 0.0 };
    let Sum { stored, values, errors } = Sum::of(call)?;
    let scale = |column: usize| offset + weight[column];
    let mut expectations = normalise(call, &values, Some(&errors), width, width as f64, eps, scale)?;
    expectations.push(stored);
    Ok(expectations)
}

fn expect_layernorm(call: &Call<'_>) -> Result<Vec<Expectation>, OpError> {
    let (width, eps) = (call.size("H")?, call.float("eps")?);
    let (weight, bias) = (call.optional("weight"), call.optional("bias"));
    let Sum { stored, values, errors } = Sum::of(call)?;
    let affine = |column: usize| (weight.map_or(1.0, |weight| weight[column]), bias.map_or(0.0, |bias| bias[column]));
    let mut expectation = Expectation::with_capacity(values.len());
    for (row, errors) in values.chunks_exact(width.max(1)).zip(errors.chunks_exact(width.max(1))) {
        push_normalised(&mut expectation, row, Some(errors), eps, affine, call)?;
    }
    Ok(vec![expectation, stored])
}

/// input + residual: as it is stored, and as it is normalised.
struct Sum {
    stored: Expectation,
    values: Vec<f64>,
    errors: Vec<f64>,
}

impl Sum {
    fn of(call: &Call<'_>) -> Result<Self, OpError> {
        let (input, residual) = (call.input("input")?, call.input("residual")?);
        let arithmetic = Arithmetic::of(call);
        let rounded = call.flag("round_residual");
        let mut stored = Expectation::with_capacity(input.len());
        let (mut values, mut errors) = (Vec::with_capacity(input.len()), Vec::with_capacity(input.len()));
        for (x, r) in input.iter().zip(residual) {
            let sum = arithmetic.add(Rounded::exact(*x), Rounded::exact(*r));
            stored.push(sum.value, sum.error);
            let (value, error) = if rounded { once_or_twice(sum.value, call) } else { (sum.value, sum.error) };
            values.push(value);
            errors.push(if value.is_finite() { error } else { 0.0 });
        }
        Ok(Self { stored, values, errors })
    }
}

/// A sum rounded to the dtype of the case, and how far from it one lies that was rounded to float32 before.
fn once_or_twice(sum: f64, call: &Call<'_>) -> (f64, f64) {
    let round = |value: f64| call.dtype.decode(call.dtype.encode(value));
    let once = round(sum);
    if call.units.reference > 0.0 {
        return (once, 0.0);
    }
    let twice = round(f64::from(sum as f32));
    let flushed = if once.abs() < call.units.flush { once.abs() } else { 0.0 };
    (once, if once == twice { 0.0 } else { (once - twice).abs() } + flushed)
}
