//! Everything that is wrong or worth a look in a run, as one list: what SARIF, Markdown and annotations are written from.

use gpuemu_model::artifact::{ArtifactStatus, KernelReport, KernelStatus, Severity};
use gpuemu_model::finding::{Check, Finding, KernelPlace};
use gpuemu_model::report::{
    ComparisonReport, ComparisonStatus, Conclusion, OpReport, OpStatus, RunReport, ValidationResult,
};
use gpuemu_model::seed_text;
use gpuemu_tensor::DType;
use serde::Serialize;

use super::places::{Place, Roots};
use super::ranking;
use super::rules::IssueRule;
use super::style::plain;
use super::text::{case_line, number};
use super::{kernel_comparison, kernels};

/// How an issue weighs in the run's conclusion.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub enum Weight {
    /// A validation failed or regressed.
    Failed,
    /// Something could not be judged.
    Error,
    /// Something was not run to its end.
    Unfinished,
    Remark,
}

/// What an issue is about.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord)]
pub enum Subject {
    /// An op, by name.
    Op(String),
    /// A compiled kernel, by name.
    Kernel(String),
    Run,
}

impl Subject {
    /// Its name; the run has none.
    pub fn name(&self) -> &str {
        match self {
            Subject::Op(name) | Subject::Kernel(name) => name,
            Subject::Run => "",
        }
    }
}

/// What programs want to know of a failed check, beside its words.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct FailedCheck {
    pub check: Check,
    /// What kind of bug it looks like.
    pub bug_class: String,
    pub dtype: DType,
    /// Seed of the case that shows it best.
    #[serde(with = "seed_text")]
    pub seed: u64,
    /// Cases that failed by it, of those that the report lists.
    pub listed_cases: u64,
    /// Cases of the dtype that failed.
    pub failed_cases: u64,
    /// Cases of the dtype that ran.
    pub cases: u64,
    /// Largest share of what is allowed, over the listed cases.
    #[serde(with = "gpuemu_model::number_text")]
    pub tolerance_share: f64,
}

/// One thing that is wrong or worth a look.
#[derive(Debug, Clone, PartialEq)]
pub struct Issue {
    /// What it is reported under.
    pub rule: IssueRule,
    /// How it is shown.
    pub severity: Severity,
    pub weight: Weight,
    /// What it is about.
    pub subject: Subject,
    /// In one line, without the subject.
    pub summary: String,
    pub details: Vec<String>,
    /// The command that shows it again.
    pub replay: Option<String>,
    /// Where it is, the most telling place first; never empty.
    pub places: Vec<Place>,
    /// Other places that take part.
    pub related: Vec<Place>,
    /// Why it is accepted, where it is expected.
    pub accepted: Option<String>,
    /// Of a failed check, what programs want to know.
    pub failed: Option<FailedCheck>,
}

impl Issue {
    /// One line with the subject.
    pub fn title(&self) -> String {
        match &self.subject {
            Subject::Op(name) => format!("{name}: {}", self.summary),
            Subject::Kernel(name) => format!("kernel {name}: {}", self.summary),
            Subject::Run => self.summary.clone(),
        }
    }
}

/// Everything that is wrong or worth a look, the worst first.
pub fn issues(report: &RunReport) -> Vec<Issue> {
    let roots = Roots::of(report);
    let mut issues = Vec::new();
    for op in &report.ops {
        add_op(&mut issues, op, &roots);
    }
    for kernel in &report.kernels {
        add_kernel(&mut issues, kernel, &roots);
    }
    if let Some(comparison) = &report.comparison {
        add_comparison(&mut issues, comparison, report, &roots);
    }
    add_run(&mut issues, report, &roots);
    ranking::sort(&mut issues);
    issues
}

fn about_op(op: &OpReport, roots: &Roots, rule: IssueRule, weight: Weight, summary: String) -> Issue {
    Issue {
        rule,
        severity: if weight == Weight::Remark { Severity::Warning } else { Severity::Error },
        weight,
        subject: Subject::Op(op.op.clone()),
        summary,
        details: Vec::new(),
        replay: None,
        places: roots.op(op, &[]),
        related: Vec::new(),
        accepted: None,
        failed: None,
    }
}

fn add_op(issues: &mut Vec<Issue>, op: &OpReport, roots: &Roots) {
    let (before, message) = (issues.len(), op.message.clone().unwrap_or_default());
    let (first, more) = first_line(&message);
    add_failures(issues, op, roots);
    match op.status {
        OpStatus::Error => {
            let summary = format!("could not be judged: {first}");
            issues.push(Issue { details: more, ..about_op(op, roots, IssueRule::error(), Weight::Error, summary) });
        }
        OpStatus::Unfinished => {
            let summary = format!("unfinished: {first}");
            issues.push(Issue {
                details: more,
                ..about_op(op, roots, IssueRule::unfinished(), Weight::Unfinished, summary)
            });
        }
        OpStatus::Failed if issues.len() == before => {
            let summary = if first.is_empty() { "failed".to_string() } else { first };
            issues.push(Issue { details: more, ..about_op(op, roots, IssueRule::failed(), Weight::Failed, summary) });
        }
        // A run that broke off after a failure was not run to its end all the same.
        OpStatus::Failed if !message.is_empty() => {
            issues.push(about_op(op, roots, IssueRule::unfinished(), Weight::Unfinished, first));
        }
        _ => {}
    }
    if op.errors > 0 && op.status != OpStatus::Error {
        let summary = format!("{} of {} cases have no verdict: the reference failed", op.errors, op.cases);
        issues.push(about_op(op, roots, IssueRule::error(), Weight::Error, summary));
    }
    for warning in &op.warnings {
        issues.push(about_op(op, roots, IssueRule::remark(), Weight::Remark, warning.clone()));
    }
}

/// The failures of one check, in one dtype, at one place in the code.
struct Group<'a> {
    check: Check,
    dtype: DType,
    places: &'a [KernelPlace],
    found: Vec<(&'a ValidationResult, &'a Finding)>,
}

/// The line that a finding is at: that of the source, of which several instructions may be, where it is known.
fn line_of(places: &[KernelPlace]) -> Option<(&str, u64)> {
    let KernelPlace { ptx, code } = places.first()?;
    let written = code.file.as_deref().zip(code.line);
    Some(written.unwrap_or((ptx.as_deref().unwrap_or_default(), code.ptx_line as u64)))
}

fn add_failures(issues: &mut Vec<Issue>, op: &OpReport, roots: &Roots) {
    let mut groups: Vec<Group<'_>> = Vec::new();
    for result in &op.failures {
        for finding in &result.failures {
            let line = line_of(&finding.places);
            let known = groups.iter_mut().find(|group| {
                group.check == finding.check && group.dtype == result.dtype && line_of(group.places) == line
            });
            match known {
                Some(group) => group.found.push((result, finding)),
                None => groups.push(Group {
                    check: finding.check,
                    dtype: result.dtype,
                    places: &finding.places,
                    found: vec![(result, finding)],
                }),
            }
        }
    }
    issues.extend(groups.iter().filter_map(|group| failed_check(op, group, roots)));
    let listed = |dtype: DType| groups.iter().any(|group| group.dtype == dtype);
    for counts in op.dtypes.iter().filter(|counts| counts.failed > 0 && !listed(counts.dtype)) {
        let summary = format!("{} of {} cases failed in {}", counts.failed, counts.cases, counts.dtype);
        let replay = Some(format!("gpuemu failures --op {}", op.op));
        let issue = about_op(op, roots, IssueRule::unlisted(), Weight::Failed, summary);
        issues.push(accepted_if_expected(Issue { replay, ..issue }, op));
    }
}

fn failed_check(op: &OpReport, group: &Group<'_>, roots: &Roots) -> Option<Issue> {
    // The case that shows it best is the one that is furthest off.
    let share = |result: &ValidationResult| {
        if result.largest.tolerance_share.is_nan() { f64::INFINITY } else { result.largest.tolerance_share }
    };
    let worst = |best: (&'_ ValidationResult, _), next: (&'_ ValidationResult, _)| share(next.0) > share(best.0);
    let mut found = group.found.iter().copied();
    let mut shown = found.next()?;
    for next in found {
        if worst(shown, next) {
            shown = next;
        }
    }
    let (result, finding) = shown;
    let counts = op.dtypes.iter().find(|counts| counts.dtype == group.dtype);
    let (failed_cases, cases) = counts.map_or((0, 0), |counts| (counts.failed, counts.cases));
    let (first, more) = first_line(&finding.explanation);
    let mut details = more;
    if let Some(worst) = &finding.worst {
        let (actual, expected) = (number(worst.actual), number(worst.expected));
        let (error, allowed) = (number(worst.error), number(worst.allowed));
        let index = &worst.index;
        details.push(format!("worst at {index:?}: {actual}, expected {expected} (error {error}, allowed {allowed})"));
    }
    details.push(case_line(result));
    details.push(format!("{failed_cases} of {cases} cases in {} failed", group.dtype));
    if op.regressed {
        details.push("it passed in the run before".to_string());
    }
    let summary = format!("{} in {}: {first} [{}]", group.check, group.dtype, finding.bug_class);
    let issue = Issue {
        details,
        replay: Some(result.replay.clone()),
        places: roots.op(op, &finding.places),
        related: roots.others(op, &finding.places),
        failed: Some(FailedCheck {
            check: group.check,
            bug_class: finding.bug_class.to_string(),
            dtype: group.dtype,
            seed: result.seed,
            listed_cases: listed_cases(group),
            failed_cases,
            cases,
            tolerance_share: share(result),
        }),
        ..about_op(op, roots, IssueRule::check(group.check), Weight::Failed, summary)
    };
    Some(accepted_if_expected(issue, op))
}

/// Cases of a group. One case may show the same thing at several instructions of a line; its findings come one after
/// the other.
fn listed_cases(group: &Group<'_>) -> u64 {
    let cases = group.found.chunk_by(|(left, _), (right, _)| std::ptr::eq(*left, *right));
    cases.count() as u64
}

/// A failure that the project expects fails nothing.
fn accepted_if_expected(issue: Issue, op: &OpReport) -> Issue {
    if op.status != OpStatus::ExpectedFailure {
        return issue;
    }
    let accepted = Some(op.message.clone().unwrap_or_else(|| "expected".to_string()));
    Issue { accepted, weight: Weight::Remark, severity: Severity::Note, ..issue }
}

fn about_kernel(kernel: &KernelReport, roots: &Roots, rule: IssueRule, summary: String) -> Issue {
    Issue {
        rule,
        severity: Severity::Error,
        weight: Weight::Failed,
        subject: Subject::Kernel(kernel.kernel.clone()),
        summary,
        details: Vec::new(),
        replay: kernel.config_line.map(|_| format!("gpuemu lint --kernel {}", kernel.kernel)),
        places: vec![roots.kernel(kernel)],
        related: Vec::new(),
        accepted: None,
        failed: None,
    }
}

fn add_kernel(issues: &mut Vec<Issue>, kernel: &KernelReport, roots: &Roots) {
    let message = kernel.message.clone().unwrap_or_default();
    let (first, more) = first_line(&message);
    for finding in &kernel.lint.findings {
        let (first, more) = first_line(&finding.message);
        let heuristic = if finding.heuristic { " (a heuristic)" } else { "" };
        let summary = format!("{}: {first}{heuristic}", finding.entry);
        let issue = about_kernel(kernel, roots, IssueRule::lint(&finding.rule), summary);
        let fails = finding.severity == Severity::Error;
        issues.push(Issue {
            severity: finding.severity,
            weight: if fails { Weight::Failed } else { Weight::Remark },
            details: more,
            places: roots.lint(kernel, finding),
            ..issue
        });
    }
    match kernel.status {
        KernelStatus::Error => {
            let summary = format!("could not be judged: {first}");
            let issue = about_kernel(kernel, roots, IssueRule::kernel_error(), summary);
            issues.push(Issue { weight: Weight::Error, details: more, ..issue });
        }
        KernelStatus::Failed if kernel.lint.count(Severity::Error) == 0 => {
            let summary = if first.is_empty() { "failed".to_string() } else { first };
            issues.push(Issue { details: more, ..about_kernel(kernel, roots, IssueRule::failed(), summary) });
        }
        KernelStatus::Failed | KernelStatus::Passed => {}
    }
}

fn add_comparison(issues: &mut Vec<Issue>, comparison: &ComparisonReport, report: &RunReport, roots: &Roots) {
    let baseline = &comparison.baseline;
    let regressed =
        if comparison.fails { (Severity::Error, Weight::Failed) } else { (Severity::Warning, Weight::Remark) };
    let not_comparable = (Severity::Error, Weight::Error);
    let diff = Some(format!("gpuemu diff --baseline {baseline}"));
    let issue = |subject: Subject, rule: IssueRule, (severity, weight): (Severity, Weight), summary: String| Issue {
        rule,
        severity,
        weight,
        summary,
        details: Vec::new(),
        replay: diff.clone(),
        places: vec![place_of(&subject, report, roots)],
        related: Vec::new(),
        accepted: None,
        failed: None,
        subject,
    };
    for op in &comparison.ops {
        let subject = Subject::Op(op.op.clone());
        let message = op.message.clone().unwrap_or_default();
        match op.status {
            ComparisonStatus::Regressed => {
                let growth = format!("largest error {} -> {}", number(op.before_abs), number(op.now_abs));
                let failing =
                    if op.newly_failing > 0 { format!(", {} newly failing", op.newly_failing) } else { String::new() };
                let summary = format!("regressed against baseline {baseline}: {growth}{failing}");
                let mut found = issue(subject, IssueRule::regression(), regressed, summary);
                found.details.extend(op.message.clone());
                found.details.extend(op.worst.as_ref().map(case_line));
                found.replay = op.worst.as_ref().map(|worst| worst.replay.clone()).or(found.replay);
                issues.push(found);
            }
            ComparisonStatus::NotComparable => {
                let summary = format!("could not be compared with baseline {baseline}: {message}");
                issues.push(issue(subject, IssueRule::not_comparable(), not_comparable, summary));
            }
            ComparisonStatus::Same | ComparisonStatus::Improved => {}
        }
    }
    for entry in &comparison.artifacts {
        let described = plain(&kernel_comparison::text(std::slice::from_ref(entry)));
        let details: Vec<String> = described.lines().skip(1).map(|line| line.trim().to_string()).collect();
        let subject = Subject::Kernel(entry.kernel.clone());
        let name = kernel_comparison::name(entry);
        let found = match entry.status {
            ArtifactStatus::Regressed => {
                let summary = format!("{name} is worse than in baseline {baseline}");
                issue(subject, IssueRule::regression(), regressed, summary)
            }
            ArtifactStatus::Missing | ArtifactStatus::NotComparable => {
                let summary = format!("{name} could not be compared with baseline {baseline}");
                issue(subject, IssueRule::not_comparable(), not_comparable, summary)
            }
            ArtifactStatus::Same | ArtifactStatus::Changed | ArtifactStatus::Improved | ArtifactStatus::New => continue,
        };
        issues.push(Issue { details, ..found });
    }
}

/// Where a subject stands in the configuration.
fn place_of(subject: &Subject, report: &RunReport, roots: &Roots) -> Place {
    match subject {
        Subject::Op(name) => {
            let line = report.ops.iter().find(|op| op.op == *name).map_or(0, |op| op.line);
            roots.configuration(line, &format!("op '{name}'"))
        }
        Subject::Kernel(name) => {
            let kernel = report.kernels.iter().find(|kernel| kernel.kernel == *name);
            kernel.map_or_else(|| roots.configuration(0, &format!("kernel '{name}'")), |kernel| roots.kernel(kernel))
        }
        Subject::Run => roots.configuration(0, "the project"),
    }
}

fn add_run(issues: &mut Vec<Issue>, report: &RunReport, roots: &Roots) {
    let about = |rule: IssueRule, severity: Severity, weight: Weight, summary: &str| Issue {
        rule,
        severity,
        weight,
        subject: Subject::Run,
        summary: summary.to_string(),
        details: Vec::new(),
        replay: None,
        places: vec![roots.configuration(0, "the project")],
        related: Vec::new(),
        accepted: None,
        failed: None,
    };
    for reservation in report.evidence.iter().flat_map(|evidence| &evidence.reservations) {
        issues.push(about(IssueRule::reservation(), Severity::Error, Weight::Error, reservation));
    }
    for warning in &report.warnings {
        issues.push(about(IssueRule::remark(), Severity::Warning, Weight::Remark, warning));
    }
    // Whatever the run concludes, something in the list says so.
    let has = |weights: &[Weight]| issues.iter().any(|issue| weights.contains(&issue.weight));
    match report.conclusion() {
        Conclusion::Failed if !has(&[Weight::Failed, Weight::Unfinished]) => {
            issues.push(about(IssueRule::failed(), Severity::Error, Weight::Failed, "the run failed"));
        }
        Conclusion::Error if !has(&[Weight::Error]) => {
            let words = if report.cases() == 0 { "no case was run" } else { "the run could not be judged" };
            issues.push(about(IssueRule::error(), Severity::Error, Weight::Error, words));
        }
        _ => {}
    }
}

/// Checks that could not be made, each once: what a pass does not say.
pub fn not_checked(report: &RunReport) -> Vec<String> {
    let mut all: Vec<String> = Vec::new();
    for what in report.ops.iter().flat_map(|op| &op.not_checked) {
        if !all.contains(what) {
            all.push(what.clone());
        }
    }
    // What is missing is missing for most kernels alike.
    let mut reasons: Vec<(String, Vec<&str>)> = Vec::new();
    for kernel in &report.kernels {
        for (why, rules) in kernels::by_reason(&kernel.lint.not_checked) {
            let reason = format!("{}: {why}", rules.join(", "));
            match reasons.iter_mut().find(|(known, _)| *known == reason) {
                Some((_, names)) => names.push(&kernel.kernel),
                None => reasons.push((reason, vec![&kernel.kernel])),
            }
        }
    }
    all.extend(reasons.into_iter().map(|(reason, names)| match names.as_slice() {
        [only] => format!("lint of kernel '{only}': {reason}"),
        many => format!("lint of {} kernels: {reason}", many.len()),
    }));
    all
}

/// The first line of a text, and the others.
fn first_line(text: &str) -> (String, Vec<String>) {
    let mut lines = text.trim_end().lines().map(|line| line.trim_end().to_string());
    (lines.next().unwrap_or_default(), lines.collect())
}
