//! rmsnorm over the last dim, with optional weight (plain, or 1 + weight).

use crate::case::Strategy;
use crate::ops::expectation::overflows;
use crate::ops::normalisation::layernorm::UNDETERMINED_VARIANCE;
use crate::ops::{BuiltIn, Call, ExcuseKind, Expectation, OpError};
use crate::schema::{Property, Scalar, Schema};

/// The op.
pub(in crate::ops) fn op() -> BuiltIn {
    BuiltIn::new(
        Schema::builtin("rmsnorm", "input[...,H] weight?[H] eps:float=1e-5 unit_offset:bool=false -> out[...,H]")
            .alias(&["rms_norm"])
            .reduces(&["H"])
            .at_least("H", 1)
            .choices("unit_offset", &[Scalar::Bool(false), Scalar::Bool(true)])
            .describe(
                "Rows divided by their root mean square; `unit_offset` scales by 1 + weight where there is one.",
                "x/sqrt(mean(x^2) + eps)*weight",
            )
            .holds(&[Property::PermutationEquivariant, Property::BatchInvariant])
            .amplified_by(&[Strategy::Tiny, Strategy::Regular])
            .usual_bugs(&["square root dropped", "eps outside of the root", "mean over the padded width"]),
        expect,
    )
}

fn expect(call: &Call<'_>) -> Result<Vec<Expectation>, OpError> {
    let (input, width) = (call.input("input")?, call.size("H")?);
    let (weight, eps) = (call.optional("weight"), call.float("eps")?);
    let offset = if call.flag("unit_offset") { 1.0 } else { 0.0 };
    let scale = |column: usize| weight.map_or(1.0, |weight| offset + weight[column]);
    normalise(call, input, width, width as f64, eps, scale)
}

/// x / √(Σx²/divisor + eps) · scale: rms with divisor H, l2 with divisor 1.
pub(in crate::ops) fn normalise(
    call: &Call<'_>,
    input: &[f64],
    width: usize,
    divisor: f64,
    eps: f64,
    scale: impl Fn(usize) -> f64,
) -> Result<Vec<Expectation>, OpError> {
    let units = call.units;
    let summation = call.summation(width.max(1))?;
    let mut expectation = Expectation::with_capacity(input.len());
    for row in input.chunks_exact(width.max(1)) {
        let squares: f64 = row.iter().map(|x| x * x).sum();
        let power = squares / divisor;
        let root = (power + eps).sqrt();
        // Squares below the smallest (sub)normal vanish, each of them.
        let lost = width as f64 * (units.eta + units.flush) / divisor;
        let relative = (units.u * (summation + 2.0) * power + lost) / (power + eps) + units.u;
        let inverse_error = if relative < 1.0 { 1.0 / (1.0 - relative).sqrt() - 1.0 } else { f64::INFINITY };
        // Of the row itself: in float64 the sum overflows here as it does in the kernel.
        let finite = row.iter().all(|x| x.is_finite());
        let undetermined = finite && (relative.is_nan() || relative >= 0.9);
        let overflow = finite && overflows(squares, units.max);
        for (column, x) in row.iter().enumerate() {
            let w = scale(column);
            let y = x / root * w;
            let condition = inverse_error + units.u * (units.rsqrt + units.division + 3.0) + units.mid;
            // A huge root makes a reciprocal subnormal, which may be flushed.
            let reciprocal = x.abs() * w.abs() * units.tiny;
            let delta = y.abs() * condition
                + reciprocal
                + (units.eta + units.flush + units.mid_eta) * (2.0 + w.abs())
                + units.flush * (w.abs() + x.abs()) / root;
            if overflow {
                let kind = ExcuseKind::Overflow { nan: false, infinite: false, value: Some(0.0) };
                expectation.push_overflow(y, delta, kind, "sum of squares");
            } else if undetermined {
                expectation.push_undetermined(y, UNDETERMINED_VARIANCE);
            } else {
                expectation.push(y, delta);
            }
        }
    }
    Ok(vec![expectation])
}
