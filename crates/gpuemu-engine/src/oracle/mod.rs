//! Decides whether a kernel is wrong.

pub mod allowance;
pub mod bias;
pub mod calibrate;
pub mod cell;
pub mod compare;
pub mod decoy;
pub mod envelope;
pub mod given;
pub mod invariant;
pub mod judge;
pub mod measure;
pub mod memory;
pub mod metamorphic;
pub mod naive;
pub mod parts;
pub mod picture;
pub mod state;
pub mod strength;
pub mod structure;
pub mod subject;
pub mod tile;
pub mod tolerance;

pub use given::judge_given;
pub use judge::{judge, judge_expected};
pub use subject::Subject;
pub use tolerance::Tolerance;
