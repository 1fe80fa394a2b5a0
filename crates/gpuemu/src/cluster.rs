//! Campaigns on a Ray cluster. Ray is Python's: the package `gpuemu` of the project's Python drives the campaign, the
//! daemon keeps it, and this process shows how far it is.

use std::collections::BTreeMap;
use std::io::{BufRead, BufReader, Write};
use std::process::{Command, Stdio};

use gpuemu_model::json::FromJson;
use gpuemu_model::report::RunReport;
use gpuemu_process::instruction_cap;
use gpuemu_wire::protocol::JobState;
use gpuemu_wire::protocol::JobStatus;
use serde::{Deserialize, Serialize};
use serde_json::{Map, Value};

use crate::expected_error::ExpectedError;
use crate::progress::Progress;
use crate::session::Session;

/// The module that drives campaigns.
const MODULE: &str = "gpuemu.campaigns.command";

#[derive(Debug, Clone, Serialize)]
pub struct Campaign {
    /// The ops; all if empty.
    pub ops: Vec<String>,
    pub iterations: u64,
    /// Base seed, as text.
    pub seed: Option<String>,
    /// The cluster; one on this machine if there is none.
    pub address: Option<String>,
    /// How many workers; as many as there is room for if none.
    pub workers: Option<u32>,
    /// What each of them needs, by Ray's names.
    pub resources: BTreeMap<String, f64>,
    /// The run of a campaign to go on with, as text; `true` for the newest.
    pub resume: Value,
    /// Whether failures are shrunk.
    pub minimize: bool,
    /// What cases are drawn from.
    pub settings: Map<String, Value>,
    pub project: String,
}

/// A line that the driver prints.
#[derive(Debug, Deserialize)]
#[serde(rename_all = "snake_case")]
enum Line {
    Progress(Far),
    Ended(Box<Ended>),
    Error { message: String, hint: Option<String> },
}

/// How far the campaign is.
#[derive(Debug, Deserialize)]
struct Far {
    cases: u64,
    planned: u64,
    failed: u64,
    workers: u64,
    lost: u64,
    doing: String,
}

/// What the campaign came to.
#[derive(Debug, Deserialize)]
pub struct Ended {
    /// The report on the run, as JSON.
    report: Value,
    /// Ranges that were lost with their worker, and run again.
    lost: Vec<Lost>,
    /// By op, the smallest failing case.
    smallest: BTreeMap<String, String>,
}

#[derive(Debug, Deserialize)]
struct Lost {
    range: u32,
    reason: String,
}

/// Runs a campaign on the cluster.
pub fn run(session: &Session, campaign: &Campaign) -> Result<RunReport, ExpectedError> {
    let python = session.project().python.unwrap_or_else(|| "python3".into());
    let mut command = Command::new(&python);
    command.args(["-m", MODULE]).stdin(Stdio::piped()).stdout(Stdio::piped());
    // What the driver starts on this machine inherits it.
    instruction_cap::apply(&mut command);
    let cannot = |what: &str| ExpectedError::new(format!("{}: {what}", python.display()), HINT);
    let mut driver = command.spawn().map_err(|error| cannot(&error.to_string()))?;
    let input = serde_json::to_vec(campaign)?;
    if let Some(mut stdin) = driver.stdin.take() {
        // A driver that ends before it has read says why on stderr.
        let _ = stdin.write_all(&input);
    }
    // An interrupt reaches the driver too, which ends its workers and then says so.
    let _ = ctrlc::set_handler(|| {});
    let mut progress = Progress::start(session.is_quiet());
    let mut ended = None;
    for line in driver.stdout.take().into_iter().flat_map(|stdout| BufReader::new(stdout).lines()) {
        let line = line.map_err(|error| cannot(&format!("its output cannot be read: {error}")))?;
        match serde_json::from_str(&line) {
            Ok(Line::Progress(far)) => progress.show(&far.status()),
            Ok(Line::Ended(found)) => ended = Some(Ok(*found)),
            Ok(Line::Error { message, hint }) => ended = Some(Err(ExpectedError { message, hint })),
            // Something that the project's Python prints of its own.
            Err(_) => session.say(&line),
        }
    }
    progress.finish();
    let status = driver.wait().map_err(|error| cannot(&error.to_string()))?;
    let Some(ended) = ended else { return Err(cannot(&format!("-m {MODULE} ended with {status} and no report"))) };
    let ended = ended?;
    for lost in &ended.lost {
        session.say(&format!("range {} was lost with its worker and run again: {}", lost.range, lost.reason));
    }
    for (op, smallest) in &ended.smallest {
        session.say(&format!("smallest failing case of {op}: {smallest}"));
    }
    RunReport::from_json_value(&ended.report).map_err(|error| cannot(&format!("its report cannot be read: {error}")))
}

const HINT: &str = "install Ray into the project's Python with `pip install ray`, and gpuemu with `pip install .` in its \
                    checkout, or name another Python with GPUEMU_PYTHON";

impl Far {
    /// As the progress of any other long work.
    fn status(&self) -> JobStatus {
        let lost = if self.lost == 0 { String::new() } else { format!(", {} ranges lost", self.lost) };
        let message = match self.workers {
            0 => "waiting for workers".to_string(),
            workers => format!("{} on {workers} workers{lost}", self.doing),
        };
        JobStatus {
            job: 0,
            kind: "FuzzOp".to_string(),
            state: JobState::Running,
            done: self.cases,
            total: self.planned,
            failures: self.failed,
            message,
            result: None,
        }
    }
}
