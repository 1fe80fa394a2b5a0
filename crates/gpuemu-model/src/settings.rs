//! What a caller asks for: the project, how much is done, and what cases are drawn from.

use std::path::PathBuf;

use serde::{Deserialize, Serialize};

use gpuemu_tensor::{DType, Layout};

use crate::schema::JsonSchema;
use crate::{Strategy, seed_text};

/// The project that a request is about.
#[derive(Debug, Clone, Default, PartialEq, Eq, Hash, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct ProjectReference {
    /// Its folder.
    pub root: PathBuf,
    /// Its configuration file; without one there are only the built-in ops.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub config: Option<PathBuf>,
    /// Fingerprint of the configuration that the client read; another one is refused.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub digest: Option<String>,
    /// The Python that scripts and modules run in.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub python: Option<PathBuf>,
}

/// How much a run over a project's ops does.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum Mode {
    /// Few cases, small shapes, the quick dtypes.
    Quick,
    /// All dtypes, the full number of cases, within `thorough_timeout`.
    #[default]
    Thorough,
    /// As the fuzz settings say, without a limit of time of its own.
    Fuzz,
}

/// What cases are drawn from. Everything left out is as the project and the op's schema say.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields, default)]
pub struct FuzzConfig {
    /// Cases of each op.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub iterations: Option<u64>,
    /// Seconds for all ops together, in place of a number of cases.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub seconds: Option<f64>,
    /// Smallest sizes of the op's dims, in the order of its signature.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub min_shape: Vec<usize>,
    /// Largest sizes of the op's dims, in the order of its signature.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub max_shape: Vec<usize>,
    /// Dtypes.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub dtypes: Option<Vec<DType>>,
    /// Memory layouts of inputs, by name; `strided` stands for all that have gaps.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub layouts: Option<Vec<String>>,
    /// Base seed.
    #[serde(with = "seed_text::option", skip_serializing_if = "Option::is_none")]
    #[schemars(with = "Option<seed_text::SeedText>")]
    pub seed: Option<u64>,
    /// Value strategy.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub values: Option<Strategy>,
    /// Small shapes and few cases.
    #[serde(skip_serializing_if = "std::ops::Not::not")]
    pub quick: bool,
}

impl FuzzConfig {
    /// Cases of each op where fuzzing is asked for without a number.
    pub const ITERATIONS: u64 = 100;

    /// The layouts named; `None` if none are.
    pub fn layouts(&self) -> Result<Option<Vec<Layout>>, String> {
        let Some(names) = &self.layouts else { return Ok(None) };
        let mut layouts = Vec::new();
        for name in names {
            let lower = name.to_ascii_lowercase();
            match lower.as_str() {
                "strided" | "non_contiguous" => layouts.extend([Layout::RowGap, Layout::ColumnStep]),
                _ => match Layout::ALL.into_iter().find(|layout| layout.name() == lower) {
                    Some(layout) => layouts.push(layout),
                    None => {
                        let known = Layout::ALL.map(Layout::name).join(", ");
                        return Err(format!("unknown layout '{name}'; known: {known}, strided"));
                    }
                },
            }
        }
        if layouts.is_empty() { Err("'layouts' is empty".to_string()) } else { Ok(Some(layouts)) }
    }
}
