//! `gpuemu lint`: check compiled kernels against rules.

use std::path::{Path, PathBuf};

use clap::ValueEnum;
use comfy_table::{ContentArrangement, Table, presets};
use gpuemu_config::{ArtifactChecks, ConfigError};
use gpuemu_model::artifact::OccupancyLaunch;
use gpuemu_model::artifact::{ArtifactReport, KernelStatus, Severity};
use gpuemu_model::json::ToJson;
use gpuemu_model::nearest::nearest;
use gpuemu_ptx::lint::{ProjectRule, Rule, invalid_patterns, read_rules, rules, unknown_rule_names};
use gpuemu_wire::protocol::{LintOptions, RuleText};
use serde_json::{Value, json};

use crate::exit_code;
use crate::expected_error::ExpectedError;
use crate::format::{Format, Output};
use crate::options::kernels::{ArchitectureOptions, FileLook, ProjectLook, any, look_at_files, look_at_project};
use crate::report::kernels;
use crate::session::GlobalOptions;

/// Arguments of `gpuemu lint`.
#[derive(Debug, Clone, clap::Args)]
pub struct Arguments {
    /// Only this kernel of the project; may be given several times.
    #[arg(long, value_name = "NAME")]
    kernel: Vec<String>,
    /// Check this PTX file, which needs no project; may be given several times.
    #[arg(long, value_name = "FILE", conflicts_with = "kernel")]
    ptx: Vec<PathBuf>,
    /// Silence this rule; may be given several times.
    #[arg(long, value_name = "RULE")]
    allow: Vec<String>,
    /// Fail for warnings too.
    #[arg(long)]
    deny_warnings: bool,
    /// Fail, with 2, where a rule could not be checked.
    #[arg(long)]
    fail_on_unchecked: bool,
    /// Show findings from this severity on.
    #[arg(long, value_enum, default_value_t = Level::Note)]
    level: Level,
    #[command(flatten)]
    architectures: ArchitectureOptions,
    /// A TOML file with more rules; may be given several times.
    #[arg(long, value_name = "FILE")]
    rules_file: Vec<PathBuf>,
    /// Most registers of a thread.
    #[arg(long, value_name = "N")]
    max_registers: Option<u64>,
    /// Most registers that may be spilled.
    #[arg(long, value_name = "N")]
    max_spills: Option<u64>,
    /// Most bytes of local memory.
    #[arg(long, value_name = "BYTES")]
    max_local_memory_bytes: Option<u64>,
    /// An instruction that must not appear, such as ld.global.cv; may be given several times.
    #[arg(long, value_name = "PATTERN")]
    forbid: Vec<String>,
    /// An instruction that must appear; may be given several times.
    #[arg(long, value_name = "PATTERN")]
    require: Vec<String>,
    /// List the rules.
    #[arg(long, conflicts_with_all = ["explain", "kernel", "ptx", "rules_file"])]
    rules: bool,
    /// Explain a rule.
    #[arg(long, value_name = "RULE", conflicts_with_all = ["kernel", "ptx", "rules_file"])]
    explain: Option<String>,
    #[command(flatten)]
    output: Output,
}

/// A severity, as it is typed.
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
enum Level {
    Note,
    Warning,
    Error,
}

impl From<Level> for Severity {
    fn from(level: Level) -> Self {
        match level {
            Level::Note => Severity::Note,
            Level::Warning => Severity::Warning,
            Level::Error => Severity::Error,
        }
    }
}

pub fn run(arguments: &Arguments, options: &GlobalOptions) -> Result<u8, ExpectedError> {
    if arguments.rules {
        return list_rules(&arguments.output);
    }
    if let Some(name) = &arguments.explain {
        return explain(name, &arguments.output);
    }
    let mut report = if arguments.ptx.is_empty() { project(arguments, options)? } else { files(arguments)? };
    if arguments.deny_warnings {
        for kernel in report.kernels.iter_mut().filter(|kernel| kernel.status == KernelStatus::Passed) {
            if kernel.lint.count(Severity::Warning) > 0 {
                kernel.status = KernelStatus::Failed;
            }
        }
    }
    let code = if any(&report.kernels, KernelStatus::Failed) {
        exit_code::FAILED
    } else if any(&report.kernels, KernelStatus::Error) {
        exit_code::ENVIRONMENT_ERROR
    } else {
        exit_code::PASSED
    };
    let text = match arguments.output.format {
        Format::Json => {
            let least = Severity::from(arguments.level);
            for kernel in &mut report.kernels {
                kernel.lint.findings.retain(|finding| finding.severity >= least);
            }
            format!("{}\n", report.to_pretty_json()?)
        }
        Format::Text => describe(&report, arguments.level.into()),
    };
    arguments.output.write(&text)?;
    Ok(code)
}

fn describe(report: &ArtifactReport, least: Severity) -> String {
    let count = |severity: Severity| report.kernels.iter().map(|kernel| kernel.lint.count(severity) as u64).sum();
    let found = [(Severity::Error, "errors"), (Severity::Warning, "warnings"), (Severity::Note, "notes")]
        .map(|(severity, many)| kernels::counted(count(severity), severity.name(), many));
    let summary = kernels::summary(&report.kernels);
    format!("{}\n{summary}; {}\n", kernels::text(&report.kernels, least), found.join(", "))
}

fn project(arguments: &Arguments, options: &GlobalOptions) -> Result<ArtifactReport, ExpectedError> {
    let rules = arguments.rules_file.iter().map(|file| rule_text(file)).collect::<Result<_, _>>()?;
    let look = ProjectLook {
        kernels: arguments.kernel.clone(),
        architectures: arguments.architectures.architecture.clone(),
        lint: LintOptions {
            allow: arguments.allow.clone(),
            rules,
            max_registers: arguments.max_registers,
            max_spills: arguments.max_spills,
            max_local_memory_bytes: arguments.max_local_memory_bytes,
            forbidden_instructions: arguments.forbid.clone(),
            required_instructions: arguments.require.clone(),
            fail_on_unchecked: arguments.fail_on_unchecked,
        },
        launch: OccupancyLaunch::default(),
    };
    look_at_project(options, look)
}

fn rule_text(file: &Path) -> Result<RuleText, ExpectedError> {
    let unreadable = |error: std::io::Error| {
        let (path, message) = (file.to_path_buf(), error.to_string());
        ExpectedError::plain(ConfigError::Unreadable { path, message }.to_string())
    };
    Ok(RuleText { name: file.display().to_string(), text: std::fs::read_to_string(file).map_err(unreadable)? })
}

fn files(arguments: &Arguments) -> Result<ArtifactReport, ExpectedError> {
    let mut rules: Vec<ProjectRule> = Vec::new();
    for file in &arguments.rules_file {
        rules.extend(read_rules(file).map_err(|error| ExpectedError::plain(error.to_string()))?);
    }
    let checks = ArtifactChecks {
        max_registers: arguments.max_registers,
        max_spills: arguments.max_spills,
        max_local_memory_bytes: arguments.max_local_memory_bytes,
        forbidden_instructions: arguments.forbid.clone(),
        required_instructions: arguments.require.clone(),
        allow: arguments.allow.clone(),
        fail_on_unchecked: arguments.fail_on_unchecked,
        ..ArtifactChecks::default()
    };
    if let Some((_, pattern, error)) = invalid_patterns(&checks).into_iter().next() {
        return Err(ExpectedError::plain(format!("'{pattern}' is no pattern of instructions: {error}")));
    }
    if let Some((name, meant)) = unknown_rule_names(&checks, &rules).into_iter().next() {
        return Err(unknown(&name, meant.as_deref()));
    }
    let architectures = &arguments.architectures.architecture;
    look_at_files(&arguments.ptx, &FileLook { architectures, checks, rules, ..FileLook::default() })
}

fn unknown(name: &str, meant: Option<&str>) -> ExpectedError {
    let list = "`gpuemu lint --rules` lists all of them";
    let hint = meant.map_or(list.to_string(), |meant| format!("did you mean '{meant}'? {list}"));
    ExpectedError::new(format!("there is no rule '{name}'"), hint)
}

fn json_of(rule: &Rule) -> Value {
    json!({
        "name": rule.name,
        "severity": rule.severity,
        "heuristic": rule.heuristic,
        "summary": rule.summary,
        "explanation": rule.explanation,
    })
}

fn list_rules(output: &Output) -> Result<u8, ExpectedError> {
    let text = match output.format {
        Format::Json => {
            let listed: Vec<Value> = rules().iter().map(json_of).collect();
            format!("{}\n", serde_json::to_string_pretty(&listed)?)
        }
        Format::Text => {
            let mut table = Table::new();
            table.load_style(presets::NOTHING).set_content_arrangement(ContentArrangement::Dynamic);
            for rule in rules() {
                let heuristic = if rule.heuristic { ", heuristic" } else { "" };
                table.add_row([rule.name, &format!("{}{heuristic}", rule.severity.name()), rule.summary]);
            }
            let lines: String = table.to_string().lines().map(|line| format!("{}\n", line.trim_end())).collect();
            format!("{lines}\n{} rules; `gpuemu lint --explain RULE` explains one.\n", rules().len())
        }
    };
    output.write(&text)?;
    Ok(exit_code::PASSED)
}

fn explain(name: &str, output: &Output) -> Result<u8, ExpectedError> {
    let Some(rule) = rules().iter().find(|rule| rule.name == name) else {
        return Err(unknown(name, nearest(name, rules().iter().map(|rule| rule.name))));
    };
    let text = match output.format {
        Format::Json => format!("{}\n", serde_json::to_string_pretty(&json_of(rule))?),
        Format::Text => {
            let heuristic = if rule.heuristic { ", a heuristic: what it finds may be right" } else { "" };
            let (severity, explanation) = (rule.severity.name(), rule.explanation.trim());
            format!("{}: {}\nseverity {severity}{heuristic}\n\n{explanation}\n", rule.name, rule.summary)
        }
    };
    output.write(&text)?;
    Ok(exit_code::PASSED)
}
