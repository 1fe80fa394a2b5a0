//! JSON of types that several crates read and write. Their code is compiled where they are defined, once: a crate that
//! calls `serde_json` with such a type compiles all of it again, which for the messages alone is half a million lines
//! before they are optimised. So a type reads or writes itself here only if some crate asks it to.

use serde_json::{Error, Value};

use crate::artifact::{ArtifactReport, KernelArtifact};
use crate::campaign::CampaignStatus;
use crate::case::CaseDescriptor;
use crate::report::{CaseSummary, ComparisonReport, OpReport, RunReport, StoredRun, ValidationResult};
use crate::settings::FuzzConfig;

/// A type whose JSON is written by code of its own crate: see [`write_json!`](crate::write_json!).
pub trait ToJson {
    /// As JSON in one line.
    fn to_json(&self) -> Result<String, Error>;

    /// As JSON for people.
    fn to_pretty_json(&self) -> Result<String, Error> {
        serde_json::to_string_pretty(&self.to_json_value()?)
    }

    fn to_json_value(&self) -> Result<Value, Error> {
        serde_json::from_str(&self.to_json()?)
    }
}

/// A type whose JSON is read by code of its own crate: see [`read_json!`](crate::read_json!).
pub trait FromJson: Sized {
    fn from_json(text: &[u8]) -> Result<Self, Error>;

    fn from_json_value(value: &Value) -> Result<Self, Error> {
        Self::from_json(value.to_string().as_bytes())
    }
}

/// Implements [`ToJson`](crate::json::ToJson) for types that `serde` can write.
#[macro_export]
macro_rules! write_json {
    ($($type:ty),+ $(,)?) => {$(
        impl $crate::json::ToJson for $type {
            #[inline(never)]
            fn to_json(&self) -> Result<String, ::serde_json::Error> {
                ::serde_json::to_string(self)
            }
        }
    )+};
}

/// Implements [`FromJson`](crate::json::FromJson) for types that `serde` can read.
#[macro_export]
macro_rules! read_json {
    ($($type:ty),+ $(,)?) => {$(
        impl $crate::json::FromJson for $type {
            #[inline(never)]
            fn from_json(text: &[u8]) -> Result<Self, ::serde_json::Error> {
                ::serde_json::from_slice(text)
            }
        }
    )+};
}

write_json!(
    ArtifactReport,
    CampaignStatus,
    CaseDescriptor,
    CaseSummary,
    ComparisonReport,
    FuzzConfig,
    KernelArtifact,
    OpReport,
    RunReport,
    StoredRun,
    ValidationResult
);

read_json!(CampaignStatus, CaseDescriptor, KernelArtifact, RunReport, StoredRun, ValidationResult, Vec<CaseSummary>);

impl<Item: ToJson> ToJson for [Item] {
    fn to_json(&self) -> Result<String, Error> {
        let items = self.iter().map(ToJson::to_json).collect::<Result<Vec<_>, Error>>()?;
        Ok(format!("[{}]", items.join(",")))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_type_is_the_same_behind_its_text_and_its_value() {
        let settings = FuzzConfig { seed: Some(u64::MAX), quick: true, ..FuzzConfig::default() };
        let text = settings.to_json().unwrap();
        assert_eq!(text, r#"{"seed":"18446744073709551615","quick":true}"#);
        let value = settings.to_json_value().unwrap();
        assert_eq!(value, serde_json::to_value(&settings).unwrap());
        assert_eq!(settings.to_pretty_json().unwrap(), serde_json::to_string_pretty(&settings).unwrap());
        assert_eq!([settings, FuzzConfig::default()].to_json_value().unwrap()[0]["quick"], true);
    }
}
