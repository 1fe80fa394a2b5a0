//! The linter: what compiled kernels are held to.

mod access;
mod address_overflow;
mod calls;
mod divergent_barrier;
mod figures;
mod function;
mod glob;
mod limits;
mod local_loops;
pub mod page;
mod patterns;
pub mod project_rules;
mod report;
pub mod rule;
mod scalar_access;
mod shared;
mod spaces;
#[cfg(test)]
mod tests;

use std::collections::{HashMap, HashSet};

use gpuemu_config::ArtifactChecks;
use gpuemu_model::artifact::{EntryMetrics, KernelArtifact, LintResult};
use gpuemu_model::nearest::nearest;

use self::calls::{Seen, functions_that_wait, reached};
use self::function::Analysed;
use self::report::{Place, Report};
use crate::code::ModuleNames;
use crate::source::{PtxError, Source};
use crate::syntax::Module;

pub use figures::Figures;
pub use patterns::{Pattern, PatternError, invalid_patterns};
pub use project_rules::{ProjectRule, parse_rules, read_rules};
pub use rule::{Rule, rules};

/// Checks every entry of a module. What functions do is told of the first entry that calls them.
///
/// A pattern of instructions that is not valid gives a finding that is an error; [`invalid_patterns`] names them
/// before.
pub fn lint<'a>(
    source: &'a Source,
    module: &Module<'a>,
    artifact: &KernelArtifact,
    checks: &ArtifactChecks,
    project_rules: &[ProjectRule],
) -> Result<LintResult, PtxError> {
    let names = ModuleNames::of(module);
    let metrics: HashMap<&str, &EntryMetrics> =
        artifact.entries.iter().map(|entry| (entry.entry.as_str(), entry)).collect();
    let mut report = Report::new(source, module, checks);
    let waiting = functions_that_wait(module);
    let mut seen = Seen::default();
    for entry in module.entries() {
        report.begin(entry.name);
        let place = Place::from(entry.span);
        let functions = reached(entry, module, &names, &mut seen).map_err(|error| source.error(&error))?;
        match metrics.get(entry.name) {
            Some(measured) => {
                limits::check(artifact, measured, checks, place, &mut report);
                patterns::check(artifact, measured, &functions, checks, place, &mut report);
                shared::check(measured, module.architecture(), place, &mut report);
                project_rules::check(project_rules, artifact, measured, &functions, place, &mut report);
            }
            None => not_measured(entry.name, checks, project_rules, &mut report),
        }
        for code in functions {
            report.within(code.function.name);
            let function = Analysed::of(code);
            if function.graph.is_incomplete() {
                let why = format!("'{}' has too many jumps by table to be followed", function.code.function.name);
                for rule in [&rule::LOCAL_MEMORY_IN_LOOP, &rule::DIVERGENT_BARRIER] {
                    report.not_checked(rule.name, why.as_str());
                }
            }
            scalar_access::check(&function, &mut report);
            local_loops::check(&function, &mut report);
            address_overflow::check(&function, &mut report);
            divergent_barrier::check(&function, &waiting, &mut report);
        }
    }
    Ok(report.finish())
}

/// Rules that ask for measures are not checked where nothing was measured.
fn not_measured(entry: &str, checks: &ArtifactChecks, project_rules: &[ProjectRule], report: &mut Report<'_, '_>) {
    let wanted = [
        (&rule::MAX_REGISTERS, checks.max_registers.is_some()),
        (&rule::MAX_SPILLS, checks.max_spills.is_some()),
        (&rule::MAX_LOCAL_MEMORY, checks.max_local_memory_bytes.is_some()),
        (&rule::FORBIDDEN_INSTRUCTION, !checks.forbidden_instructions.is_empty()),
        (&rule::REQUIRED_INSTRUCTION, !checks.required_instructions.is_empty()),
        (&rule::SHARED_MEMORY_LIMIT, true),
    ];
    let built_in = wanted.into_iter().filter(|(_, wanted)| *wanted).map(|(rule, _)| rule.name);
    for name in built_in.chain(project_rules.iter().map(|rule| rule.name.as_str())) {
        report.not_checked(name, format!("nothing was measured of '{entry}'"));
    }
}

/// Names of rules in a configuration that no rule has, each with the nearest that one has.
pub fn unknown_rule_names(checks: &ArtifactChecks, project_rules: &[ProjectRule]) -> Vec<(String, Option<String>)> {
    let own = project_rules.iter().map(|rule| rule.name.as_str());
    let known: Vec<&str> = rules().iter().map(|rule| rule.name).chain(own).collect();
    let mut seen = HashSet::new();
    let used = checks.allow.iter().chain(checks.severity.keys());
    let unknown = used.filter(|name| !known.contains(&name.as_str()) && seen.insert(name.as_str()));
    unknown.map(|name| (name.clone(), nearest(name, known.iter().copied()).map(str::to_string))).collect()
}
