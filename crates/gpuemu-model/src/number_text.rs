//! Numbers in JSON: NaN and infinities as strings, which plain JSON cannot write.

use serde::de::{Error, Unexpected, Visitor};
use serde::{Deserializer, Serializer};

pub mod list {
    use serde::{Deserialize, Deserializer, Serialize, Serializer};

    #[derive(Serialize, Deserialize)]
    struct Number(#[serde(with = "super")] f64);

    pub fn serialize<S: Serializer>(values: &[f64], serializer: S) -> Result<S::Ok, S::Error> {
        serializer.collect_seq(values.iter().map(|value| Number(*value)))
    }

    pub fn deserialize<'de, D: Deserializer<'de>>(deserializer: D) -> Result<Vec<f64>, D::Error> {
        let numbers: Vec<Number> = Vec::deserialize(deserializer)?;
        Ok(numbers.into_iter().map(|number| number.0).collect())
    }
}

/// How such a number is written.
#[derive(Debug, Clone, Copy)]
pub struct NumberText;

/// Writes a number, or its name where JSON has none for it.
pub fn serialize<S: Serializer>(value: &f64, serializer: S) -> Result<S::Ok, S::Error> {
    if value.is_finite() {
        serializer.serialize_f64(*value)
    } else if value.is_nan() {
        serializer.serialize_str("NaN")
    } else {
        serializer.serialize_str(if *value > 0.0 { "Infinity" } else { "-Infinity" })
    }
}

/// Reads a number or the name of one.
pub fn deserialize<'de, D: Deserializer<'de>>(deserializer: D) -> Result<f64, D::Error> {
    struct Number;
    impl Visitor<'_> for Number {
        type Value = f64;
        fn expecting(&self, formatter: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
            formatter.write_str("a number, \"NaN\", \"Infinity\" or \"-Infinity\"")
        }
        fn visit_f64<E: Error>(self, value: f64) -> Result<f64, E> {
            Ok(value)
        }
        fn visit_u64<E: Error>(self, value: u64) -> Result<f64, E> {
            Ok(value as f64)
        }
        fn visit_i64<E: Error>(self, value: i64) -> Result<f64, E> {
            Ok(value as f64)
        }
        fn visit_str<E: Error>(self, value: &str) -> Result<f64, E> {
            match value {
                "NaN" => Ok(f64::NAN),
                "Infinity" => Ok(f64::INFINITY),
                "-Infinity" => Ok(f64::NEG_INFINITY),
                _ => Err(E::invalid_value(Unexpected::Str(value), &self)),
            }
        }
    }
    deserializer.deserialize_any(Number)
}
