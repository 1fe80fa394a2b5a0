//! Patterns of instructions: forbidden and required ones.

use std::collections::BTreeMap;
use std::fmt;

use gpuemu_config::ArtifactChecks;
use gpuemu_model::artifact::{EntryMetrics, KernelArtifact};

use super::figures::Figures;
use super::glob;
use super::report::{Place, Report};
use super::rule::{FORBIDDEN_INSTRUCTION, REQUIRED_INSTRUCTION, Rule};
use crate::code::Code;
use crate::tools::measure::INSTRUCTIONS;

/// An opcode and modifiers, such as `ld.global.cv` or, of machine code, `LDG.E.*`.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Pattern {
    components: Vec<String>,
    machine: bool,
}

/// Why a text is no pattern.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum PatternError {
    #[error("is empty, write an opcode such as `ld.global`")]
    Empty,
    /// Nothing stands between two dots, or before the first or after the last.
    #[error("has nothing between two dots, write an opcode and modifiers such as `ld.global`")]
    EmptyComponent,
    /// A character that no instruction has.
    #[error("has the character '{0}', which no instruction has")]
    Character(char),
}

impl Pattern {
    pub fn parse(text: &str) -> Result<Self, PatternError> {
        if text.is_empty() {
            return Err(PatternError::Empty);
        }
        let known = |letter: char| letter.is_ascii_alphanumeric() || matches!(letter, '.' | '*' | ':' | '_');
        if let Some(letter) = text.chars().find(|letter| !known(*letter)) {
            return Err(PatternError::Character(letter));
        }
        let components: Vec<String> = text.split('.').map(str::to_string).collect();
        if components.iter().any(String::is_empty) {
            return Err(PatternError::EmptyComponent);
        }
        let machine = components.first().is_some_and(|first| first.bytes().any(|byte| byte.is_ascii_uppercase()));
        Ok(Self { components, machine })
    }

    /// Whether it is one of machine code, not of PTX.
    pub const fn is_machine(&self) -> bool {
        self.machine
    }

    /// Whether an instruction is meant: its opcode fits the first word, and its modifiers hold the others in order.
    pub fn matches(&self, instruction: &str) -> bool {
        let mut words = instruction.split('.');
        let fits = |component: &str, word: &str| {
            let family = word.split("::").next().unwrap_or_default();
            glob::matches(component, word) || (!component.contains("::") && glob::matches(component, family))
        };
        let mut components = self.components.iter();
        let opcode = components.next().zip(words.next());
        opcode.is_some_and(|(component, word)| fits(component, word))
            && components.all(|component| words.any(|word| fits(component, word)))
    }

    /// How many instructions of an entry are meant.
    pub fn count(&self, artifact: &KernelArtifact, entry: &EntryMetrics) -> Figures {
        let total = |forms: &BTreeMap<String, u64>| {
            forms.iter().filter(|(form, _)| self.matches(form)).map(|(_, count)| *count).sum()
        };
        if self.machine {
            Figures::of_machine(artifact, entry, INSTRUCTIONS, |compiled| compiled.sass.as_ref().map(total))
        } else {
            Figures::one(total(&entry.instructions.forms))
        }
    }
}

impl fmt::Display for Pattern {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter.write_str(&self.components.join("."))
    }
}

/// The patterns of a configuration that are not valid, with the key that holds them.
pub fn invalid_patterns(checks: &ArtifactChecks) -> Vec<(&'static str, String, PatternError)> {
    let lists = [
        ("forbidden_instructions", &checks.forbidden_instructions),
        ("required_instructions", &checks.required_instructions),
    ];
    let texts = lists.into_iter().flat_map(|(key, texts)| texts.iter().map(move |text| (key, text)));
    texts.filter_map(|(key, text)| Some((key, text.clone(), Pattern::parse(text).err()?))).collect()
}

/// Checks `forbidden_instructions` and `required_instructions` of an entry.
pub(super) fn check<'m, 'a>(
    artifact: &KernelArtifact,
    entry: &EntryMetrics,
    functions: &[Code<'m, 'a>],
    checks: &ArtifactChecks,
    place: Place<'m, 'a>,
    report: &mut Report<'_, 'a>,
) {
    for text in &checks.forbidden_instructions {
        for (architecture, count) in counted(text, &FORBIDDEN_INSTRUCTION, (artifact, entry), place, report) {
            if count > 0 {
                let found = Pattern::parse(text).ok().and_then(|pattern| first_match(&pattern, functions));
                let on = if architecture.is_empty() { String::new() } else { format!(" on {architecture}") };
                let times = if count == 1 { "once".to_string() } else { format!("{count} times") };
                let message = format!("forbidden instruction `{text}` is there {times}{on}");
                report.found(&FORBIDDEN_INSTRUCTION, found.unwrap_or(place), message);
            }
        }
    }
    for text in &checks.required_instructions {
        for (architecture, count) in counted(text, &REQUIRED_INSTRUCTION, (artifact, entry), place, report) {
            if count == 0 {
                let on = if architecture.is_empty() { String::new() } else { format!(" on {architecture}") };
                let message = format!("required instruction `{text}` is not there{on}");
                report.found(&REQUIRED_INSTRUCTION, place, message);
            }
        }
    }
}

fn counted(
    text: &str,
    rule: &Rule,
    (artifact, entry): (&KernelArtifact, &EntryMetrics),
    place: Place<'_, '_>,
    report: &mut Report<'_, '_>,
) -> Vec<(String, u64)> {
    match Pattern::parse(text) {
        Ok(pattern) => {
            let figures = pattern.count(artifact, entry);
            for why in figures.missing {
                report.not_checked(rule.name, format!("`{text}` is a pattern of machine code: {why}"));
            }
            figures.known
        }
        Err(error) => {
            report.invalid(rule, place, format!("pattern '{text}' {error}"));
            Vec::new()
        }
    }
}

/// The first instruction that is meant; nothing for machine code, whose instructions have no lines.
pub(super) fn first_match<'m, 'a>(pattern: &Pattern, functions: &[Code<'m, 'a>]) -> Option<Place<'m, 'a>> {
    if pattern.machine {
        return None;
    }
    let mut steps = functions.iter().flat_map(|code| &code.steps);
    steps.find(|step| pattern.matches(step.instruction.opcode)).map(Place::of)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn matches(pattern: &str, instruction: &str) -> bool {
        Pattern::parse(pattern).unwrap().matches(instruction)
    }

    #[test]
    fn modifiers_follow_in_order_with_others_between() {
        assert!(matches("ld.global", "ld.global.v4.b32") && matches("ld.global.b32", "ld.global.v4.b32"));
        assert!(matches("ld", "ld.global.v4.b32") && matches("ld.global", "ld.volatile.global.f32"));
        assert!(!matches("ld.b32.global", "ld.global.v4.b32") && !matches("global", "ld.global.v4.b32"));
        assert!(!matches("ld.glob", "ld.global.f32") && !matches("ld.global.f32", "ld.global"));
        assert!(
            matches("ld.glob*", "ld.global.f32") && matches("*.f64", "add.rn.f64") && matches("LDG.*28", "LDG.E.128")
        );
        assert!(
            matches("red.shared", "red.shared::cta.add.u32") && !matches("red.shared::cluster", "red.shared::cta.u32")
        );
    }

    #[test]
    fn an_opcode_in_upper_case_is_one_of_machine_code() {
        assert!(Pattern::parse("LDG.E").unwrap().is_machine() && !Pattern::parse("ld.L2::128B").unwrap().is_machine());
    }

    #[test]
    fn what_is_no_pattern_is_refused() {
        assert_eq!(Pattern::parse(""), Err(PatternError::Empty));
        assert_eq!(Pattern::parse("ld..global"), Err(PatternError::EmptyComponent));
        assert_eq!(Pattern::parse("ld.global;"), Err(PatternError::Character(';')));
        let checks = ArtifactChecks {
            forbidden_instructions: vec!["ld".into(), ".ld".into()],
            required_instructions: vec![" ".into()],
            ..ArtifactChecks::default()
        };
        let keys: Vec<_> = invalid_patterns(&checks).into_iter().map(|(key, text, _)| (key, text)).collect();
        assert_eq!(keys, [("forbidden_instructions", ".ld".into()), ("required_instructions", " ".into())]);
    }
}
