//! 64-bit seeds in JSON: written as strings, read from strings or numbers.

use serde::de::{Error, Unexpected, Visitor};
use serde::{Deserializer, Serializer};

/// How a seed is written: a string, since most readers of JSON round numbers beyond 2^53.
#[derive(Debug, Clone, Copy)]
pub struct SeedText;

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

/// The same for a seed that may be absent; use it with `#[serde(default)]`.
pub mod option {
    use serde::{Deserialize, Deserializer, Serializer};

    #[derive(Deserialize)]
    struct Seed(#[serde(deserialize_with = "super::deserialize")] u64);

    /// Writes a seed as a string, or null.
    pub fn serialize<S: Serializer>(seed: &Option<u64>, serializer: S) -> Result<S::Ok, S::Error> {
        match seed {
            Some(seed) => super::serialize(seed, serializer),
            None => serializer.serialize_none(),
        }
    }

    /// Reads a seed from a string or a number; null is none.
    pub fn deserialize<'de, D: Deserializer<'de>>(deserializer: D) -> Result<Option<u64>, D::Error> {
        Ok(Option::<Seed>::deserialize(deserializer)?.map(|seed| seed.0))
    }
}

/// The same for a list of seeds; use it with `#[serde(default)]`.
pub mod list {
    use serde::{Deserialize, Deserializer, Serializer};

    #[derive(Deserialize)]
    struct Seed(#[serde(deserialize_with = "super::deserialize")] u64);

    /// Writes seeds as strings.
    pub fn serialize<S: Serializer>(seeds: &[u64], serializer: S) -> Result<S::Ok, S::Error> {
        serializer.collect_seq(seeds.iter().map(ToString::to_string))
    }

    /// Reads seeds from strings or numbers.
    pub fn deserialize<'de, D: Deserializer<'de>>(deserializer: D) -> Result<Vec<u64>, D::Error> {
        Ok(Vec::<Seed>::deserialize(deserializer)?.into_iter().map(|seed| seed.0).collect())
    }
}
