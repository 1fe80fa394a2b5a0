//! `cargo xtask messages`: every text that a user reads, with its place.

mod calls;
mod kind;
mod manifest;
#[cfg(test)]
mod retired;
mod rust;
mod rust_names;
mod sources;
mod text;
mod tokens;

use clap::ValueEnum;
use kind::Kind;
use serde_json::{Value, json};

use crate::failure::Failure;
use crate::repository;

/// A text that somebody reads, and where the source has it.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct Message {
    /// From the root of the repository.
    pub path: String,
    pub line: usize,
    pub kind: Kind,
    /// On one line.
    pub text: String,
}

/// How the messages are printed.
#[derive(Clone, Copy, ValueEnum)]
pub enum Format {
    /// One line a message: its place, its kind and its text.
    Text,
    /// A list of objects.
    Json,
}

/// Prints every message of the project.
pub fn run(format: Format) -> Result<(), Failure> {
    let messages = sources::messages(&repository::root()?)?;
    match format {
        Format::Text => print!("{}", listing(&messages)),
        Format::Json => println!("{:#}", Value::from_iter(messages.iter().map(as_json))),
    }
    eprintln!("{}", summary(&messages));
    Ok(())
}

fn listing(messages: &[Message]) -> String {
    let line = |message: &Message| format!("{}:{}: {}: {}\n", message.path, message.line, message.kind, message.text);
    messages.iter().map(line).collect()
}

fn as_json(message: &Message) -> Value {
    json!({ "path": message.path, "line": message.line, "kind": message.kind.name(), "text": message.text })
}

fn summary(messages: &[Message]) -> String {
    let count = |kind| messages.iter().filter(|message| message.kind == kind).count();
    let counts: Vec<String> = Kind::ALL.iter().map(|kind| format!("{} {kind}", count(*kind))).collect();
    format!("{} messages: {}", messages.len(), counts.join(", "))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_part_of_the_project_has_messages_and_its_tests_have_none() {
        let messages = sources::messages(&repository::root().unwrap()).unwrap();
        let starts = ["crates/gpuemu/src", "crates/gpuemu-runners/src/executor/worker", "lab/torture", "python/gpuemu"];
        for start in starts.iter().chain(&["python/native", "vscode-gpuemu/package.json", "vscode-gpuemu/src", "xtask"])
        {
            assert!(messages.iter().any(|message| message.path.starts_with(start)), "{start}");
        }
        for kind in Kind::ALL {
            assert!(messages.iter().any(|message| message.kind == kind), "{kind}");
        }
        assert!(!messages.iter().any(|message| message.path.contains("/tests") || message.text.contains('\n')));
        assert!(messages.is_sorted());
    }

    #[test]
    fn a_row_has_its_place_its_kind_and_its_text() {
        let message = Message { path: "a.py".into(), line: 3, kind: Kind::Hint, text: "name \"it\"".into() };
        assert_eq!(listing(std::slice::from_ref(&message)), "a.py:3: hint: name \"it\"\n");
        let object = json!({ "path": "a.py", "line": 3, "kind": "hint", "text": "name \"it\"" });
        assert_eq!(as_json(&message), object);
        assert_eq!(summary(&[message]), "1 messages: 0 error, 0 warning, 1 hint, 0 help, 0 finding, 0 note");
    }
}
