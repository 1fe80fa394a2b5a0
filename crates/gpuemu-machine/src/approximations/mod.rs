//! Approximated functions: the special-function unit of the chip, bit for bit, and the same functions rounded
//! correctly.

mod coefficients;
pub mod correct;
pub mod double;
pub mod extended;
pub mod narrow;
pub mod single;
pub mod unit;

use serde::Deserialize;

/// How approximated functions round.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Hash, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Approximation {
    /// As the chip's special-function unit does.
    #[default]
    Chip,
    /// Correctly, to the nearest number.
    Correct,
}
