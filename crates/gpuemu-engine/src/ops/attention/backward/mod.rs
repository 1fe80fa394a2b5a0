//! The gradients of attention.
//!
//! With P the weights, dP = dO·Vᵀ, D = Σ P·dP and dS = P(dP − D): dQ = scale·dS·K, dK = scale·dSᵀ·Q, dV = Pᵀ·dO. A
//! kernel's P is off by ΔP, as in the forward pass; since weights sum to one, ΔP moves D by Σ ΔP(dP − D) only.

mod matrices;

use self::matrices::{Combined, Line, Matrices, Summing, transposed};
use super::head::{Head, Merging, Sight};
use super::output::each_head;
use super::row::{Block, Outcome, Setting, log_error};
use super::tile::{LANES, Panels, ROWS, products, rows_of};
use crate::case::Strategy;
use crate::ops::expectation::overflows;
use crate::ops::rounded::ANY_OVERFLOW;
use crate::ops::{BuiltIn, Call, Expectation, OpError};
use crate::schema::{Property, Scalar, Schema, Units};

pub(in crate::ops) fn op() -> BuiltIn {
    BuiltIn::new(
        Schema::builtin(
            "attention_backward",
            "q[B,H,M,D] k[B,H,N,D] v[B,H,N,D] grad_output[B,H,M,D] scale:float=0.0 causal:bool=false \
                 -> grad_q[B,H,M,D] grad_k[B,H,N,D] grad_v[B,H,N,D]",
        )
        .alias(&["flash_attention_backward", "scaled_dot_product_attention_backward", "sdpa_backward"])
        .reduces(&["M", "N"])
        .at_least("N", 1)
        .at_least("D", 1)
        .at_most("D", 128)
        .at_most("B", 8)
        .at_most("H", 4)
        .choices("causal", &[Scalar::Bool(false), Scalar::Bool(true)])
        .describe(
            "Gradients of softmax(q k^T * scale) v with respect to q, k and v; output and log-sum-exp are recomputed. \
                 `scale` 0 means 1/sqrt(D); `causal` lets query i see keys 0..=i, counted from the first key whatever \
                 M and N are. Scores are the same numbers wherever a kernel computes them again.",
            "P = softmax(q k^T*scale), dP = dO v^T, dS = P*(dP - rowsum(P*dP)), dq = scale*dS k, dk = scale*dS^T q, \
                 dv = P^T dO",
        )
        .help("grad_output", "the gradient of the output, dO")
        .help("scale", "factor on scores; 0 means 1/sqrt(D)")
        .help("causal", "whether a query sees no keys after its own position")
        .keywords(&["gradient", "flash attention", "training", "dq", "dk", "dv"])
        .bounded_by(
            "dP: A = u F(D)|dO||v|; D: sum dp|dP - D| + sum p A + u(2F(N) + F(D) + Q + 4) sum p|dO||v|; dS: X = \
             dp|dP - D| + (p + dp)(A + error of D + 3u|dP - D|); grad_q: |scale|(X|k| + u(F(N) + 3)|dS||k|), grad_k \
             with F(M) alike, grad_v: dp|dO| + u(F(M) + 1)p|dO|; with dp = p(exp(x + L) - 1), x the error of a score \
             and its exponential, L that of the log-sum-exp",
        )
        .holds(&[Property::Homogeneous { input: "grad_output", degree: 1 }])
        .amplified_by(&[Strategy::Regular, Strategy::Tiny])
        .usual_bugs(&[
            "rowsum(P*dP) not subtracted",
            "scale missing on dq or dk",
            "causal mask missing in the backward pass",
            "gradient of the last tile not added",
        ]),
        expect,
    )
}

/// What a row of the head allows to be said.
#[derive(Debug, Clone, Copy, PartialEq)]
enum State {
    Ordinary,
    /// Its weights are NaN.
    Scores,
    /// Its gradient has a NaN.
    Gradient,
    /// Nothing, by name of the reason.
    Unknown(&'static str),
}

fn expect(call: &Call<'_>) -> Result<Vec<Expectation>, OpError> {
    let [heads, queries, keys] = [call.size("B")? * call.size("H")?, call.size("M")?, call.size("N")?];
    let width = call.size("D")?;
    let names = ["q", "k", "v", "grad_output"];
    let setting = Setting::of(call, width)?;
    let (row_sum, key_sum) = (call.summation(queries.max(1))?, call.summation(keys.max(1))?);
    let work = call.input("q")?.len().saturating_mul(keys);
    let parts = each_head(heads, work, |head| {
        let [q, k, v, gradient] = names.map(|name| call.input(name));
        let (rows, columns) = (queries * width, keys * width);
        let (q, gradient) = (&q?[head * rows..][..rows], &gradient?[head * rows..][..rows]);
        let (k, v) = (&k?[head * columns..][..columns], &v?[head * columns..][..columns]);
        let mut units = call.units;
        if units.reference > 0.0 {
            units.u *= 2.0;
        }
        let causal = call.flag("causal");
        let packed = Head::new(call, k, v, width, Merging::default())?;
        let one = One { setting: &setting, units, head: packed, q, k, v, gradient, causal, row_sum, key_sum };
        Ok(one.gradients())
    })?;
    let mut all = [Expectation::default(), Expectation::default(), Expectation::default()];
    for part in parts {
        all.iter_mut().zip(part).for_each(|(all, part)| all.append(part));
    }
    Ok(all.into())
}

struct One<'a> {
    setting: &'a Setting,
    units: Units,
    head: Head<'a>,
    q: &'a [f64],
    k: &'a [f64],
    v: &'a [f64],
    gradient: &'a [f64],
    causal: bool,
    /// F(M).
    row_sum: f64,
    /// F(N).
    key_sum: f64,
}

impl One<'_> {
    fn sees(&self, query: usize, key: usize) -> bool {
        !self.causal || key <= query
    }

    fn gradients(&self) -> [Expectation; 3] {
        let (keys, width, units) = (self.head.keys, self.head.width, self.units);
        let queries = self.q.len() / width.max(1);
        let mut matrices = Matrices::default();
        let mut states = Vec::with_capacity(queries);
        let mut block = Block::new(&self.head);
        let values = Panels::transposed(self.v, width);
        let blank = vec![0.0; width];
        let [mut product, mut magnitude] = [vec![0.0; ROWS * values.stride()], vec![0.0; ROWS * values.stride()]];
        let finite = |values: &[f64]| values.iter().all(|value| value.is_finite());
        let finite_keys = finite(self.k) && finite(self.v);
        for (index, q) in self.q.chunks(ROWS * width).enumerate() {
            let first = index * ROWS;
            let sight = |row: usize| Sight::of(0..if self.causal { keys.min(first + row + 1) } else { keys });
            let sights: Vec<Sight<'_>> = (0..q.len() / width).map(sight).collect();
            let outcomes = self.setting.weigh(&self.head, q, &sights, &mut block);
            let gradient = &self.gradient[first * width..][..q.len()];
            let rows = rows_of(gradient, width, &blank);
            products(rows, &values, 0..width, 0..keys.div_ceil(LANES), &mut product, &mut magnitude);
            for (row, outcome) in outcomes.iter().enumerate() {
                let place = row * block.key_stride..row * block.key_stride + keys;
                let line = Line {
                    weights: &block.weights[place.clone()],
                    errors: &block.errors[place.clone()],
                    inner: &product[place.clone()],
                    magnitude: &magnitude[place],
                    seen: sights[row].range.end,
                };
                let own = &q[row * width..][..width];
                let loose = |weights: &[f64]| self.setting.loose(&self.head, own, &sights[row], weights);
                let gradient = rows[row];
                let mut state = match outcome {
                    Outcome::Poisoned | Outcome::Highest => State::Scores,
                    Outcome::Overflow => State::Unknown("unscaled |q||k|"),
                    Outcome::Blind | Outcome::Lowest => State::Unknown("a row of -Inf"),
                    Outcome::Ordinary(_) if gradient.iter().any(|value| value.is_nan()) => State::Gradient,
                    Outcome::Ordinary(_) if !finite_keys || !finite(gradient) => State::Unknown("0 times infinity"),
                    Outcome::Ordinary(_) if overflows(self.head.largest_sum(), units.max) => {
                        State::Unknown("sum of |v|")
                    }
                    Outcome::Ordinary(_) if line.overflows(units.max) => State::Unknown("|dO||v|"),
                    Outcome::Ordinary(_) => State::Ordinary,
                };
                match outcome {
                    Outcome::Ordinary(weighed) => {
                        let roundings =
                            self.key_sum + 2.0 * (units.exp + units.argument * weighed.spread) + units.division;
                        let log = log_error(&units, weighed.maximum, libm::log(weighed.sum)) + units.u * roundings;
                        // Of kernels that recompute weights from the log-sum-exp they do not quite sum to one.
                        let unity = libm::expm1(log).min(1.0);
                        let share = (weighed.total_error < 0.5)
                            .then(|| log + 2.0 * units.u - libm::log1p(-weighed.total_error));
                        let fits = self.line(&line, (share, unity), loose, state == State::Ordinary, &mut matrices);
                        if state == State::Ordinary && !fits {
                            state = State::Unknown("dS in the intermediate dtype");
                        }
                    }
                    _ => matrices.blank(keys),
                }
                states.push(state);
            }
        }
        [self.queries(&matrices, &states), self.keys(&matrices, &states), self.values(&matrices, &states)]
    }

    /// Adds a row to the matrices: P, ΔP, dS and its error. Whether dS fits the intermediate dtype.
    fn line(
        &self,
        line: &Line<'_>,
        (share, unity): (Option<f64>, f64),
        loose: impl Fn(&[f64]) -> Vec<f64>,
        ordinary: bool,
        matrices: &mut Matrices,
    ) -> bool {
        let (units, keys) = (self.units, line.weights.len());
        let start = matrices.weights.len();
        // Only the part that is seen has weights.
        let seen = line.seen;
        matrices.weights.extend(line.weights[..seen].iter().chain(std::iter::repeat_n(&0.0, keys - seen)));
        match share {
            Some(share) => {
                let (factor, more) = (libm::exp(share), libm::expm1(share));
                let pairs = line.weights[..seen].iter().zip(line.errors);
                matrices.moved.extend(pairs.map(|(weight, error)| error * factor + weight * more + units.tiny));
            }
            None => matrices.moved.extend(loose(&line.weights[..seen])),
        }
        matrices.moved.resize(start + keys, 0.0);
        matrices.slopes.resize(start + keys, 0.0);
        matrices.errors.resize(start + keys, 0.0);
        if !ordinary {
            return true;
        }
        let (dot, width) = (self.setting.dot, self.head.width as f64);
        let input = units.input * (2.0 + units.input);
        let inner_error = |key: usize| {
            let magnitude = line.magnitude[key];
            // A subnormal factor that counts as zero may stand beside a large one.
            let flushed = if units.flush > 0.0 { self.flushed(start / keys, key) } else { 0.0 };
            (units.u * dot + input) * magnitude + width * (units.eta + units.flush) + flushed
        };
        let weights = &matrices.weights[start..start + seen];
        let moved = &matrices.moved[start..start + seen];
        let centre: f64 = weights.iter().zip(line.inner).map(|(weight, inner)| weight * inner).sum();
        let (mut centre_error, mut total, mut lost) = (0.0, 0.0, 0.0);
        for key in 0..seen {
            centre_error += moved[key] * (line.inner[key] - centre).abs() + weights[key] * inner_error(key);
            total += weights[key] * line.magnitude[key];
            lost += units.mid_eta * line.magnitude[key];
        }
        let roundings = 2.0 * self.key_sum + dot + units.division + 4.0;
        // An output that is subnormal has lost most of its digits, and may stand beside a large upstream gradient.
        let upstream = &self.gradient[start / keys * self.head.width..][..self.head.width];
        let upstream: f64 = upstream.iter().map(|gradient| gradient.abs()).sum();
        lost += upstream * ((seen as f64 + 2.0) * (units.eta + units.flush) + units.mid_eta);
        // P is rounded, and so is the output where D is made of it.
        centre_error += centre.abs() * unity
            + (units.u * roundings + 2.0 * units.mid + input) * total
            + lost
            + units.mid_eta
            + units.tiny;
        let mut fits = true;
        for key in 0..seen {
            let distance = line.inner[key] - centre;
            let slope = weights[key] * distance;
            let from_below = inner_error(key) + centre_error + 3.0 * units.u * distance.abs();
            let error = moved[key] * distance.abs() + (weights[key] + moved[key]) * from_below;
            fits &= !overflows(slope.abs() + error, units.mid_max);
            matrices.slopes[start + key] = slope;
            matrices.errors[start + key] =
                error + units.mid * (slope.abs() + error) + units.mid_eta + units.eta + units.flush;
        }
        fits
    }

    /// Σ|dO||v| over products with a subnormal factor.
    fn flushed(&self, query: usize, key: usize) -> f64 {
        let (width, flush) = (self.head.width, self.units.flush);
        let pairs = self.gradient[query * width..][..width].iter().zip(&self.v[key * width..][..width]);
        pairs.filter(|(x, y)| x.abs() < flush || y.abs() < flush).map(|(x, y)| (x * y).abs()).sum()
    }

    fn queries(&self, matrices: &Matrices, states: &[State]) -> Expectation {
        let rule = Summing { summation: self.key_sum + 3.0, scale: self.setting.scale, terms: self.head.keys };
        let combined = Combined::of(states.len(), &matrices.slopes, &matrices.errors, self.k, self.head.width);
        let mut out = Expectation::with_capacity(self.q.len());
        for (query, state) in states.iter().enumerate() {
            for column in 0..self.head.width {
                match state {
                    State::Ordinary => self.push(&combined, &rule, query, column, &mut out),
                    State::Scores | State::Gradient => out.push(f64::NAN, 0.0),
                    State::Unknown(reason) => out.push_undetermined(f64::NAN, reason),
                }
            }
        }
        out
    }

    fn keys(&self, matrices: &Matrices, states: &[State]) -> Expectation {
        let (keys, width) = (self.head.keys, self.head.width);
        let rule = Summing { summation: self.row_sum + 3.0, scale: self.setting.scale, terms: states.len() };
        let (slopes, errors) = (transposed(&matrices.slopes, keys), transposed(&matrices.errors, keys));
        let combined = Combined::of(keys, &slopes, &errors, self.q, width);
        let mut out = Expectation::with_capacity(self.k.len());
        for key in 0..keys {
            let verdict = self.verdict(states, key, |state, seen| match state {
                State::Scores | State::Gradient if seen => State::Scores,
                State::Scores | State::Gradient => State::Unknown("0 times NaN"),
                other => other,
            });
            for column in 0..width {
                match verdict {
                    State::Ordinary => self.push(&combined, &rule, key, column, &mut out),
                    State::Unknown(reason) => out.push_undetermined(f64::NAN, reason),
                    State::Scores | State::Gradient => out.push(f64::NAN, 0.0),
                }
            }
        }
        out
    }

    fn values(&self, matrices: &Matrices, states: &[State]) -> Expectation {
        let (keys, width) = (self.head.keys, self.head.width);
        let rule = Summing { summation: self.row_sum + 1.0, scale: 1.0, terms: states.len() };
        let (weights, moved) = (transposed(&matrices.weights, keys), transposed(&matrices.moved, keys));
        let mut combined = Combined::of(keys, &weights, &moved, self.gradient, width);
        let (units, mid) = (self.units, self.units.mid);
        let all: Vec<f64> = (0..width)
            .map(|column| self.gradient.iter().skip(column).step_by(width).map(|value| value.abs()).sum())
            .collect();
        for (error, (magnitude, place)) in combined.error.iter_mut().zip(combined.magnitude.iter().zip(0..)) {
            let column = place % combined.stride;
            *error += mid * magnitude + (units.mid_eta + units.tiny) * all.get(column).copied().unwrap_or(0.0);
        }
        let mut out = Expectation::with_capacity(self.v.len());
        for key in 0..keys {
            for column in 0..width {
                let mut row = 0;
                let verdict = self.verdict(states, key, |state, seen| {
                    let value = self.gradient[row * width + column];
                    row += 1;
                    match state {
                        State::Scores if seen => State::Scores,
                        State::Scores => State::Unknown("0 times NaN"),
                        // Weights are what they are; of the gradient only this column matters.
                        State::Gradient if value.is_nan() && seen => State::Scores,
                        State::Gradient if value.is_finite() => State::Ordinary,
                        State::Gradient => State::Unknown("0 times infinity"),
                        other => other,
                    }
                });
                match verdict {
                    State::Ordinary => self.push(&combined, &rule, key, column, &mut out),
                    State::Unknown(reason) => out.push_undetermined(f64::NAN, reason),
                    State::Scores | State::Gradient => out.push(f64::NAN, 0.0),
                }
            }
        }
        out
    }

    /// What all rows together allow to be said of a key: NaN where one makes it certain, else nothing where one is
    /// unknown.
    fn verdict(&self, states: &[State], key: usize, mut judge: impl FnMut(State, bool) -> State) -> State {
        let mut verdict = State::Ordinary;
        for (query, state) in states.iter().enumerate() {
            match judge(*state, self.sees(query, key)) {
                State::Scores => return State::Scores,
                State::Unknown(reason) => verdict = State::Unknown(reason),
                _ => {}
            }
        }
        verdict
    }

    fn push(&self, combined: &Combined, rule: &Summing, row: usize, column: usize, out: &mut Expectation) {
        let units = &self.units;
        let place = row * combined.stride + column;
        let (magnitude, error) = (combined.magnitude[place], combined.error[place]);
        let input = units.input * (2.0 + units.input) + if rule.scale == 1.0 { 0.0 } else { units.mid };
        let total = error + (units.u * rule.summation + input) * (magnitude + error);
        let lost = rule.terms as f64 * (units.eta + units.flush);
        let delta = rule.scale.abs() * (total + lost) + units.eta + units.flush;
        let y = combined.product[place] * rule.scale;
        if overflows(magnitude + error, units.max) {
            out.push_overflow(y, delta, ANY_OVERFLOW, "a sum of products");
        } else {
            out.push(y, delta);
        }
    }
}
