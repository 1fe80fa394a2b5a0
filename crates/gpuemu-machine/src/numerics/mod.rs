//! Arithmetic of PTX on one lane: formats, rounding, conversions.
//!
//! [`exact`] computes with numbers that are not rounded and rounds once, in every direction, to every format; it is
//! slow and serves what is rare. What is frequent has a form in `half` or in the loops of the registers, and tests
//! compare the two.

pub mod atomic;
pub mod bits;
pub mod compare;
pub mod convert;
pub mod eight;
pub mod exact;
pub mod extremes;
pub mod float;
pub mod half;
pub mod rounding;

pub use atomic::{AtomicOperation, atomic};
pub use compare::Comparison;
pub use extremes::ExtremeRules;
pub use float::{FloatKind, FloatRules};
pub use rounding::Rounding;
