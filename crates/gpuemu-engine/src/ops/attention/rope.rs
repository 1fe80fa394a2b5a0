//! rope: rotary position embedding of the last dim, angles computed by the kernel.

use crate::case::Strategy;
use crate::ops::{BuiltIn, Call, Expectation, OpError};
use crate::schema::{Property, Scalar, Schema};

pub(in crate::ops) fn op() -> BuiltIn {
    BuiltIn::new(
            Schema::builtin(
                "rope",
                "input[B,S,N,2*P] position:int32[B,S] in 0..2048 base:float=10000.0 interleaved:bool=false -> out[B,S,N,2*P]",
            )
            .alias(&["rotary_embedding"])
            .choices("base", &[Scalar::Float(10_000.0), Scalar::Float(10_000.0), Scalar::Float(500_000.0)])
            .choices("interleaved", &[Scalar::Bool(false), Scalar::Bool(true)])
            .at_most("P", 128)
            .describe(
                "Pair i of P rotated by position*base^(-i/P); pairs are (i, i+P), or (2i, 2i+1) where `interleaved`.",
                "(x1*cos - x2*sin, x2*cos + x1*sin)",
            )
            .help("input", "queries or keys: batch, sequence, heads, width")
            .help("position", "position of each token, the same for all of its heads")
            .help("base", "base of the frequencies (theta): pair i of P turns by base^(-i/P) a position")
            .help("interleaved", "whether pairs are neighbours, as in GPT-J, and not one of each half, as in GPT-NeoX and Llama")
            .bounded_by("u*(4*A + angle*(3 + 2*log(base)*i/P)*B) + u_mid*A + 2*(eta + flush + eta_mid) with A = |x1*cos| + |x2*sin|, \
                 B = |x1*sin| + |x2*cos| for the first of a pair: the angle is computed in the accumulator")
            .keywords(&["attention", "rotary position embedding", "positional encoding", "gpt-neox", "llama"])
            .holds(&[Property::Homogeneous { input: "input", degree: 1 }])
            .amplified_by(&[Strategy::Regular])
            .usual_bugs(&["sign of the sine", "halves and interleaved mixed up", "position ignored"]),
        expect,
    )
}

fn expect(call: &Call<'_>) -> Result<Vec<Expectation>, OpError> {
    let (input, position) = (call.input("input")?, call.input("position")?);
    let (heads, pairs) = (call.size("N")?, call.size("P")?);
    let (base, interleaved) = (call.float("base")?, call.flag("interleaved"));
    let units = call.units;
    // Two products and their sum, in whatever order; a float64 reference has as many roundings of its own.
    let roundings = if units.reference > 0.0 { 6.0 } else { 4.0 };
    let width = 2 * pairs;
    let mut expectation = Expectation::with_capacity(input.len());
    let mut rotations = Vec::with_capacity(pairs);
    for (token, position) in position.iter().enumerate() {
        rotations.clear();
        for pair in 0..pairs {
            let log_inverse = 2.0 * pair as f64 / width as f64 * libm::log(base);
            let angle = position * libm::exp(-log_inverse);
            let angle_error = angle * (3.0 + 2.0 * log_inverse);
            rotations.push((libm::cos(angle), libm::sin(angle), angle_error));
        }
        for head in 0..heads {
            let row = &input[(token * heads + head) * width..][..width];
            for column in 0..width {
                let (pair, second) =
                    if interleaved { (column / 2, column % 2 == 1) } else { (column % pairs, column >= pairs) };
                let (x1, x2) =
                    if interleaved { (row[2 * pair], row[2 * pair + 1]) } else { (row[pair], row[pair + pairs]) };
                let (cos, sin, angle_error) = rotations[pair];
                let (along, across) = if second { (x2, x1) } else { (x1, x2) };
                let y = if second { x2 * cos + x1 * sin } else { x1 * cos - x2 * sin };
                let size = (along * cos).abs() + (across * sin).abs();
                let slope = (along * sin).abs() + (across * cos).abs();
                let delta = units.u * (roundings * size + angle_error * slope)
                    + units.mid * size
                    + 2.0 * (units.eta + units.flush + units.mid_eta);
                // An infinity times a factor so close to 0 that its sign depends on rounding.
                let unsure = |x: f64, factor: f64| {
                    x.is_infinite() && angle_error > 0.0 && factor.abs() < 2.0 * units.u * (angle_error + 1.0)
                };
                if unsure(along, cos) || unsure(across, sin) {
                    expectation.push_undetermined(y, "infinity times a number close to 0");
                } else {
                    expectation.push(y, delta);
                }
            }
        }
    }
    Ok(vec![expectation])
}
