//! Compiled kernels of a project: measured, checked, kept, and compared with a baseline.

use std::path::Path;

use gpuemu_config::failure::Failure;
use gpuemu_config::{ArtifactChecks, Kernel};
use gpuemu_model::artifact::OccupancyLaunch;
use gpuemu_model::artifact::{
    ARTIFACT_VERSION, ArtifactComparison, ArtifactReport, ArtifactStatus, KernelArtifact, KernelReport, KernelStatus,
    LintResult, ToolSearch,
};
use gpuemu_model::error_code::ErrorCode;
use gpuemu_model::nearest::nearest;
use gpuemu_ptx::diff;
use gpuemu_ptx::inspect::{ConfiguredKernel, Inspector};
use gpuemu_ptx::lint::{ProjectRule, invalid_patterns, parse_rules, read_rules, unknown_rule_names};
use gpuemu_ptx::tools::Toolchain;
use gpuemu_run::project::Project;
use gpuemu_run::result::now;
use gpuemu_store::{ArtifactBaselineRecord, ArtifactRecord};
use gpuemu_wire::protocol::{InspectKernels, LintOptions, Response, RuleText};

use super::Service;
use crate::jobs::Job;

/// How kernels are looked at. Nothing is the way that the project says.
#[derive(Debug, Default)]
pub(super) struct Look<'a> {
    pub kernels: Option<&'a [String]>,
    /// Architectures in place of the configured ones.
    pub architectures: Option<&'a [String]>,
    /// Where tools are looked for.
    pub tools: Option<&'a ToolSearch>,
    /// What kernels are held to beyond their configuration.
    pub lint: LintOptions,
    /// The launch that occupancy is estimated for.
    pub launch: OccupancyLaunch,
}

impl Service {
    /// Measures and checks kernels.
    pub(super) fn inspect_kernels(&self, request: &InspectKernels, job: &Job) -> Result<Response, Failure> {
        let project = self.project(&request.project)?;
        if project.config.kernels.is_empty() {
            let file = &project.config.file;
            let message = match file.as_os_str().is_empty() {
                true => "a project without a configuration has no kernel".to_string(),
                false => format!("{} defines no kernel", file.display()),
            };
            let hint = "add a [[kernels]] entry with a name and a source, or name a file with --ptx";
            return Err(Failure::new(ErrorCode::ConfigError, message).hint(hint));
        }
        let look = Look {
            kernels: request.kernels.as_deref(),
            architectures: request.architectures.as_deref(),
            tools: request.tools.as_ref(),
            lint: request.lint.clone(),
            launch: request.launch,
        };
        let kernels = self.look_at_kernels(&project, &look, job)?;
        let report =
            ArtifactReport { version: ARTIFACT_VERSION, project: project.config.project.name.clone(), kernels };
        Ok(Response::Artifacts { report: Box::new(report) })
    }

    /// Looks at kernels, and keeps what was measured. Wrong names are found before the first one is compiled.
    pub(super) fn look_at_kernels(
        &self,
        project: &Project,
        look: &Look<'_>,
        job: &Job,
    ) -> Result<Vec<KernelReport>, Failure> {
        let chosen = choose(project, look.kernels)?;
        if chosen.is_empty() {
            return Ok(Vec::new());
        }
        let rules = rules_of(project, &look.lint.rules)?;
        let checks: Vec<ArtifactChecks> =
            chosen.iter().map(|kernel| held_to(&kernel.artifact_checks, &look.lint)).collect();
        for (kernel, checks) in chosen.iter().zip(&checks) {
            refuse_wrong_names(project, kernel, checks, &rules)?;
        }
        let python = &project.interpreter.python;
        let own = ToolSearch::of_process(Some(python.clone()));
        let toolchain = Toolchain::find(look.tools.unwrap_or(&own));
        let inspector = Inspector {
            toolchain: &toolchain,
            architectures: look.architectures.unwrap_or(&project.config.lint.architectures),
            rules: &rules,
            launch: look.launch,
        };
        job.plan(chosen.len() as u64);
        let mut reports = Vec::new();
        for (kernel, checks) in chosen.into_iter().zip(&checks) {
            if job.is_cancelled() {
                reports.push(cancelled(kernel));
                continue;
            }
            job.say(&kernel.name);
            let report = inspector.kernel(&ConfiguredKernel {
                name: &kernel.name,
                line: kernel.line,
                root: &project.config.root,
                source: &kernel.source,
                compile: &kernel.compile,
                python,
                memory_bytes: project.interpreter.memory_bytes,
                checks,
            });
            if let Some(artifact) = &report.artifact {
                self.keep_artifact(project, artifact)?;
            }
            job.advance(report.status != KernelStatus::Passed);
            reports.push(report);
        }
        Ok(reports)
    }

    /// Keeps what was measured, unless it is what was measured last.
    fn keep_artifact(&self, project: &Project, artifact: &KernelArtifact) -> Result<(), Failure> {
        let last = self.store.artifacts(&project.key, Some(&artifact.kernel), 1)?;
        if last.first().is_some_and(|last| last.metrics == *artifact) {
            return Ok(());
        }
        let (project, kernel, metrics) = (project.key.clone(), artifact.kernel.clone(), artifact.clone());
        Ok(self.store.put_artifact(&ArtifactRecord { project, kernel, time: now(), metrics })?)
    }

    /// The records of a baseline for kernels, and what speaks against them.
    pub(super) fn kernels_for_baseline(
        &self,
        project: &Project,
        tag: &str,
        time: u64,
        reports: &[KernelReport],
    ) -> Result<(Vec<ArtifactBaselineRecord>, Vec<String>), Failure> {
        let (mut records, mut warnings) = (Vec::new(), Vec::new());
        for report in reports {
            let name = &report.kernel;
            match (&report.artifact, report.status) {
                (Some(artifact), status) => {
                    if status == KernelStatus::Failed {
                        warnings.push(format!("the linter fails kernel '{name}': this is not a good state"));
                    }
                    let (project, kernel, metrics) = (project.key.clone(), name.clone(), artifact.clone());
                    let artifact = ArtifactRecord { project, kernel, time, metrics };
                    records.push(ArtifactBaselineRecord { tag: tag.to_string(), artifact });
                }
                (None, _) => {
                    let why = report.message.clone().unwrap_or_default();
                    warnings.push(format!("kernel '{name}' is not kept: {why}"));
                }
            }
        }
        Ok((records, warnings))
    }

    pub(super) fn stored_kernels(&self, project: &Project, tag: &str) -> Result<Vec<Kept>, Failure> {
        let records = self.store.artifact_baseline(&project.key, tag)?;
        let kept = |record: ArtifactBaselineRecord| Kept {
            artifact: Ok(record.artifact.metrics),
            kernel: record.artifact.kernel,
        };
        Ok(records.into_iter().map(kept).collect())
    }
}

/// What a baseline has of a kernel; the words of an error where it cannot be read.
pub(super) struct Kept {
    pub kernel: String,
    pub artifact: Result<KernelArtifact, String>,
}

/// What the report of an earlier run has of kernels.
pub(super) fn reported_kernels(reports: &[KernelReport]) -> Vec<Kept> {
    let kept = |report: &KernelReport| {
        let artifact = report.artifact.clone().ok_or_else(|| report.message.clone().unwrap_or_default());
        Kept { kernel: report.kernel.clone(), artifact }
    };
    reports.iter().map(kept).collect()
}

/// Compares kernels with what a baseline kept of them.
pub(super) fn compare_kernels(before: &[Kept], now: &[KernelReport], threshold: f64) -> Vec<ArtifactComparison> {
    let mut comparisons = Vec::new();
    for kept in before {
        let incomparable = |message: &str| diff::bare(&kept.kernel, "", ArtifactStatus::NotComparable, message);
        let report = now.iter().find(|report| report.kernel == kept.kernel);
        match (&kept.artifact, report) {
            (_, None) => {
                let message = "the project no longer has this kernel";
                comparisons.push(diff::bare(&kept.kernel, "", ArtifactStatus::Missing, message));
            }
            (Err(error), Some(_)) => {
                comparisons.push(incomparable(&format!("the baseline's measures cannot be read: {error}")));
            }
            (Ok(_), Some(KernelReport { artifact: None, message, .. })) => {
                comparisons.push(incomparable(message.as_deref().unwrap_or_default()));
            }
            (Ok(old), Some(KernelReport { artifact: Some(new), .. })) => {
                comparisons.extend(diff::compare(old, new, threshold));
            }
        }
    }
    for report in now.iter().filter(|report| !before.iter().any(|kept| kept.kernel == report.kernel)) {
        comparisons.push(diff::bare(&report.kernel, "", ArtifactStatus::New, "the baseline has no such kernel"));
    }
    comparisons
}

fn choose<'a>(project: &'a Project, names: Option<&[String]>) -> Result<Vec<&'a Kernel>, Failure> {
    let kernels = &project.config.kernels;
    let Some(names) = names else { return Ok(kernels.iter().collect()) };
    for name in names {
        if !kernels.iter().any(|kernel| kernel.name == *name) {
            let known: Vec<&str> = kernels.iter().map(|kernel| kernel.name.as_str()).collect();
            let hint = match nearest(name, known.iter().copied()) {
                Some(meant) => format!("did you mean '{meant}'?"),
                None => format!("there are: {}", known.join(", ")),
            };
            let message = format!("there is no kernel '{name}' in {}", project.config.file.display());
            return Err(Failure::new(ErrorCode::KernelNotFound, message).hint(hint));
        }
    }
    Ok(kernels.iter().filter(|kernel| names.contains(&kernel.name)).collect())
}

fn rules_of(project: &Project, more: &[RuleText]) -> Result<Vec<ProjectRule>, Failure> {
    let mut files = Vec::new();
    for configured in &project.config.lint.rule_files {
        let file = project.config.root.join(&configured.value);
        files.push((file.display().to_string(), read_rules(&file)?));
    }
    for RuleText { name, text } in more {
        files.push((name.clone(), parse_rules(Path::new(name), text)?));
    }
    let mut rules: Vec<ProjectRule> = Vec::new();
    for (file, found) in files {
        for rule in found {
            if rules.iter().any(|known| known.name == rule.name) {
                let message = format!("{file} has a second rule '{}'", rule.name);
                return Err(Failure::new(ErrorCode::ConfigError, message).hint("give each rule a name of its own"));
            }
            rules.push(rule);
        }
    }
    Ok(rules)
}

/// What a kernel is held to: its configuration, and what a request adds.
fn held_to(configured: &ArtifactChecks, options: &LintOptions) -> ArtifactChecks {
    let mut checks = configured.clone();
    checks.max_registers = options.max_registers.or(checks.max_registers);
    checks.max_spills = options.max_spills.or(checks.max_spills);
    checks.max_local_memory_bytes = options.max_local_memory_bytes.or(checks.max_local_memory_bytes);
    checks.forbidden_instructions.extend(options.forbidden_instructions.iter().cloned());
    checks.required_instructions.extend(options.required_instructions.iter().cloned());
    checks.allow.extend(options.allow.iter().cloned());
    checks.fail_on_unchecked |= options.fail_on_unchecked;
    checks
}

/// Names of rules that there are not, and patterns that match nothing whatever, are not left unsaid.
fn refuse_wrong_names(
    project: &Project,
    kernel: &Kernel,
    checks: &ArtifactChecks,
    rules: &[ProjectRule],
) -> Result<(), Failure> {
    if let Some((key, pattern, error)) = invalid_patterns(checks).into_iter().next() {
        let (name, file) = (&kernel.name, project.config.file.display());
        let message = format!("kernel '{name}' of {file} has '{pattern}' in {key}: {error}");
        return Err(Failure::new(ErrorCode::ConfigError, message));
    }
    let unknown = unknown_rule_names(checks, rules);
    let Some((name, meant)) = unknown.into_iter().next() else { return Ok(()) };
    let message = format!(
        "kernel '{}' of {} names a rule '{name}' that there is not",
        kernel.name,
        project.config.file.display()
    );
    let hint = match meant {
        Some(meant) => format!("did you mean '{meant}'? `gpuemu lint --rules` lists all of them"),
        None => "`gpuemu lint --rules` lists all of them".to_string(),
    };
    Err(Failure::new(ErrorCode::ConfigError, message).hint(hint))
}

fn cancelled(kernel: &Kernel) -> KernelReport {
    KernelReport {
        kernel: kernel.name.clone(),
        config_line: Some(kernel.line),
        status: KernelStatus::Error,
        artifact: None,
        lint: LintResult::default(),
        message: Some("cancelled before it was looked at".to_string()),
    }
}
