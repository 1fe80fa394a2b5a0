//! Which declarations of precision change an op's bound: found out, not listed, by asking for the bound of generated
//! cases under each.

use gpuemu_tensor::DType;

use super::{Call, Expectation, Op};
use crate::case::{Case, Sampler, materialise};
use crate::schema::{FinalRounding, Precision, SummationOrder, VarianceForm};

/// Cases that are looked at: enough for every optional input and every choice of a parameter to take part.
const CASES: u64 = 40;

/// The fields of a precision class that change what is allowed to a kernel of an op, in the order of the class.
pub fn classes(op: &dyn Op) -> Vec<&'static str> {
    let schema = op.schema();
    let sampler = Sampler { budget: 300, ..Sampler::default() };
    let descriptors = (0..CASES).map(|index| sampler.case(schema, "", 1, index));
    let cases: Vec<Case> = descriptors.filter_map(|descriptor| materialise(schema, &descriptor).ok()).collect();
    let plain: Vec<Option<Vec<Expectation>>> =
        cases.iter().map(|case| expectations(op, case, &Precision::default())).collect();
    let changes = |precision: &Precision| {
        cases.iter().zip(&plain).any(|(case, plain)| !alike(&expectations(op, case, precision), plain))
    };
    declarations().into_iter().filter(|(_, precision)| changes(precision)).map(|(field, _)| field).collect()
}

fn expectations(op: &dyn Op, case: &Case, precision: &Precision) -> Option<Vec<Expectation>> {
    op.expect(&Call::new(op.schema(), case, precision).ok()?).ok()
}

/// Whether bounds and excuses are the same; values are the op's whatever a kernel declares.
fn alike(left: &Option<Vec<Expectation>>, right: &Option<Vec<Expectation>>) -> bool {
    let (Some(left), Some(right)) = (left, right) else { return left.is_none() == right.is_none() };
    let same_bits = |left: &[f64], right: &[f64]| {
        left.len() == right.len() && left.iter().zip(right).all(|(left, right)| left.to_bits() == right.to_bits())
    };
    let mut pairs = left.iter().zip(right);
    pairs.all(|(left, right)| same_bits(&left.delta, &right.delta) && left.excuses == right.excuses)
}

/// Every field of a precision class with another value than the default.
fn declarations() -> Vec<(&'static str, Precision)> {
    let with = |change: fn(&mut Precision)| {
        let mut precision = Precision::default();
        change(&mut precision);
        precision
    };
    vec![
        ("accumulate", with(|class| class.accumulate = Some(DType::BF16))),
        ("order", with(|class| class.order = Some(SummationOrder::Pairwise))),
        ("intermediate", with(|class| class.intermediate = Some(DType::BF16))),
        ("tf32", with(|class| class.tf32 = true)),
        ("variance", with(|class| class.variance = Some(VarianceForm::OnePass))),
        ("folded", with(|class| class.folded = true)),
        ("fast_exp", with(|class| class.fast_exp = false)),
        ("fast_division", with(|class| class.fast_division = false)),
        ("fast_tanh", with(|class| class.fast_tanh = true)),
        ("fast_erf", with(|class| class.fast_erf = true)),
        ("flush_to_zero", with(|class| class.flush_to_zero = true)),
        ("tensor_core", with(|class| class.tensor_core = true)),
        ("rounding", with(|class| class.rounding = FinalRounding::TowardZero)),
        ("atomics", with(|class| class.atomics = true)),
    ]
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::ops::{builtin, find};

    #[test]
    fn every_field_of_the_class_is_tried() {
        let class = serde_json::to_value(Precision::default()).unwrap();
        let tried = declarations();
        assert_eq!(class.as_object().unwrap().len(), tried.len());
        for (field, precision) in tried {
            assert_ne!(serde_json::to_value(precision).unwrap()[field], class[field], "{field}");
        }
    }

    #[test]
    fn what_matters_to_an_op_is_found() {
        let of = |name: &str| classes(find(name).unwrap().as_ref());
        assert_eq!(of("sum"), ["accumulate", "order", "flush_to_zero", "tensor_core"]);
        assert!(of("softmax").contains(&"fast_exp") && !of("softmax").contains(&"variance"));
        assert!(of("layernorm").contains(&"variance") && of("matmul").contains(&"tf32"));
        assert_eq!(of("transpose"), [""; 0]);
    }

    #[test]
    fn ops_whose_bound_is_not_zero_depend_on_the_accumulator() {
        for op in builtin().iter().filter(|op| !op.schema().bound.starts_with('0')) {
            assert!(classes(op.as_ref()).contains(&"accumulate"), "{}", op.schema().name);
        }
    }
}
