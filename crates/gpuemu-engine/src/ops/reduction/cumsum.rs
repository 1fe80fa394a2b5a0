//! cumsum along the last dim.

use crate::case::Strategy;
use crate::ops::call::all_integers;
use crate::ops::expectation::overflows;
use crate::ops::reduction::sum::SUM_OVERFLOW;
use crate::ops::{BuiltIn, Call, ExcuseKind, Expectation, OpError};
use crate::schema::{Property, Scalar, Schema};

pub(in crate::ops) fn op() -> BuiltIn {
    BuiltIn::new(
        Schema::builtin("cumsum", "input[...,H] exclusive:bool=false reverse:bool=false -> out[...,H]")
            .alias(&["prefix_sum", "cumulative_sum", "scan"])
            .reduces(&["H"])
            .choices("exclusive", &[Scalar::Bool(false), Scalar::Bool(false), Scalar::Bool(true)])
            .choices("reverse", &[Scalar::Bool(false), Scalar::Bool(false), Scalar::Bool(true)])
            .describe(
                "Running sum along the last dim. `exclusive` leaves each element out of its own sum, `reverse` runs \
                 from the last element to the first; both as in TensorFlow.",
                "out[i] = sum(x[0..=i]); sum(x[0..i]) where exclusive; sum(x[i..H]) where reverse; sum(x[i+1..H]) where both",
            )
            .help("exclusive", "whether an element is left out of its own sum, so that the first is 0")
            .help("reverse", "whether sums run from the last element to the first")
            .holds(&[
                Property::PermutationEquivariant,
                Property::BatchInvariant,
                Property::Linear { input: "input" },
                Property::Homogeneous { input: "input", degree: 1 },
            ])
            .amplified_by(&[Strategy::Integers, Strategy::Shifted])
            .bounded_by("u*F*sum|x| + n*flush over the n elements up to and with this one, F of n terms (and u*|y| where exclusive, since \
                 the element may be added and taken off again); without the first term where all x are whole numbers up to 2048 and \
                 sum|x| is exact in the accumulator")
            .keywords(&["reduction", "prefix sum", "scan", "cumulative", "running sum"])
            .usual_bugs(&[
                "carry between tiles dropped",
                "exclusive in place of inclusive",
                "sums run in the other direction",
            ]),
        expect,
    )
}

fn expect(call: &Call<'_>) -> Result<Vec<Expectation>, OpError> {
    let (input, width) = (call.input("input")?, call.size("H")?);
    let (exclusive, reverse) = (call.flag("exclusive"), call.flag("reverse"));
    let mut expectation = Expectation::with_capacity(input.len());
    let mut prefixes = Vec::with_capacity(width);
    for row in input.chunks_exact(width.max(1)) {
        prefixes.clear();
        if reverse {
            running(row.iter().rev(), &mut prefixes);
            prefixes.reverse();
        } else {
            running(row.iter(), &mut prefixes);
        }
        let integers = all_integers(row);
        for (prefix, x) in prefixes.iter().zip(row) {
            prefix.push(call, *x, exclusive, integers, &mut expectation)?;
        }
    }
    Ok(vec![expectation])
}

/// The sums up to one element.
struct Prefix {
    /// Elements summed, this one among them.
    terms: usize,
    sum: f64,
    before: f64,
    /// Of the magnitudes of finite elements.
    absolute: f64,
}

fn running<'a>(row: impl Iterator<Item = &'a f64>, prefixes: &mut Vec<Prefix>) {
    let (mut sum, mut absolute) = (0.0, 0.0);
    for (index, x) in row.enumerate() {
        let before = sum;
        sum += x;
        absolute += if x.is_finite() { x.abs() } else { 0.0 };
        prefixes.push(Prefix { terms: index + 1, sum, before, absolute });
    }
}

impl Prefix {
    fn push(
        &self,
        call: &Call<'_>,
        x: f64,
        exclusive: bool,
        integers: bool,
        expectation: &mut Expectation,
    ) -> Result<(), OpError> {
        let units = call.units;
        let y = if exclusive { self.before } else { self.sum };
        let exact = integers && self.absolute <= units.exact;
        let mut error = if exact { 0.0 } else { call.summation(self.terms)? * self.absolute };
        if exclusive && !exact {
            // Many kernels take the element off the inclusive sum again.
            error += y.abs();
        }
        let delta = units.u * error + self.terms as f64 * units.flush;
        if overflows(self.absolute, units.max) {
            expectation.push_overflow(y, delta, SUM_OVERFLOW, "prefix sum of |x|");
        } else if exclusive && !x.is_finite() {
            let kind = ExcuseKind::Overflow { nan: true, infinite: false, value: None };
            expectation.push_overflow(y, delta, kind, "an infinite or NaN element taken off its own sum");
        } else {
            expectation.push(y, delta);
        }
        Ok(())
    }
}
