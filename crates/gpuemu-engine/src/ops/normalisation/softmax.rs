//! softmax along the last dim.

use crate::case::Strategy;
use crate::ops::{BuiltIn, Call, Expectation, OpError};
use crate::schema::{Property, Schema, Units};

pub(in crate::ops) fn op() -> BuiltIn {
    BuiltIn::new(
        Schema::builtin("softmax", "input[...,H] -> out[...,H]")
            .reduces(&["H"])
            .describe(
                "Exponentials normalised along the last dim; a row with NaN or Inf, or of nothing but -Inf, is NaN.",
                "exp(x - max) / sum(exp(x - max))",
            )
            .holds(&[
                Property::RowStochastic,
                Property::PermutationEquivariant,
                Property::BatchInvariant,
                Property::ShiftInvariant { input: "input" },
            ])
            .amplified_by(&[Strategy::Regular, Strategy::Tiny])
            .bounded_by("u*y*(F + a*(s + W) + 2*E + Q + 1) + tiny*(1 + (1 + y*H)/S) + u_mid*y*(s + W + 4) + eta_mid*(2 + y*H) with F \
                 of H terms, s = max - x, S = sum(exp(x - max)), W = sum(softmax*s); s and W grow by |max| where folded")
            .keywords(&["normalisation", "probabilities", "exponential", "attention", "logits"])
            .usual_bugs(&["padding enters the denominator", "maximum not subtracted", "-Inf tile gives NaN"]),
        expect,
    )
}

/// The softmax of each row.
pub(in crate::ops) fn expect(call: &Call<'_>) -> Result<Vec<Expectation>, OpError> {
    let (input, width) = (call.input("input")?, call.size("H")?);
    let summation = call.summation(width.max(1))?;
    let mut expectation = Expectation::with_capacity(input.len());
    let mut exponentials = vec![0.0; width];
    for row in input.chunks_exact(width.max(1)) {
        let Some(row_sum) = RowSum::of(row, &mut exponentials, call) else {
            row.iter().for_each(|_| expectation.push(f64::NAN, 0.0));
            continue;
        };
        let shares = Shares::of(&row_sum, width, summation, call);
        for (x, e) in row.iter().zip(&exponentials) {
            let (y, delta) = shares.share(*x, *e);
            if row_sum.undetermined {
                expectation.push_undetermined(y, FOLDED);
            } else {
                expectation.push(y, delta);
            }
        }
    }
    Ok(vec![expectation])
}

pub(in crate::ops) const FOLDED: &str = "folded exp2(x*c - m*c) with a large maximum";

/// The denominator of a row and its condition.
pub(in crate::ops) struct RowSum {
    pub maximum: f64,
    /// S = Σ e^(x−m).
    pub sum: f64,
    /// ln S, also where the maximum dwarfs the rest.
    pub logarithm: f64,
    /// W = Σ p·s with s = m − x (s + |m| where the argument is folded).
    pub spread: f64,
    /// Whether a folded argument makes every answer possible.
    pub undetermined: bool,
    folded_shift: f64,
}

impl RowSum {
    /// Fills `exponentials` with e^(x−m). `None` where the row is NaN: a NaN or +Inf in it, or nothing but −Inf.
    pub fn of(row: &[f64], exponentials: &mut [f64], call: &Call<'_>) -> Option<Self> {
        let mut maximum = f64::NEG_INFINITY;
        for x in row {
            if x.is_nan() {
                return None;
            }
            maximum = maximum.max(*x);
        }
        if maximum.is_infinite() {
            return None;
        }
        // Added to the 1 of the maximum, small terms would be rounded away before the logarithm.
        let (mut sum, mut rest, mut spread, mut at_maximum) = (0.0, 0.0, 0.0, false);
        for (x, e) in row.iter().zip(exponentials.iter_mut()) {
            *e = libm::exp(x - maximum);
            sum += *e;
            if !at_maximum && *x == maximum {
                at_maximum = true;
            } else {
                rest += *e;
            }
            if *e > 0.0 {
                spread += *e * (maximum - x);
            }
        }
        let folded_shift = if call.precision.folded { maximum.abs() } else { 0.0 };
        let undetermined = 3.0 * call.units.u * folded_shift > 0.5;
        Some(Self {
            maximum,
            sum,
            logarithm: libm::log1p(rest),
            spread: spread / sum + folded_shift,
            undetermined,
            folded_shift,
        })
    }

    /// s for one element.
    pub fn distance(&self, x: f64) -> f64 {
        self.maximum - x + self.folded_shift
    }
}

/// The softmax of a row's elements, with what they have in common computed once.
pub(in crate::ops) struct Shares<'a> {
    row_sum: &'a RowSum,
    units: Units,
    common: f64,
    underflow: f64,
    denominator_underflow: f64,
    width: f64,
}

impl<'a> Shares<'a> {
    /// Of a row of `width` elements, whose sum in the declared order has the error `summation` (in u).
    pub fn of(row_sum: &'a RowSum, width: usize, summation: f64, call: &Call<'_>) -> Self {
        let units = call.units;
        Self {
            row_sum,
            units,
            common: summation + units.argument * row_sum.spread + 2.0 * units.exp + units.division + 1.0,
            underflow: units.tiny * (1.0 + 1.0 / row_sum.sum),
            denominator_underflow: width as f64 * units.tiny / row_sum.sum,
            width: width as f64,
        }
    }

    /// y and δ of one element x, with e = e^(x−m).
    #[inline]
    pub fn share(&self, x: f64, e: f64) -> (f64, f64) {
        let units = &self.units;
        let y = e / self.row_sum.sum;
        let distance = if e == 0.0 { 0.0 } else { self.row_sum.distance(x) };
        let condition = self.common + units.argument * distance;
        let delta = units.u * y * condition + self.underflow + y * self.denominator_underflow;
        // Rounded to an intermediate dtype: x − m, its exponential, their sum and the quotient.
        let rounded = units.mid * y * (distance + self.row_sum.spread + 4.0)
            + units.mid_eta * (2.0 + y * self.width) / self.row_sum.sum.min(1.0);
        (y, delta + rounded)
    }
}
