//! The precision class of a kernel: what rounding it may do, and the constants that follow.

use crate::schema::JsonSchema;
use serde::{Deserialize, Serialize};

use gpuemu_tensor::{DType, FloatFormat};

/// The order in which a kernel adds up a reduction. Never guessed: declared, or unknown.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum SummationOrder {
    /// One running sum.
    Sequential,
    /// Running sums inside tiles of this size, then a running sum over the tiles.
    Tile(usize),
    /// A tree inside tiles of this size, then a running sum over the tiles.
    TileTree(usize),
    /// This many parts, each summed in sequence, then added.
    Split(usize),
    /// 32 lanes striding over the row, then a butterfly.
    Lanes32,
    /// A balanced tree.
    Pairwise,
    /// An online recurrence over blocks of this size, rescaled at each block.
    Online(usize),
}

impl SummationOrder {
    /// The longest chain of roundings that one of `terms` addends goes through.
    pub fn depth(self, terms: usize) -> f64 {
        let k = terms as f64;
        let parts = |size: usize| terms.div_ceil(size.max(1)) as f64;
        let tree = |count: usize| f64::from(count.max(1).next_power_of_two().trailing_zeros()) + 1.0;
        let depth = match self {
            SummationOrder::Sequential => k,
            SummationOrder::Tile(size) => parts(size) + size.min(terms) as f64,
            SummationOrder::TileTree(size) => parts(size) + tree(size),
            SummationOrder::Split(count) => parts(count) + count.min(terms) as f64,
            SummationOrder::Lanes32 => parts(32) + 6.0,
            SummationOrder::Pairwise => tree(terms),
            SummationOrder::Online(size) => tree(size) + 2.0 * parts(size),
        };
        depth.max(1.0)
    }
}

/// How a variance is computed.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum VarianceForm {
    /// Mean first, then squared deviations.
    TwoPass,
    /// Welford's update.
    Welford,
    /// E[x²] − E[x]²: legitimate only where declared.
    OnePass,
}

/// How the result is converted to the output dtype.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum FinalRounding {
    /// To nearest, ties to even.
    Nearest,
    /// Truncation: the cell is one-sided and a whole ulp wide.
    TowardZero,
    /// Either neighbour.
    Stochastic,
}

/// What a correct kernel is allowed to do with precision.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(default, deny_unknown_fields)]
pub struct Precision {
    /// Dtype of running sums and of the arithmetic; by default float32, or float64 for float64 ops.
    pub accumulate: Option<DType>,
    /// Order of summation; unknown means that any order is allowed for.
    pub order: Option<SummationOrder>,
    /// Dtype to which intermediates may be rounded (flash attention's P, a fused gate).
    pub intermediate: Option<DType>,
    /// Inputs of dot products are rounded or cut off to tf32.
    pub tf32: bool,
    /// Form of a variance; unknown allows two-pass and Welford.
    pub variance: Option<VarianceForm>,
    /// exp2(x·c − m·c) in place of exp2((x − m)·c); x·r − μ·r in a norm.
    pub folded: bool,
    /// `ex2.approx`-grade exp (within 2 ulp); otherwise within 1 ulp.
    pub fast_exp: bool,
    /// `div.full`-grade division (within 2 ulp); otherwise within ½ ulp.
    pub fast_division: bool,
    /// `tanh.approx` (relative error 2⁻¹¹).
    pub fast_tanh: bool,
    /// A short polynomial for erf (absolute error 2⁻²⁰; infinity and overflow are not looked after).
    pub fast_erf: bool,
    /// Subnormal inputs and results of plain arithmetic may become zero.
    pub flush_to_zero: bool,
    /// Tensor cores, which align and truncate.
    pub tensor_core: bool,
    /// Final conversion.
    pub rounding: FinalRounding,
    /// Sums by atomics: two runs may differ in bits.
    pub atomics: bool,
}

impl Default for Precision {
    fn default() -> Self {
        Self {
            accumulate: None,
            order: None,
            intermediate: None,
            tf32: false,
            variance: None,
            folded: false,
            fast_exp: true,
            fast_division: true,
            fast_tanh: false,
            fast_erf: false,
            flush_to_zero: false,
            tensor_core: false,
            rounding: FinalRounding::Nearest,
            atomics: false,
        }
    }
}

impl Precision {
    /// The default class with a declared order of summation.
    pub fn ordered(order: SummationOrder) -> Self {
        Self { order: Some(order), ..Self::default() }
    }

    /// The constants of this class for a case of the given dtype.
    pub fn units(&self, dtype: DType) -> Units {
        let accumulate = self.accumulate.unwrap_or(if dtype == DType::F64 { DType::F64 } else { DType::F32 });
        let format = accumulate.float_format().copied().unwrap_or(FloatFormat::F32);
        let mid = self.intermediate.and_then(DType::float_format);
        let u = format.unit_roundoff();
        Units {
            u,
            eta: format.min_subnormal(),
            tiny: format.min_normal(),
            flush: if self.flush_to_zero { format.min_normal() } else { 0.0 },
            max: format.max_value(),
            exp: if self.fast_exp { 5.0 } else { 3.0 },
            division: if self.fast_division { 5.0 } else { 2.0 },
            rsqrt: 4.0,
            argument: 3.0,
            fast_tanh: if self.fast_tanh { 2f64.powi(-11) } else { 0.0 },
            fast_erf: if self.fast_erf { 2f64.powi(-20) } else { 0.0 },
            mid: mid.map_or(0.0, FloatFormat::unit_roundoff),
            mid_eta: mid.map_or(0.0, FloatFormat::min_subnormal),
            mid_max: mid.map_or(f64::INFINITY, FloatFormat::max_value),
            // Tensor cores cut tf32 inputs off after 10 bits rather than round them.
            input: if self.tf32 { 2f64.powi(-10) } else { 0.0 },
            exact: 2f64.powi(format.mantissa_bits as i32 + 1),
            reference: if dtype == DType::F64 { FloatFormat::F64.unit_roundoff() } else { 0.0 },
        }
    }

    /// The relative error γ of summing `terms` addends, in units of `u`; `None` where the bound
    /// would say nothing (more than a tenth).
    pub fn summation(&self, terms: usize, units: &Units) -> Option<f64> {
        let depth = if self.tensor_core {
            2.0 * terms as f64
        } else {
            self.order.map_or(terms as f64, |order| order.depth(terms))
        };
        let relative = depth * units.u;
        // A float64 reference has the same roundoff as the kernel, and it adds up in sequence.
        let own = if units.reference > 0.0 { terms as f64 } else { 0.0 };
        (relative <= 0.1).then(|| (depth + own) / (1.0 - relative))
    }
}

/// The constants of a precision class (bounds: E, Q, R, a and the underflow terms).
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Units {
    /// Unit roundoff of the accumulator.
    pub u: f64,
    /// Smallest subnormal of the accumulator.
    pub eta: f64,
    /// Smallest normal of the accumulator: what exp and fast division may flush.
    pub tiny: f64,
    /// The same, where plain arithmetic flushes too; else 0.
    pub flush: f64,
    /// Largest finite number of the accumulator.
    pub max: f64,
    /// E: relative error of exp and its rounding, in u.
    pub exp: f64,
    /// Q: relative error of a division or reciprocal, in u.
    pub division: f64,
    /// R: relative error of rsqrt, in u.
    pub rsqrt: f64,
    /// a: roundings in the argument of exp2((x − m)·log₂e).
    pub argument: f64,
    /// Relative error of a fast tanh (not in u); 0 if there is none.
    pub fast_tanh: f64,
    /// Absolute error of a fast erf; 0 if there is none.
    pub fast_erf: f64,
    /// Unit roundoff of the intermediate dtype; 0 if there is none.
    pub mid: f64,
    /// Smallest subnormal of the intermediate dtype.
    pub mid_eta: f64,
    /// Largest number of the intermediate dtype.
    pub mid_max: f64,
    /// Relative error of rounding dot-product inputs (tf32).
    pub input: f64,
    /// Whole numbers up to this are exact in the accumulator.
    pub exact: f64,
    /// Unit roundoff of the reference where it is no finer than the kernel (float64); else 0.
    pub reference: f64,
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn depths_follow_the_declared_order() {
        assert_eq!(SummationOrder::Sequential.depth(1000), 1000.0);
        assert_eq!(SummationOrder::Tile(128).depth(1000), 8.0 + 128.0);
        assert_eq!(SummationOrder::TileTree(128).depth(1000), 8.0 + 8.0);
        assert_eq!(SummationOrder::Split(4).depth(1000), 250.0 + 4.0);
        assert_eq!(SummationOrder::Lanes32.depth(1000), 32.0 + 6.0);
        assert_eq!(SummationOrder::Pairwise.depth(1000), 11.0);
        assert_eq!(SummationOrder::Online(32).depth(64), 6.0 + 4.0);
    }

    #[test]
    fn a_bound_that_would_say_nothing_is_refused() {
        let precision = Precision { accumulate: Some(DType::BF16), ..Precision::default() };
        let units = precision.units(DType::BF16);
        assert!(precision.summation(20, &units).is_some());
        assert!(precision.summation(30, &units).is_none());
        let float32 = Precision::default();
        assert!(float32.summation(1 << 20, &float32.units(DType::F32)).is_some());
        assert!(float32.summation(1 << 21, &float32.units(DType::F32)).is_none());
    }
}
