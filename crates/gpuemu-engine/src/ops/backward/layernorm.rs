//! layernorm_backward: gradients of the input, and of weight and bias summed over rows.

use super::weight_gradient::{INFINITE_GRADIENT, NormalisedRows, bias_gradient, weight_gradient};
use crate::case::Strategy;
use crate::ops::expectation::overflows;
use crate::ops::normalisation::layernorm::{Moments, UNDETERMINED_VARIANCE};
use crate::ops::rounded::ANY_OVERFLOW;
use crate::ops::{Arithmetic, BuiltIn, Call, ExcuseKind, Expectation, OpError, Overflow, Rounded};
use crate::schema::{Property, Scalar, Schema, Units};

pub(in crate::ops) fn op() -> BuiltIn {
    BuiltIn::new(
        Schema::builtin(
            "layernorm_backward",
            "grad_output[...,H] input[...,H] weight?[H] eps:float=1e-5 \
             -> grad_input[...,H] grad_weight[H] grad_bias[H]",
        )
        .alias(&["layer_norm_backward", "native_layer_norm_backward"])
        .reduces(&["H"])
        .at_least("H", 1)
        .choices("eps", &[Scalar::Float(1e-5), Scalar::Float(1e-3)])
        .describe(
            "Gradients of layernorm over the last dim (biased variance, eps inside of the root): of its input, and of \
             weight and bias summed over all rows. Mean and variance are computed from the input; the gradients of \
             weight and bias are given also where the forward had none. In a row with an infinite gradient NaN and \
             infinities are all accepted.",
            "h = grad_output*weight; grad_input = r*(h - mean(h) - xhat*mean(h*xhat)); \
             grad_weight = sum_rows(grad_output*xhat); grad_bias = sum_rows(grad_output)",
        )
        .keywords(&["gradient", "backward", "normalisation", "normalization", "layer norm", "training"])
        .help("grad_output", "upstream gradient")
        .help("input", "input of the forward")
        .help("weight", "weight of the forward; 1 where absent")
        .help("eps", "added to the variance, inside of the root")
        .bounded_by(
            "grad_input: r(1+g)[u(F+3)(e1+|xhat|e2) + dxhat|c2| + (|xhat|+dxhat)mean(|h|dxhat) + \
             4u(|h|+e1+|xhat c2|)] + |y|(g+u(R+3)), with e1 = mean|h|, e2 = mean|h xhat|, c2 = mean(h xhat), \
             dxhat the error of xhat; \
             grad_weight: sum(|dy|dxhat) + u(F+1)sum|dy xhat|; grad_bias: uF sum|dy|, F that of the rows; \
             folded (a*x + b with b = -mean*a): products of x and of the mean round apart",
        )
        .holds(&[Property::Homogeneous { input: "grad_output", degree: 1 }])
        .amplified_by(&[Strategy::Shifted, Strategy::Regular, Strategy::Tiny])
        .usual_bugs(&[
            "mean of h*xhat missing",
            "mean of h missing",
            "weight forgotten in h",
            "weight gradient of the last tile of rows only",
            "padding enters the means",
        ]),
        expect,
    )
}

fn expect(call: &Call<'_>) -> Result<Vec<Expectation>, OpError> {
    let (gradient, input, width) = (call.input("grad_output")?, call.input("input")?, call.size("H")?);
    let (weight, eps) = (call.optional("weight"), call.float("eps")?);
    let arithmetic = Arithmetic::of(call);
    let mut grad_input = Expectation::with_capacity(input.len());
    let mut rows = NormalisedRows::default();
    for (dy, x) in gradient.chunks_exact(width.max(1)).zip(input.chunks_exact(width.max(1))) {
        let moments = Moments::of(x, None, eps, call)?;
        let first = rows.values.len();
        rows.lost |= moments.overflow || moments.undetermined;
        rows.values.extend(x.iter().map(|x| normalised(*x, &moments, call.precision.folded, &arithmetic.units)));
        let w = |column: usize| weight.map_or(1.0, |weight| weight[column]);
        let h: Vec<f64> = dy.iter().enumerate().map(|(column, dy)| dy * w(column)).collect();
        let row = Row { h: &h, x, normalised: &rows.values[first..], moments: &moments };
        row.push(&mut grad_input, call, &arithmetic.units)?;
    }
    let grad_weight = weight_gradient(call, gradient, &rows, width)?;
    Ok(vec![grad_input, grad_weight, bias_gradient(call, gradient, width)?])
}

/// x̂ and its error.
fn normalised(x: f64, moments: &Moments, folded: bool, units: &Units) -> Rounded {
    let (inverse, growth) = (moments.inverse_deviation, moments.inverse_error);
    let value = (x - moments.mean) * inverse;
    let error = inverse * (1.0 + growth) * (moments.mean_error + units.flush)
        + value.abs() * (growth + units.u * (units.rsqrt + 3.0))
        + units.eta
        + units.flush * (1.0 + x.abs() + moments.mean.abs());
    let apart = if folded { 2.0 * units.u * (x.abs() + moments.mean.abs()) * inverse } else { 0.0 };
    Rounded { value, error: error + apart, overflow: Overflow::None }
}

/// What the gradient of one row is computed from.
struct Row<'a> {
    h: &'a [f64],
    x: &'a [f64],
    normalised: &'a [Rounded],
    moments: &'a Moments,
}

impl Row<'_> {
    fn push(&self, expectation: &mut Expectation, call: &Call<'_>, units: &Units) -> Result<(), OpError> {
        let count = self.h.len() as f64;
        let summation = call.summation(self.h.len())?;
        let (mut sum, mut absolute, mut products, mut magnitudes, mut moved) = (0.0, 0.0, 0.0, 0.0, 0.0);
        for (h, normalised) in self.h.iter().zip(self.normalised) {
            sum += h;
            absolute += h.abs();
            products += h * normalised.value;
            magnitudes += (h * normalised.value).abs();
            moved += h.abs() * normalised.error;
        }
        let (c1, c2) = (sum / count, products / count);
        let (e1, e2, moved) = (absolute / count, magnitudes / count, moved / count);
        let (inverse, growth) = (self.moments.inverse_deviation, self.moments.inverse_error);
        let largest = self.h.iter().fold(0.0f64, |most, h| most.max(h.abs()));
        // mean(h·x) − mean(h)·μ in place of mean(h·(x − μ)), and x·c − μ·c in place of (x − μ)·c.
        let folded = call.precision.folded;
        let plain: f64 = self.h.iter().zip(self.x).map(|(h, x)| (h * x).abs()).sum();
        let centre = self.moments.mean.abs();
        let finite = self.h.iter().chain(self.x).all(|number| number.is_finite());
        let cube = inverse * inverse * inverse;
        let apart = if folded { units.u * (summation + 3.0) * (plain / count + centre * e1) * inverse } else { 0.0 };
        for ((h, x), normalised) in self.h.iter().zip(self.x).zip(self.normalised) {
            let magnitude = normalised.value.abs();
            let y = inverse * (h - c1 - normalised.value * c2);
            // Where x̂ is lost to rounding (constant rows), products of two errors are all there is.
            let most = magnitude + normalised.error;
            let inner = units.u * (summation + 3.0) * (e1 + most * (e2 + moved))
                + normalised.error * c2.abs()
                + most * (moved + apart)
                + if folded { 2.0 * units.u * (x.abs() + centre) * inverse * (c2.abs() + moved + apart) } else { 0.0 }
                + 4.0 * units.u * (h.abs() + e1 + (normalised.value * c2).abs())
                + (units.eta + units.flush * (1.0 + largest)) * (4.0 + 2.0 * magnitude);
            let mut delta = inverse * (1.0 + growth) * inner
                + y.abs() * (growth + units.u * (units.rsqrt + 3.0))
                + units.eta
                + units.flush * (1.0 + h.abs());
            let mut range = count * h.abs() + absolute + (1.0 + magnitude) * magnitudes;
            if folded {
                let (sums, reach) = (plain + centre * absolute, x.abs() + centre);
                range += (1.0 + cube * (1.0 + reach / count)) * sums + inverse * (h.abs() + absolute);
                // Products with x and coefficients with r³ may be subnormal.
                delta += 3.0 * (units.eta + units.flush) * reach * (1.0 + cube);
            }
            if self.moments.overflow {
                let infinite = overflows(range, units.max);
                let kind = ExcuseKind::Overflow { nan: true, infinite, value: Some(0.0) };
                expectation.push_overflow(y, delta, kind, "sum of |x| or of squared deviations");
            } else if self.moments.undetermined {
                expectation.push_undetermined(y, UNDETERMINED_VARIANCE);
            } else if largest.is_infinite() && !absolute.is_nan() {
                expectation.push_overflow(y, 0.0, ANY_OVERFLOW, INFINITE_GRADIENT);
            } else if finite && !range.is_finite() {
                // In float64 the reference overflows with the kernel.
                expectation.push_undetermined(y, "sum of |h| or of |h*xhat|");
            } else if range.is_finite() && overflows(range, units.max) {
                expectation.push_overflow(y, delta, ANY_OVERFLOW, "sum of |h| or of |h*xhat|");
            } else {
                expectation.push(y, delta);
            }
        }
        Ok(())
    }
}
