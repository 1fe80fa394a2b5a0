//! What is said of each pair: its class, and which check must report the wrong one.

use std::collections::BTreeSet;
use std::fmt;

use gpuemu_model::finding::Check;
use serde::{Deserialize, Serialize};

use super::file;

/// Kinds of bugs, and ways to cheat.
pub const CLASSES: &[&str] = &[
    "tail lanes in a variance",
    "row stride assumed equal to the width",
    "stride-0 upstream gradient",
    "output rows never written",
    "out-of-bounds store that leaves every value right",
    "uninitialised scratch merged",
    "-inf minus -inf in an online softmax",
    "0/0 on an all-zero block",
    "finite mask sentinel beaten by real logits",
    "bf16 accumulation",
    "cancellation where softmax goes to 1",
    "in-place write over an input",
    "missing barrier",
    "divergent barrier",
    "warp-synchronous race",
    "copy not waited for",
    "misaligned vector access",
    "cache key without a shape",
    "int32 offset overflow",
    "upstream gradient ignored",
    "batch index ignored",
    "wrong operand",
    "stale memory",
    "zeroed inputs",
    "constant below the tolerance",
    "cached by pointer",
    "correct for the first calls only",
    "falls back to the framework",
    "lazy result",
    "masked lanes beyond the end",
    "missing factor",
    "missing rescale",
    "wrong constant",
];

/// What the twins are written in.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum Language {
    Triton,
    /// CUDA C++, compiled.
    Cuda,
    Python,
}

impl Language {
    pub const ALL: [Language; 3] = [Language::Triton, Language::Cuda, Language::Python];

    pub fn folder(self) -> &'static str {
        match self {
            Language::Triton => "triton",
            Language::Cuda => "cuda",
            Language::Python => "python",
        }
    }
}

/// What reports a wrong twin.
#[derive(Debug, Clone, PartialEq, Eq, Deserialize, Serialize)]
#[serde(try_from = "String", into = "String")]
pub enum CaughtBy {
    /// A check of its cases.
    Check(Check),
    /// A rule about its code.
    Lint(String),
}

impl TryFrom<String> for CaughtBy {
    type Error = String;

    fn try_from(text: String) -> Result<Self, String> {
        if let Some(rule) = text.strip_prefix("lint/") {
            let known = gpuemu_ptx::lint::rules().iter().any(|known| known.name == rule);
            return if known { Ok(Self::Lint(rule.to_string())) } else { Err(format!("there is no rule '{rule}'")) };
        }
        let named: Result<Check, toml::de::Error> = toml::Value::String(text.clone()).try_into();
        named.map(Self::Check).map_err(|_| format!("there is no check '{text}'"))
    }
}

impl From<CaughtBy> for String {
    fn from(caught_by: CaughtBy) -> Self {
        caught_by.to_string()
    }
}

impl fmt::Display for CaughtBy {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Check(check) => write!(formatter, "{check}"),
            Self::Lint(rule) => write!(formatter, "lint/{rule}"),
        }
    }
}

/// A right and a wrong twin.
#[derive(Debug, Clone, PartialEq, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Pair {
    pub name: String,
    /// The kind of its bug, one of [`CLASSES`].
    pub class: String,
    /// What is wrong, in one sentence.
    pub says: String,
    /// The right twin: a kernel of the launch tables, or a function of a module.
    pub right: String,
    pub wrong: String,
    /// What may report the wrong one; one of them must.
    pub caught_by: Vec<CaughtBy>,
    /// What both are as ops of a project.
    pub op: toml::Table,
    /// What they are written in.
    #[serde(skip, default = "unknown_language")]
    pub language: Language,
}

/// Replaced by that of the file as soon as it is read.
fn unknown_language() -> Language {
    Language::Python
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct Pairs {
    pairs: Vec<Pair>,
}

/// All pairs, by language and in the order of their files.
pub fn pairs() -> Result<Vec<Pair>, String> {
    let mut all = Vec::new();
    for language in Language::ALL {
        let path = format!("{}/pairs.toml", language.folder());
        let text = file(&path).ok_or_else(|| format!("lab/corpus/grown/{path} is missing"))?;
        let Pairs { pairs } = toml::from_str(text).map_err(|error| format!("lab/corpus/grown/{path}: {error}"))?;
        all.extend(pairs.into_iter().map(|pair| Pair { language, ..pair }));
    }
    let mut names = BTreeSet::new();
    for pair in &all {
        if !names.insert(pair.name.as_str()) {
            return Err(format!("two pairs are named '{}'", pair.name));
        }
        if !CLASSES.contains(&pair.class.as_str()) {
            return Err(format!("pair '{}' has the class '{}', which is not listed", pair.name, pair.class));
        }
        if pair.caught_by.is_empty() {
            return Err(format!("pair '{}' does not say what reports it", pair.name));
        }
    }
    Ok(all)
}
