//! Which ops changed since a git revision: their sources, what these import, their references, their
//! part of the configuration. Where it cannot be told, an op counts as changed. What compiled kernels are made of
//! cannot be told from their sources: any change that could concern one concerns all.

use std::collections::BTreeSet;
use std::path::{Path, PathBuf};
use std::process::Command;

use gpuemu_model::artifact::KernelReport;
use gpuemu_run::sources::closure;
use gpuemu_wire::client::unexpected;
use gpuemu_wire::protocol::{OpSummary, ProjectOnly, Request, Response};

use crate::expected_error::ExpectedError;
use crate::options::kernels::{ProjectLook, look_at_kernels};
use crate::session::{Session, note};

/// What is to be run.
pub struct Chosen {
    /// The ops; all if there is none in the list, none at all without a list.
    pub ops: Option<Vec<String>>,
    /// Whether compiled kernels are looked at; nothing where that is as usual.
    pub kernels: Option<bool>,
}

impl Chosen {
    /// The kernels of a run without ops.
    pub fn kernel_reports(&self, session: &mut Session) -> Result<Vec<KernelReport>, ExpectedError> {
        match self.kernels {
            Some(true) => Ok(look_at_kernels(session, ProjectLook::default())?.kernels),
            _ => Ok(Vec::new()),
        }
    }
}

/// The ops to run: those asked for, and of them only those that changed since a revision, if one is given.
/// Kernels are looked at where no op is asked for and something changed that they could be made of.
pub fn chosen(session: &mut Session, asked: &[String], revision: Option<&String>) -> Result<Chosen, ExpectedError> {
    let Some(revision) = revision else { return Ok(Chosen { ops: Some(asked.to_vec()), kernels: None }) };
    let root = std::fs::canonicalize(&session.config.root)?;
    let files = changed_files(&root, revision)?;
    let ops = ops(session, revision, asked, &root, &files)?;
    let has_kernels = asked.is_empty() && !session.config.kernels.is_empty();
    // Rules and configuration are TOML.
    let is_toml = |file: &PathBuf| file.extension().is_some_and(|extension| extension == "toml");
    let kernels = has_kernels && files.iter().any(|file| is_source(file) || is_toml(file));
    if ops.is_empty() {
        note(&format!("no op changed since {revision}"));
    }
    Ok(Chosen { ops: (!ops.is_empty()).then_some(ops), kernels: Some(kernels) })
}

/// The ops, among those asked for if any are, that changed since a revision.
fn ops(
    session: &mut Session,
    revision: &str,
    asked: &[String],
    root: &Path,
    files: &BTreeSet<PathBuf>,
) -> Result<Vec<String>, ExpectedError> {
    let project = session.project();
    let summaries = match session.call(&Request::ListOps(ProjectOnly { project }))? {
        Response::Ops { ops } => ops,
        other => return Err(unexpected(&other).into()),
    };
    for name in asked {
        if !summaries.iter().any(|op| op.name == *name) {
            let known: Vec<&str> = summaries.iter().map(|op| op.name.as_str()).collect();
            return Err(ExpectedError::new(
                format!("there is no op '{name}'"),
                format!("there are: {}", known.join(", ")),
            ));
        }
    }
    let config = std::fs::canonicalize(&session.config.file)?;
    let config_name = config.strip_prefix(root).unwrap_or(&config).to_path_buf();
    let before = if files.contains(&config_name) { Some(config_at(root, revision, &config_name)) } else { None };
    let now = std::fs::read_to_string(&config)?;
    let own: BTreeSet<PathBuf> = summaries.iter().flat_map(|op| op.files.iter().cloned()).collect();
    let shared = files.iter().any(|file| is_source(file) && !own.contains(file) && !imported_by_one(root, &own, file));
    let mut chosen = Vec::new();
    for op in &summaries {
        let sources = closure(root, &op.files);
        let touched = op.files.is_empty() || files.iter().any(|file| sources.contains(file));
        let reconfigured = before.as_ref().is_some_and(|before| differs(before.as_deref(), &now, op));
        if (asked.is_empty() || asked.contains(&op.name)) && (touched || reconfigured || shared) {
            chosen.push(op.name.clone());
        }
    }
    Ok(chosen)
}

/// Whether a changed file is something that an op could be made of: anything but text for people, and the
/// configuration, which is compared entry by entry.
fn is_source(file: &Path) -> bool {
    let text = ["md", "rst", "txt", "toml", "xml", "json", "html"];
    !file.extension().is_some_and(|extension| text.iter().any(|known| extension == *known))
}

/// Whether the imports of some op's files lead to a file, so that it concerns only those ops.
fn imported_by_one(root: &Path, own: &BTreeSet<PathBuf>, file: &Path) -> bool {
    own.iter().any(|source| closure(root, std::slice::from_ref(source)).contains(file))
}

fn git(root: &Path, arguments: &[&str]) -> Result<String, ExpectedError> {
    let output = Command::new("git").arg("-C").arg(root).args(arguments).output();
    let output =
        output.map_err(|error| ExpectedError::new(format!("git cannot be started: {error}"), "--changed needs git"))?;
    if !output.status.success() {
        let words = String::from_utf8_lossy(&output.stderr).trim().to_string();
        let hint = "--changed takes a revision of the git repository that the project is in";
        return Err(ExpectedError::new(format!("git {}: {words}", arguments.join(" ")), hint));
    }
    Ok(String::from_utf8_lossy(&output.stdout).into_owned())
}

/// Files under the project's folder that differ from the revision, new ones included, relative to it.
fn changed_files(root: &Path, revision: &str) -> Result<BTreeSet<PathBuf>, ExpectedError> {
    let different = git(root, &["diff", "--name-only", "-z", "--relative", revision, "--"])?;
    let new = git(root, &["ls-files", "--others", "--exclude-standard", "-z"])?;
    Ok(different.split('\0').chain(new.split('\0')).filter(|name| !name.is_empty()).map(PathBuf::from).collect())
}

fn config_at(root: &Path, revision: &str, name: &Path) -> Option<String> {
    git(root, &["show", &format!("{revision}:./{}", name.display())]).ok()
}

/// Whether an op's entry, or anything that holds for all ops, reads differently.
fn differs(before: Option<&str>, now: &str, op: &OpSummary) -> bool {
    let parse = |text: &str| text.parse::<toml::Table>().ok();
    let (Some(before), Some(now)) = (before.and_then(parse), parse(now)) else { return true };
    let entry = |table: &toml::Table| {
        let ops = table.get("ops")?.as_array()?;
        ops.iter().find(|entry| entry.get("name").and_then(toml::Value::as_str) == Some(&op.name)).cloned()
    };
    let general = |table: &toml::Table| {
        let mut rest = table.clone();
        rest.remove("ops");
        rest
    };
    entry(&before) != entry(&now) || general(&before) != general(&now)
}
