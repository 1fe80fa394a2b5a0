//! `gpuemu config check`: whether the configuration is valid, and what it defines where.

use std::collections::BTreeMap;
use std::fmt::Write;
use std::path::{Path, PathBuf};

use gpuemu_config::failure::Failure;
use gpuemu_config::{
    Config, ConfigError, Environment, InvalidFile, Op, SourceKind, TextRange, ToleranceMode, TolerancePair,
};
use gpuemu_run::configured_op::ConfiguredOp;
use gpuemu_run::project::Project;
use gpuemu_run::sources::closure;
use gpuemu_runners::definition::Definition;
use gpuemu_runners::executor::Pool;
use gpuemu_tensor::DType;
use serde::Serialize;

use super::{TextSource, load, project_file};
use crate::exit_code;
use crate::expected_error::ExpectedError;
use crate::format::{Format, write_json, write_text};
use crate::session::python_of;

/// Arguments of `gpuemu config check`.
#[derive(Debug, Clone, clap::Args)]
pub struct Arguments {
    #[command(flatten)]
    source: TextSource,
    /// Format of the result.
    #[arg(long, value_enum, default_value_t = Format::Text)]
    format: Format,
}

/// What is known of a configuration.
#[derive(Debug, Serialize)]
struct Checked {
    valid: bool,
    file: PathBuf,
    problems: Vec<Problem>,
    /// Name and version; nothing where the file cannot be read as a configuration.
    project: Option<NamedProject>,
    ops: Vec<CheckedOp>,
    kernels: Vec<CheckedKernel>,
}

#[derive(Debug, Serialize)]
struct NamedProject {
    name: String,
    version: String,
}

/// Something that is not valid.
#[derive(Debug, Serialize)]
struct Problem {
    file: PathBuf,
    /// The characters concerned; none where it concerns no place in particular.
    range: Option<TextRange>,
    message: String,
    hint: Option<String>,
    #[serde(skip)]
    text: String,
}

/// A place in a file.
#[derive(Debug, Serialize)]
struct Place {
    file: PathBuf,
    range: TextRange,
}

/// An op of the project.
#[derive(Debug, Serialize)]
struct CheckedOp {
    name: String,
    /// Its name in the configuration.
    place: Place,
    dtypes: Vec<DType>,
    /// Where what runs it is defined.
    definition: Option<Place>,
    /// Where its own reference is defined.
    reference_definition: Option<Place>,
    /// Files whose change concerns it, those that they import included.
    files: Vec<PathBuf>,
    tolerance: ToleranceMode,
    /// Fixed tolerances, by dtype.
    tolerances: BTreeMap<DType, TolerancePair>,
}

/// A compiled kernel of the project.
#[derive(Debug, Serialize)]
struct CheckedKernel {
    name: String,
    /// Its source in the configuration.
    place: Place,
    /// Its source, as written.
    source: String,
    /// Files whose change concerns it.
    files: Vec<PathBuf>,
}

pub fn run(arguments: &Arguments) -> Result<u8, ExpectedError> {
    let environment = Environment::of_process();
    let text = arguments.source.text()?;
    let file = project_file(&environment, text.is_some())?;
    let checked = match load(file.clone(), text, &environment) {
        Ok(config) => check(config, file)?,
        Err(ConfigError::Invalid(invalid)) => {
            Checked { problems: vec![Problem::of(&invalid)], ..Checked::nothing(file) }
        }
        Err(error) => return Err(error.into()),
    };
    let code = if checked.valid { exit_code::PASSED } else { exit_code::ENVIRONMENT_ERROR };
    match arguments.format {
        Format::Json => write_json(&checked)?,
        Format::Text => write_text(&checked.describe())?,
    }
    Ok(code)
}

fn check(config: Config, file: PathBuf) -> Result<Checked, ExpectedError> {
    let root = std::path::absolute(&config.root)?;
    let project = Project::with_config(config, root.clone(), Some(python_of(&root)));
    let config = &project.config;
    let pool = Pool::new(0);
    let mut checked = Checked {
        project: Some(NamedProject { name: config.project.name.clone(), version: config.project.version.clone() }),
        ..Checked::nothing(file)
    };
    for op in &config.ops {
        // Each op is looked at by itself: a mistake in one says nothing of the others.
        let ready = match ConfiguredOp::open(&project, &op.name, &Default::default(), &pool) {
            Ok(ready) => Some(ready),
            Err(failure) => {
                checked.problems.push(Problem::in_op(failure, config, op));
                None
            }
        };
        checked.ops.push(CheckedOp::of(config, op, ready.as_ref()));
    }
    for kernel in &config.kernels {
        let place = Place { file: config.ops_file().to_path_buf(), range: config.ops_range(&kernel.span) };
        let written = match SourceKind::of(&kernel.source) {
            Some(SourceKind::Triton) => kernel.source.rsplit_once(':').map_or("", |(file, _)| file),
            _ => &kernel.source,
        };
        let variants = kernel.launch.iter().flat_map(|launch| launch.variants.iter());
        let files = std::iter::once(root.join(written)).chain(variants.map(|variant| root.join(&variant.ptx)));
        checked.kernels.push(CheckedKernel {
            name: kernel.name.clone(),
            place,
            source: kernel.source.clone(),
            files: files.collect(),
        });
    }
    checked.valid = checked.problems.is_empty();
    Ok(checked)
}

impl Checked {
    fn nothing(file: PathBuf) -> Self {
        Self { valid: false, file, problems: Vec::new(), project: None, ops: Vec::new(), kernels: Vec::new() }
    }

    fn describe(&self) -> String {
        let mut text = String::new();
        // Writing to a string cannot fail.
        for problem in &self.problems {
            let _ = writeln!(text, "{}", problem.text);
        }
        if self.valid {
            let (ops, kernels) = (self.ops.len(), self.kernels.len());
            let _ = writeln!(text, "{} is valid: {ops} ops, {kernels} kernels", self.file.display());
        }
        text
    }
}

impl Problem {
    fn of(invalid: &InvalidFile) -> Self {
        Self {
            file: absolute(&invalid.path),
            range: Some(invalid.range()),
            message: invalid.message.clone(),
            hint: invalid.hint.clone(),
            text: ConfigError::Invalid(Box::new(invalid.clone())).to_string(),
        }
    }

    /// What was found by those who know ops; at the op's name where they do not say where.
    fn in_op(failure: Failure, config: &Config, op: &Op) -> Self {
        if let Some(invalid) = &failure.invalid {
            return Self::of(invalid);
        }
        Self {
            file: absolute(config.ops_file()),
            range: Some(config.ops_range(&op.span)),
            text: failure.message.clone(),
            message: failure.message,
            hint: failure.hint,
        }
    }
}

impl CheckedOp {
    fn of(config: &Config, op: &Op, ready: Option<&ConfiguredOp>) -> Self {
        let inside =
            |file: PathBuf| file.strip_prefix(&config.root).map(Path::to_path_buf).unwrap_or_else(|_| file.clone());
        let own: Vec<PathBuf> = ready.map(ConfiguredOp::files).unwrap_or_default().into_iter().map(inside).collect();
        Self {
            name: op.name.clone(),
            place: Place { file: absolute(config.ops_file()), range: config.ops_range(&op.span) },
            dtypes: op.dtypes.clone(),
            definition: ready.and_then(ConfiguredOp::definition).map(Place::from),
            reference_definition: ready.and_then(ConfiguredOp::reference_definition).map(Place::from),
            files: closure(&config.root, &own).iter().map(|file| config.root.join(file)).collect(),
            tolerance: op.tolerance_mode(),
            tolerances: op.tolerances.clone(),
        }
    }
}

impl From<Definition> for Place {
    fn from(definition: Definition) -> Self {
        Self { file: definition.file, range: definition.range }
    }
}

fn absolute(path: &Path) -> PathBuf {
    std::path::absolute(path).unwrap_or_else(|_| path.to_path_buf())
}
