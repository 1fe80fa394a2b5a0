//! layernorm over the last dim, with optional weight and bias.

use crate::case::Strategy;
use crate::ops::expectation::overflows;
use crate::ops::{BuiltIn, Call, ExcuseKind, Expectation, OpError};
use crate::schema::{Property, Scalar, Schema, VarianceForm};

pub(in crate::ops) fn op() -> BuiltIn {
    BuiltIn::new(
        Schema::builtin("layernorm", "input[...,H] weight?[H] bias?[H] eps:float=1e-5 -> out[...,H]")
            .alias(&["layer_norm"])
            .choices("eps", &[Scalar::Float(1e-5), Scalar::Float(1e-5), Scalar::Float(1e-3)])
            .reduces(&["H"])
            .at_least("H", 1)
            .describe(
                "Rows normalised to mean 0 and variance 1, then scaled and shifted where there are `weight` and `bias`. \
                 The variance is biased (divided by H), and `eps` is added to it, inside of the root.",
                "(x - mean)/sqrt(var + eps)*weight + bias",
            )
            .help("weight", "factor of each column (gamma, scale); 1 where absent")
            .help("bias", "addend of each column (beta); 0 where absent")
            .help("eps", "added to the variance, inside of the root")
            .holds(&[Property::PermutationEquivariant, Property::BatchInvariant])
            .amplified_by(&[Strategy::Tiny, Strategy::Shifted, Strategy::Regular])
            .bounded_by("|w|*r*(1 + g)*dm + |w*n|*(g + u*(R + 4)) + u*(|y| + |b|) + 2*u_mid*|w*n| and underflow, with n = (x - \
                 mean)*r, r = 1/sqrt(var + eps), dm = u*(F*mean|x| + 2*|mean|), g = (1 - dv/(var + eps) - u)^(-1/2) - 1, \
                 dv = u*(F + 4)*var + dm^2, and u*F*sqrt(var*mean(x^2)) more unless two-pass, u*(F + 3)*(mean(x^2) + \
                 2*|mean|*mean|x|) more where one-pass; 2*u*(|x| + |mean|)*r*|w| more where folded; nothing is said \
                 where dv >= 0.9*(var + eps)")
            .keywords(&["normalisation", "layer normalization", "mean", "variance", "gamma", "beta", "transformer"])
            .usual_bugs(&[
                "padding enters the variance",
                "one-pass variance",
                "eps outside of the root",
                "unbiased variance",
            ]),
        expect,
    )
}

pub(in crate::ops) const UNDETERMINED_VARIANCE: &str = "variance lost to rounding";

fn expect(call: &Call<'_>) -> Result<Vec<Expectation>, OpError> {
    let (input, width) = (call.input("input")?, call.size("H")?);
    let (weight, bias, eps) = (call.optional("weight"), call.optional("bias"), call.float("eps")?);
    let mut expectation = Expectation::with_capacity(input.len());
    let affine = |column: usize| (weight.map_or(1.0, |weight| weight[column]), bias.map_or(0.0, |bias| bias[column]));
    for row in input.chunks_exact(width.max(1)) {
        push_normalised(&mut expectation, row, None, eps, affine, call)?;
    }
    Ok(vec![expectation])
}

/// Adds (x − mean)/√(var + eps)·weight + bias of one row. `affine` gives weight and bias of a column, `inexact` how far
/// off each x may be before it is normalised.
pub(in crate::ops) fn push_normalised(
    expectation: &mut Expectation,
    row: &[f64],
    inexact: Option<&[f64]>,
    eps: f64,
    affine: impl Fn(usize) -> (f64, f64),
    call: &Call<'_>,
) -> Result<(), OpError> {
    let units = call.units;
    let moments = Moments::of(row, inexact, eps, call)?;
    for (column, x) in row.iter().enumerate() {
        let (w, b) = affine(column);
        let own = inexact.map_or(0.0, |inexact| inexact[column]);
        let normalised = (x - moments.mean) * moments.inverse_deviation;
        let scaled = w * normalised;
        let y = scaled + b;
        let growth = 1.0 + moments.inverse_error;
        let mut delta = w.abs() * moments.inverse_deviation * growth * (moments.mean_error + own)
            + scaled.abs() * (moments.inverse_error + units.u * (units.rsqrt + 4.0))
            + units.u * (y.abs() + b.abs())
            + 2.0 * units.mid * scaled.abs()
            + units.mid_eta * (1.0 + w.abs())
            + units.eta * (2.0 + w.abs())
            + units.flush * (2.0 + w.abs() * (1.0 + moments.inverse_deviation) + normalised.abs())
            // A huge deviation makes a reciprocal subnormal, which may be flushed.
            + units.flush * (x.abs() + moments.mean.abs()) * w.abs();
        let mut folded_overflow = false;
        if call.precision.folded {
            let terms = x.abs() + moments.mean.abs();
            let products = terms * moments.inverse_deviation * w.abs();
            delta += 2.0 * units.u * products;
            folded_overflow = overflows(products, units.max);
        }
        // Rounding decides whether x is the mean, and infinity times 0 is NaN.
        let near = (x - moments.mean).abs() <= moments.mean_error + own + units.flush || call.precision.folded;
        if w.is_infinite() && near && !moments.overflow && moments.mean.is_finite() && !b.is_nan() {
            let kind = ExcuseKind::Overflow { nan: true, infinite: true, value: None };
            expectation.push_overflow(y, 0.0, kind, "an infinite weight where x is about the mean");
        } else if moments.overflow && b != 0.0 && b.abs() < units.flush {
            expectation.push_undetermined(y, "an overflowed row plus a bias that may be flushed");
        } else if moments.overflow {
            let kind = ExcuseKind::Overflow { nan: true, infinite: false, value: Some(b) };
            expectation.push_overflow(y, delta, kind, "sum of |x| or of squared deviations");
        } else if folded_overflow {
            let kind = ExcuseKind::Overflow { nan: true, infinite: true, value: None };
            expectation.push_overflow(y, delta, kind, "x*r*w beside mean*r*w");
        } else if overflows(scaled.abs(), units.max) && y.is_finite() {
            let kind = ExcuseKind::Overflow { nan: false, infinite: true, value: None };
            expectation.push_overflow(y, delta, kind, "the scaled row before its bias");
        } else if moments.undetermined {
            expectation.push_undetermined(y, UNDETERMINED_VARIANCE);
        } else {
            expectation.push(y, delta);
        }
    }
    Ok(())
}

/// Mean, variance and their errors for one row.
pub(in crate::ops) struct Moments {
    /// μ.
    pub mean: f64,
    pub variance: f64,
    /// δv.
    pub variance_error: f64,
    /// δμ.
    pub mean_error: f64,
    /// r = 1/√(v + eps).
    pub inverse_deviation: f64,
    /// g: relative error of r.
    pub inverse_error: f64,
    /// Whether rounding may have left nothing of the variance.
    pub undetermined: bool,
    /// Whether a sum may have overflowed.
    pub overflow: bool,
}

impl Moments {
    /// The moments of a row whose elements may each be off by `inexact`.
    pub fn of(row: &[f64], inexact: Option<&[f64]>, eps: f64, call: &Call<'_>) -> Result<Self, OpError> {
        let (units, count) = (call.units, row.len() as f64);
        let summation = call.summation(row.len())?;
        let (mut sum, mut absolute, mut squares) = (0.0, 0.0, 0.0);
        for x in row {
            sum += x;
            absolute += x.abs();
            squares += x * x;
        }
        let mean = sum / count;
        let deviations: f64 = row.iter().map(|x| (x - mean) * (x - mean)).sum();
        let variance = deviations / count;
        let (mean_absolute, mean_square) = (absolute / count, squares / count);
        // Welford divides at every step, and each quotient may lose up to a subnormal.
        let quotients = if call.precision.variance == Some(VarianceForm::TwoPass) { 1.0 } else { count };
        let mut mean_error =
            units.u * (summation * mean_absolute + 2.0 * mean.abs()) + quotients * (units.eta + units.flush);
        let mut variance_error =
            units.u * (summation + 4.0) * variance + mean_error * mean_error + units.eta + units.flush;
        if call.precision.variance != Some(VarianceForm::TwoPass) {
            variance_error += units.u * summation * (variance * mean_square).sqrt();
        }
        if call.precision.variance == Some(VarianceForm::OnePass) {
            variance_error += units.u * (summation + 3.0) * (mean_square + 2.0 * mean.abs() * mean_absolute);
        }
        if let Some(inexact) = inexact {
            mean_error += inexact.iter().sum::<f64>() / count;
            let moved = row.iter().zip(inexact).map(|(x, error)| error * (2.0 * (x - mean).abs() + error));
            variance_error += moved.sum::<f64>() / count;
        }
        let one_pass = call.precision.variance == Some(VarianceForm::OnePass);
        let largest = absolute.max(deviations).max(if one_pass { squares } else { 0.0 });
        let relative = variance_error / (variance + eps) + units.u;
        // Of the row itself: in float64 the sums overflow here as they do in the kernel.
        let finite = row.iter().all(|x| x.is_finite());
        Ok(Self {
            mean,
            variance,
            variance_error,
            mean_error,
            inverse_deviation: 1.0 / (variance + eps).sqrt(),
            inverse_error: if relative < 1.0 { 1.0 / (1.0 - relative).sqrt() - 1.0 } else { f64::INFINITY },
            // Where eps is 0 and the row constant, 0/0 is anybody's guess as well.
            undetermined: finite && (relative.is_nan() || relative >= 0.9),
            overflow: finite && overflows(largest, units.max),
        })
    }
}
