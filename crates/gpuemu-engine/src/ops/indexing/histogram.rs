//! histogram with bins of equal width.

use crate::ops::{Arithmetic, BuiltIn, Call, Expectation, OpError, Rounded};
use crate::schema::{Scalar, Schema};

pub(super) fn ops() -> Vec<BuiltIn> {
    vec![BuiltIn::new(
        Schema::builtin("histogram", "input[N] bins:int=16 min:float=-4.0 max:float=4.0 -> out[bins]")
            .alias(&["histc"])
            .reduces(&["N"])
            .choices("bins", &[Scalar::Int(16), Scalar::Int(1), Scalar::Int(10), Scalar::Int(64)])
            .choices("min", &[Scalar::Float(-4.0), Scalar::Float(-1.0)])
            .choices("max", &[Scalar::Float(4.0), Scalar::Float(1.0)])
            .describe(
                "Elements counted in bins of equal width (torch.histc): each bin has its lower edge, the last has `max` as well; elements below `min` or above `max` and NaN count nowhere.",
                "out[b] = count(floor((x - min)*bins/(max - min)) == b, min <= x <= max)",
            )
            .help("bins", "how many bins there are")
            .help("min", "lower edge of the first bin; below `max`")
            .help("max", "upper edge of the last bin, which belongs to it")
            .keywords(&["count", "frequency", "bin", "atomic", "distribution"])
            .bounded_by("the number of elements so close to an edge of the bin that float32 may put them on either side; 0 where there are none")
            .usual_bugs(&[
                "elements equal to max dropped, or counted beyond the last bin",
                "elements outside of the range put into the end bins",
                "counting in a narrow dtype",
                "last elements not counted",
            ]),
        expect,
    )]
}

fn expect(call: &Call<'_>) -> Result<Vec<Expectation>, OpError> {
    let (input, bins) = (call.input("input")?, call.size("bins")?);
    let (min, max) = (call.float("min")?, call.float("max")?);
    let mut expectation = Expectation::with_capacity(bins);
    if min >= max {
        (0..bins).for_each(|_| expectation.push_undetermined(0.0, "min is not below max"));
        return Ok(vec![expectation]);
    }
    let scale = Scale::new(Arithmetic::of(call), min, max, bins);
    let (mut counts, mut doubtful) = (vec![0.0; bins], vec![0.0; bins]);
    for x in input {
        let place = scale.place(*x);
        let inside = *x >= min && *x <= max;
        if inside && bins > 0 {
            counts[scale.bin(*x, place.value)] += 1.0;
        }
        let (low, high) = (place.value - place.error, place.value + place.error);
        let within = high >= 0.0 && low <= bins as f64;
        // Comparisons with the ends are exact, unless the ends themselves are rounded.
        if bins > 0 && place.error > 0.0 && within && (inside || !scale.exact) {
            let bin = |place: f64| (place.max(0.0) as usize).min(bins - 1);
            let lost = !scale.exact && (low < 0.0 || high > bins as f64);
            if bin(low) != bin(high) || lost {
                (bin(low)..=bin(high)).for_each(|bin| doubtful[bin] += 1.0);
            }
        }
    }
    // The most that can move lies inside of the bound, not on it.
    counts.iter().zip(&doubtful).for_each(|(count, doubtful)| expectation.push(*count, 1.01 * doubtful));
    Ok(vec![expectation])
}

/// From an element to its place among the bins.
struct Scale {
    arithmetic: Arithmetic,
    min: Rounded,
    bins: Rounded,
    width: Rounded,
    /// Whether every kernel has the ends exactly.
    exact: bool,
    /// Whether scaling only moves the exponent, so that no kernel rounds there.
    by_exponent: bool,
}

impl Scale {
    fn new(arithmetic: Arithmetic, min: f64, max: f64, bins: usize) -> Self {
        let ends = (arithmetic.constant(min), arithmetic.constant(max));
        let exact = ends.0.error == 0.0 && ends.1.error == 0.0;
        let width = Rounded { error: ends.0.error + ends.1.error, ..arithmetic.constant(max - min) };
        let power_of_two = |value: f64| value > 0.0 && value.to_bits() << 12 == 0;
        let by_exponent = exact && power_of_two(max - min) && power_of_two(bins as f64);
        Self { arithmetic, min: ends.0, bins: Rounded::exact(bins as f64), width, exact, by_exponent }
    }

    /// The bin of an element inside the range: what its place rounds away, a comparison with the edge has.
    fn bin(&self, x: f64, place: f64) -> usize {
        let bin = (place as usize).min((self.bins.value as usize).saturating_sub(1));
        let edge = |bin: usize| self.min.value + bin as f64 * self.width.value / self.bins.value;
        if bin > 0 && x < edge(bin) { bin - 1 } else { bin }
    }

    fn place(&self, x: f64) -> Rounded {
        let above = self.arithmetic.subtract(Rounded::exact(x), self.min);
        let value = (x - self.min.value) * self.bins.value / self.width.value;
        // A difference that float32 has is not rounded; float64 may have rounded it already.
        let shift = above.value - x;
        let lost = (x - (above.value - shift)) + (-self.min.value - shift);
        let representable = self.arithmetic.constant(above.value).error == 0.0 && self.min.error == 0.0 && lost == 0.0;
        let rounding = if representable { 0.0 } else { self.arithmetic.units.u * above.value.abs() };
        let above = Rounded { error: self.min.error + rounding, ..above };
        if self.by_exponent {
            return Rounded { value, error: above.error * self.bins.value / self.width.value, ..above };
        }
        let place = self.arithmetic.divide(self.arithmetic.multiply(above, self.bins), self.width);
        // Times bins/(max - min), or divided by the width of a bin.
        let place = self.arithmetic.slack(place, 2.0);
        Rounded { value, ..place }
    }
}
