//! `gpuemu init`: start a project.

mod ci;
mod installed_from;
mod package;
mod templates;

use std::fmt::Write as _;
use std::fs::OpenOptions;
use std::io::Write as _;
use std::path::{Path, PathBuf};

use ci::{CiSystem, Repository};
use gpuemu_config::Environment;
use package::Package;
use serde_json::json;
use templates::{Framework, NewFile};

use crate::exit_code;
use crate::expected_error::ExpectedError;
use crate::format::{Format, write_json, write_text};
use crate::report::style::{COMMAND, paint};
use crate::session::{GlobalOptions, note};

/// Arguments of `gpuemu init`.
#[derive(Debug, Clone, clap::Args)]
pub struct Arguments {
    /// The project's folder; made if it is not there.
    #[arg(value_name = "DIRECTORY", default_value = ".")]
    directory: PathBuf,
    /// The project's name [default: that of the folder].
    #[arg(long, value_name = "NAME")]
    name: Option<String>,
    /// Whose arrays the project's functions are given [default: numpy, or what the project has already].
    #[arg(long, value_enum)]
    framework: Option<Framework>,
    /// Also write two ops that pass: a built-in one, and one with a reference of its own.
    #[arg(long)]
    with_examples: bool,
    /// Also write what a CI system needs to check every change. A project that is there already gets that alone.
    #[arg(long, value_enum, value_name = "SYSTEM")]
    ci: Option<CiSystem>,
    /// What CI installs gpuemu from: a wheel in the repository, or an address (git+https://, git+ssh://, https://)
    /// [default: the address that this gpuemu was installed from, if others reach it].
    #[arg(long, value_name = "WHEEL|ADDRESS", requires = "ci")]
    package: Option<String>,
    /// Overwrite files that already exist.
    #[arg(long)]
    force: bool,
    /// Format of the result.
    #[arg(long, value_enum, default_value_t = Format::Text)]
    format: Format,
}

impl Arguments {
    /// Whether nothing is asked for that concerns the project itself.
    fn adds_ci_alone(&self) -> bool {
        self.ci.is_some() && self.name.is_none() && self.framework.is_none() && !self.with_examples
    }
}

/// What to type next, and what for.
struct NextStep {
    command: String,
    purpose: &'static str,
}

pub fn run(arguments: &Arguments, options: &GlobalOptions) -> Result<u8, ExpectedError> {
    let name = match &arguments.name {
        Some(name) if name.trim().is_empty() => {
            return Err(ExpectedError::new("the project's name is empty", "leave --name out to use the folder's name"));
        }
        Some(name) => name.clone(),
        None => folder_name(&arguments.directory),
    };
    let project_file = arguments.directory.join("gpuemu.toml");
    let adds_ci_alone = arguments.adds_ci_alone() && project_file.is_file();
    let framework = match arguments.framework {
        Some(framework) => framework,
        None if adds_ci_alone => {
            gpuemu_config::load_file(project_file, &Environment::of_process())?.project.framework.into()
        }
        None => Framework::Numpy,
    };
    let mut files = match adds_ci_alone {
        true => Vec::new(),
        false => templates::files(&arguments.directory, &name, framework, arguments.with_examples),
    };
    let mut remark = None;
    if let Some(system) = arguments.ci {
        let repository = Repository::of(&arguments.directory)?;
        let package = match &arguments.package {
            Some(text) => Some(Package::named(text, &repository)?),
            None => Package::of_this_program(),
        };
        files.extend(ci::files(system, &repository, framework, package.as_ref()));
        remark = arguments.package.is_none().then(|| remark_on(package.as_ref(), system));
    }
    if !arguments.force {
        refuse_to_overwrite(&files)?;
    }
    let mut written = Vec::new();
    for file in &files {
        write_file(&file.path, &file.text, arguments.force)?;
        written.push(shown(&file.path));
    }
    let next = next_steps(arguments, adds_ci_alone);
    match arguments.format {
        Format::Json => {
            let next: Vec<&str> = next.iter().map(|step| step.command.as_str()).collect();
            write_json(&json!({ "written": written, "next": next }))?;
        }
        Format::Text => write_text(&describe(&written, &next))?,
    }
    if let Some(remark) = remark.filter(|_| !options.quiet) {
        note(&remark);
    }
    Ok(exit_code::PASSED)
}

/// What is said of a package that the user has not named.
fn remark_on(package: Option<&Package>, system: CiSystem) -> String {
    if let Some(package) = package {
        return format!("note: CI installs gpuemu from {}, which this one was installed from", package.as_str());
    }
    let (file, setting) = system.package_setting();
    format!(
        "note: CI does not know what to install gpuemu from: until `{setting}` is set in {file}, its jobs end with status 2\n\
         hint: copy a wheel into the repository and write the files again with --package WHEEL --force, or give --package \
         an address"
    )
}

/// A path as it would be typed.
fn shown(path: &Path) -> String {
    path.strip_prefix(".").unwrap_or(path).display().to_string()
}

/// The name of a folder, as a project may be called: letters, digits and `-_.`.
fn folder_name(directory: &Path) -> String {
    // A folder that is not there yet is called what it was called on the command line.
    let full = directory.canonicalize().or_else(|_| std::path::absolute(directory));
    let full = full.unwrap_or_else(|_| directory.to_path_buf());
    let name = full.file_name().map(|name| name.to_string_lossy().into_owned()).unwrap_or_default();
    let plain = |letter: char| if letter.is_alphanumeric() || "-_.".contains(letter) { letter } else { '-' };
    let name: String = name.chars().map(plain).collect();
    let name = name.trim_matches(['-', '.']);
    if name.is_empty() { "my-project".to_string() } else { name.to_string() }
}

/// Nothing is written if anything would be lost.
fn refuse_to_overwrite(files: &[NewFile]) -> Result<(), ExpectedError> {
    let paths = files.iter().map(|file| &file.path);
    let there: Vec<String> = paths.filter(|path| path.symlink_metadata().is_ok()).map(|path| shown(path)).collect();
    match there.as_slice() {
        [] => Ok(()),
        [one] if one.ends_with(".gitlab-ci.yml") => Err(ExpectedError::new(
            format!("{one} already exists; nothing was written"),
            "write it into a folder outside of the repository with `gpuemu init FOLDER --ci gitlab`, put it beside yours as \
             gpuemu.gitlab-ci.yml and add `include: { local: gpuemu.gitlab-ci.yml }`, or write over yours with --force",
        )),
        [one] => Err(already_there(&format!("{one} already exists"))),
        many => Err(already_there(&format!("{} already exist", many.join(", ")))),
    }
}

fn already_there(message: &str) -> ExpectedError {
    ExpectedError::new(
        format!("{message}; nothing was written"),
        "name another folder, or write over it with --force".to_string(),
    )
}

fn write_file(path: &Path, text: &str, force: bool) -> Result<(), ExpectedError> {
    let failed = |error: std::io::Error| {
        ExpectedError::new(
            format!("cannot write {}: {error}", path.display()),
            "the folder must be one that you may write to, and no part of its path a file",
        )
    };
    if let Some(folder) = path.parent() {
        std::fs::create_dir_all(folder).map_err(failed)?;
    }
    let mut options = OpenOptions::new();
    // What somebody else has written since it was looked for is not lost either.
    options.write(true).create(force).truncate(force).create_new(!force);
    options.open(path).and_then(|mut file| file.write_all(text.as_bytes())).map_err(failed)
}

fn next_steps(arguments: &Arguments, adds_ci_alone: bool) -> Vec<NextStep> {
    let step = |command: &str, purpose| NextStep { command: command.to_string(), purpose };
    let mut steps = Vec::new();
    if arguments.directory != Path::new(".") {
        steps.push(step(&format!("cd {}", shell_word(&arguments.directory)), ""));
    }
    if adds_ci_alone {
        steps.push(step("gpuemu ci --quick", "what a change will be checked by"));
        steps.push(step("git add --all", "commit the new files: every change is checked from then on"));
    } else if arguments.with_examples {
        steps.push(step("gpuemu test", "both ops pass"));
        steps.push(step("edit kernels/softmax.py", "break it: fill the lanes beyond the end with 0 in place of -inf"));
        steps.push(step("gpuemu test", "now it fails, with a seed that replays"));
        steps.push(step("gpuemu debug", "look at the failing tensors"));
    } else {
        steps.push(step("edit gpuemu.toml", "add an [[ops]] entry that names your function; it has an example"));
        steps.push(step("gpuemu test", "try cases of every op"));
    }
    steps
}

/// A path as a shell reads it.
fn shell_word(path: &Path) -> String {
    let text = path.display().to_string();
    let plain = |letter: char| letter.is_alphanumeric() || "-_./".contains(letter);
    if !text.starts_with('-') && text.chars().all(plain) {
        return text;
    }
    let quoted = text.replace('\'', r"'\''");
    if text.starts_with('-') { format!("-- '{quoted}'") } else { format!("'{quoted}'") }
}

fn describe(written: &[String], next: &[NextStep]) -> String {
    let mut text = String::new();
    // Writing to a string cannot fail.
    for path in written {
        let _ = writeln!(text, "wrote {path}");
    }
    text.push_str("\nnext:\n");
    let width = next.iter().map(|step| step.command.chars().count()).max().unwrap_or(0);
    for step in next {
        let padding = " ".repeat(width - step.command.chars().count());
        let line = format!("  {}{padding}  {}", paint(COMMAND, &step.command), step.purpose);
        let _ = writeln!(text, "{}", line.trim_end());
    }
    text
}
