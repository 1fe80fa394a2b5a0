//! Structural properties that the user demands of an output, whatever the reference says.

use gpuemu_config::Invariant;

use super::compare::Rule;
use super::structure::coordinates;
use crate::ops::Expectation;
use crate::schema::TensorSpec;
use crate::verdict::{BugClass, Check, Finding, WorstElement};

/// What an invariant found: elements concerned, the first of them, what is said of it.
struct Violation {
    count: usize,
    first: usize,
    expected: f64,
    error: f64,
    allowed: f64,
    words: String,
}

/// Checks one invariant of contiguous output bytes; the shape is known to be right.
pub fn check(
    invariant: Invariant,
    spec: &TensorSpec,
    rule: &Rule,
    shape: &[usize],
    bytes: &[u8],
    expectation: &Expectation,
) -> Option<Finding> {
    let mut values = Vec::new();
    gpuemu_tensor::tensor::decode_slice(rule.dtype, bytes, &mut values);
    let output = Output { rule, shape, values: &values, expectation };
    let violation = match invariant {
        // Shapes are compared before any value is.
        Invariant::ShapePreserved => None,
        Invariant::NonNegative => output.each(|value| value < 0.0, "below 0"),
        Invariant::Finite => output.each(|value| !value.is_finite(), "not finite"),
        Invariant::Symmetric => output.symmetric(),
        Invariant::Normalized => output.normalized(),
    }?;
    Some(Finding {
        check: Check::Invariant,
        tensor: spec.name.clone(),
        mismatched: violation.count,
        elements: values.len(),
        // A shape that rules the invariant out has no worst element.
        worst: (violation.count > 0).then(|| WorstElement {
            index: coordinates(violation.first, shape),
            actual: values.get(violation.first).copied().unwrap_or(f64::NAN),
            expected: violation.expected,
            error: violation.error,
            allowed: violation.allowed,
        }),
        bug_class: if invariant == Invariant::Finite { BugClass::SpecialValues } else { BugClass::Formula },
        places: Vec::new(),
        explanation: format!("the invariant '{}' does not hold: {}", name(invariant), violation.words),
    })
}

/// The name used in the configuration.
pub const fn name(invariant: Invariant) -> &'static str {
    match invariant {
        Invariant::ShapePreserved => "shape_preserved",
        Invariant::NonNegative => "non_negative",
        Invariant::Finite => "finite",
        Invariant::Symmetric => "symmetric",
        Invariant::Normalized => "normalized",
    }
}

struct Output<'a> {
    rule: &'a Rule,
    shape: &'a [usize],
    values: &'a [f64],
    expectation: &'a Expectation,
}

impl Output<'_> {
    fn each(&self, wrong: impl Fn(f64) -> bool, words: &str) -> Option<Violation> {
        let first = self.values.iter().position(|value| wrong(*value))?;
        let count = self.values.iter().filter(|value| wrong(**value)).count();
        let expected = self.expectation.values.get(first).copied().unwrap_or(f64::NAN);
        let words = format!("{count} elements are {words}");
        Some(Violation { count, first, expected, error: (self.values[first] - expected).abs(), allowed: 0.0, words })
    }

    /// What an element may differ from its reference: its tolerance, and its own rounding.
    fn room(&self, index: usize) -> f64 {
        let (y, delta) = (self.expectation.values[index], self.expectation.delta[index]);
        let rounding = self.rule.dtype.float_format().map_or(0.0, |format| format.ulp(y));
        self.rule.tolerance.allowed(y, delta) + rounding
    }

    fn symmetric(&self) -> Option<Violation> {
        let [.., rows, columns] = *self.shape else {
            return Some(self.shapeless("an output of fewer than two dims has no transpose"));
        };
        if rows != columns {
            return Some(self.shapeless(&format!("{rows} rows and {columns} columns are not square")));
        }
        let mut wrong: Option<Violation> = None;
        for matrix in (0..self.values.len()).step_by((rows * columns).max(1)) {
            for (row, column) in (0..rows).flat_map(|row| (0..row).map(move |column| (row, column))) {
                let (here, there) = (matrix + row * columns + column, matrix + column * columns + row);
                let error = (self.values[here] - self.values[there]).abs();
                let allowed = self.room(here) + self.room(there);
                // Two NaN, or two equal infinities, mirror each other.
                let alike = self.values[here] == self.values[there]
                    || (self.values[here].is_nan() && self.values[there].is_nan());
                if alike || error <= allowed {
                    continue;
                }
                let expected = self.values[there];
                let found = wrong.get_or_insert(Violation {
                    count: 0,
                    first: here,
                    expected,
                    error,
                    allowed,
                    words: String::new(),
                });
                found.count += 2;
            }
        }
        wrong.map(|found| Violation { words: format!("{} elements differ from their mirror", found.count), ..found })
    }

    fn shapeless(&self, words: &str) -> Violation {
        Violation { count: 0, first: 0, expected: f64::NAN, error: f64::NAN, allowed: 0.0, words: words.to_string() }
    }

    fn normalized(&self) -> Option<Violation> {
        let row = *self.shape.last()?;
        let mut wrong: Option<Violation> = None;
        let mut rows = 0;
        for start in (0..self.values.len()).step_by(row.max(1)) {
            let range = start..start + row;
            // A row whose reference is no distribution (all masked, NaN) cannot be asked to be one.
            let reference: f64 = self.expectation.values[range.clone()].iter().sum();
            let allowed: f64 = range.clone().map(|index| self.room(index)).sum();
            if !reference.is_finite() || reference == 0.0 {
                continue;
            }
            let sum: f64 = self.values[range.clone()].iter().sum();
            let error = (sum - 1.0).abs();
            if error <= allowed {
                continue;
            }
            rows += 1;
            let words = format!("a row sums to {sum}");
            wrong.get_or_insert(Violation { count: row, first: start, expected: 1.0, error, allowed, words });
        }
        wrong.map(|found| Violation {
            count: found.count * rows,
            words: format!("{rows} rows do not sum to 1; {}", found.words),
            ..found
        })
    }
}

#[cfg(test)]
mod tests {
    use gpuemu_tensor::{DType, Tensor};

    use super::*;
    use crate::oracle::tolerance::Tolerance;
    use crate::schema::Schema;

    fn found(invariant: Invariant, shape: &[usize], out: &[f64], reference: &[f64]) -> Option<String> {
        let schema = Schema::from_signature("op", "x[M,N] -> out[M,N]").unwrap();
        let mut expectation = Expectation::default();
        reference.iter().for_each(|y| expectation.push(*y, 0.0));
        let bytes = Tensor::from_f64(DType::F32, shape.to_vec(), out).unwrap().to_contiguous_bytes();
        let rule = Rule::new(DType::F32, Tolerance::Fixed { atol: 1e-5, rtol: 1e-5 });
        check(invariant, &schema.outputs[0], &rule, shape, &bytes, &expectation).map(|finding| finding.explanation)
    }

    #[test]
    fn each_invariant_accepts_what_holds_and_names_what_does_not() {
        let ok = [0.25, 0.75, 0.5, 0.5];
        for invariant in [Invariant::NonNegative, Invariant::Finite, Invariant::Normalized] {
            assert_eq!(found(invariant, &[2, 2], &ok, &ok), None);
        }
        let text = found(Invariant::Normalized, &[2, 2], &[0.25, 0.75, 0.5, 0.4], &ok).unwrap();
        assert!(text.contains("1 rows do not sum to 1; a row sums to 0.9"), "{text}");
        let text = found(Invariant::NonNegative, &[2, 2], &[0.25, 0.75, -0.5, 0.5], &ok).unwrap();
        assert!(text.contains("'non_negative'") && text.contains("1 elements are below 0"), "{text}");
        let nan = [f64::NAN; 4];
        assert!(found(Invariant::Finite, &[2, 2], &nan, &nan).unwrap().contains("4 elements are not finite"));
        assert_eq!(found(Invariant::Normalized, &[2, 2], &nan, &nan), None);
        assert_eq!(found(Invariant::Symmetric, &[2, 2], &[1.0, 2.0, 2.0, 3.0], &ok), None);
        assert!(
            found(Invariant::Symmetric, &[2, 2], &[1.0, 2.0, 2.5, 3.0], &ok).unwrap().contains("2 elements differ")
        );
        assert!(found(Invariant::Symmetric, &[1, 4], &ok, &ok).unwrap().contains("not square"));
        assert_eq!(found(Invariant::Normalized, &[0, 2], &[], &[]), None);
        assert_eq!(found(Invariant::Symmetric, &[0, 0], &[], &[]), None);
    }
}
