//! rmsnorm over the last dim, with optional weight (plain, or 1 + weight).

use crate::case::Strategy;
use crate::ops::expectation::overflows;
use crate::ops::normalisation::layernorm::UNDETERMINED_VARIANCE;
use crate::ops::{BuiltIn, Call, ExcuseKind, Expectation, OpError};
use crate::schema::{Property, Scalar, Schema, Units};

pub(in crate::ops) fn op() -> BuiltIn {
    BuiltIn::new(
        Schema::builtin("rmsnorm", "input[...,H] weight?[H] eps:float=1e-5 unit_offset:bool=false -> out[...,H]")
            .alias(&["rms_norm"])
            .reduces(&["H"])
            .at_least("H", 1)
            .choices("eps", &[Scalar::Float(1e-5), Scalar::Float(1e-5), Scalar::Float(1e-6)])
            .choices("unit_offset", &[Scalar::Bool(false), Scalar::Bool(true)])
            .describe(
                "Rows divided by their root mean square, then scaled where there is a `weight`. `eps` is added to the mean \
                 square, inside of the root; `unit_offset` scales by 1 + weight where there is one.",
                "x/sqrt(mean(x^2) + eps)*weight",
            )
            .help("weight", "factor of each column (gamma, scale); 1 where absent")
            .help("eps", "added to the mean square, inside of the root (PyTorch takes that of the dtype where none is given)")
            .help("unit_offset", "whether the factor is 1 + weight, as in Gemma and in kernels with a zero-centred gamma")
            .holds(&[Property::PermutationEquivariant, Property::BatchInvariant])
            .amplified_by(&[Strategy::Tiny, Strategy::Regular])
            .bounded_by("|y|*(g + u*(R + Q + 3) + u_mid) and underflow, with F of H terms, q = mean(x^2), \
                 g = (1 - u*(F + 2)*q/(q + eps) - u)^(-1/2) - 1; nothing is said where squares are lost to underflow")
            .keywords(&["normalisation", "root mean square", "gamma", "llama", "gemma", "transformer"])
            .usual_bugs(&["square root dropped", "eps outside of the root", "mean over the padded width"]),
        expect,
    )
}

fn expect(call: &Call<'_>) -> Result<Vec<Expectation>, OpError> {
    let (input, width) = (call.input("input")?, call.size("H")?);
    let (weight, eps) = (call.optional("weight"), call.float("eps")?);
    let offset = if call.flag("unit_offset") { 1.0 } else { 0.0 };
    let scale = |column: usize| weight.map_or(1.0, |weight| offset + weight[column]);
    normalise(call, input, None, width, width as f64, eps, scale)
}

/// x / √(Σx²/divisor + eps) · scale: rms with divisor H, l2 with divisor 1. `inexact` is how far off each x may be
/// before it is normalised.
pub(in crate::ops) fn normalise(
    call: &Call<'_>,
    input: &[f64],
    inexact: Option<&[f64]>,
    width: usize,
    divisor: f64,
    eps: f64,
    scale: impl Fn(usize) -> f64,
) -> Result<Vec<Expectation>, OpError> {
    divide_by_length(call, input, inexact, width, divisor, Guard { eps, outside: false, minimum: false }, scale)
}

/// How eps keeps a divisor away from zero.
#[derive(Debug, Clone, Copy)]
pub(in crate::ops) struct Guard {
    pub eps: f64,
    /// It stands outside of the root.
    pub outside: bool,
    /// It is the least that what it guards may be, in place of added to it.
    pub minimum: bool,
}

impl Guard {
    fn apply(&self, guarded: f64) -> f64 {
        if !self.minimum {
            return guarded + self.eps;
        }
        // f64::max would lose a NaN.
        if guarded < self.eps { self.eps } else { guarded }
    }

    /// The root of `power`, which may be off by `error`, guarded; by how much of itself its inverse may be off; and
    /// whether that says nothing.
    fn root(&self, power: f64, error: f64, units: &Units) -> (f64, f64, bool) {
        let root = if self.outside { self.apply(power.sqrt()) } else { self.apply(power).sqrt() };
        // Neither an addend nor a minimum makes an error larger.
        let relative = if self.outside {
            let up = error / ((power + error).sqrt() + power.sqrt());
            let down = error.min(power) / (power.sqrt() + (power - error).max(0.0).sqrt());
            let moved = if error == 0.0 { 0.0 } else { up.max(down) };
            moved / root + units.u
        } else {
            error / self.apply(power) + units.u
        };
        let remaining = if self.outside { 1.0 - relative } else { (1.0 - relative).sqrt() };
        let inverse_error = if relative < 1.0 { 1.0 / remaining - 1.0 } else { f64::INFINITY };
        (root, inverse_error, relative.is_nan() || relative >= 0.9)
    }
}

/// Rows divided by their guarded length √(Σx²/divisor), times a scale for each column. `inexact` is how far off each x
/// may be before it is normalised.
pub(in crate::ops) fn divide_by_length(
    call: &Call<'_>,
    input: &[f64],
    inexact: Option<&[f64]>,
    width: usize,
    divisor: f64,
    guard: Guard,
    scale: impl Fn(usize) -> f64,
) -> Result<Vec<Expectation>, OpError> {
    let units = call.units;
    let summation = call.summation(width.max(1))?;
    let mut expectation = Expectation::with_capacity(input.len());
    for (number, row) in input.chunks_exact(width.max(1)).enumerate() {
        let inexact = inexact.map_or(&[][..], |inexact| &inexact[number * width..][..width]);
        let squares: f64 = row.iter().map(|x| x * x).sum();
        let power = squares / divisor;
        // Squares below the smallest (sub)normal vanish, each of them.
        let moved: f64 = row.iter().zip(inexact).map(|(x, error)| error * (2.0 * x.abs() + error)).sum();
        let lost = (width as f64 * (units.eta + units.flush) + moved) / divisor;
        let error = units.u * (summation + 2.0) * power + lost;
        let (root, inverse_error, vanishing) = guard.root(power, error, &units);
        // Of the row itself: in float64 the sum overflows here as it does in the kernel.
        let finite = row.iter().all(|x| x.is_finite());
        let undetermined = finite && vanishing;
        let overflow = finite && overflows(squares, units.max);
        // An element beyond the range is infinite itself, and infinity times 0 is NaN.
        let beyond = row.iter().any(|x| x.abs() > units.max);
        for (column, x) in row.iter().enumerate() {
            let w = scale(column);
            let y = x / root * w;
            let condition = inverse_error + units.u * (units.rsqrt + units.division + 3.0) + units.mid;
            // A huge root makes a reciprocal subnormal, which may be flushed.
            let reciprocal = x.abs() * w.abs() * units.tiny;
            let delta = y.abs() * condition
                + reciprocal
                + inexact.get(column).map_or(0.0, |error| (1.0 + inverse_error) * error * w.abs() / root)
                + (units.eta + units.flush + units.mid_eta) * (2.0 + w.abs())
                + units.flush * (w.abs() + x.abs()) / root;
            if overflow {
                let kind = ExcuseKind::Overflow { nan: beyond, infinite: false, value: Some(0.0) };
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
