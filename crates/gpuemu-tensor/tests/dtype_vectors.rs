//! Conversions to and from `f64` against `testdata/dtype_vectors.json`, whose truth Python finds by
//! comparing values with the midpoints between representable numbers. The file describes its inputs.

#![allow(clippy::unwrap_used, reason = "a vector that cannot be read is a failed test")]

use gpuemu_tensor::{DType, FloatFormat, Stream};
use serde_json::Value;
use sha2::{Digest, Sha256};

const CANONICAL_NAN: u64 = 0x7ff8_0000_0000_0000;

struct Vectors {
    file: Value,
    word_count: usize,
    fixed_inputs: Vec<f64>,
}

impl Vectors {
    fn read() -> Self {
        let path = concat!(env!("CARGO_MANIFEST_DIR"), "/../../testdata/dtype_vectors.json");
        let file: Value = serde_json::from_str(&std::fs::read_to_string(path).unwrap()).unwrap();
        let word_count = file["word_count"].as_u64().unwrap() as usize;
        let fixed_inputs =
            file["fixed_inputs"].as_array().unwrap().iter().map(|bits| f64::from_bits(hexadecimal(bits)));
        Self { word_count, fixed_inputs: fixed_inputs.collect(), file }
    }

    /// The inputs of a dtype: a list made by `listed`, then what every dtype has.
    fn inputs(&self, dtype: DType, listed: impl FnOnce(&mut Stream) -> Vec<f64>) -> Vec<f64> {
        let format = dtype.float_format().unwrap();
        let mut stream = Stream::new(0, &format!("conversion/{dtype}"));
        let mut inputs = listed(&mut stream);
        inputs.extend(&self.fixed_inputs);
        inputs.extend(inputs.clone().iter().map(|value| -value));
        let anywhere = (0..self.word_count).map(|_| f64::from_bits(stream.next_word())).filter(|value| !value.is_nan());
        inputs.extend(anywhere.collect::<Vec<f64>>());
        let lowest = format.min_exponent() - format.mantissa_bits as i32 - 2;
        let span = (format.max_exponent() + 2 - lowest) as u64;
        inputs.extend((0..self.word_count).map(|_| {
            let word = stream.next_word();
            let field = (1023 + lowest) as u64 + ((word >> 52) & 0x7ff) % span;
            f64::from_bits((word & !(0x7ff << 52)) | (field << 52))
        }));
        inputs
    }
}

fn hexadecimal(text: &Value) -> u64 {
    u64::from_str_radix(text.as_str().unwrap().strip_prefix("0x").unwrap(), 16).unwrap()
}

/// The SHA-256 of the lowest `size` bytes of every pattern.
fn digest(patterns: impl Iterator<Item = u64>, size: usize) -> String {
    let mut hasher = Sha256::new();
    for pattern in patterns {
        hasher.update(&pattern.to_le_bytes()[..size]);
    }
    hasher.finalize().iter().map(|byte| format!("{byte:02x}")).collect()
}

/// A value, the midpoint to the next one, and that midpoint's neighbours.
fn with_midpoint(value: f64, next: f64) -> [f64; 4] {
    let midpoint = (value + next) / 2.0;
    [value, midpoint, midpoint.next_down(), midpoint.next_up()]
}

fn encoded_digest(inputs: &[f64], size: usize, nan: u64, format: &FloatFormat, encode: impl Fn(f64) -> u64) -> String {
    let patterns = inputs.iter().map(|value| {
        let pattern = encode(*value);
        if format.decode(pattern).is_nan() { nan } else { pattern }
    });
    digest(patterns, size)
}

fn check_inputs(inputs: &[f64], vector: &Value, name: &str) {
    assert_eq!(inputs.len() as u64, vector["input_count"].as_u64().unwrap(), "{name}: inputs are built differently");
    let actual = digest(inputs.iter().map(|value| value.to_bits()), 8);
    assert_eq!(actual, vector["inputs"], "{name}: inputs are built differently");
}

#[test]
fn every_pattern_decodes_to_its_value() {
    let vectors = Vectors::read();
    for vector in vectors.file["narrow"].as_array().unwrap() {
        let dtype: DType = vector["dtype"].as_str().unwrap().parse().unwrap();
        let format = dtype.float_format().unwrap();
        let canonical = |value: f64| if value.is_nan() { CANONICAL_NAN } else { value.to_bits() };
        let patterns = 0..1u64 << format.bits();
        assert_eq!(digest(patterns.clone().map(|bits| canonical(dtype.decode(bits))), 8), vector["decoded"], "{dtype}");
        assert_eq!(digest(patterns.map(|bits| canonical(format.decode(bits))), 8), vector["decoded"], "{dtype}");
    }
}

#[test]
fn narrow_dtypes_are_rounded_to_nearest_even_once() {
    let vectors = Vectors::read();
    for vector in vectors.file["narrow"].as_array().unwrap() {
        let dtype: DType = vector["dtype"].as_str().unwrap().parse().unwrap();
        let format = dtype.float_format().unwrap();
        let inputs = vectors.inputs(dtype, |_| {
            let patterns = 0..=format.max_bits();
            patterns.flat_map(|bits| with_midpoint(format.magnitude(bits), format.magnitude(bits + 1))).collect()
        });
        check_inputs(&inputs, vector, dtype.name());
        let nan = hexadecimal(&vector["nan"]);
        let encoded = encoded_digest(&inputs, dtype.size(), nan, format, |value| dtype.encode(value));
        assert_eq!(encoded, vector["encoded"], "{dtype}");
        check_round(&inputs, format);
    }
}

#[test]
fn float32_is_rounded_to_nearest_even_once() {
    let vectors = Vectors::read();
    let vector = &vectors.file["float32"][0];
    let magnitude = |bits: u32| if bits == 0x7f80_0000 { 2f64.powi(128) } else { f64::from(f32::from_bits(bits)) };
    let inputs = vectors.inputs(DType::F32, |stream| {
        let patterns = (0..vectors.word_count).map(|_| (stream.next_word() % 0x7f80_0000) as u32);
        patterns.flat_map(|bits| with_midpoint(magnitude(bits), magnitude(bits + 1))).collect()
    });
    check_inputs(&inputs, vector, "float32");
    let nan = FloatFormat::F32.nan_bits();
    for encode in [|value| DType::F32.encode(value), |value| FloatFormat::F32.encode(value)] {
        assert_eq!(encoded_digest(&inputs, 4, nan, &FloatFormat::F32, encode), vector["encoded"]);
    }
    check_round(&inputs, &FloatFormat::F32);
}

/// Rounding a value must give what its encoding decodes to.
fn check_round(inputs: &[f64], format: &FloatFormat) {
    for value in inputs {
        let (rounded, decoded) = (format.round(*value), format.decode(format.encode(*value)));
        let same = rounded.to_bits() == decoded.to_bits() || (rounded.is_nan() && decoded.is_nan());
        assert!(same, "{format:?} rounds {value:e} to {rounded:e} and encodes it as {decoded:e}");
    }
}
