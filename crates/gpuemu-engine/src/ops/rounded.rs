//! Numbers as a kernel holds them: the exact value, and how far from it the kernel's may be.
//!
//! References of composed formulas compute with these, so that δ follows from the formula step by step. Each method
//! of [`Arithmetic`] is one operation of a kernel: it carries the errors of its operands over and adds its own
//! rounding. Algebra that kernels may rearrange (a product by a reciprocal, a factor applied before or after a sum)
//! is allowed for by [`Arithmetic::slack`].

use super::{Call, ExcuseKind, Expectation};
use crate::schema::Units;

/// A number and the error it may have.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Rounded {
    pub value: f64,
    /// How far from it a kernel's may be.
    pub error: f64,
    /// Whether the kernel's may have left the range of the accumulator, itself or on the way.
    pub overflow: Overflow,
}

/// How close a computed number came to the end of the accumulator's range.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub enum Overflow {
    None,
    /// It may itself be beyond it, and what it was computed from was not.
    Here,
    /// Something that it was computed from may have been.
    Before,
    /// The reference itself left the range of float64: of a float64 kernel nothing is known.
    Lost,
}

impl Rounded {
    /// An input, or a number that every kernel has exactly.
    #[inline]
    pub const fn exact(value: f64) -> Self {
        Self { value, error: 0.0, overflow: Overflow::None }
    }

    /// With a further absolute error.
    #[inline]
    pub fn widened(self, error: f64) -> Self {
        Self { error: self.error + error, ..self }
    }

    /// −x: no rounding.
    #[inline]
    pub fn negated(self) -> Self {
        Self { value: -self.value, ..self }
    }

    /// |x|: no rounding.
    #[inline]
    pub fn magnitude(self) -> Self {
        Self { value: self.value.abs(), ..self }
    }

    /// The larger of two: no rounding. NaN where one is NaN.
    #[inline]
    pub fn larger(self, other: Self) -> Self {
        let chosen = if other.value > self.value || other.value.is_nan() { other } else { self };
        let value = if self.value.is_nan() { self.value } else { chosen.value };
        Self { value, error: self.error.max(other.error), overflow: self.carried(other) }
    }

    /// Marks an infinity that was computed from finite numbers: the reference itself left the range of float64.
    #[inline]
    fn overflowing(self, finite: bool) -> Self {
        if finite && self.value.is_infinite() && self.overflow == Overflow::None {
            return Self { overflow: Overflow::Here, ..self };
        }
        self
    }

    #[inline]
    fn carried(self, other: Self) -> Overflow {
        let worst = self.overflow.max(other.overflow);
        // NaN among the inputs makes NaN, whatever overflows beside it.
        let surely_nan = |number: Self| number.value.is_nan() && number.overflow != Overflow::Lost;
        match worst {
            Overflow::None => Overflow::None,
            Overflow::Lost if !surely_nan(self) && !surely_nan(other) => Overflow::Lost,
            _ => Overflow::Before,
        }
    }

    /// What two operands carry to a result: finite ones that make an infinity left float64 here.
    #[inline]
    fn carried_to(self, other: Self, result: f64) -> Overflow {
        let finite = self.value.is_finite() && other.value.is_finite();
        if finite && !result.is_finite() { Overflow::Lost } else { self.carried(other) }
    }
}

/// The operations of a kernel of one precision class.
#[derive(Debug, Clone, Copy)]
pub struct Arithmetic {
    /// The constants of the class; where the reference is no finer than the kernel, u counts for both.
    pub units: Units,
}

impl Arithmetic {
    /// The arithmetic of a call.
    pub fn of(call: &Call<'_>) -> Self {
        let mut units = call.units;
        if units.reference > 0.0 {
            units.u *= 2.0;
        }
        Self { units }
    }

    /// A parameter or constant, which a kernel holds in the accumulator's dtype.
    #[inline]
    pub fn constant(&self, value: f64) -> Rounded {
        // The leading digits that the accumulator has, by a product whose rounding cuts the others off.
        let shifted = value * (2f64.powi(53) / self.units.exact + 1.0);
        let held = shifted - (shifted - value);
        let representable = held == value && (value == 0.0 || value.abs() >= self.units.tiny);
        let error = if representable { 0.0 } else { self.units.u * value.abs() + self.units.eta };
        Rounded { value, error, overflow: Overflow::None }
    }

    /// The result of one operation that rounds once: `error` is what its operands bring.
    #[inline]
    fn rounded(&self, value: f64, error: f64, carried: Overflow) -> Rounded {
        let units = &self.units;
        // Whole numbers that fit are exact, as long as nothing before them was rounded.
        let exact = error == 0.0 && value.abs() <= units.exact && value.trunc() == value;
        let own = if exact { 0.0 } else { units.u * (value.abs() + error) + units.eta + units.flush };
        self.placed(value, error + own, carried)
    }

    /// A number whose error is known as a whole, from a formula for all of its steps.
    #[inline]
    pub fn placed(&self, value: f64, error: f64, carried: Overflow) -> Rounded {
        let here = value.is_finite() && value.abs() + error > Expectation::OVERFLOW_SHARE * self.units.max;
        let overflow = if carried != Overflow::None {
            carried
        } else if here {
            Overflow::Here
        } else {
            Overflow::None
        };
        Rounded { value, error, overflow }
    }

    /// a + b.
    #[inline]
    pub fn add(&self, a: Rounded, b: Rounded) -> Rounded {
        let value = a.value + b.value;
        self.rounded(value, a.error + b.error, a.carried_to(b, value))
    }

    /// a − b.
    #[inline]
    pub fn subtract(&self, a: Rounded, b: Rounded) -> Rounded {
        self.add(a, b.negated())
    }

    /// a·b.
    #[inline]
    pub fn multiply(&self, a: Rounded, b: Rounded) -> Rounded {
        let value = a.value * b.value;
        // What is exactly zero stays so, whatever the other may be; what is only near zero does not.
        let part = |size: f64, error: f64| if size == 0.0 || error == 0.0 { 0.0 } else { size * error };
        let mut error = part(a.value.abs(), b.error) + part(b.value.abs(), a.error) + part(a.error, b.error);
        let flush = self.units.flush;
        // A subnormal operand counts as zero, and its product with a large number is not small.
        if flush > 0.0 && (a.value.abs() < flush || b.value.abs() < flush) {
            error += value.abs();
        }
        // Underflow of the reference itself.
        if value == 0.0 && a.value != 0.0 && b.value != 0.0 {
            error += self.units.eta;
        }
        self.rounded(value, error, a.carried_to(b, value))
    }

    /// a/b, by a division or a product with a reciprocal of the class.
    #[inline]
    pub fn divide(&self, a: Rounded, b: Rounded) -> Rounded {
        let units = &self.units;
        let value = a.value / b.value;
        let room = b.value.abs() - b.error;
        let carried = if room > 0.0 { (a.error + value.abs() * b.error) / room } else { f64::INFINITY };
        let carried = if a.value == 0.0 && a.error == 0.0 { 0.0 } else { carried };
        // A reciprocal of a huge divisor is subnormal and may be flushed; one of a tiny divisor overflows.
        let flushed = if b.value.abs() > 0.0 { units.tiny * a.value.abs() } else { 0.0 };
        let own = units.u * units.division * (value.abs() + carried) + units.eta + units.flush + flushed;
        let overflow = if b.value == 0.0 { a.carried(b) } else { a.carried_to(b, value) };
        let mut result = self.placed(value, carried + own, overflow);
        if result.overflow != Overflow::Lost
            && b.value != 0.0
            && (1.0 / b.value).abs() > Expectation::OVERFLOW_SHARE * units.max
            && a.value != 0.0
        {
            result.overflow = Overflow::Before;
        }
        result
    }

    /// √x, of a number that no kernel has negative.
    #[inline]
    pub fn root(&self, x: Rounded) -> Rounded {
        let value = x.value.sqrt();
        let above = (x.value + x.error).sqrt() - value;
        let below = value - (x.value - x.error).max(0.0).sqrt();
        let own = self.units.u * self.units.rsqrt * value + self.units.eta + self.units.flush;
        self.placed(value, above.max(below) + own, x.carried(x))
    }

    /// eˣ, by exp2(x·log₂e) too.
    #[inline]
    pub fn exp(&self, x: Rounded) -> Rounded {
        let units = &self.units;
        let value = libm::exp(x.value);
        let argument = x.error + 2.0 * units.u * if x.value.is_finite() { x.value.abs() } else { 0.0 };
        // Far below zero nothing is left, however large the error is; nor does it matter if the argument overflows.
        let vanishes = || x.value == f64::NEG_INFINITY || x.value + argument < libm::log(units.tiny);
        if argument > 1.0 && vanishes() {
            let carried = if x.overflow == Overflow::Here { Overflow::None } else { x.carried(x) };
            return self.placed(value, units.tiny, carried);
        }
        let own = units.u * units.exp * value + units.tiny;
        self.placed(value, value * libm::expm1(argument) + own, x.carried(x)).overflowing(x.value.is_finite())
    }

    /// ln x of a number above zero, within 2 ulp.
    #[inline]
    pub fn log(&self, x: Rounded) -> Rounded {
        let value = libm::log(x.value);
        let share = x.error / x.value;
        let carried = if x.error == 0.0 { 0.0 } else { -libm::log1p(-share) };
        self.placed(value, carried + 4.0 * self.units.u * value.abs() + self.units.eta, x.carried(x))
    }

    /// The sum of terms whose roundings amount to `summation` (see [`Call::summation`]).
    pub fn sum(&self, terms: impl IntoIterator<Item = Rounded>, summation: f64) -> Rounded {
        let (mut value, mut absolute, mut carried, mut whole, mut count) = (0.0, 0.0, 0.0, true, 0usize);
        let (mut overflow, mut finite, mut surely_nan) = (Overflow::None, true, false);
        for term in terms {
            value += term.value;
            finite &= term.value.is_finite();
            surely_nan |= term.value.is_nan() && term.overflow != Overflow::Lost;
            // An infinity among the terms is no overflow; what the others add up to may be one.
            absolute += if term.value.is_finite() { term.value.abs() + term.error } else { 0.0 };
            carried += term.error;
            whole &= term.error == 0.0 && term.value.trunc() == term.value;
            overflow = overflow.max(term.overflow);
            count += 1;
        }
        let exact = whole && absolute <= self.units.exact;
        let reference = if self.units.reference > 0.0 { self.units.reference * count as f64 * absolute } else { 0.0 };
        let own = if exact || count <= 1 {
            0.0
        } else {
            self.units.u * summation * absolute + count as f64 * self.units.flush + reference
        };
        let lost = !surely_nan && (overflow == Overflow::Lost || finite && !value.is_finite());
        let carried_overflow = match overflow {
            _ if lost => Overflow::Lost,
            Overflow::None => Overflow::None,
            _ => Overflow::Before,
        };
        let mut result = self.placed(value, carried + own, carried_overflow);
        // A partial sum may overflow where the whole does not; in float64 the sum of magnitudes is then infinite.
        if !lost && absolute > Expectation::OVERFLOW_SHARE * self.units.max && count > 1 {
            result.overflow = Overflow::Before;
        }
        result
    }

    /// Allows for `roundings` more on a number: operations that kernels may do in another order.
    #[inline]
    pub fn slack(&self, x: Rounded, roundings: f64) -> Rounded {
        let units = &self.units;
        x.widened(roundings * (units.u * (x.value.abs() + x.error) + units.eta + units.flush))
    }

    /// Rounded to the declared intermediate dtype, if there is one.
    #[inline]
    pub fn intermediate(&self, x: Rounded) -> Rounded {
        let units = &self.units;
        if units.mid == 0.0 {
            return x;
        }
        let mut rounded = x.widened(units.mid * (x.value.abs() + x.error) + units.mid_eta);
        if x.value.is_finite() && x.value.abs() + x.error > Expectation::OVERFLOW_SHARE * units.mid_max {
            rounded.overflow = rounded.overflow.max(Overflow::Before);
        }
        rounded
    }
}

/// What a kernel may return where an intermediate overflows: infinity, or NaN where infinities meet.
pub const ANY_OVERFLOW: ExcuseKind = ExcuseKind::Overflow { nan: true, infinite: true, value: None };

impl Expectation {
    /// Adds a computed element; where something before it may have overflowed, by the name of what did. A NaN then says
    /// nothing: the infinities that met need not be those of a kernel.
    #[inline]
    pub fn push_rounded(&mut self, x: Rounded, overflowing: &'static str) {
        if x.overflow == Overflow::Lost || x.overflow == Overflow::Before && x.value.is_nan() {
            self.push_undetermined(x.value, overflowing);
        } else if x.overflow == Overflow::Before {
            self.push_overflow(x.value, x.error, ANY_OVERFLOW, overflowing);
        } else {
            self.push(x.value, x.error);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::schema::Precision;
    use gpuemu_tensor::DType;
    use proptest::prelude::*;

    fn arithmetic() -> Arithmetic {
        Arithmetic { units: Precision::default().units(DType::F32) }
    }

    /// Whether what float32 computed is where the bound says, or where nothing is said of it.
    fn covers(rounded: Rounded, single: f32) -> bool {
        rounded.overflow != Overflow::None || (f64::from(single) - rounded.value).abs() <= rounded.error
    }

    fn number() -> impl Strategy<Value = f32> {
        prop_oneof![-100f32..100f32, -1e-3f32..1e-3f32, -1e20f32..1e20f32, Just(0.0), Just(1.0), Just(-3.0)]
    }

    proptest! {
        #[test]
        fn float32_stays_inside_the_bound_of_every_operation(a in number(), b in number(), c in number()) {
            let arithmetic = arithmetic();
            let [x, y, z] = [a, b, c].map(|value| Rounded::exact(f64::from(value)));
            let product = arithmetic.multiply(x, y);
            prop_assert!(covers(product, a * b));
            let sum = arithmetic.add(product, z);
            prop_assert!(covers(sum, a * b + c));
            if b != 0.0 {
                let quotient = arithmetic.divide(sum, y);
                prop_assert!(covers(quotient, (a * b + c) / b));
                prop_assert!(covers(quotient, (a * b + c) * (1.0 / b)));
            }
            let root = arithmetic.root(arithmetic.add(arithmetic.multiply(x, x), arithmetic.multiply(y, y)));
            prop_assert!(covers(root, (a * a + b * b).sqrt()));
            let small = arithmetic.multiply(x, Rounded::exact(0.125));
            if small.value.abs() < 80.0 {
                prop_assert!(covers(arithmetic.exp(small), libm::expf(a * 0.125)));
            }
        }

        #[test]
        fn sums_stay_inside_the_bound_and_whole_numbers_are_exact(terms in prop::collection::vec(number(), 0..40)) {
            let arithmetic = arithmetic();
            let exact = terms.iter().map(|value| Rounded::exact(f64::from(*value)));
            let sum = arithmetic.sum(exact, terms.len() as f64);
            prop_assert!(covers(sum, terms.iter().sum::<f32>()));
            let whole = terms.iter().map(|value| Rounded::exact((f64::from(*value) % 100.0).trunc()));
            prop_assert_eq!(arithmetic.sum(whole, terms.len() as f64).error, 0.0);
        }
    }

    #[test]
    fn what_leaves_float64_is_lost_and_nan_among_the_inputs_is_not() {
        let arithmetic = Arithmetic { units: Precision::default().units(DType::F64) };
        let [large, nan] = [1e300, f64::NAN].map(Rounded::exact);
        let square = arithmetic.multiply(large, large);
        assert_eq!(square.overflow, Overflow::Lost);
        assert_eq!(arithmetic.subtract(square, square).overflow, Overflow::Lost);
        assert_eq!(arithmetic.sum([Rounded::exact(1e308); 3], 3.0).overflow, Overflow::Lost);
        assert_ne!(arithmetic.add(square, nan).overflow, Overflow::Lost);
        assert_ne!(arithmetic.divide(large, Rounded::exact(0.0)).overflow, Overflow::Lost);
        let mut expectation = Expectation::default();
        expectation.push_rounded(arithmetic.subtract(square, square), "a square");
        assert_eq!(expectation.excuses[0].kind, ExcuseKind::Undetermined);
    }

    #[test]
    fn a_constant_is_exact_only_where_the_accumulator_holds_it() {
        for (dtype, exact, rounded) in [
            (DType::F32, [0.5, 3.0, -0.0, 1.0 + 2f64.powi(-23)], [0.1, 1.0 + 2f64.powi(-24), 1e-5, 1e-50]),
            (DType::BF16, [0.5, 3.0, -0.0, 1.0 + 2f64.powi(-7)], [0.1, 1.0 + 2f64.powi(-8), 1e-5, 257.0]),
            (DType::F64, [0.1, 1e-5, -0.0, 1.0 + f64::EPSILON], [5e-324; 4]),
        ] {
            let class = Precision { accumulate: Some(dtype), ..Precision::default() };
            let arithmetic = Arithmetic { units: class.units(dtype) };
            assert!(exact.iter().all(|value| arithmetic.constant(*value).error == 0.0), "{dtype} {exact:?}");
            assert!(rounded.iter().all(|value| arithmetic.constant(*value).error > 0.0), "{dtype} {rounded:?}");
        }
    }

    #[test]
    fn what_overflows_on_the_way_is_told_from_a_result_that_is_too_large() {
        let arithmetic = arithmetic();
        let large = Rounded::exact(1e30);
        let square = arithmetic.multiply(large, large);
        assert_eq!(square.overflow, Overflow::Here);
        assert_eq!(arithmetic.root(square).overflow, Overflow::Before);
        assert_eq!(arithmetic.multiply(large, Rounded::exact(2.0)).overflow, Overflow::None);
    }
}
