//! Reading a name from any serde format, so that an error points at the name itself.
//!
//! `#[serde(try_from = "String")]` converts after the text was read, when its place is forgotten.

use std::fmt::{self, Display};
use std::marker::PhantomData;
use std::str::FromStr;

use serde::Deserializer;
use serde::de::{Error, Visitor};

/// Reads a value that is written as its name.
pub fn deserialize<'de, D, T>(deserializer: D, what: &'static str) -> Result<T, D::Error>
where
    D: Deserializer<'de>,
    T: FromStr,
    T::Err: Display,
{
    struct Name<T>(&'static str, PhantomData<T>);
    impl<T: FromStr<Err: Display>> Visitor<'_> for Name<T> {
        type Value = T;
        fn expecting(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
            formatter.write_str(self.0)
        }
        fn visit_str<E: Error>(self, name: &str) -> Result<T, E> {
            name.parse().map_err(E::custom)
        }
    }
    deserializer.deserialize_str(Name(what, PhantomData))
}
