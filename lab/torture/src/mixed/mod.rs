//! A client that asks for everything a little, and knows what each answer has to be.

mod judged;
mod listed;
mod run;

use std::path::Path;

use gpuemu_model::report::ValidationResult;
use gpuemu_model::settings::ProjectReference;
use gpuemu_tensor::Stream;
use gpuemu_wire::Client;
use gpuemu_wire::protocol::{Request, Response};

use crate::daemon_process::{DaemonProcess, PATIENCE, python};
use crate::kernel_project::kernel_project;

/// A question, and how often it is asked in relation to the others.
pub type Share = (Question, u64);

/// What a client asks.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Question {
    Ping,
    Status,
    /// The ops of a project with two.
    Ops,
    /// A right output, judged and kept.
    Right,
    /// A wrong output, judged and kept.
    Wrong,
    Case,
    /// A generated case and then an output for it, judged and kept: two requests.
    Submit,
    /// Results of the client's own, kept.
    Record,
    Results,
    Failures,
    /// The report on what is stored.
    Report,
    /// An op that there is not.
    Unknown,
    /// A job that tries cases of a kernel, waited for: two requests or more.
    Job,
    /// Cases of an op in Python, where there is one.
    Python,
}

/// What was kept because the daemon said so.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Kept {
    pub results: u64,
    pub failures: u64,
}

impl Kept {
    pub fn and(self, other: Self) -> Self {
        Self { results: self.results + other.results, failures: self.failures + other.failures }
    }
}

/// The projects that questions are about.
#[derive(Debug, Clone)]
pub struct Projects {
    plain: Vec<ProjectReference>,
    kernels: ProjectReference,
    python: Option<ProjectReference>,
}

const PYTHON_CONFIG: &str = "[project]\nname = \"python\"\nframework = \"numpy\"\n\n[[ops]]\nname = \"relu\"\n\
                             module = \"ops:relu\"\ndtypes = [\"float32\"]\n";
const PYTHON_MODULE: &str = "import numpy\n\n\ndef relu(input):\n    return numpy.maximum(input, 0)\n";

impl Projects {
    /// Makes them in the daemon's folder.
    pub fn make(daemon: &DaemonProcess) -> Result<Self, String> {
        let plain = (0..8).map(|number| daemon.project(&format!("plain{number}"), &[]));
        let files = [("gpuemu.toml", PYTHON_CONFIG), ("ops.py", PYTHON_MODULE)];
        Ok(Self {
            plain: plain.collect::<Result<_, _>>()?,
            kernels: kernel_project(daemon)?,
            python: python().map(|_| daemon.project("python", &files)).transpose()?,
        })
    }
}

pub struct MixedClient {
    client: Client,
    choices: Stream,
    projects: Projects,
    /// Verdicts of the daemon, to be recorded as the client's own: one that passed and one that failed.
    verdicts: Option<(ValidationResult, ValidationResult)>,
    /// Requests that were answered, each as it has to be.
    pub answered: u64,
    /// What was kept because of them.
    pub kept: Kept,
}

impl MixedClient {
    /// Connects; what it asks follows from the seed.
    pub fn connect(socket: &Path, projects: &Projects, seed: u64) -> Result<Self, String> {
        let client = Client::connect(socket, PATIENCE).map_err(|error| error.to_string())?;
        let choices = Stream::new(seed, "torture/mixed");
        let projects = projects.clone();
        Ok(Self { client, choices, projects, verdicts: None, answered: 0, kept: Kept::default() })
    }

    /// Asks something, and says what is wrong with the answer.
    pub fn ask(&mut self, shares: &[Share]) -> Result<(), String> {
        let weights: Vec<u64> = shares.iter().map(|(_, share)| *share).collect();
        let question = shares[self.choices.weighted(&weights)].0;
        let place = self.choices.below(self.projects.plain.len() as u64) as usize;
        let project = self.projects.plain[place].clone();
        let asked = match question {
            Question::Ping => self.ping(),
            Question::Status => self.status(),
            Question::Ops => self.ops(),
            Question::Right => self.judge(&project, true),
            Question::Wrong => self.judge(&project, false),
            Question::Case => self.case(&project).map(|_| ()),
            Question::Submit => self.submit(&project),
            Question::Record => self.record(&project),
            Question::Results => self.results(&project),
            Question::Failures => self.failures(&project),
            Question::Report => self.report(&project),
            Question::Unknown => self.unknown(&project),
            Question::Job => self.job(),
            Question::Python => self.python(),
        };
        asked.map_err(|problem| format!("{question:?}: {problem}"))
    }

    fn call(&mut self, request: &Request) -> Result<Response, String> {
        let response = self.client.call(request).map_err(|error| error.to_string())?;
        self.answered += 1;
        Ok(response)
    }

    fn keeps(&mut self, results: u64, failures: u64) {
        self.kept = self.kept.and(Kept { results, failures });
    }
}

/// Says that an answer is not the one to a request.
fn other<T>(response: &Response) -> Result<T, String> {
    let text = serde_json::to_string(response).unwrap_or_default();
    Err(format!("unexpected response: {}", text.chars().take(400).collect::<String>()))
}

/// Says what is wrong where something does not hold.
fn holds(condition: bool, problem: impl FnOnce() -> String) -> Result<(), String> {
    if condition { Ok(()) } else { Err(problem()) }
}
