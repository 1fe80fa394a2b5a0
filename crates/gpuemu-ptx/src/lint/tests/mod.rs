//! Every rule with code that it must find and code that it must not.

mod address_overflow;
mod barriers;
mod configured;
mod memory;

use std::collections::BTreeMap;

use gpuemu_config::ArtifactChecks;
use gpuemu_model::artifact::{EntryMetrics, InstructionCounts, KernelArtifact, LintResult};

use super::{ProjectRule, lint};
use crate::flow::uses::tests::module_text;
use crate::source::Source;

/// What is measured of a text as far as rules ask for it: how often each form occurs.
pub fn measured(source: &Source) -> KernelArtifact {
    let module = source.parse().unwrap();
    let names = crate::code::ModuleNames::of(&module);
    let entries = module.entries().map(|entry| {
        let mut forms: BTreeMap<String, u64> = BTreeMap::new();
        for step in crate::code::Code::of(entry, &names).unwrap().steps {
            *forms.entry(step.instruction.opcode.to_string()).or_default() += 1;
        }
        let instructions = InstructionCounts { forms, ..InstructionCounts::default() };
        EntryMetrics { entry: entry.name.to_string(), instructions, ..EntryMetrics::default() }
    });
    KernelArtifact {
        kernel: "kernel".into(),
        source: "test.ptx".into(),
        target: "sm_80".into(),
        entries: entries.collect(),
        ..KernelArtifact::default()
    }
}

/// What is found in a text.
pub fn lint_text(text: &str, checks: &ArtifactChecks, rules: &[ProjectRule]) -> LintResult {
    let source = Source::new("test.ptx", text);
    let artifact = measured(&source);
    lint(&source, &source.parse().unwrap(), &artifact, checks, rules).unwrap()
}

/// What is found in the body of an entry.
pub fn lint_body(body: &str) -> LintResult {
    lint_text(&module_text("", body), &ArtifactChecks::default(), &[])
}

/// Messages of one rule in the body of an entry.
pub fn messages(rule: &str, body: &str) -> Vec<String> {
    let findings = lint_body(body).findings;
    findings.into_iter().filter(|finding| finding.rule == rule).map(|finding| finding.message).collect()
}
