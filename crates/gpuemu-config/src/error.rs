//! Errors of configuration, pointing at the line.

use std::fmt;
use std::ops::Range;
use std::path::{Path, PathBuf};

use annotate_snippets::{AnnotationKind, Level, Renderer, Snippet};
use gpuemu_model::nearest::nearest;

use super::text_range::TextRange;

/// Why there is no configuration.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum ConfigError {
    /// No `gpuemu.toml` was found.
    NotFound {
        /// Where the search began.
        start: PathBuf,
    },
    /// A file could not be read.
    Unreadable { path: PathBuf, message: String },
    /// An environment variable has a value that means nothing.
    Variable { name: &'static str, value: String, allowed: &'static str },
    /// A file says something that is not valid.
    Invalid(Box<InvalidFile>),
}

/// What is not valid, and where.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct InvalidFile {
    pub path: PathBuf,
    pub text: String,
    pub span: Range<usize>,
    pub message: String,
    pub hint: Option<String>,
}

impl InvalidFile {
    /// The part of the file that is concerned.
    pub fn range(&self) -> TextRange {
        TextRange::of(&self.text, &self.span)
    }
}

/// A file that is being read, for errors that point into it.
#[derive(Debug, Clone)]
pub(super) struct Source {
    pub path: PathBuf,
    pub text: String,
}

impl Source {
    pub fn invalid(&self, span: &Range<usize>, message: impl Into<String>, hint: Option<String>) -> ConfigError {
        // The start of a file stands for what has no place of its own.
        let end = self.text.len();
        let span = span.start.min(end)..span.end.min(end);
        ConfigError::Invalid(Box::new(InvalidFile {
            path: self.path.clone(),
            text: self.text.clone(),
            span,
            message: message.into(),
            hint,
        }))
    }

    /// An error of the TOML reader, with the nearest name where one is unknown.
    pub fn unparsed(&self, error: &toml::de::Error) -> ConfigError {
        let message = error.message().trim().to_string();
        let span = error.span().unwrap_or(0..0);
        let mut names = message.split('`').skip(1).step_by(2);
        let hint = names.next().filter(|_| message.starts_with("unknown ")).and_then(|unknown| {
            let known: Vec<&str> = names.collect();
            let meant = nearest(unknown, known.iter().copied())?;
            Some(format!("did you mean `{meant}`?"))
        });
        self.invalid(&span, message, hint)
    }
}

impl fmt::Display for ConfigError {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            ConfigError::NotFound { start } => {
                write!(formatter, "no gpuemu.toml in {} or any folder above it", show(start))
            }
            ConfigError::Unreadable { path, message } => write!(formatter, "cannot read {}: {message}", show(path)),
            ConfigError::Variable { name, value, allowed } => {
                write!(formatter, "{name} is '{value}', but must be {allowed}")
            }
            ConfigError::Invalid(invalid) => {
                let path = show(&invalid.path);
                let annotation = AnnotationKind::Primary.span(invalid.span.clone());
                let snippet = Snippet::source(&invalid.text).path(path.as_ref()).annotation(annotation);
                let mut group = Level::ERROR.no_name().primary_title(&invalid.message).element(snippet);
                if let Some(hint) = &invalid.hint {
                    group = group.element(Level::HELP.with_name("hint").message(hint));
                }
                write!(formatter, "{}", Renderer::plain().render(&[group]))
            }
        }
    }
}

impl std::error::Error for ConfigError {}

fn show(path: &Path) -> std::borrow::Cow<'_, str> {
    path.to_string_lossy()
}
