//! The bias statistic: whether outputs lean to one side more than rounding can explain.
//! It describes a failure and never decides one.

use std::collections::HashSet;

use gpuemu_tensor::DType;

use super::compare::read_bits;
use crate::ops::Expectation;

/// z from which a bias is worth a sentence.
pub const NOTEWORTHY: f64 = 8.0;

/// Fewest elements that say anything.
const FEWEST: usize = 16;

/// z = max(0, |Σf| − A)/√(A + 1) over distinct elements, with f the signed error of each in ulp and
/// A the sum of δ in ulp. The plain z-score alarms on correct kernels: values repeat, and elements
/// share the error of a denominator; keeping one element per value cell and per fractional
/// position removes both. `None` where there are too few elements.
pub fn bias(dtype: DType, bytes: &[u8], expectation: &Expectation) -> Option<f64> {
    let format = dtype.float_format()?;
    let (mut values, mut fractions) = (HashSet::new(), HashSet::new());
    let (mut sum, mut allowance, mut count) = (0.0, 0.0, 0usize);
    for (index, (y, delta)) in expectation.values.iter().zip(&expectation.delta).enumerate() {
        let out = dtype.decode(read_bits(bytes, dtype.size(), index));
        let normal = y.abs() >= format.min_normal() && y.abs() <= format.max_value();
        if !normal || !out.is_finite() || !delta.is_finite() {
            continue;
        }
        let ulp = format.ulp(*y);
        let position = y.abs() / ulp;
        let cell = ((position * 32.0).floor().to_bits(), ulp.to_bits());
        if !values.insert(cell) || !fractions.insert(((position.fract()) * 4096.0) as u32) {
            continue;
        }
        sum += y.signum() * (out - format.round(*y)) / ulp;
        allowance += delta / ulp;
        count += 1;
    }
    (count >= FEWEST).then(|| (sum.abs() - allowance).max(0.0) / (allowance + 1.0).sqrt())
}

#[cfg(test)]
mod tests {
    use super::*;
    use gpuemu_tensor::Stream;
    use gpuemu_tensor::rng::unit;

    fn sample(shift: f64) -> Option<f64> {
        let mut stream = Stream::new(5, "bias");
        let (mut bytes, mut expectation) = (Vec::new(), Expectation::default());
        for _ in 0..600 {
            let y = 1.0 + unit(stream.next_word());
            bytes.extend_from_slice(&(DType::BF16.encode(y * (1.0 + shift)) as u16).to_le_bytes());
            expectation.push(y, 1e-6);
        }
        bias(DType::BF16, &bytes, &expectation)
    }

    #[test]
    fn a_lean_of_a_quarter_ulp_is_seen_and_rounding_is_not() {
        assert_eq!(sample(0.0), Some(0.0));
        assert!(sample(0.002).unwrap() > NOTEWORTHY);
    }
}
