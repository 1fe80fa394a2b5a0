//! `gpuemu config`: check a project's configuration, and change it.

mod check;
mod tolerance;

use std::io::Read;
use std::path::PathBuf;

use clap::Subcommand;
use gpuemu_config::{Config, ConfigError, Environment, find_project_file};

use crate::expected_error::ExpectedError;
use crate::session::current_folder;

/// Arguments of `gpuemu config`.
#[derive(Debug, Clone, clap::Args)]
pub struct Arguments {
    #[command(subcommand)]
    action: Action,
}

/// What is done with the configuration.
#[derive(Debug, Clone, Subcommand)]
enum Action {
    /// Say whether it is valid, and what it defines where. Nothing is run. Exit status 2 if it is not valid.
    Check(check::Arguments),
    /// Judge an op by this tolerance from now on; everything else in the file stays as it was written.
    Tolerance(tolerance::Arguments),
}

pub fn run(arguments: &Arguments) -> Result<u8, ExpectedError> {
    match &arguments.action {
        Action::Check(arguments) => check::run(arguments),
        Action::Tolerance(arguments) => tolerance::run(arguments),
    }
}

/// The text that a configuration is taken from.
#[derive(Debug, Clone, clap::Args)]
struct TextSource {
    /// Take the text of the project's gpuemu.toml from standard input, as an editor has it before it is saved.
    #[arg(long)]
    stdin: bool,
}

impl TextSource {
    /// The text on standard input, if that is what is asked for.
    fn text(&self) -> Result<Option<String>, ExpectedError> {
        if !self.stdin {
            return Ok(None);
        }
        let mut text = String::new();
        let read = std::io::stdin().read_to_string(&mut text);
        read.map_err(|error| ExpectedError::plain(format!("standard input cannot be read: {error}")))?;
        Ok(Some(text))
    }
}

/// The project's file. That of a text which is not saved yet need not be there.
fn project_file(environment: &Environment, unsaved: bool) -> Result<PathBuf, ExpectedError> {
    let folder = current_folder()?;
    let named = environment.project_file().map(|path| folder.join(path));
    let known = named.or_else(|| find_project_file(&folder)).or_else(|| unsaved.then(|| folder.join("gpuemu.toml")));
    let file = known.ok_or(ConfigError::NotFound { start: folder })?;
    Ok(std::path::absolute(file)?)
}

fn load(file: PathBuf, text: Option<String>, environment: &Environment) -> Result<Config, ConfigError> {
    match text {
        Some(text) => gpuemu_config::load_text(file, text, environment),
        None => gpuemu_config::load_file(file, environment),
    }
}
