//! Scaled dot-product attention with grouped heads, causal and sliding-window masks, a boolean
//! mask, softcap, and the log-sum-exp as a second output.

use crate::case::Strategy;
use crate::ops::elementwise::tanh::tanh_condition;
use crate::ops::expectation::overflows;
use crate::ops::{BuiltIn, Call, ExcuseKind, Expectation, OpError};
use crate::schema::{Property, Scalar, Schema};

/// The op.
pub(in crate::ops) fn op() -> BuiltIn {
    BuiltIn::new(
        Schema::builtin(
            "attention",
            "q[B,H*G,M,D] k[B,H,N,D] v[B,H,N,D] mask?:bool[M,N] scale:float=0.0 causal:bool=false \
                 window:int=0 softcap:float=0.0 masked_rows_zero:bool=false \
                 -> out[B,H*G,M,D] lse?:float32[B,H*G,M]",
        )
        .alias(&["flash_attention", "scaled_dot_product_attention", "sdpa"])
        .reduces(&["N"])
        .at_least("N", 1)
        .at_least("D", 1)
        .at_most("D", 128)
        .at_most("B", 8)
        .at_most("H", 4)
        .at_least("G", 1)
        .at_most("G", 4)
        .choices("causal", &[Scalar::Bool(false), Scalar::Bool(true)])
        .choices("window", &[Scalar::Int(0), Scalar::Int(0), Scalar::Int(0), Scalar::Int(7)])
        .choices("softcap", &[Scalar::Float(0.0), Scalar::Float(0.0), Scalar::Float(0.0), Scalar::Float(20.0)])
        .describe(
            "softmax(q k^T * scale) v. `scale` 0 means 1/sqrt(D); query head h reads key head h/G; `softcap` c > 0 \
                 makes a score s into c*tanh(s/c), before masks; `causal` lets query i see keys 0..=i, counted from \
                 the first key whatever M and N are; `window` > 0 implies it and leaves only the last `window` of \
                 those; true in `mask` means visible; a row that sees nothing is NaN, or 0 where \
                 `masked_rows_zero`; `lse` is the natural log of the sum of exponentials of the scores, -Inf for a \
                 row that sees nothing.",
            "sum_j softmax_j(softcap(q.k_j*scale))*v_j",
        )
        .holds(&[
            Property::Homogeneous { input: "v", degree: 1 },
            Property::MaskedOutIgnored { mask: "mask", inputs: &["k"] },
        ])
        .amplified_by(&[Strategy::Regular, Strategy::Tiny])
        .help("q", "queries: batch, query heads, queries, width")
        .help("k", "keys: batch, key heads, keys, width; each is read by G query heads")
        .help("v", "values, one for each key")
        .help("mask", "which query sees which key, of every batch and head: true is visible")
        .help("lse", "natural logarithm of the sum of exponentials of the scores, which a backward needs")
        .help("scale", "factor of the scores; 0 means 1/sqrt(D)")
        .help("causal", "whether query i sees keys 0..=i only, counted from the first key")
        .help("window", "how many keys a query sees at most, the last of them its own; 0 for all, above 0 causal too")
        .help("softcap", "c of c*tanh(score/c), applied before masks; 0 for none")
        .help("masked_rows_zero", "whether a query that sees no key gives 0 and not NaN")
        .bounded_by("T + u*(F(N) + Q + 1)*(sum(p*|v|) + |y|) + (u_mid + 2*u_in + u_in^2)*sum(p*|v|) + eta_mid*sum|v|/max(S, 1) and \
             underflow, with T = sum(p*e*|v - y|)/(1 - sum(p*e)), at most the hull max|v - y|, e = exp(dS + u*(a*s + \
             E)) - 1, s = max - score (+ |max| where folded), dS = u*(F(D)*|q||k|*scale + 3*|score|) + (u_mid + 2*u_in + \
             u_in^2)*|q||k|*scale, moved through tanh where softcap. lse: u*(F(N) + a*W + E + 3*log(S) + 2*|max|) + \
             max(dS) + N*tiny/S")
        .keywords(&["softmax", "transformer", "flash attention", "grouped query", "gqa", "mqa", "sliding window", "softcap"])
        .usual_bugs(&[
            "scale missing",
            "accumulator not rescaled when the maximum moves",
            "padding keys enter the sum",
            "causal mask off by one",
            "head index ignored",
        ]),
        expect,
    )
}

/// One query row against the keys it sees.
struct Row {
    scores: Vec<f64>,
    /// dS: error of each score.
    errors: Vec<f64>,
    visible: Vec<bool>,
    /// p.
    weights: Vec<f64>,
    /// e: relative error of each p before normalisation.
    weight_errors: Vec<f64>,
    /// Whether a score that nobody sees overflows or is not finite.
    masked_overflow: bool,
}

fn expect(call: &Call<'_>) -> Result<Vec<Expectation>, OpError> {
    let [batches, key_heads, groups] = [call.size("B")?, call.size("H")?, call.size("G")?];
    let [queries, keys, width] = [call.size("M")?, call.size("N")?, call.size("D")?];
    let (q, k, v) = (call.input("q")?, call.input("k")?, call.input("v")?);
    let heads = key_heads * groups;
    let mut out = Expectation::with_capacity(q.len());
    let mut lse = Expectation::with_capacity(batches * heads * queries);
    let mut row = Row {
        scores: vec![0.0; keys],
        errors: vec![0.0; keys],
        visible: vec![true; keys],
        weights: vec![0.0; keys],
        weight_errors: vec![0.0; keys],
        masked_overflow: false,
    };
    let setting = Setting::of(call, keys, width)?;
    for head in 0..batches * heads {
        let key_head = head / heads * key_heads + head % heads / groups;
        let k = &k[key_head * keys * width..][..keys * width];
        let v = &v[key_head * keys * width..][..keys * width];
        for query in 0..queries {
            let q = &q[(head * queries + query) * width..][..width];
            setting.row(call, q, k, query, &mut row);
            setting.outputs(call, &mut row, v, width, &mut out, &mut lse);
        }
    }
    Ok(if call.wants("lse") { vec![out, lse] } else { vec![out] })
}

/// What a mask that is added makes of a score of infinity.
const MASKED_SCORE: ExcuseKind = ExcuseKind::Overflow { nan: true, infinite: false, value: None };

struct Setting<'a> {
    scale: f64,
    causal: bool,
    window: usize,
    softcap: f64,
    zero_rows: bool,
    mask: Option<&'a [f64]>,
    keys: usize,
    /// F(D).
    dot: f64,
    /// F(N).
    sum: f64,
}

impl<'a> Setting<'a> {
    fn of(call: &'a Call<'_>, keys: usize, width: usize) -> Result<Self, OpError> {
        let scale = call.float("scale")?;
        Ok(Self {
            scale: if scale == 0.0 { 1.0 / (width as f64).sqrt() } else { scale },
            causal: call.flag("causal"),
            window: call.int("window")?.max(0) as usize,
            softcap: call.float("softcap")?,
            zero_rows: call.flag("masked_rows_zero"),
            mask: call.optional("mask"),
            keys,
            dot: call.summation(width)?,
            sum: call.summation(keys)?,
        })
    }

    fn sees(&self, query: usize, key: usize) -> bool {
        let masked = self.mask.is_some_and(|mask| mask[query * self.keys + key] == 0.0);
        let future = (self.causal || self.window > 0) && key > query;
        let past = self.window > 0 && key + self.window <= query;
        !(masked || future || past)
    }

    fn row(&self, call: &Call<'_>, q: &[f64], k: &[f64], query: usize, row: &mut Row) {
        let units = call.units;
        row.masked_overflow = false;
        for (key, vector) in k.chunks_exact(q.len()).enumerate() {
            row.visible[key] = self.sees(query, key);
            let (mut dot, mut magnitude, mut flushed) = (0.0, 0.0, 0.0);
            for (x, y) in q.iter().zip(vector) {
                dot += x * y;
                magnitude += (x * y).abs();
                if x.abs() < units.flush || y.abs() < units.flush {
                    flushed += (x * y).abs();
                }
            }
            if !row.visible[key] {
                row.scores[key] = f64::NEG_INFINITY;
                row.errors[key] = 0.0;
                // A mask that is added to the scores makes NaN of an infinite one.
                row.masked_overflow |= !magnitude.is_finite() || overflows(magnitude, units.max);
                continue;
            }
            let score = dot * self.scale;
            let scaled = magnitude * self.scale.abs();
            let mut error = units.u * (self.dot * scaled + 3.0 * score.abs())
                + (units.mid + units.input * (2.0 + units.input)) * scaled
                + self.scale.abs() * (q.len() as f64 * (units.eta + units.flush) + flushed)
                + units.eta;
            if overflows(magnitude, units.max) && (score.is_finite() || units.reference > 0.0) {
                // Marks the row: an infinite error is an overflow by name.
                error = f64::INFINITY;
            } else if !score.is_finite() {
                // An infinite or NaN score is what it is: the class rules decide about its row.
                error = 0.0;
            }
            row.scores[key] = score;
            row.errors[key] = error;
            if self.softcap > 0.0 && error.is_finite() && !score.is_nan() {
                let t = libm::tanh(score / self.softcap);
                let slope = 1.0 - t * t;
                let moved = if slope == 0.0 { 0.0 } else { slope * (error + 2.0 * units.u * score.abs()) };
                let condition = tanh_condition(score / self.softcap, t, &units) + 2.0;
                row.errors[key] = moved + self.softcap * (units.u * condition + units.tiny);
                row.scores[key] = self.softcap * t;
            }
        }
    }

    fn outputs(
        &self,
        call: &Call<'_>,
        row: &mut Row,
        v: &[f64],
        width: usize,
        out: &mut Expectation,
        lse: &mut Expectation,
    ) {
        let units = call.units;
        let visible = row.visible.iter().any(|visible| *visible);
        if !visible {
            let value = if self.zero_rows { 0.0 } else { f64::NAN };
            (0..width).for_each(|_| out.push(value, 0.0));
            lse.push(f64::NEG_INFINITY, 0.0);
            return;
        }
        let mut maximum = f64::NEG_INFINITY;
        let mut poisoned = false;
        for score in &row.scores {
            poisoned |= score.is_nan();
            maximum = maximum.max(*score);
        }
        if row.errors.contains(&f64::INFINITY) {
            (0..width).for_each(|_| out.push_undetermined(f64::NAN, "unscaled |q||k|"));
            lse.push_undetermined(f64::NAN, "unscaled |q||k|");
            return;
        }
        if self.zero_rows && !poisoned && maximum == f64::NEG_INFINITY {
            // A row of nothing but -Inf: zero as where nothing is seen, or NaN.
            let kind = ExcuseKind::Overflow { nan: true, infinite: false, value: None };
            (0..width).for_each(|_| out.push_overflow(0.0, 0.0, kind, "a row of -Inf"));
            lse.push_overflow(maximum, 0.0, kind, "a row of -Inf");
            return;
        }
        if poisoned || maximum.is_infinite() {
            // +Inf − Inf, or nothing but −Inf: NaN. The log-sum-exp of those is the infinity itself or NaN.
            (0..width).for_each(|_| out.push(f64::NAN, 0.0));
            if poisoned {
                lse.push(f64::NAN, 0.0);
            } else {
                let kind = ExcuseKind::Overflow { nan: true, infinite: false, value: None };
                lse.push_overflow(maximum, 0.0, kind, "a score of infinity");
            }
            return;
        }
        let folded = if call.precision.folded { maximum.abs() } else { 0.0 };
        let mut sum = 0.0;
        for (weight, score) in row.weights.iter_mut().zip(&row.scores) {
            *weight = libm::exp(score - maximum);
            sum += *weight;
        }
        let (mut total_error, mut spread, mut score_error) = (0.0, 0.0, 0.0f64);
        for (key, weight) in row.weights.iter_mut().enumerate() {
            *weight /= sum;
            if *weight == 0.0 {
                row.weight_errors[key] = 0.0;
                continue;
            }
            let distance = maximum - row.scores[key];
            let exponent = row.errors[key] + units.u * (units.argument * (distance + folded) + units.exp);
            row.weight_errors[key] = libm::expm1(exponent);
            total_error += *weight * row.weight_errors[key];
            spread += *weight * distance;
            score_error = score_error.max(row.errors[key]);
        }
        let log = libm::log(sum);
        let lse_condition = self.sum + units.argument * (spread + folded) + units.exp + 3.0 * log + 2.0 * maximum.abs();
        let lse_error = units.u * lse_condition + score_error + self.keys as f64 * units.tiny / sum;
        if row.masked_overflow {
            lse.push_overflow(maximum + log, lse_error, MASKED_SCORE, "a masked score");
        } else {
            lse.push(maximum + log, lse_error);
        }
        for column in 0..width {
            self.element(call, row, (total_error, sum), v, column, out);
        }
    }

    fn element(
        &self,
        call: &Call<'_>,
        row: &Row,
        (total_error, sum): (f64, f64),
        v: &[f64],
        column: usize,
        out: &mut Expectation,
    ) {
        let (units, width) = (call.units, v.len() / self.keys);
        let (mut y, mut magnitude, mut all) = (0.0, 0.0, 0.0);
        let (mut special, mut hidden) = (false, false);
        for (key, weight) in row.weights.iter().enumerate() {
            let value = v[key * width + column];
            if !value.is_finite() {
                // A weight that underflows to 0 turns an infinity into NaN, sooner in the kernel than here.
                hidden |= !row.visible[key] || *weight * sum < units.mid_eta.max(1e-30);
                special = true;
            }
            if row.visible[key] {
                y += weight * value;
                magnitude += weight * value.abs();
                all += value.abs();
            }
        }
        if hidden {
            out.push_undetermined(y, "weight 0 times a value that is not finite");
            return;
        }
        if special && row.masked_overflow {
            out.push_overflow(y, 0.0, MASKED_SCORE, "a masked score");
            return;
        }
        if special {
            out.push(y, 0.0);
            return;
        }
        let (mut moved, mut hull) = (0.0, 0.0f64);
        for (key, weight) in row.weights.iter().enumerate() {
            if row.visible[key] {
                let distance = (v[key * width + column] - y).abs();
                moved += weight * row.weight_errors[key] * distance;
                hull = hull.max(distance);
            }
        }
        // A new row of weights is a convex mix too: it never leaves the hull of the values.
        let shift = if total_error >= 0.5 { hull } else { (moved / (1.0 - total_error)).min(hull) };
        let delta = shift
            + units.u * (self.sum + units.division + 1.0) * (magnitude + y.abs())
            + units.mid * magnitude
            + units.mid_eta * all / sum.max(1.0)
            + units.tiny * (all / sum + y.abs() * self.keys as f64 / sum + 1.0)
            + units.input * (2.0 + units.input) * magnitude
            // Products of weights and values that are subnormal, each of them.
            + (self.keys as f64 * units.flush).min(magnitude);
        if row.masked_overflow {
            let kind = ExcuseKind::Overflow { nan: true, infinite: overflows(all, units.max), value: None };
            out.push_overflow(y, delta, kind, "a masked score");
        } else if overflows(all, units.max) {
            let kind = ExcuseKind::Overflow { nan: true, infinite: true, value: None };
            out.push_overflow(y, delta, kind, "sum of |v|");
        } else {
            out.push(y, delta);
        }
    }
}
