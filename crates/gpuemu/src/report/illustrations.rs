//! What a page shows beside the report: failures run again for their pictures, and the history of each op.

use std::time::{Duration, Instant};

use gpuemu_model::report::{OpReport, RunReport, StoredRun, ValidationResult};
use gpuemu_wire::client::unexpected;
use gpuemu_wire::protocol::{Illustrate, Illustration, ListRuns, Request, Response};

use crate::expected_error::ExpectedError;
use crate::session::Session;

/// Kinds of failures of one op that get a picture.
const KINDS: usize = 3;

/// Pictures of a page.
const MOST_PICTURES: usize = 100;

/// Runs of an op that its history goes back.
const HISTORY: u64 = 40;

/// How often work that goes on is spoken of.
const NOTE_EVERY: Duration = Duration::from_secs(5);

/// What a page shows of a failure that was chosen.
#[derive(Debug, Clone)]
pub enum Shown {
    /// It was run again.
    Again(Box<Illustration>),
    /// It could not be, and why.
    Not(String),
}

/// What a page shows beside the report.
#[derive(Debug, Clone, Default)]
pub struct Illustrations {
    /// Failures that were chosen: op, place among its failures, what is shown.
    pub failures: Vec<(String, usize, Shown)>,
    /// What ops came to in stored runs, of each op the newest first.
    pub runs: Vec<StoredRun>,
}

impl Illustrations {
    /// Runs the most telling failure of each kind again, and asks for the history of the ops.
    pub fn gather(session: &mut Session, report: &RunReport, minimize: bool) -> Result<Self, ExpectedError> {
        let mut chosen: Vec<(&OpReport, usize)> = Vec::new();
        for op in &report.ops {
            chosen.extend(most_telling(&op.failures).into_iter().map(|place| (op, place)));
        }
        let mut failures = Vec::new();
        let mut noted = Instant::now();
        match chosen.len().min(MOST_PICTURES) {
            0 => {}
            1 => session.say("running a failure again for its picture"),
            many => session.say(&format!("running {many} failures again for their pictures")),
        }
        for (done, (op, place)) in chosen.iter().enumerate() {
            if noted.elapsed() >= NOTE_EVERY {
                noted = Instant::now();
                session.say(&format!("{done} of {} failures, now {}", chosen.len(), op.op));
            }
            let shown = if done >= MOST_PICTURES {
                Shown::Not(format!("a page has {MOST_PICTURES} at most; --op makes one on this op alone"))
            } else if done > 0 && Session::interrupted() {
                Shown::Not("the making of this page was interrupted".to_string())
            } else {
                show(session, &op.failures[*place], minimize)
            };
            failures.push((op.op.clone(), *place, shown));
        }
        Ok(Self { failures, runs: runs(session, report)? })
    }

    /// What is shown of one failure.
    pub fn of(&self, op: &str, place: usize) -> Option<&Shown> {
        self.failures.iter().find(|(name, shown, _)| name == op && *shown == place).map(|(_, _, shown)| shown)
    }

    /// The stored runs of an op, the oldest first.
    pub fn history(&self, op: &str) -> Vec<&StoredRun> {
        self.runs.iter().filter(|run| run.op.op == op).rev().collect()
    }
}

/// The failure of each kind that shows the most: the one with the most wrong elements, of equals the gravest. What
/// it takes at least is shown by its smallest form. The most frequent kinds come first.
pub fn most_telling(failures: &[ValidationResult]) -> Vec<usize> {
    let kind = |place: usize| failures[place].finding().map(|finding| (finding.check, finding.bug_class));
    let wrong = |place: usize| failures[place].finding().map_or(0, |finding| finding.mismatched);
    let gravity = |place: usize| gravity(&failures[place]);
    // The most telling of each kind, and how many there are.
    let mut kinds: Vec<(usize, usize)> = Vec::new();
    for place in 0..failures.len() {
        match kinds.iter_mut().find(|(known, _)| kind(*known) == kind(place)) {
            None => kinds.push((place, 1)),
            Some((known, count)) => {
                let more = wrong(place).cmp(&wrong(*known)).then(gravity(place).total_cmp(&gravity(*known)));
                *known = if more.is_gt() { place } else { *known };
                *count += 1;
            }
        }
    }
    // A stable sort: of equals the kind that was found first.
    kinds.sort_by_key(|(_, count)| std::cmp::Reverse(*count));
    kinds.into_iter().take(KINDS).map(|(place, _)| place).collect()
}

/// How far beyond what is allowed the worst element of a failure is; without one, as far as can be.
fn gravity(failure: &ValidationResult) -> f64 {
    let worst = failure.finding().and_then(|finding| finding.worst.as_ref());
    let share = worst.map_or(f64::INFINITY, |worst| worst.error / worst.allowed);
    if share.is_nan() { f64::INFINITY } else { share }
}

fn show(session: &mut Session, failure: &ValidationResult, minimize: bool) -> Shown {
    if failure.client_side {
        return Shown::Not("it was found in a Python process, and only there it can be run again".to_string());
    }
    let request = Illustrate {
        project: session.project(),
        op_name: failure.op.clone(),
        seed: failure.seed,
        config: failure.settings.clone(),
        case: Some(failure.case.clone()),
        minimize,
    };
    match session.run(Request::Illustrate(request)) {
        Ok(Response::Illustration { illustration }) => Shown::Again(illustration),
        Ok(other) => Shown::Not(unexpected(&other).to_string()),
        Err(error) => Shown::Not(error.message),
    }
}

fn runs(session: &mut Session, report: &RunReport) -> Result<Vec<StoredRun>, ExpectedError> {
    if report.ops.is_empty() {
        return Ok(Vec::new());
    }
    let request = ListRuns { project: session.project(), op_name: None, limit: Some(HISTORY) };
    match session.call(&Request::ListRuns(request))? {
        Response::Runs { runs } => Ok(runs),
        other => Err(unexpected(&other).into()),
    }
}
