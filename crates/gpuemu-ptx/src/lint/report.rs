//! Where findings are gathered, graded and put in order.

use std::collections::{BTreeMap, BTreeSet, HashMap, HashSet};

use gpuemu_config::ArtifactChecks;
use gpuemu_model::artifact::{LintFinding, LintResult, NotChecked, Origin, Severity};

use super::rule::Rule;
use crate::code::Step;
use crate::source::{Position, Source};
use crate::syntax::{Item, Location, Module, Span};

/// Where something was found.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Place<'m, 'a> {
    pub span: Span,
    pub location: Option<&'m Location<'a>>,
}

impl<'m, 'a> Place<'m, 'a> {
    /// The place of a step.
    pub fn of(step: &Step<'m, 'a>) -> Self {
        Self { span: step.span(), location: step.location }
    }
}

impl From<Span> for Place<'_, '_> {
    fn from(span: Span) -> Self {
        Self { span, location: None }
    }
}

/// Who found something: the name, default severity and kind of a rule.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Finder<'r> {
    pub name: &'r str,
    pub severity: Severity,
    pub heuristic: bool,
}

impl From<&Rule> for Finder<'static> {
    fn from(rule: &Rule) -> Self {
        Self { name: rule.name, severity: rule.severity, heuristic: rule.heuristic }
    }
}

/// What was found so far in a module.
pub(crate) struct Report<'s, 'a> {
    checks: &'s ArtifactChecks,
    allowed: HashSet<&'s str>,
    text: &'s str,
    line_starts: Vec<u32>,
    files: HashMap<u64, &'a str>,
    entry: &'a str,
    /// The function that the entry calls, where not its own code is checked.
    function: Option<&'a str>,
    entries: usize,
    findings: Vec<(usize, LintFinding)>,
    silenced: BTreeMap<String, u64>,
    not_checked: BTreeSet<NotChecked>,
}

impl<'s, 'a> Report<'s, 'a> {
    /// Nothing was found at first.
    pub fn new(source: &'s Source, module: &Module<'a>, checks: &'s ArtifactChecks) -> Self {
        let newlines = source.text.bytes().enumerate().filter(|(_, byte)| *byte == b'\n');
        let mut files = HashMap::new();
        for item in &module.items {
            if let Item::File(file) = item {
                files.entry(file.number).or_insert(file.name);
            }
        }
        Self {
            checks,
            allowed: checks.allow.iter().map(String::as_str).collect(),
            text: &source.text,
            line_starts: std::iter::once(0).chain(newlines.map(|(place, _)| place as u32 + 1)).collect(),
            files,
            entry: "",
            function: None,
            entries: 0,
            findings: Vec::new(),
            silenced: BTreeMap::new(),
            not_checked: BTreeSet::new(),
        }
    }

    /// What is found from now on is of this entry.
    pub fn begin(&mut self, entry: &'a str) {
        self.entry = entry;
        self.function = None;
        self.entries += 1;
    }

    /// What is found from now on is in the code of this function, which the entry calls or is.
    pub fn within(&mut self, function: &'a str) {
        self.function = Some(function).filter(|function| *function != self.entry);
    }

    /// Something was found, as grave as its rule says.
    pub fn found<'r>(&mut self, rule: impl Into<Finder<'r>>, place: Place<'_, '_>, message: String) {
        let rule = rule.into();
        self.graded(rule, rule.severity, place, message);
    }

    /// Something was found that may be less grave than its rule says.
    pub fn graded<'r>(
        &mut self,
        rule: impl Into<Finder<'r>>,
        severity: Severity,
        place: Place<'_, '_>,
        message: String,
    ) {
        let rule = rule.into();
        let severity = match self.checks.severity.get(rule.name) {
            // A finding that was graded down is never raised by what its rule is raised to.
            Some(chosen) if severity < rule.severity => severity.min(*chosen),
            Some(chosen) => *chosen,
            None => severity,
        };
        self.add(rule, severity, place, message);
    }

    /// The rule itself is not valid: an error, whatever its severity.
    pub fn invalid<'r>(&mut self, rule: impl Into<Finder<'r>>, place: Place<'_, '_>, message: String) {
        self.add(rule.into(), Severity::Error, place, message);
    }

    fn add(&mut self, rule: Finder<'_>, severity: Severity, place: Place<'_, '_>, message: String) {
        if self.allowed.contains(rule.name) {
            *self.silenced.entry(rule.name.to_string()).or_default() += 1;
            return;
        }
        let position = self.position(place.span);
        let message = match self.function {
            Some(function) => format!("{message} (in function '{function}')"),
            None => message,
        };
        let finding = LintFinding {
            rule: rule.name.to_string(),
            severity,
            heuristic: rule.heuristic,
            entry: self.entry.to_string(),
            line: Some(position.line),
            column: Some(position.column),
            origin: self.origin(place.location),
            message,
        };
        self.findings.push((self.entries, finding));
    }

    /// A rule could not be checked.
    pub fn not_checked(&mut self, rule: &str, why: impl Into<String>) {
        if !self.allowed.contains(rule) {
            self.not_checked.insert(NotChecked { rule: rule.to_string(), why: why.into() });
        }
    }

    /// The line of a span's first character, from 1.
    pub fn line(&self, span: Span) -> usize {
        self.line_starts.partition_point(|start| *start <= span.start)
    }

    fn position(&self, span: Span) -> Position {
        let line = self.line(span);
        let start = line.checked_sub(1).and_then(|place| self.line_starts.get(place)).copied().unwrap_or_default();
        let before = self.text.get(start as usize..span.start as usize).unwrap_or_default();
        Position { line, column: before.chars().count() + 1 }
    }

    /// The line of the kernel's own source; what was inlined is shown where the kernel called it.
    pub fn origin(&self, location: Option<&Location<'_>>) -> Option<Origin> {
        let location = location?;
        let (file, line, column) = location.inlined_at.unwrap_or((location.file, location.line, location.column));
        let file = self.files.get(&file).copied().filter(|_| line > 0)?;
        Some(Origin { file: file.to_string(), line, column })
    }

    /// A place in words: its line in the PTX and, where known, that of the source.
    pub fn words(&self, place: Place<'_, '_>) -> String {
        let line = self.line(place.span);
        match self.origin(place.location) {
            Some(origin) => format!("line {line} ({}:{})", origin.file, origin.line),
            None => format!("line {line}"),
        }
    }

    /// All that was found, in the order of entries and lines.
    pub fn finish(mut self) -> LintResult {
        self.findings.sort_by(|(left_entry, left), (right_entry, right)| {
            (left_entry, left.line, left.column).cmp(&(right_entry, right.line, right.column))
        });
        LintResult {
            findings: self.findings.into_iter().map(|(_, finding)| finding).collect(),
            silenced: self.silenced,
            not_checked: self.not_checked.into_iter().collect(),
        }
    }
}
