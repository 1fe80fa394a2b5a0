//! The cross entropy of one row of logits, which may have been computed themselves, and the mean of such losses.

use crate::ops::normalisation::log_softmax::{logarithm_condition, rounded_logarithm};
use crate::ops::normalisation::softmax::{FOLDED, RowSum};
use crate::ops::{Arithmetic, Call, Expectation, OpError, Overflow, Rounded};

/// What may overflow in a row's loss.
pub(super) const LOGIT_SUM: &str = "sum of |x| for the smoothing, or a row's loss";

/// The mean of the rows that count.
pub(super) fn mean_of(
    losses: Vec<RowLoss>,
    overflowing: &'static str,
    call: &Call<'_>,
) -> Result<Vec<Expectation>, OpError> {
    let arithmetic = Arithmetic::of(call);
    let mut counted = Vec::with_capacity(losses.len());
    let mut undetermined = None;
    for loss in losses {
        match loss {
            RowLoss::Ignored => {}
            RowLoss::Undetermined(y, reason) => {
                undetermined = Some(reason);
                counted.push(Rounded::exact(y));
            }
            RowLoss::Known(loss) => counted.push(arithmetic.intermediate(loss)),
        }
    }
    let mut expectation = Expectation::with_capacity(1);
    if counted.is_empty() {
        expectation.push(f64::NAN, 0.0);
        return Ok(vec![expectation]);
    }
    let count = counted.len();
    let total = arithmetic.sum(counted, call.summation(count)?);
    // Kernels divide the sum, or each loss before it.
    let mean = arithmetic.divide(total, Rounded::exact(count as f64));
    match undetermined {
        Some(reason) => expectation.push_undetermined(mean.value, reason),
        None => expectation.push_rounded(mean, overflowing),
    }
    Ok(vec![expectation])
}

pub(super) enum RowLoss {
    /// Its target is ignored.
    Ignored,
    /// What it would be, and why any other answer is possible too.
    Undetermined(f64, &'static str),
    /// The loss and its error.
    Known(Rounded),
}

/// What the losses of rows have in common.
pub(super) struct RowLosses<'a> {
    call: &'a Call<'a>,
    arithmetic: Arithmetic,
    smoothing: f64,
    ignored: f64,
    summation: f64,
    exponentials: Vec<f64>,
}

impl<'a> RowLosses<'a> {
    /// For rows of `width` classes.
    pub fn new(call: &'a Call<'a>, width: usize) -> Result<Self, OpError> {
        Ok(Self {
            call,
            arithmetic: Arithmetic::of(call),
            smoothing: call.float("label_smoothing")?,
            ignored: call.int("ignore_index")? as f64,
            summation: call.summation(width.max(1))?,
            exponentials: vec![0.0; width],
        })
    }

    /// The loss of a row whose logits may be off by `errors`, where they were computed.
    pub fn of(&mut self, row: &[f64], errors: Option<&[f64]>, target: f64) -> Result<RowLoss, OpError> {
        if target == self.ignored {
            return Ok(RowLoss::Ignored);
        }
        let class = target as usize;
        let Some(chosen) = row.get(class).copied() else { return Err(OpError::MissingInput("target".to_string())) };
        let Some(row_sum) = RowSum::of(row, &mut self.exponentials, self.call) else {
            return Ok(RowLoss::Known(Rounded::exact(f64::NAN)));
        };
        let (width, units) = (row.len(), self.call.units);
        let of_target = (row_sum.maximum - chosen) + row_sum.logarithm;
        let (common, underflow) = logarithm_condition(&row_sum, width, self.call)?;
        let condition = common + 3.0 * (row_sum.maximum.abs() + chosen.abs());
        let rounded = rounded_logarithm(&row_sum, of_target, width, self.call);
        let mut error = units.u * condition + underflow + rounded;
        if let Some(errors) = errors {
            error += self.carried(row_sum.sum, errors, Some(class));
        }
        if self.smoothing == 0.0 {
            return Ok(self.known(of_target, error, false, row_sum.undetermined));
        }
        let count = width as f64;
        let (mut of_all, mut magnitude, mut logits) = (0.0, 0.0, 0.0);
        for x in row {
            let distance = (row_sum.maximum - x) + row_sum.logarithm;
            of_all += distance;
            // Either log-probabilities are added up, or logits.
            magnitude += distance.max(x.abs());
            logits += x.abs();
        }
        let (kept, shared) = (1.0 - self.smoothing, self.smoothing / count);
        let value = kept * of_target + shared * of_all;
        // max + log S, of which the mean of the logits or each logit is taken.
        let all_condition = common + 2.0 * row_sum.maximum.abs() + (self.summation + 3.0) * magnitude / count;
        let mut all_error = units.u * all_condition + underflow;
        all_error += (count + 2.0) * (units.eta + units.flush) / self.smoothing;
        // Each log-probability, their sum and its share may be rounded.
        all_error += rounded_logarithm(&row_sum, 2.5 * of_all / count, width, self.call);
        if let Some(errors) = errors {
            all_error += self.carried(row_sum.sum, errors, None) + errors.iter().sum::<f64>() / count;
        }
        error = kept * error + self.smoothing * all_error;
        // The parts put together, in the one order or the other.
        let parts = row_sum.maximum.abs() + row_sum.logarithm + chosen.abs() + logits / count;
        error += units.u * (3.0 * parts + 5.0 * (kept * of_target + shared * of_all));
        error += units.mid * 3.0 * (kept * of_target + shared * of_all);
        // The sum over the classes may be held in the intermediate dtype.
        let most = units.max.min(units.mid_max);
        let overflows = logits.is_finite() && magnitude > Expectation::OVERFLOW_SHARE * most;
        // In float64 the reference overflows with the kernel.
        let beyond = logits.is_infinite() && row.iter().all(|x| x.is_finite());
        if beyond || overflows && !value.is_finite() {
            return Ok(RowLoss::Undetermined(value, LOGIT_SUM));
        }
        Ok(self.known(value, error, overflows, row_sum.undetermined))
    }

    fn known(&self, value: f64, error: f64, overflows: bool, undetermined: bool) -> RowLoss {
        if undetermined {
            return RowLoss::Undetermined(value, FOLDED);
        }
        let before = if overflows { Overflow::Before } else { Overflow::None };
        RowLoss::Known(self.arithmetic.placed(value, error, before))
    }

    /// How far errors of the logits move log Σ eˣ, or the loss of a class: that is log(1 + Σ e^(x − x[class])) over the
    /// other classes, and log Σ p·e^d is at most Σ p·(e^d − 1) on either side.
    fn carried(&self, sum: f64, errors: &[f64], class: Option<usize>) -> f64 {
        let own = class.and_then(|class| errors.get(class)).copied().unwrap_or(0.0);
        let (mut moved, mut largest) = (0.0, 0.0f64);
        for (index, (e, error)) in self.exponentials.iter().zip(errors).enumerate() {
            largest = largest.max(*error);
            if *e > 0.0 && Some(index) != class {
                moved += e / sum * libm::expm1(error + own);
            }
        }
        // The arithmetic of the loss itself, on logits that are not quite these.
        moved + 8.0 * self.call.units.u * largest
    }
}
