//! Which error is allowed: the rigorous bound, the user's fixed pair, or a calibrated one.

use serde::{Deserialize, Serialize};

use gpuemu_tensor::DType;

/// c: the safety factor on δ, fixed by measurement on correct kernels.
pub const BOUND_FACTOR: f64 = 1.25;

/// The share of the allowed error from which a case is worth more evidence.
pub const NEAR_SHARE: f64 = 0.8;

/// The error that a verdict allows.
#[derive(Debug, Clone, Copy, PartialEq, Serialize, Deserialize)]
#[serde(tag = "kind", rename_all = "snake_case")]
pub enum Tolerance {
    /// dist(y, cell(out)) ≤ c·δ.
    Bound,
    /// |out − y| ≤ atol + rtol·|y|, as the user configured.
    Fixed { atol: f64, rtol: f64 },
    /// The same formula with values measured on a trusted control.
    Calibrated { atol: f64, rtol: f64 },
}

impl Tolerance {
    /// The documented defaults per dtype, for ops without a bound.
    pub fn fixed_default(dtype: DType) -> Self {
        let pair = match dtype {
            DType::F64 => 1e-10,
            DType::F32 => 1e-5,
            DType::F16 | DType::BF16 => 1e-2,
            DType::F8E4M3FN | DType::F8E5M2 => 1e-1,
            _ => 0.0,
        };
        Tolerance::Fixed { atol: pair, rtol: pair }
    }

    /// What is allowed at an element with reference y and condition δ.
    #[inline]
    pub fn allowed(&self, y: f64, delta: f64) -> f64 {
        match self {
            Tolerance::Bound => BOUND_FACTOR * delta,
            Tolerance::Fixed { atol, rtol } | Tolerance::Calibrated { atol, rtol } => atol + rtol * y.abs(),
        }
    }

    /// Whether elements are judged by their rounding cell.
    pub fn is_bound(&self) -> bool {
        matches!(self, Tolerance::Bound)
    }

    /// A short description for reports.
    pub fn describe(&self) -> String {
        match self {
            Tolerance::Bound => format!("bound (c = {BOUND_FACTOR})"),
            Tolerance::Fixed { atol, rtol } => format!("fixed (atol = {atol:e}, rtol = {rtol:e})"),
            Tolerance::Calibrated { atol, rtol } => format!("calibrated (atol = {atol:e}, rtol = {rtol:e})"),
        }
    }
}
