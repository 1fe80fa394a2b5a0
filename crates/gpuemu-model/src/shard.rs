//! A part of a run: every n-th case of every op, and what joining the parts needs to know.

use std::fmt;
use std::str::FromStr;

use gpuemu_tensor::DType;
use serde::{Deserialize, Serialize};
use thiserror::Error;

use crate::finding::{Decoy, LargestErrors, Outcome};
use crate::report::OpStatus;
use crate::schema::JsonSchema;

/// Which part of how many: of `2/3` the cases with the indices 1, 4, 7 and so on.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize, JsonSchema)]
#[serde(try_from = "ShardNumbers")]
pub struct Shard {
    index: u32,
    count: u32,
}

/// The numbers of a shard as they are written.
#[derive(Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
struct ShardNumbers {
    /// Its number, from 1.
    index: u32,
    /// How many there are.
    count: u32,
}

/// Why a text is no shard.
#[derive(Debug, Clone, PartialEq, Eq, Error)]
#[error("'{0}' is no shard: write it as i/n, where i goes from 1 to n")]
pub struct NoShard(String);

impl Shard {
    /// A shard; its number goes from 1 to their count.
    pub fn new(index: u32, count: u32) -> Result<Self, NoShard> {
        if (1..=count).contains(&index) { Ok(Self { index, count }) } else { Err(NoShard(format!("{index}/{count}"))) }
    }

    /// Its number, from 1.
    pub const fn index(self) -> u32 {
        self.index
    }

    /// How many there are.
    pub const fn count(self) -> u32 {
        self.count
    }

    pub const fn is_first(self) -> bool {
        self.index == 1
    }

    pub const fn is_last(self) -> bool {
        self.index == self.count
    }

    /// The indices of its cases, of so many cases in all.
    pub fn cases(self, all: u64) -> std::iter::StepBy<std::ops::Range<u64>> {
        (u64::from(self.index - 1)..all).step_by(self.count as usize)
    }

    /// Whether a case is its.
    pub const fn has(self, index: u64) -> bool {
        index % self.count as u64 == (self.index - 1) as u64
    }

    /// The whole of a run.
    pub const WHOLE: Self = Self { index: 1, count: 1 };

    /// How many of so many cases are its.
    pub const fn size(self, all: u64) -> u64 {
        let (first, count) = ((self.index - 1) as u64, self.count as u64);
        if all > first { (all - first).div_ceil(count) } else { 0 }
    }
}

impl TryFrom<ShardNumbers> for Shard {
    type Error = NoShard;

    fn try_from(numbers: ShardNumbers) -> Result<Self, NoShard> {
        Self::new(numbers.index, numbers.count)
    }
}

impl FromStr for Shard {
    type Err = NoShard;

    fn from_str(text: &str) -> Result<Self, NoShard> {
        let numbers = text.split_once('/').and_then(|(index, count)| Some((index.parse().ok()?, count.parse().ok()?)));
        let (index, count) = numbers.ok_or_else(|| NoShard(text.to_string()))?;
        Self::new(index, count)
    }
}

impl fmt::Display for Shard {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(formatter, "{}/{}", self.index, self.count)
    }
}

/// What the report on a shard knows of the run beyond itself.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct RunPart {
    /// The shard.
    pub shard: Shard,
    /// Things worth knowing before the first case, which all shards have in common.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub warnings: Vec<String>,
}

/// What a run's report makes of one case: all that adding up takes from a verdict.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct CaseFacts {
    /// Its place among the cases of the op.
    pub index: u64,
    /// How it ended.
    pub outcome: Outcome,
    /// Its dtype.
    pub dtype: DType,
    /// Its largest errors.
    #[serde(alias = "errors")]
    pub largest: LargestErrors,
    /// Elements that were compared.
    pub compared: usize,
    /// Wrong outputs that it would have rejected.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub rejected: Vec<Decoy>,
    /// Wrong outputs that it would have accepted.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub accepted: Vec<Decoy>,
    /// Checks that could not be made.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub not_checked: Vec<String>,
    /// Why nothing could be said.
    #[serde(default, alias = "undetermined", skip_serializing_if = "Option::is_none")]
    pub message: Option<String>,
    /// The case that was drawn first, and which the kernel does not cover.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub left_out: Option<String>,
    /// Of a failure by a tolerance: whether the rigorous bound would have passed it, where that was looked at.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub within_bound: Option<bool>,
}

/// Why an op ended before its last case.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct Stopped {
    /// What the op comes to, unless a case failed.
    pub status: OpStatus,
    /// Why.
    pub message: String,
}

/// What a shard knows of an op beyond its report.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct OpPart {
    /// Things worth knowing before the first case.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub warnings: Vec<String>,
    /// Why it ended early, if it did.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub stopped: Option<Stopped>,
    /// Its cases, in order.
    pub cases: Vec<CaseFacts>,
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn shards_hold_every_case_once() {
        for (count, all) in [(1, 7), (2, 7), (3, 7), (7, 7), (3, 200), (5, 3)] {
            let mut seen: Vec<u64> = Vec::new();
            for index in 1..=count {
                let shard = Shard::new(index, count).unwrap();
                assert_eq!(shard.cases(all).count() as u64, shard.size(all), "{shard} of {all}");
                seen.extend(shard.cases(all));
            }
            seen.sort_unstable();
            assert_eq!(seen, (0..all).collect::<Vec<_>>(), "{count} of {all}");
        }
    }

    #[test]
    fn what_is_no_shard_is_said() {
        assert_eq!("2/3".parse::<Shard>().unwrap().to_string(), "2/3");
        for text in ["0/2", "3/2", "1/0", "1", "a/b", "1/2/3", "", "-1/2", "1/99999999999"] {
            assert!(text.parse::<Shard>().unwrap_err().to_string().starts_with(&format!("'{text}' is no shard")));
        }
        assert!(serde_json::from_str::<Shard>(r#"{"index":3,"count":2}"#).is_err());
    }
}
