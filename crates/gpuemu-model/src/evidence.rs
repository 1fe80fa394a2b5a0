//! What a signed report holds beyond a report: everything that its verdicts rest on.

use gpuemu_tensor::DType;
use serde::{Deserialize, Serialize};

use crate::finding::Outcome;
use crate::report::{Conclusion, OpStatus, RunReport, SourceDigest};
use crate::schema::JsonSchema;
use crate::{number_text, seed_text};

/// What the verdicts of a report rest on.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct Evidence {
    /// The project's configuration file, whole.
    pub configuration: String,
    /// The version of the generator of cases: with the same one a seed gives the same bytes.
    pub generator_version: u32,
    /// The machine that wrote the report.
    pub system: String,
    /// Why the report does not say passed although no case failed; empty if nothing stands against it.
    pub reservations: Vec<String>,
    /// The ops.
    pub ops: Vec<OpEvidence>,
}

/// What the verdict on an op rests on.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct OpEvidence {
    /// The op.
    pub op: String,
    /// The version of gpuemu that ran it.
    pub gpuemu: String,
    /// The run.
    #[serde(with = "seed_text")]
    #[schemars(with = "seed_text::SeedText")]
    pub run: u64,
    /// Milliseconds since 1970.
    pub time: u64,
    /// `quick`, `thorough` or `fuzz`.
    pub mode: String,
    /// Base seed.
    #[serde(with = "seed_text")]
    #[schemars(with = "seed_text::SeedText")]
    pub seed: u64,
    /// What ran it.
    pub runner: String,
    /// What judged it.
    pub reference: String,
    /// The files that it is made of, as they were when it ran.
    pub sources: Vec<SourceDigest>,
    /// Checks that could not be made.
    pub not_checked: Vec<String>,
    /// Every case.
    pub verdicts: Vec<CaseEvidence>,
}

/// The verdict on one case.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct CaseEvidence {
    /// Its seed.
    #[serde(with = "seed_text")]
    #[schemars(with = "seed_text::SeedText")]
    pub seed: u64,
    /// How it ended.
    pub outcome: Outcome,
    /// Its dtype.
    pub dtype: DType,
    /// Sizes of its dims.
    pub sizes: String,
    /// Memory layouts of its inputs.
    pub layout: String,
    /// How its values were chosen.
    pub values: String,
    /// The check that fired first, if any did.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub check: Option<String>,
    /// Largest |out − y|.
    #[serde(with = "number_text")]
    #[schemars(with = "number_text::NumberText")]
    pub max_abs_diff: f64,
    /// Largest share of what is allowed.
    #[serde(with = "number_text")]
    #[schemars(with = "number_text::NumberText")]
    pub tolerance_share: f64,
    /// SHA-256 of the bytes of its inputs, one after the other in the order of the signature; none where they are not
    /// drawn from the seed.
    pub inputs_sha256: Option<String>,
}

/// What a report says that contradicts what it holds; `None` if nothing does.
pub fn contradiction(report: &RunReport) -> Option<String> {
    let passed = report.conclusion() == Conclusion::Passed;
    if report.passed != passed {
        let word = if report.passed { "passed" } else { "failed" };
        return Some(format!("it says that it {word}, and its ops and kernels say otherwise"));
    }
    let Some(evidence) = &report.evidence else {
        return Some("it holds no evidence: configuration, hashes and single verdicts are missing".to_string());
    };
    for op in &evidence.ops {
        let Some(summary) = report.ops.iter().find(|summary| summary.op == op.op) else {
            return Some(format!("it has verdicts on op '{}', and nothing that they come to", op.op));
        };
        let failed = op.verdicts.iter().filter(|verdict| verdict.outcome == Outcome::Failed).count() as u64;
        if summary.status == OpStatus::Passed && (failed > 0 || op.verdicts.is_empty()) {
            return Some(format!(
                "op '{}' passed in it, and {failed} of its {} verdicts failed",
                op.op,
                op.verdicts.len()
            ));
        }
    }
    let unproven = report
        .ops
        .iter()
        .find(|summary| summary.status == OpStatus::Passed && !evidence.ops.iter().any(|op| op.op == summary.op));
    unproven.filter(|_| passed).map(|op| format!("op '{}' passed in it without a single verdict", op.op))
}
