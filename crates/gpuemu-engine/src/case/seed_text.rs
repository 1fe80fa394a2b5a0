//! 64-bit seeds in JSON: written as strings, read from strings or numbers.

use serde::de::{Error, Unexpected, Visitor};
use serde::{Deserializer, Serializer};

/// Writes a seed as a string.
pub fn serialize<S: Serializer>(seed: &u64, serializer: S) -> Result<S::Ok, S::Error> {
    serializer.collect_str(seed)
}

/// Reads a seed from a string or a number.
pub fn deserialize<'de, D: Deserializer<'de>>(deserializer: D) -> Result<u64, D::Error> {
    struct Seed;
    impl Visitor<'_> for Seed {
        type Value = u64;
        fn expecting(&self, formatter: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
            formatter.write_str("a seed: a whole number from 0 to 18446744073709551615, as a string or a number")
        }
        fn visit_u64<E: Error>(self, seed: u64) -> Result<u64, E> {
            Ok(seed)
        }
        fn visit_i64<E: Error>(self, seed: i64) -> Result<u64, E> {
            u64::try_from(seed).map_err(|_| E::invalid_value(Unexpected::Signed(seed), &self))
        }
        fn visit_str<E: Error>(self, seed: &str) -> Result<u64, E> {
            seed.parse().map_err(|_| E::invalid_value(Unexpected::Str(seed), &self))
        }
    }
    deserializer.deserialize_any(Seed)
}
