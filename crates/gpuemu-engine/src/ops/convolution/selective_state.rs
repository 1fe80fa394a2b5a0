//! One state of a selective scan: x ← exp(Δ·A)·x + Δ·B·u, as a kernel has it that computes it step by step or by an
//! associative scan.
//!
//! A scan multiplies decays of neighbouring steps first. However they are grouped, an input goes through as many
//! products and at most as many additions as steps lie behind it, so that the recurrence of errors on magnitudes (of
//! x with every input's absolute value) bounds both. What a scan has and a recurrence has not is a product of decays
//! that overflows, or underflows before it grows again.

use crate::ops::{Arithmetic, Expectation, Overflow, Rounded};
use crate::schema::Units;

/// A state on its way.
#[derive(Debug, Clone, Copy)]
pub(super) struct State {
    value: f64,
    magnitude: f64,
    error: f64,
    /// Σ|Δ·B·u| of all steps, as if nothing had decayed.
    total: f64,
    overflow: bool,
    unsure: bool,
    begun: bool,
    /// The largest and the smallest sum of exponents over steps that end here.
    largest: f64,
    smallest: f64,
}

/// What a step takes: Δ, and an element of A, B and the input.
#[derive(Debug, Clone, Copy)]
pub(super) struct Step {
    pub delta: Rounded,
    pub decay: f64,
    pub gain: f64,
    pub input: f64,
}

impl Step {
    fn is_finite(&self) -> bool {
        [self.delta.value, self.decay, self.gain, self.input].iter().all(|value| value.is_finite())
    }
}

impl State {
    /// Before the first step of a sequence.
    pub fn empty() -> Self {
        Self { begun: false, ..Self::holding(0.0) }
    }

    /// With what earlier steps left.
    pub fn holding(value: f64) -> Self {
        let magnitude = value.abs();
        let (overflow, unsure, begun) = (false, false, true);
        Self { value, magnitude, error: 0.0, total: 0.0, overflow, unsure, begun, largest: 0.0, smallest: 0.0 }
    }

    pub fn advance(&mut self, arithmetic: &Arithmetic, step: &Step) {
        let units = &arithmetic.units;
        let exponent = arithmetic.multiply(step.delta, Rounded::exact(step.decay));
        // Kernels that take exp2 multiply A with log₂e beforehand: it may be subnormal, or overflow.
        let premultiplied = if step.delta.value.is_finite() { step.delta.value.abs() * units.eta } else { 0.0 };
        let exponent = exponent.widened(premultiplied);
        self.unsure |=
            step.decay.is_finite() && step.decay.abs() > 0.69 * units.max && exponent.value > libm::log(units.tiny);
        let decay = arithmetic.exp(exponent);
        let drive = drive_of(arithmetic, step);
        self.watch(exponent.value, libm::log(units.tiny), libm::log(units.max));
        self.unsure |= infinity_times_zero(step, units);
        // Kernels may or may not multiply what is zero before the first step.
        self.unsure |= !self.begun && !decay.value.is_finite();
        self.unsure |= self.value.is_infinite() && self.smallest < libm::log(units.tiny);
        self.begun = true;
        let (before, carried) = (self.magnitude, self.error);
        let finite = before.is_finite() && step.is_finite();
        self.value = decay.value * self.value + drive.value;
        self.magnitude = decay.value * before + drive.value.abs();
        self.total += drive.value.abs();
        let of_decay = (decay.error + units.u * decay.value) * (before + carried);
        self.error = decay.value * carried + of_decay + drive.error + units.eta + 2.0 * units.flush;
        self.error += units.u * (self.magnitude + self.error);
        let limit = Expectation::OVERFLOW_SHARE * units.max;
        self.overflow |= step.delta.overflow != Overflow::None || drive.overflow != Overflow::None;
        self.overflow |= self.magnitude.is_finite() && self.magnitude + self.error > limit;
        // In float64 the reference overflows with the kernel.
        self.unsure |= finite && !self.magnitude.is_finite();
    }

    /// Sees to products of decays that leave the range of the accumulator.
    fn watch(&mut self, exponent: f64, lowest: f64, highest: f64) {
        self.unsure |= self.smallest < lowest && exponent > 0.0;
        self.largest = self.largest.max(0.0) + exponent;
        self.smallest = self.smallest.min(0.0) + exponent;
        self.overflow |= self.largest > Expectation::OVERFLOW_SHARE * highest;
    }

    /// Whether nothing can be said of it, or of its product with `mix`: the sign of an infinity may be open.
    pub fn is_unsure(&self, mix: f64, arithmetic: &Arithmetic) -> bool {
        self.unsure || mix.is_infinite() && self.rounded(arithmetic).error >= self.value.abs()
    }

    /// The state as a number.
    pub fn rounded(&self, arithmetic: &Arithmetic) -> Rounded {
        let before = if self.overflow { Overflow::Before } else { Overflow::None };
        // A product of decays that underflows takes along whatever it is multiplied with.
        let underflow = if self.value.is_finite() { arithmetic.units.tiny * self.total } else { 0.0 };
        arithmetic.intermediate(arithmetic.placed(self.value, self.error + underflow, before))
    }
}

/// Whether an infinity meets what a kernel may have as zero: a step size that softplus leaves next to nothing of, or a
/// product that underflows.
fn infinity_times_zero(step: &Step, units: &Units) -> bool {
    let Step { delta, decay, gain, input } = *step;
    let vanishing = delta.error > 0.0 && delta.error >= delta.value.abs();
    let small = |left: f64, right: f64| (left * right).abs() < units.tiny;
    let overflows = decay.abs() > 0.69 * units.max && vanishing;
    let underflows = gain.is_infinite() && small(delta.value, input) || input.is_infinite() && small(delta.value, gain);
    let infinite = decay.is_infinite() || gain.is_infinite() || input.is_infinite();
    overflows || vanishing && infinite || underflows || delta.value.is_infinite() && small(gain, input)
}

/// Δ·B·u, whichever product comes first.
fn drive_of(arithmetic: &Arithmetic, step: &Step) -> Rounded {
    let Step { delta, gain, input, .. } = *step;
    let units = &arithmetic.units;
    let mut drive = arithmetic.multiply(arithmetic.multiply(delta, Rounded::exact(input)), Rounded::exact(gain));
    let pairs = [delta.value * input, delta.value * gain, gain * input];
    let limit = Expectation::OVERFLOW_SHARE * units.max;
    if step.is_finite() && pairs.iter().any(|product| product.abs() > limit) {
        drive.overflow = Overflow::Before;
    }
    if drive.value.is_finite() {
        drive = drive.widened((units.eta + units.flush) * (delta.value.abs() + gain.abs() + input.abs()));
    }
    drive
}
