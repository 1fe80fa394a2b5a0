//! The references of all built-in ops against `testdata/reference_vectors.json`, whose outputs Python
//! derives from the definitions alone. The file says when two numbers agree.
#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic, reason = "tests fail by panicking")]

use gpuemu_engine::case::{Case, CaseDescriptor, GENERATOR_VERSION, Strategy};
use gpuemu_engine::ops::{self, Expectation};
use gpuemu_engine::oracle::Subject;
use gpuemu_engine::schema::{Parameters, Schema, Sizes};
use gpuemu_tensor::{DType, Tensor};
use serde_json::Value;

/// Elements compared and elements that the expectation excuses.
#[derive(Default)]
struct Count {
    compared: usize,
    skipped: usize,
}

fn cases() -> Vec<Value> {
    let path = concat!(env!("CARGO_MANIFEST_DIR"), "/../../testdata/reference_vectors.json");
    let file: Value = serde_json::from_str(&std::fs::read_to_string(path).unwrap()).unwrap();
    file["cases"].as_array().unwrap().clone()
}

/// A number; those that JSON has no way to write are strings.
fn number(value: &Value) -> f64 {
    match value.as_str() {
        Some("NaN") => f64::NAN,
        Some("Infinity") => f64::INFINITY,
        Some("-Infinity") => f64::NEG_INFINITY,
        Some(text) => panic!("'{text}' is not a number"),
        None => value.as_f64().unwrap(),
    }
}

fn numbers(value: &Value) -> Vec<f64> {
    value.as_array().unwrap().iter().map(number).collect()
}

/// The parameters of a case: those it names, and the defaults of the others.
fn parameters(schema: &Schema, vector: &Value) -> Parameters {
    let given: Parameters = serde_json::from_value(vector["parameters"].clone()).unwrap();
    let known = |name: &String| schema.parameters.iter().any(|spec| spec.name == *name);
    assert!(given.0.iter().all(|(name, _)| known(name)), "{}: unknown parameter in {given}", schema.name);
    let with_defaults = schema.parameters.iter().map(|spec| {
        let value = given.get(&spec.name).unwrap_or(spec.default);
        (spec.name.clone(), value)
    });
    Parameters(with_defaults.collect())
}

/// Builds the case of a vector, and checks that it is one the schema allows.
fn case(subject: &Subject, vector: &Value) -> Case {
    let schema = subject.schema();
    let sizes: Sizes = serde_json::from_value(vector["sizes"].clone()).unwrap();
    for dimension in &schema.dimensions {
        assert!(sizes.get(&dimension.name).is_some_and(|size| dimension.allows(size)), "{}: {sizes}", schema.name);
    }
    let (inputs, outputs) = (vector["inputs"].as_object().unwrap(), vector["outputs"].as_object().unwrap());
    let named = |list: &serde_json::Map<String, Value>, name: &str| list.contains_key(name);
    let optional = schema.inputs.iter().chain(&schema.outputs).filter(|spec| spec.optional);
    let present = optional.map(|spec| spec.name.clone());
    let descriptor = CaseDescriptor {
        generator: GENERATOR_VERSION,
        op: schema.name.clone(),
        schema: subject.fingerprint().to_string(),
        seed: 0,
        dtype: DType::F32,
        sizes,
        layouts: Vec::new(),
        values: Strategy::Regular,
        parameters: parameters(schema, vector),
        present: present.filter(|name| named(inputs, name) || named(outputs, name)).collect(),
    };
    let tensors = schema.inputs.iter().map(|spec| {
        let input = inputs.get(&spec.name)?;
        let shape: Vec<usize> = serde_json::from_value(input["shape"].clone()).unwrap();
        assert_eq!(Some(&shape), spec.shape(&descriptor.sizes).as_ref(), "{}", spec.name);
        let dtype: DType = input["dtype"].as_str().unwrap().parse().unwrap();
        assert_eq!(dtype, spec.dtype_in(DType::F32), "{}", spec.name);
        Some(Tensor::from_f64(dtype, shape, &numbers(&input["values"])).unwrap())
    });
    let tensors: Vec<Option<Tensor>> = tensors.collect();
    assert_eq!(tensors.iter().flatten().count(), inputs.len(), "{}: an input has an unknown name", schema.name);
    Case { descriptor, inputs: tensors }
}

/// Whether a value of the reference is the vector's, up to the rounding of float64.
fn agrees(actual: f64, expected: f64, scale: f64) -> bool {
    if !expected.is_finite() {
        return actual == expected || (actual.is_nan() && expected.is_nan());
    }
    (actual - expected).abs() <= 1e-12 * expected.abs() + 1e-14 * scale + 1e-300
}

/// Compares one output; the elements that differ become lines of text.
fn compare(expectation: &Expectation, expected: &[f64], scales: &[f64], count: &mut Count) -> Vec<String> {
    assert_eq!(expectation.values.len(), expected.len());
    let mut differences = Vec::new();
    for (index, (actual, expected)) in expectation.values.iter().zip(expected).enumerate() {
        if expectation.excuses.iter().any(|excuse| excuse.index == index) {
            count.skipped += 1;
            continue;
        }
        count.compared += 1;
        let scale = scales.get(index).copied().unwrap_or(0.0);
        if !agrees(*actual, *expected, scale) {
            differences.push(format!("element {index}: reference {actual:e}, vector {expected:e}, scale {scale:e}"));
        }
    }
    differences
}

#[test]
fn references_agree_with_the_definitions() {
    let mut count = Count::default();
    let mut differences = Vec::new();
    for vector in cases() {
        let (op, note) = (vector["op"].as_str().unwrap(), vector["note"].as_str().unwrap());
        let subject = Subject::new(ops::find(op).unwrap());
        let case = case(&subject, &vector);
        let expectations = subject.expect(&case).unwrap();
        let outputs: Vec<_> = subject.schema().outputs.iter().filter(|spec| spec.is_in(&case.descriptor)).collect();
        assert_eq!(outputs.len(), expectations.len(), "{op}: {note}");
        assert_eq!(outputs.len(), vector["outputs"].as_object().unwrap().len(), "{op}: {note}");
        for (spec, expectation) in outputs.into_iter().zip(&expectations) {
            let expected = numbers(&vector["outputs"][&spec.name]);
            let scales = vector["scales"].get(&spec.name).map(numbers).unwrap_or_default();
            let elements = spec.shape(&case.descriptor.sizes).unwrap().iter().product::<usize>();
            assert_eq!(expected.len(), elements, "{op}: {note}");
            let found = compare(expectation, &expected, &scales, &mut count);
            differences.extend(found.into_iter().map(|text| format!("{op}, {note}, {}: {text}", spec.name)));
        }
    }
    assert!(differences.is_empty(), "{} differences:\n{}", differences.len(), differences.join("\n"));
    let all = count.compared + count.skipped;
    assert!(count.compared * 100 >= all * 95, "only {} of {all} elements were compared", count.compared);
}

#[test]
fn the_ops_with_vectors_have_several_each() {
    // The others are compared with frameworks, on generated cases: python/tests/test_independent_references.py.
    let cases = cases();
    let mut names: Vec<&str> = cases.iter().filter_map(|vector| vector["op"].as_str()).collect();
    names.sort_unstable();
    names.dedup();
    assert!(names.len() >= 22, "{names:?}");
    for name in names {
        assert!(cases.iter().filter(|vector| vector["op"] == name).count() >= 6, "{name}");
    }
}

#[test]
fn a_wrong_value_is_seen() {
    assert!(agrees(1.0 + 1e-13, 1.0, 0.0) && agrees(f64::NAN, f64::NAN, 0.0));
    assert!(!agrees(1.0 + 1e-11, 1.0, 0.0) && !agrees(f64::NAN, 1.0, 1.0) && !agrees(1.0, f64::NAN, 1.0));
    assert!(!agrees(f64::INFINITY, f64::NEG_INFINITY, 1.0) && !agrees(0.0, f64::INFINITY, 1.0));
}
