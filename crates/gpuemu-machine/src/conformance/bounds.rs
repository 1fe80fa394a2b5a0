//! How far a result may be from the recording where bits cannot be asked for.
//!
//! Everything that has an exact model is compared bit for bit. Two things have none.
//!
//! An **instruction without a model** is held to the error that is documented for it, in units in the last place (ulp).
//!
//! A **launch whose blocks add to the same places** in whatever order they come may differ from another run of itself.
//! A place that n blocks add to is the result of n - 1 roundings, each off by at most half an ulp of the largest partial
//! sum P. Two orders therefore differ by at most (n - 1) ulp(P). The partial sums are not recorded: P is taken to be the
//! largest magnitude in the buffer, in either recording, before or afterwards. What two recorded runs differ by at an
//! element is allowed there beside it.

use gpuemu_tensor::DType;

/// Instructions without an exact model, and the error that is documented for them, in ulp. `rsqrt.approx.f64` is what
/// `rsqrt()` of doubles is compiled to, whose error is at most 1 ulp. The machine's own result, correctly rounded, is
/// within half an ulp: both are neighbours.
const WITHOUT_A_MODEL: [(&str, u64); 2] = [("rsqrt.approx.f64", 1), ("rsqrt.approx.ftz.f64", 1)];

/// The error that is documented for an instruction which has no model.
pub(super) fn documented_ulps(op: Option<&str>) -> Option<u64> {
    WITHOUT_A_MODEL.iter().find(|(name, _)| Some(*name) == op).map(|(_, ulps)| *ulps)
}

/// Steps from one number of a format to another, over all that lie between. Numbers of other signs, and what is no
/// finite number, have no distance.
pub(super) fn steps(dtype: DType, left: u64, right: u64) -> Option<u64> {
    let finite = dtype.decode(left).is_finite() && dtype.decode(right).is_finite();
    let sign = 1u64 << (8 * dtype.size() as u32 - 1);
    (finite && left & sign == right & sign).then(|| (left & !sign).abs_diff(right & !sign))
}

/// What blocks that add in another order may make of a buffer.
#[derive(Debug, Clone, Copy, PartialEq)]
pub(super) struct Reordering {
    /// (n - 1) ulp(P).
    pub allowed: f64,
}

impl Reordering {
    /// For a buffer of a format that so many blocks add to, from all that it was seen to hold.
    pub fn new(dtype: DType, blocks: u64, seen: &[&[u8]]) -> Self {
        let values = seen.iter().flat_map(|bytes| bytes.chunks_exact(dtype.size()));
        let values = values.map(|element| dtype.decode(bits(element)).abs()).filter(|value| value.is_finite());
        let largest = values.fold(0.0, f64::max);
        let ulp = dtype.float_format().map_or(0.0, |format| format.ulp(largest));
        Self { allowed: blocks.saturating_sub(1) as f64 * ulp }
    }
}

/// The bit pattern of an element.
pub(super) fn bits(element: &[u8]) -> u64 {
    element.iter().take(8).rev().fold(0, |bits, byte| bits << 8 | u64::from(*byte))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn steps_are_counted_within_a_sign() {
        let one = 1.0f64.to_bits();
        assert_eq!((steps(DType::F64, one, one + 2), steps(DType::F64, one, one)), (Some(2), Some(0)));
        assert_eq!(steps(DType::F64, (-1.0f64).to_bits(), one), None);
        assert_eq!(steps(DType::F64, f64::NAN.to_bits(), f64::NAN.to_bits() + 1), None);
        assert_eq!(steps(DType::F32, f32::MAX.to_bits().into(), f32::INFINITY.to_bits().into()), None);
    }

    #[test]
    fn more_blocks_and_larger_sums_allow_more() {
        let buffer: Vec<u8> = [0.5f32, -18.0, f32::INFINITY].iter().flat_map(|value| value.to_le_bytes()).collect();
        let ulp = 2f64.powi(4 - 23);
        assert_eq!(Reordering::new(DType::F32, 20, &[&buffer]).allowed, 19.0 * ulp);
        assert_eq!(Reordering::new(DType::F32, 1, &[&buffer]).allowed, 0.0);
    }
}
