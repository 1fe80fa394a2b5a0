//! `gpuemu sign`: sign a report.

use std::path::{Path, PathBuf};

use ed25519_dalek::SigningKey;
use gpuemu_config::Environment;
use gpuemu_model::evidence::contradiction;
use gpuemu_model::report::RunReport;

use crate::exit_code;
use crate::expected_error::ExpectedError;
use crate::format::write_text;
use crate::session::note;
use crate::signing::{self, KeyFiles};
use crate::whole_files;

/// Arguments of `gpuemu sign`.
#[derive(Debug, Clone, clap::Args)]
pub struct Arguments {
    /// The report, as `gpuemu report --evidence --format json` writes it; the signature is written beside it.
    #[arg(value_name = "REPORT", required_unless_present = "public_key")]
    report: Option<PathBuf>,
    #[command(flatten)]
    key: KeyOption,
    /// Print the public key that goes with the one that signs, and sign nothing.
    #[arg(long, conflicts_with = "report")]
    public_key: bool,
}

/// The key that signs.
#[derive(Debug, Clone, Default, clap::Args)]
pub struct KeyOption {
    /// The private key, as PEM [default: the one in gpuemu's folder, which is made when it is first needed].
    #[arg(long, value_name = "FILE", id = "private_key")]
    pub key: Option<PathBuf>,
}

impl KeyOption {
    pub fn load(&self) -> Result<SigningKey, ExpectedError> {
        if let Some(path) = &self.key {
            return signing::read_private(path);
        }
        let files = own_keys()?;
        let (key, made) = files.load_or_create()?;
        if made {
            note(&format!("made a key: {}; others verify with {}", files.private.display(), files.public.display()));
        }
        Ok(key)
    }
}

/// Where the user's own keys are.
pub fn own_keys() -> Result<KeyFiles, ExpectedError> {
    let home = Environment::of_process().home();
    let home = home.ok_or_else(|| ExpectedError::new("there is no folder for keys", "set HOME or GPUEMU_HOME"))?;
    Ok(KeyFiles::of(&home))
}

pub fn run(arguments: &Arguments) -> Result<u8, ExpectedError> {
    let key = arguments.key.load()?;
    let Some(path) = &arguments.report else {
        write_text(&signing::public_pem(&key.verifying_key())?)?;
        return Ok(exit_code::PASSED);
    };
    let bytes = std::fs::read(path)
        .map_err(|error| ExpectedError::plain(format!("the report {} cannot be read: {error}", path.display())))?;
    let report = parse(path, &bytes)?;
    if let Some(problem) = contradiction(&report) {
        let message = format!("{} is not signed: {problem}", path.display());
        return Err(ExpectedError::new(message, "`gpuemu report --signed --output FILE` writes a report and signs it"));
    }
    let signature = signing::signature_file(path);
    whole_files::write(&[(&signature, &signing::sign(&key, &bytes))])
        .map_err(|error| ExpectedError::plain(format!("{} cannot be written: {error}", signature.display())))?;
    let fingerprint = signing::fingerprint(&key.verifying_key());
    write_text(&format!("signed {} with key {fingerprint}: {}\n", path.display(), signature.display()))?;
    Ok(exit_code::PASSED)
}

pub fn parse(path: &Path, bytes: &[u8]) -> Result<RunReport, ExpectedError> {
    RunReport::read(bytes)
        .map_err(|error| ExpectedError::plain(format!("{} is not a report of gpuemu: {error}", path.display())))
}
