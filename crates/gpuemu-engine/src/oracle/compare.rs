//! Comparison of an output with its expectation at the speed of memory: a vector pass that
//! accepts what is plainly right, and the scalar rules of [`super::cell`] for the rest.

use std::ops::Range;

use multiversion::multiversion;
use rayon::prelude::*;

use gpuemu_tensor::DType;

use super::cell::{Mismatch, judge_element};
use super::tolerance::{BOUND_FACTOR, NEAR_SHARE, Tolerance};
use crate::ops::{ExcuseKind, Expectation};
use crate::schema::FinalRounding;

/// Elements that one vector pass looks at.
const CHUNK: usize = 2048;

/// Elements that it looks at anew where a chunk has something to look at closely.
const PIECE: usize = 64;

/// Elements above which a comparison is spread over cores.
const PARALLEL_ELEMENTS: usize = 1 << 17;

/// The rule that outputs are compared by.
#[derive(Debug, Clone, Copy)]
pub struct Rule {
    /// Dtype of the output.
    pub dtype: DType,
    pub tolerance: Tolerance,
    /// Final conversion of the kernel.
    pub rounding: FinalRounding,
    /// What is not held against the kernel.
    pub forgiven: Forgiven,
}

/// Outputs that the user does not want checked: they are neither passed nor failed.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Forgiven {
    /// NaN where the reference has none.
    pub nan: bool,
    /// An infinity where the reference is finite.
    pub infinity: bool,
}

impl Forgiven {
    /// Whether a mismatch is not held against the kernel.
    pub fn covers(self, mismatch: Mismatch) -> bool {
        match mismatch {
            Mismatch::UnexpectedNan => self.nan,
            Mismatch::UnexpectedInfinity => self.infinity,
            _ => false,
        }
    }
}

/// What a comparison found.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Comparison {
    pub compared: usize,
    pub mismatched: usize,
    /// Row-major index of the first that failed.
    pub first: Option<usize>,
    /// Whether some element came close to what is allowed.
    pub near: bool,
    /// Elements about which nothing can be said: neither passed nor failed.
    pub undetermined: usize,
    /// Elements of which a named intermediate overflows, and that passed by its image or the bound.
    pub excused: usize,
}

impl Comparison {
    fn join(self, other: Self) -> Self {
        Self {
            compared: self.compared + other.compared,
            mismatched: self.mismatched + other.mismatched,
            first: self.first.or(other.first),
            near: self.near || other.near,
            undetermined: self.undetermined + other.undetermined,
            excused: self.excused + other.excused,
        }
    }
}

impl Rule {
    /// A rule for a kernel that rounds to nearest, with nothing forgiven.
    pub fn new(dtype: DType, tolerance: Tolerance) -> Self {
        Self { dtype, tolerance, rounding: FinalRounding::Nearest, forgiven: Forgiven::default() }
    }

    /// Judges one element, excuses left aside: the distance, or how it failed.
    pub fn judge(&self, bits: u64, y: f64, delta: f64) -> Result<f64, Mismatch> {
        let allowed = self.tolerance.allowed(y, delta);
        judge_element(self.dtype, bits, y, allowed, self.tolerance.is_bound(), self.rounding)
    }

    /// Compares contiguous output bytes with an expectation.
    pub fn compare(&self, bytes: &[u8], expectation: &Expectation) -> Comparison {
        let count = expectation.values.len();
        let whole = if count >= PARALLEL_ELEMENTS {
            let chunks = count.div_ceil(PARALLEL_ELEMENTS / 4);
            (0..chunks)
                .into_par_iter()
                .map(|chunk| {
                    let start = chunk * (PARALLEL_ELEMENTS / 4);
                    self.scan(bytes, expectation, start..(start + PARALLEL_ELEMENTS / 4).min(count), false)
                })
                .reduce(Comparison::default, Comparison::join)
        } else {
            self.scan(bytes, expectation, 0..count, false)
        };
        Comparison { compared: count - whole.undetermined, ..whole }
    }

    /// Whether some element of the output fails; stops at the first.
    pub fn rejects(&self, bytes: &[u8], expectation: &Expectation) -> bool {
        self.scan(bytes, expectation, 0..expectation.values.len(), true).mismatched > 0
    }

    fn scan(&self, bytes: &[u8], expectation: &Expectation, range: Range<usize>, stop_early: bool) -> Comparison {
        let mut result = Comparison::default();
        let mut excuses = Excuses::starting_at(expectation, range.start);
        for from in range.clone().step_by(CHUNK) {
            let to = (from + CHUNK).min(range.end);
            if !excuses.any_below(to) && self.plainly_right(bytes, expectation, from..to) {
                continue;
            }
            for piece in (from..to).step_by(PIECE) {
                let end = (piece + PIECE).min(to);
                if !excuses.any_below(end) && self.plainly_right(bytes, expectation, piece..end) {
                    continue;
                }
                for index in piece..end {
                    self.compare_element(bytes, expectation, index, &mut excuses, &mut result);
                    if stop_early && result.mismatched > 0 {
                        return result;
                    }
                }
            }
        }
        result
    }

    fn compare_element(
        &self,
        bytes: &[u8],
        expectation: &Expectation,
        index: usize,
        excuses: &mut Excuses<'_>,
        result: &mut Comparison,
    ) {
        let (y, delta) = (expectation.values[index], expectation.delta[index]);
        let excuse = excuses.take(index);
        if excuse == Some(ExcuseKind::Undetermined) || delta.is_nan() {
            result.undetermined += 1;
            return;
        }
        let bits = read_bits(bytes, self.dtype.size(), index);
        let judged = self.judge(bits, y, delta);
        if excuse.is_some_and(|excuse| judged.is_ok() || excuse.allows(self.dtype, bits)) {
            result.excused += 1;
            return;
        }
        match judged {
            Ok(distance) => {
                let allowed = self.tolerance.allowed(y, delta);
                result.near |= distance > 0.0 && distance > NEAR_SHARE * allowed;
            }
            Err(mismatch) if self.forgiven.covers(mismatch) => result.undetermined += 1,
            Err(_) => {
                result.mismatched += 1;
                result.first = result.first.or(Some(index));
            }
        }
    }

    /// Whether every element of a part passes with room to spare, by the vector pass.
    fn plainly_right(&self, bytes: &[u8], expectation: &Expectation, range: Range<usize>) -> bool {
        if self.rounding != FinalRounding::Nearest {
            return false;
        }
        let size = self.dtype.size();
        let bytes = &bytes[range.start * size..range.end * size];
        let (values, delta) = (&expectation.values[range.clone()], &expectation.delta[range]);
        match (self.dtype, self.tolerance) {
            (DType::F32, Tolerance::Bound) => cells_f32(bytes, values, delta),
            (DType::BF16, Tolerance::Bound) => cells_bf16(bytes, values, delta),
            (DType::F16, Tolerance::Bound) => cells_f16(bytes, values, delta),
            (DType::F32, Tolerance::Fixed { atol, rtol } | Tolerance::Calibrated { atol, rtol }) => {
                close_f32(bytes, values, atol, rtol)
            }
            (DType::BF16, Tolerance::Fixed { atol, rtol } | Tolerance::Calibrated { atol, rtol }) => {
                close_bf16(bytes, values, atol, rtol)
            }
            _ => false,
        }
    }
}

/// The bit pattern of element `index` of contiguous bytes.
#[inline]
pub fn read_bits(bytes: &[u8], size: usize, index: usize) -> u64 {
    let mut word = [0; 8];
    word[..size].copy_from_slice(&bytes[index * size..(index + 1) * size]);
    u64::from_le_bytes(word)
}

/// A cursor over the sorted excuses.
struct Excuses<'a> {
    rest: &'a [crate::ops::Excuse],
}

impl<'a> Excuses<'a> {
    fn starting_at(expectation: &'a Expectation, start: usize) -> Self {
        let skip = expectation.excuses.partition_point(|excuse| excuse.index < start);
        Self { rest: &expectation.excuses[skip..] }
    }

    fn any_below(&self, end: usize) -> bool {
        self.rest.first().is_some_and(|excuse| excuse.index < end)
    }

    fn take(&mut self, index: usize) -> Option<ExcuseKind> {
        let (first, rest) = self.rest.split_first()?;
        if first.index != index {
            return None;
        }
        self.rest = rest;
        Some(first.kind)
    }
}

/// −y where the output is negative: its magnitude's cell is what y is compared with.
#[inline(always)]
fn mirrored(y: f64, negative: bool) -> f64 {
    f64::from_bits(y.to_bits() ^ (u64::from(negative) << 63))
}

/// Whether y lies inside the cell `lower..upper` widened by 0.8·c·δ, strictly: ties and limits go
/// the scalar way.
#[inline(always)]
fn inside(lower: f64, upper: f64, seen: f64, delta: f64) -> bool {
    let room = (BOUND_FACTOR * NEAR_SHARE) * delta;
    (seen - upper < room) & (lower - seen < room)
}

// The vector passes use that bit patterns of neighbours are evenly spaced: the pattern halfway
// between two of them, read in a wider format, is the midpoint of their values, also across a
// power of two.

#[multiversion(targets("x86_64+avx512f+avx512dq+avx512vl+avx512bw+avx2+fma", "x86_64+avx2+fma", "aarch64+neon"))]
fn cells_f32(bytes: &[u8], values: &[f64], delta: &[f64]) -> bool {
    let mut wrong = 0u64;
    for ((chunk, y), delta) in bytes.as_chunks::<4>().0.iter().zip(values).zip(delta) {
        let bits = u32::from_le_bytes(*chunk);
        let magnitude = bits & 0x7fff_ffff;
        let here = f64::from(f32::from_bits(magnitude)).to_bits();
        let (lower, upper) = (f64::from_bits(here.wrapping_sub(1 << 28)), f64::from_bits(here + (1 << 28)));
        let seen = mirrored(*y, bits >> 31 != 0);
        // Subnormals are not evenly spaced in float64, and infinity has no upper neighbour.
        let ordinary = magnitude.wrapping_sub(0x0080_0000) < 0x7f7f_ffff - 0x0080_0000;
        let zero = (magnitude == 0) & (y.abs() < f64::from(f32::from_bits(1)) * 0.5);
        wrong |= u64::from(!(zero | (inside(lower, upper, seen, *delta) & ordinary)));
    }
    wrong == 0
}

#[multiversion(targets("x86_64+avx512f+avx512dq+avx512vl+avx512bw+avx2+fma", "x86_64+avx2+fma", "aarch64+neon"))]
fn cells_bf16(bytes: &[u8], values: &[f64], delta: &[f64]) -> bool {
    let mut wrong = 0u64;
    for ((chunk, y), delta) in bytes.as_chunks::<2>().0.iter().zip(values).zip(delta) {
        let bits = u32::from(u16::from_le_bytes(*chunk));
        let magnitude = bits & 0x7fff;
        let lower = f64::from(f32::from_bits((magnitude << 16).wrapping_sub(0x8000)));
        let upper = f64::from(f32::from_bits((magnitude << 16) + 0x8000));
        let seen = mirrored(*y, bits >> 15 != 0);
        let ordinary = magnitude.wrapping_sub(1) < 0x7f7e;
        let zero = (magnitude == 0) & (y.abs() < f64::from(f32::from_bits(0x8000)));
        wrong |= u64::from(!(zero | (inside(lower, upper, seen, *delta) & ordinary)));
    }
    wrong == 0
}

#[multiversion(targets("x86_64+avx512f+avx512dq+avx512vl+avx512bw+avx2+fma", "x86_64+avx2+fma", "aarch64+neon"))]
fn cells_f16(bytes: &[u8], values: &[f64], delta: &[f64]) -> bool {
    // The float16 exponent moved into a float32's place; 2^112 puts its bias right, subnormals too.
    let scale = f32::from_bits((112 + 127) << 23);
    let mut wrong = 0u64;
    for ((chunk, y), delta) in bytes.as_chunks::<2>().0.iter().zip(values).zip(delta) {
        let bits = u32::from(u16::from_le_bytes(*chunk));
        let magnitude = bits & 0x7fff;
        let lower = f64::from(f32::from_bits((magnitude << 13).wrapping_sub(0x1000)) * scale);
        let upper = f64::from(f32::from_bits((magnitude << 13) + 0x1000) * scale);
        let seen = mirrored(*y, bits >> 15 != 0);
        let ordinary = magnitude.wrapping_sub(1) < 0x7bfe;
        let zero = (magnitude == 0) & (y.abs() < f64::from(f32::from_bits(0x1000) * scale));
        wrong |= u64::from(!(zero | (inside(lower, upper, seen, *delta) & ordinary)));
    }
    wrong == 0
}

#[multiversion(targets("x86_64+avx512f+avx512dq+avx512vl+avx512bw+avx2+fma", "x86_64+avx2+fma", "aarch64+neon"))]
fn close_f32(bytes: &[u8], values: &[f64], atol: f64, rtol: f64) -> bool {
    let (near_atol, near_rtol) = (NEAR_SHARE * atol, NEAR_SHARE * rtol);
    let mut wrong = 0u64;
    for (chunk, y) in bytes.as_chunks::<4>().0.iter().zip(values) {
        let out = f64::from(f32::from_bits(u32::from_le_bytes(*chunk)));
        // Infinity − infinity is NaN and compares false: such elements go the scalar way.
        let close = ((out - y).abs() <= near_atol + near_rtol * y.abs()) & (y.abs() < f64::INFINITY);
        wrong |= u64::from(!close);
    }
    wrong == 0
}

#[multiversion(targets("x86_64+avx512f+avx512dq+avx512vl+avx512bw+avx2+fma", "x86_64+avx2+fma", "aarch64+neon"))]
fn close_bf16(bytes: &[u8], values: &[f64], atol: f64, rtol: f64) -> bool {
    let (near_atol, near_rtol) = (NEAR_SHARE * atol, NEAR_SHARE * rtol);
    let mut wrong = 0u64;
    for (chunk, y) in bytes.as_chunks::<2>().0.iter().zip(values) {
        let out = f64::from(f32::from_bits(u32::from(u16::from_le_bytes(*chunk)) << 16));
        let close = ((out - y).abs() <= near_atol + near_rtol * y.abs()) & (y.abs() < f64::INFINITY);
        wrong |= u64::from(!close);
    }
    wrong == 0
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::ops::Excuse;
    use proptest::prelude::*;

    fn rule(dtype: DType, tolerance: Tolerance) -> Rule {
        Rule::new(dtype, tolerance)
    }

    /// The scalar rules alone, element by element.
    fn plain_count(rule: &Rule, bytes: &[u8], expectation: &Expectation) -> usize {
        let size = rule.dtype.size();
        let elements = expectation.values.iter().zip(&expectation.delta).enumerate();
        elements.filter(|(index, (y, delta))| rule.judge(read_bits(bytes, size, *index), **y, **delta).is_err()).count()
    }

    proptest! {
        #![proptest_config(ProptestConfig::with_cases(2000))]
        #[test]
        fn the_vector_pass_agrees_with_the_scalar_rules(
            choice in 0usize..3,
            fixed in any::<bool>(),
            seed in any::<u64>(),
            wide in any::<bool>(),
        ) {
            let dtype = [DType::F32, DType::BF16, DType::F16][choice];
            let tolerance = if fixed { Tolerance::Fixed { atol: 1e-3, rtol: 1e-3 } } else { Tolerance::Bound };
            let rule = rule(dtype, tolerance);
            let mut stream = gpuemu_tensor::Stream::new(seed, "compare");
            let mut expectation = Expectation::default();
            let mut bytes = Vec::new();
            for _ in 0..37 {
                let bits = stream.next_word();
                let y = if wide { dtype.decode(bits) } else { (bits as f64) * 1e-18 - 9.0 };
                let delta = [0.0, 1e-9, 1e-4 * y.abs()][stream.below(3) as usize];
                let out = y + [0.0, 0.3, -0.6, 1.2][stream.below(4) as usize] * delta;
                let pattern = dtype.encode(out).wrapping_add(u64::from(stream.chance(1, 9)));
                bytes.extend_from_slice(&pattern.to_le_bytes()[..dtype.size()]);
                expectation.push(y, delta);
            }
            let compared = rule.compare(&bytes, &expectation);
            prop_assert_eq!(compared.mismatched, plain_count(&rule, &bytes, &expectation));
            prop_assert_eq!(rule.rejects(&bytes, &expectation), compared.mismatched > 0);
        }
    }

    #[test]
    fn excused_and_undetermined_elements_are_counted_apart() {
        let overflow = ExcuseKind::Overflow { nan: true, infinite: false, value: Some(0.0) };
        let expectation = Expectation {
            values: vec![1.0, 2.0, 3.0, 4.0],
            delta: vec![0.0, f64::INFINITY, 0.0, 0.0],
            excuses: vec![
                Excuse { index: 1, kind: ExcuseKind::Undetermined, reason: "" },
                Excuse { index: 2, kind: overflow, reason: "" },
                Excuse { index: 3, kind: overflow, reason: "" },
            ],
        };
        let bytes: Vec<u8> = [1.0f32, 77.0, f32::NAN, 9.0].iter().flat_map(|value| value.to_le_bytes()).collect();
        let compared = rule(DType::F32, Tolerance::Bound).compare(&bytes, &expectation);
        assert_eq!((compared.compared, compared.undetermined, compared.excused, compared.mismatched), (3, 1, 1, 1));
        assert_eq!(compared.first, Some(3));
    }

    #[test]
    fn a_large_comparison_finds_one_wrong_element() {
        let count = 1 << 19;
        let expectation = Expectation { values: vec![1.5; count], delta: vec![0.0; count], excuses: Vec::new() };
        let mut bytes: Vec<u8> = 1.5f32.to_le_bytes().repeat(count);
        let rule = rule(DType::F32, Tolerance::Bound);
        assert_eq!(rule.compare(&bytes, &expectation).mismatched, 0);
        bytes[4 * 400_000] ^= 1;
        let compared = rule.compare(&bytes, &expectation);
        assert_eq!((compared.mismatched, compared.first), (1, Some(400_000)));
    }
}
