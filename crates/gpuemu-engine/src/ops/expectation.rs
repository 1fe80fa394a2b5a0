//! What an output must be: values, bounds, and the few elements that are excused by name.

use std::ops::Range;

use gpuemu_tensor::DType;

/// Why an element is not judged by its bound alone.
#[derive(Debug, Clone, Copy, PartialEq)]
pub enum ExcuseKind {
    /// No statement is possible; counted apart, never as a pass.
    Undetermined,
    /// So close to where the answer changes that a neighbouring one is right as well.
    Either { value: f64 },
    /// A named intermediate overflows: the bound or the image of that overflow is accepted.
    Overflow {
        /// Whether NaN is an image of it.
        nan: bool,
        /// Whether an infinity is an image of it.
        infinite: bool,
        /// A finite image of it, such as 0.
        value: Option<f64>,
    },
}

impl ExcuseKind {
    /// Whether an output is what the excuse allows beside the bound.
    pub fn allows(&self, dtype: DType, bits: u64) -> bool {
        match self {
            ExcuseKind::Undetermined => true,
            ExcuseKind::Either { value } => dtype.decode(dtype.encode(*value)) == dtype.decode(bits),
            ExcuseKind::Overflow { nan, infinite, value } => {
                let out = dtype.decode(bits);
                (*nan && out.is_nan())
                    || (*infinite && out.is_infinite())
                    || value.is_some_and(|value| dtype.decode(dtype.encode(value)) == out)
            }
        }
    }
}

/// An element that is excused.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Excuse {
    /// Row-major index.
    pub index: usize,
    pub kind: ExcuseKind,
    /// The intermediate or the reason, by name.
    pub reason: &'static str,
}

/// One output: values y and bounds δ in row-major order.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct Expectation {
    /// y, never rounded to the output dtype.
    pub values: Vec<f64>,
    /// δ: how far from y a correct kernel may be before its final rounding.
    pub delta: Vec<f64>,
    /// Excused elements, in ascending order of index.
    pub excuses: Vec<Excuse>,
}

impl Expectation {
    /// An empty one with room.
    pub fn with_capacity(count: usize) -> Self {
        Self { values: Vec::with_capacity(count), delta: Vec::with_capacity(count), excuses: Vec::new() }
    }

    /// Adds an element. Where y is not finite the class rules decide and δ plays no part. A δ that is
    /// not finite bounds nothing: the element is undetermined, never passed.
    #[inline]
    pub fn push(&mut self, value: f64, delta: f64) {
        if value.is_finite() && !delta.is_finite() {
            return self.push_undetermined(value, "no finite bound");
        }
        self.values.push(value);
        self.delta.push(if value.is_finite() { delta } else { 0.0 });
    }

    /// Adds an element about which nothing can be said.
    pub fn push_undetermined(&mut self, value: f64, reason: &'static str) {
        self.excuses.push(Excuse { index: self.values.len(), kind: ExcuseKind::Undetermined, reason });
        self.values.push(value);
        self.delta.push(f64::INFINITY);
    }

    /// Adds an element whose answer may as well be another one, by name of what is so close.
    pub fn push_either(&mut self, value: f64, other: f64, reason: &'static str) {
        self.excuses.push(Excuse { index: self.values.len(), kind: ExcuseKind::Either { value: other }, reason });
        self.push(value, 0.0);
    }

    /// Adds an element of which a named intermediate overflows.
    pub fn push_overflow(&mut self, value: f64, delta: f64, kind: ExcuseKind, reason: &'static str) {
        if value.is_finite() && !delta.is_finite() {
            return self.push_undetermined(value, reason);
        }
        self.excuses.push(Excuse { index: self.values.len(), kind, reason });
        self.push(value, delta);
    }

    /// Adds the elements of another after its own.
    pub fn append(&mut self, other: Self) {
        let moved = self.values.len();
        self.excuses.extend(other.excuses.into_iter().map(|excuse| Excuse { index: excuse.index + moved, ..excuse }));
        self.values.extend(other.values);
        self.delta.extend(other.delta);
    }

    /// Adds a range of another's elements.
    pub fn append_range(&mut self, other: &Self, range: Range<usize>) {
        let first = other.excuses.partition_point(|excuse| excuse.index < range.start);
        for excuse in other.excuses[first..].iter().take_while(|excuse| excuse.index < range.end) {
            let index = excuse.index - range.start + self.values.len();
            self.excuses.push(Excuse { index, ..*excuse });
        }
        self.values.extend_from_slice(&other.values[range.clone()]);
        self.delta.extend_from_slice(&other.delta[range]);
    }

    /// The share of an overflow's threshold at which it counts: partial sums round upwards too.
    pub const OVERFLOW_SHARE: f64 = 0.99;
}

/// Whether a named intermediate overflows the accumulator.
pub(super) fn overflows(intermediate: f64, max: f64) -> bool {
    intermediate > Expectation::OVERFLOW_SHARE * max
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn parts_keep_their_excuses() {
        let mut part = Expectation::default();
        part.push(1.0, 0.5);
        part.push_undetermined(2.0, "a reason");
        part.push(3.0, 0.0);
        let mut whole = Expectation::default();
        whole.append_range(&part, 1..3);
        whole.append(part);
        assert_eq!(whole.values, [2.0, 3.0, 1.0, 2.0, 3.0]);
        assert_eq!(whole.excuses.iter().map(|excuse| excuse.index).collect::<Vec<usize>>(), [0, 3]);
    }

    #[test]
    fn a_bound_that_is_not_finite_makes_an_element_undetermined() {
        let mut expectation = Expectation::default();
        expectation.push(1.0, f64::INFINITY);
        expectation.push(1.0, f64::NAN);
        expectation.push(f64::NAN, f64::NAN);
        let overflow = ExcuseKind::Overflow { nan: true, infinite: false, value: None };
        expectation.push_overflow(1.0, f64::INFINITY, overflow, "a sum");
        assert_eq!(expectation.values.len(), 4);
        let kinds: Vec<(usize, ExcuseKind)> =
            expectation.excuses.iter().map(|excuse| (excuse.index, excuse.kind)).collect();
        let undetermined = ExcuseKind::Undetermined;
        assert_eq!(kinds, [(0, undetermined), (1, undetermined), (3, undetermined)]);
    }
}
