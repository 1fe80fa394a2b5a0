//! What the machine computed, beside what was recorded.

use gpuemu_tensor::DType;

use super::bounds::{Reordering, bits, steps};
use super::manifest::RecordedBuffer;

/// How the elements of a buffer are held to the recording.
#[derive(Debug, Clone, Copy, PartialEq)]
pub(super) enum Measure<'a> {
    Bits,
    /// Within so many units in the last place.
    Ulps(DType, u64),
    /// As another order of additions may have it, given another recorded outcome.
    Reordered(DType, Reordering, Option<&'a [u8]>),
}

/// What came of comparing buffers.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub(super) struct Comparison {
    /// Elements that were compared.
    pub elements: u64,
    /// Those with other bits than recorded.
    pub different: u64,
    /// Those beyond what is allowed.
    pub beyond: u64,
    /// The first one beyond what is allowed, or else the first with other bits.
    pub first: Option<String>,
}

impl Comparison {
    /// Compares a buffer with a recording. Both have as many bytes; if not, all of it is wrong.
    pub fn add(&mut self, buffer: &RecordedBuffer, actual: &[u8], recorded: &[u8], measure: Measure<'_>) {
        let size = recorded.len().checked_div(buffer.elems as usize).unwrap_or(1).max(1);
        let count = (recorded.len() / size) as u64;
        self.elements += count;
        if actual.len() != recorded.len() {
            (self.different, self.beyond) = (self.different + count, self.beyond + count);
            let (has, needs) = (actual.len(), recorded.len());
            self.first.get_or_insert_with(|| format!("{} has {has} bytes, but {needs} are recorded", buffer.name));
            return;
        }
        if actual == recorded {
            return;
        }
        let pairs = actual.chunks_exact(size).zip(recorded.chunks_exact(size)).enumerate();
        for (index, (ours, theirs)) in pairs.filter(|(_, (ours, theirs))| ours != theirs) {
            let (ours, theirs) = (bits(ours), bits(theirs));
            let second = match measure {
                Measure::Reordered(_, _, Some(second)) => second.chunks_exact(size).nth(index).map(bits),
                _ => None,
            };
            if second == Some(ours) {
                continue;
            }
            self.different += 1;
            let within = allows(measure, ours, theirs, second);
            if !within || self.first.is_none() {
                let shown =
                    format!("{}[{index}]: {}, recorded {}", buffer.name, show(buffer, ours), show(buffer, theirs));
                if self.beyond == 0 {
                    self.first = Some(shown);
                }
            }
            self.beyond += u64::from(!within);
        }
    }
}

fn allows(measure: Measure<'_>, ours: u64, theirs: u64, second: Option<u64>) -> bool {
    match measure {
        Measure::Bits => false,
        Measure::Ulps(dtype, ulps) => steps(dtype, ours, theirs).is_some_and(|steps| steps <= ulps),
        Measure::Reordered(dtype, reordering, _) => {
            let theirs = dtype.decode(theirs);
            let spread = second.map_or(0.0, |second| (dtype.decode(second) - theirs).abs());
            // False for NaN, and for infinities that were not recorded.
            (dtype.decode(ours) - theirs).abs() <= reordering.allowed + spread
        }
    }
}

/// A bit pattern, and what it means where that is a number.
fn show(buffer: &RecordedBuffer, bits: u64) -> String {
    let name = buffer.interp.as_deref().unwrap_or(&buffer.dtype);
    match name.parse::<DType>() {
        Ok(dtype) if dtype.is_float() => format!("{bits:#x} ({:?})", dtype.decode(bits)),
        _ => format!("{bits:#x}"),
    }
}

#[cfg(test)]
mod tests {
    use super::super::manifest::RecordedRole;
    use super::*;

    fn buffer(dtype: &str, elems: u64) -> RecordedBuffer {
        RecordedBuffer {
            name: "o".to_string(),
            dtype: dtype.to_string(),
            interp: None,
            role: RecordedRole::Out,
            elems,
            key: None,
            data_file: None,
            out_key: None,
            out2_key: None,
            offset_bytes: 0,
        }
    }

    fn bytes(values: &[f32]) -> Vec<u8> {
        values.iter().flat_map(|value| value.to_le_bytes()).collect()
    }

    fn compared(actual: &[f32], recorded: &[f32], measure: Measure<'_>) -> (u64, u64, u64, Option<String>) {
        let mut comparison = Comparison::default();
        comparison.add(&buffer("f32", recorded.len() as u64), &bytes(actual), &bytes(recorded), measure);
        let Comparison { elements, different, beyond, first } = comparison;
        (elements, different, beyond, first)
    }

    #[test]
    fn one_bit_is_enough() {
        let found = compared(&[1.0, 0.0], &[1.0, -0.0], Measure::Bits);
        assert_eq!(found, (2, 1, 1, Some("o[1]: 0x0 (0.0), recorded 0x80000000 (-0.0)".to_string())));
        assert_eq!(compared(&[f32::NAN], &[f32::NAN], Measure::Bits), (1, 0, 0, None));
    }

    #[test]
    fn units_in_the_last_place_are_allowed_where_they_are() {
        let next = f32::from_bits(1.0f32.to_bits() + 1);
        let after = f32::from_bits(1.0f32.to_bits() + 2);
        let measure = Measure::Ulps(DType::F32, 1);
        let (elements, different, beyond, first) = compared(&[next, after, 1.0], &[1.0, 1.0, 1.0], measure);
        assert_eq!((elements, different, beyond), (3, 2, 1));
        assert!(first.unwrap().starts_with("o[1]: 0x3f800002"));
        let (.., beyond, _) = compared(&[f32::NAN], &[1.0], measure);
        assert_eq!(beyond, 1);
    }

    #[test]
    fn another_order_may_differ_by_what_two_runs_did() {
        let reordering = Reordering { allowed: 0.25 };
        let second = bytes(&[1.0, 3.0]);
        let measure = Measure::Reordered(DType::F32, reordering, Some(&second));
        assert_eq!(compared(&[1.25, 3.0], &[1.0, 2.0], measure).2, 0);
        assert_eq!(compared(&[1.25, 3.25], &[1.0, 2.0], measure).2, 0);
        assert_eq!(compared(&[1.5, 3.5], &[1.0, 2.0], measure).2, 2);
        assert_eq!(compared(&[f32::NAN, f32::INFINITY], &[1.0, 2.0], measure).2, 2);
    }

    #[test]
    fn a_buffer_of_another_length_is_wrong() {
        let (elements, different, beyond, first) = compared(&[1.0], &[1.0, 1.0], Measure::Bits);
        assert_eq!((elements, different, beyond), (2, 2, 2));
        assert_eq!(first.as_deref(), Some("o has 4 bytes, but 8 are recorded"));
    }
}
