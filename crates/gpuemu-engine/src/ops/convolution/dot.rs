//! One output of a convolution: a sum of products, some of them with padding.

use crate::ops::call::all_integers;
use crate::ops::expectation::overflows;
use crate::ops::reduction::sum::SUM_OVERFLOW;
use crate::ops::{Call, ExcuseKind, Expectation, OpError};
use crate::schema::Units;

/// What all outputs of a call have in common.
pub(super) struct Products {
    pub units: Units,
    /// F, in u, with the rounding of inputs where they are rounded.
    share: f64,
    underflow: f64,
    exact: bool,
}

impl Products {
    /// For sums of `terms` products and perhaps a bias.
    pub fn of(call: &Call<'_>, tensors: &[&[f64]], bias: Option<&[f64]>, terms: usize) -> Result<Self, OpError> {
        let units = call.units;
        let terms = terms + usize::from(bias.is_some());
        Ok(Self {
            units,
            share: units.u * call.summation(terms.max(1))? + units.input * (2.0 + units.input),
            underflow: terms as f64 * (units.eta + units.flush),
            exact: tensors.iter().all(|values| all_integers(values)) && bias.is_none_or(all_integers),
        })
    }
}

/// A sum of products on its way.
#[derive(Debug, Clone, Copy, Default)]
pub(super) struct Dot {
    pub value: f64,
    magnitude: f64,
    finite: f64,
    lost: f64,
    /// Whether a weight that is not finite falls on padding.
    pub poisoned: bool,
}

/// A padding of zeros times Inf or NaN is NaN; kernels that leave padding out have nothing there.
pub(super) const PADDED: ExcuseKind = ExcuseKind::Overflow { nan: true, infinite: false, value: None };

pub(super) const PADDED_REASON: &str = "padding times a weight that is not finite";

/// What overflows in a sum of products.
pub(super) const MAGNITUDE: &str = "|input||weight|";

impl Dot {
    pub fn starting(bias: Option<f64>) -> Self {
        let value = bias.unwrap_or(0.0);
        let finite = if value.is_finite() { value.abs() } else { 0.0 };
        Self { value, magnitude: value.abs(), finite, ..Self::default() }
    }

    #[inline]
    pub fn add(&mut self, x: f64, weight: f64, flush: f64) {
        let product = x * weight;
        self.value += product;
        self.magnitude += product.abs();
        self.finite += if product.is_finite() { product.abs() } else { 0.0 };
        // A subnormal input may count as zero, and its product with a large number is not small.
        if x.abs() < flush || weight.abs() < flush {
            self.lost += product.abs();
        }
    }

    /// A tap that falls on padding.
    #[inline]
    pub fn pad(&mut self, weight: f64) {
        self.poisoned |= !weight.is_finite();
    }

    /// δ.
    pub fn delta(&self, products: &Products) -> f64 {
        let Products { share, underflow, exact, units } = products;
        let own = if *exact && self.magnitude <= units.exact { 0.0 } else { share * self.magnitude + underflow };
        own + self.lost
    }

    /// Whether a partial sum may overflow where the reference does not, or beside an infinity.
    pub fn overflows(&self, units: &Units) -> bool {
        let beside = self.value.is_infinite() && units.reference == 0.0 && overflows(self.finite, units.max);
        // In float64 the reference overflows with the kernel, and y says nothing.
        beside || overflows(self.magnitude, units.max) && (self.value.is_finite() || units.reference > 0.0)
    }

    /// Adds it to what is expected.
    pub fn push(&self, products: &Products, expectation: &mut Expectation) {
        let delta = self.delta(products);
        if self.overflows(&products.units) {
            expectation.push_overflow(self.value, delta, SUM_OVERFLOW, MAGNITUDE);
        } else if self.poisoned && !self.value.is_nan() {
            expectation.push_overflow(self.value, delta, PADDED, PADDED_REASON);
        } else {
            expectation.push(self.value, delta);
        }
    }
}
