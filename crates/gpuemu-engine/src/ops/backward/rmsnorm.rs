//! rmsnorm_backward: gradients of the input, and of the weight summed over rows.

use super::weight_gradient::{INFINITE_GRADIENT, NormalisedRows, weight_gradient};
use crate::case::Strategy;
use crate::ops::expectation::overflows;
use crate::ops::normalisation::layernorm::UNDETERMINED_VARIANCE;
use crate::ops::rounded::ANY_OVERFLOW;
use crate::ops::{Arithmetic, BuiltIn, Call, ExcuseKind, Expectation, OpError, Overflow, Rounded};
use crate::schema::{Property, Scalar, Schema, Units};

pub(in crate::ops) fn op() -> BuiltIn {
    BuiltIn::new(
        Schema::builtin(
            "rmsnorm_backward",
            "grad_output[...,H] input[...,H] weight?[H] eps:float=1e-5 unit_offset:bool=false \
             -> grad_input[...,H] grad_weight[H]",
        )
        .alias(&["rms_norm_backward"])
        .reduces(&["H"])
        .at_least("H", 1)
        .choices("eps", &[Scalar::Float(1e-5), Scalar::Float(1e-3)])
        .choices("unit_offset", &[Scalar::Bool(false), Scalar::Bool(true)])
        .describe(
            "Gradients of rmsnorm over the last dim (eps inside of the root): of its input, and of the weight summed \
             over all rows. The root mean square is computed from the input; the gradient of the weight is given also \
             where the forward had none. In a row with an infinite gradient NaN and infinities are all accepted.",
            "h = grad_output*weight; grad_input = r*(h - xhat*mean(h*xhat)); \
             grad_weight = sum_rows(grad_output*xhat); xhat = input*r, r = 1/sqrt(mean(input^2) + eps)",
        )
        .keywords(&["gradient", "backward", "normalisation", "normalization", "root mean square", "training"])
        .help("grad_output", "upstream gradient")
        .help("input", "input of the forward")
        .help("weight", "weight of the forward; 1 where absent")
        .help("eps", "added to the mean square, inside of the root")
        .help("unit_offset", "whether the forward scaled by 1 + weight where there is one")
        .bounded_by(
            "grad_input: r(1+g)[u(F+4)|xhat|e2 + 2|xhat c2|(g+u(R+Q)) + 3u(|h|+|xhat c2|)] + |y|(g+u(R+Q+2)), with \
             e2 = mean|h xhat|, c2 = mean(h xhat), g the relative error of r; \
             grad_weight: sum(|dy|dxhat) + u(F+1)sum|dy xhat|, F that of the rows",
        )
        .holds(&[Property::Homogeneous { input: "grad_output", degree: 1 }])
        .amplified_by(&[Strategy::Regular, Strategy::Tiny])
        .usual_bugs(&[
            "mean of h*xhat missing",
            "weight forgotten in h",
            "r to the second power in place of the third",
            "weight gradient of the last tile of rows only",
            "padding enters the mean",
        ]),
        expect,
    )
}

fn expect(call: &Call<'_>) -> Result<Vec<Expectation>, OpError> {
    let (gradient, input, width) = (call.input("grad_output")?, call.input("input")?, call.size("H")?);
    let (weight, eps) = (call.optional("weight"), call.float("eps")?);
    let offset = if call.flag("unit_offset") { 1.0 } else { 0.0 };
    let (units, summation) = (Arithmetic::of(call).units, call.summation(width.max(1))?);
    let mut grad_input = Expectation::with_capacity(input.len());
    let mut rows = NormalisedRows::default();
    for (dy, x) in gradient.chunks_exact(width.max(1)).zip(input.chunks_exact(width.max(1))) {
        let root = Root::of(x, eps, summation, &units);
        let first = rows.values.len();
        rows.lost |= root.overflow || root.undetermined;
        rows.values.extend(x.iter().map(|x| root.normalised(*x, &units)));
        let w = |column: usize| weight.map_or(1.0, |weight| offset + weight[column]);
        let h: Vec<f64> = dy.iter().enumerate().map(|(column, dy)| dy * w(column)).collect();
        root.push(&mut grad_input, &h, x, &rows.values[first..], summation, &units);
    }
    let grad_weight = weight_gradient(call, gradient, &rows, width)?;
    Ok(vec![grad_input, grad_weight])
}

/// r = 1/√(mean x² + eps) of a row, and its error.
struct Root {
    inverse: f64,
    /// g: relative error of r before the roundings of the root itself.
    growth: f64,
    undetermined: bool,
    overflow: bool,
}

impl Root {
    fn of(row: &[f64], eps: f64, summation: f64, units: &Units) -> Self {
        let count = row.len() as f64;
        let squares: f64 = row.iter().map(|x| x * x).sum();
        let power = squares / count;
        let lost = units.eta + units.flush;
        let relative = (units.u * (summation + 2.0) * power + lost) / (power + eps) + units.u;
        let finite = row.iter().all(|x| x.is_finite());
        Self {
            inverse: 1.0 / (power + eps).sqrt(),
            growth: if relative < 1.0 { 1.0 / (1.0 - relative).sqrt() - 1.0 } else { f64::INFINITY },
            undetermined: finite && (relative.is_nan() || relative >= 0.9),
            overflow: finite && overflows(squares, units.max),
        }
    }

    fn normalised(&self, x: f64, units: &Units) -> Rounded {
        let value = x * self.inverse;
        let relative = self.growth + units.u * (units.rsqrt + units.division + 1.0);
        let error = value.abs() * relative + units.eta + units.flush * (1.0 + self.inverse + x.abs());
        Rounded { value, error, overflow: Overflow::None }
    }

    fn push(
        &self,
        expectation: &mut Expectation,
        h: &[f64],
        x: &[f64],
        normalised: &[Rounded],
        summation: f64,
        units: &Units,
    ) {
        let count = h.len() as f64;
        let finite = h.iter().chain(x).all(|number| number.is_finite());
        let (mut products, mut magnitudes) = (0.0, 0.0);
        let (mut plain, mut absolute, mut largest) = (0.0, 0.0, 0.0f64);
        for ((h, x), normalised) in h.iter().zip(x).zip(normalised) {
            products += h * normalised.value;
            magnitudes += (h * normalised.value).abs();
            plain += (h * x).abs();
            absolute += h.abs();
            largest = largest.max(h.abs());
        }
        let (c2, e2) = (products / count, magnitudes / count);
        // Subnormal x̂ times large h, on average.
        let underflow = absolute / count * (units.eta + units.flush);
        let relative = self.growth + units.u * (units.rsqrt + units.division);
        for ((h, x), normalised) in h.iter().zip(x).zip(normalised) {
            let magnitude = normalised.value.abs();
            let drawn = (normalised.value * c2).abs();
            let y = self.inverse * (h - normalised.value * c2);
            let inner = units.u * (summation + 4.0) * magnitude * e2
                + (relative * magnitude + normalised.error) * c2.abs()
                + magnitude * (underflow + self.inverse * (units.eta + units.flush))
                + 3.0 * units.u * (h.abs() + drawn)
                + (units.eta + units.flush * (1.0 + largest)) * (3.0 + 2.0 * magnitude);
            let delta = self.inverse * (1.0 + self.growth) * inner
                + y.abs() * (relative + 2.0 * units.u)
                // r² may be subnormal where x is as large as its square allows.
                + (units.eta + units.flush) * (1.0 + x.abs() * self.inverse * plain / count)
                + units.flush * h.abs();
            // r·h beside r³·mean(h·x)·x, too.
            let range = (1.0 + self.inverse) * (largest + (1.0 + magnitude) * magnitudes)
                + (1.0 + self.inverse * self.inverse) * plain;
            if self.overflow {
                let infinite = overflows(range, units.max);
                let kind = ExcuseKind::Overflow { nan: true, infinite, value: Some(0.0) };
                expectation.push_overflow(y, delta, kind, "sum of squares");
            } else if self.undetermined {
                expectation.push_undetermined(y, UNDETERMINED_VARIANCE);
            } else if largest.is_infinite() && !absolute.is_nan() {
                expectation.push_overflow(y, 0.0, ANY_OVERFLOW, INFINITE_GRADIENT);
            } else if finite && !range.is_finite() {
                // In float64 the reference overflows with the kernel.
                expectation.push_undetermined(y, "sum of |h*x|, or r*h");
            } else if range.is_finite() && overflows(range, units.max) {
                expectation.push_overflow(y, delta, ANY_OVERFLOW, "sum of |h*x|, or r*h");
            } else {
                expectation.push(y, delta);
            }
        }
    }
}
