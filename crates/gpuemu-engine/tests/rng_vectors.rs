//! The generator against `testdata/rng_vectors.json`, which its NumPy mirror is checked against too:
//! one seed must give the same bytes in both.

#![allow(clippy::unwrap_used, reason = "a vector that cannot be read is a failed test")]

use gpuemu_engine::case::fill::fill;
use gpuemu_engine::case::shapes::{CostTerm, draw_sizes};
use gpuemu_engine::case::values::{Recipe, Strategy, flag_recipe, range_recipe, recipe};
use gpuemu_engine::schema::DimensionSpec;
use gpuemu_tensor::rng::{case_seed, escalation_seed};
use gpuemu_tensor::{DType, Stream};
use serde_json::Value;
use sha2::{Digest, Sha256};

fn vectors() -> Value {
    let path = concat!(env!("CARGO_MANIFEST_DIR"), "/../../testdata/rng_vectors.json");
    serde_json::from_str(&std::fs::read_to_string(path).unwrap()).unwrap()
}

fn list(value: &Value) -> &[Value] {
    let entries = value.as_array().unwrap();
    assert!(!entries.is_empty());
    entries
}

fn text<'a>(vector: &'a Value, field: &str) -> &'a str {
    vector[field].as_str().unwrap()
}

/// A 64-bit number, which the file holds as a string.
fn number(vector: &Value, field: &str) -> u64 {
    text(vector, field).parse().unwrap()
}

fn size(value: &Value) -> usize {
    value.as_u64().unwrap() as usize
}

fn sizes(value: &Value) -> Vec<usize> {
    value.as_array().unwrap().iter().map(size).collect()
}

#[test]
fn derived_seeds() {
    let vectors = vectors();
    for (section, derive) in [("case_seeds", case_seed as fn(u64, u64) -> u64), ("escalation_seeds", escalation_seed)] {
        for vector in list(&vectors[section]) {
            let derived = derive(number(vector, "seed"), number(vector, "index"));
            assert_eq!(derived, number(vector, "derived"), "{section}: {vector}");
        }
    }
}

#[test]
fn streams() {
    for vector in list(&vectors()["streams"]) {
        let mut stream = Stream::new(number(vector, "seed"), text(vector, "domain"));
        for word in list(&vector["words"]) {
            assert_eq!(format!("{:#018x}", stream.next_word()), *word, "{vector}");
        }
    }
}

#[test]
fn draws() {
    for vector in list(&vectors()["draws"]) {
        let mut stream = Stream::new(number(vector, "seed"), "draws");
        let arguments: Vec<u64> =
            list(&vector["arguments"]).iter().map(|argument| argument.as_str().unwrap().parse().unwrap()).collect();
        for drawn in list(&vector["drawn"]) {
            let actual = match text(vector, "kind") {
                "below" => stream.below(arguments[0]),
                "weighted" => stream.weighted(&arguments) as u64,
                "chance" => u64::from(stream.chance(arguments[0], arguments[1])),
                kind => unreachable!("unknown kind of draw '{kind}'"),
            };
            assert_eq!(actual.to_string(), *drawn, "{vector}");
        }
    }
}

#[test]
fn shapes() {
    let vectors = vectors();
    for vector in list(&vectors["shapes"]) {
        let listed = &vectors["dimension_lists"][text(vector, "dimensions")];
        let dimensions: Vec<DimensionSpec> = listed["dimensions"].as_array().unwrap().iter().map(dimension).collect();
        let cost: Vec<CostTerm> = list(&listed["cost"])
            .iter()
            .map(|term| CostTerm { dimensions: sizes(&term["dimensions"]), divisor: size(&term["divisor"]) })
            .collect();
        let mut stream = Stream::new(number(vector, "seed"), "shape");
        let drawn = draw_sizes(&mut stream, &dimensions, &cost, number(listed, "budget") as usize);
        assert_eq!(drawn, sizes(&vector["sizes"]), "{vector}");
        assert_eq!(format!("{:#018x}", stream.next_word()), text(vector, "next_word"), "{vector}");
    }
}

fn dimension(value: &Value) -> DimensionSpec {
    DimensionSpec {
        minimum: size(&value["minimum"]),
        maximum: size(&value["maximum"]),
        choices: sizes(&value["choices"]),
        preferred: sizes(&value["preferred"]),
        reduced: value["reduced"].as_bool().unwrap(),
        ..DimensionSpec::named(text(value, "name"))
    }
}

/// Fills the tensor of a vector and compares the digest of its bytes.
fn check_tensor(vector: &Value, recipe: &Recipe) {
    let dtype: DType = text(vector, "dtype").parse().unwrap();
    let bytes = fill(dtype, recipe, number(vector, "seed"), text(vector, "input"), size(&vector["count"]));
    let digest: String = Sha256::digest(&bytes).iter().map(|byte| format!("{byte:02x}")).collect();
    assert_eq!(digest, text(vector, "sha256"), "{vector} {recipe:?}");
}

#[test]
fn tensors_of_every_dtype_and_strategy() {
    let vectors = vectors();
    let mut seen = Vec::new();
    for vector in list(&vectors["tensors"]) {
        let (seed, input) = (number(vector, "seed"), text(vector, "input"));
        let dtype: DType = text(vector, "dtype").parse().unwrap();
        let strategy: Strategy = text(vector, "strategy").parse().unwrap();
        assert_eq!(strategy.resolve(seed).name(), text(vector, "resolved"), "{vector}");
        check_tensor(vector, &recipe(strategy.resolve(seed), dtype, seed, input));
        if !seen.contains(&(dtype, strategy)) {
            seen.push((dtype, strategy));
        }
    }
    assert_eq!(seen.len(), DType::ALL.len() * Strategy::ALL.len());
}

#[test]
fn tensors_of_whole_numbers_in_a_range() {
    for vector in list(&vectors()["ranges"]) {
        let strategy: Strategy = text(vector, "strategy").parse().unwrap();
        check_tensor(vector, &range_recipe(strategy, size(&vector["low"]), size(&vector["high"])));
    }
}

#[test]
fn tensors_of_flags() {
    for vector in list(&vectors()["flags"]) {
        check_tensor(vector, &flag_recipe(number(vector, "seed"), text(vector, "input")));
    }
}
