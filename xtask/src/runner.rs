//! Runs steps and takes their times: one after the other, or two beside each other where each leaves a core idle.

use std::fs::{self, File};
use std::io::Read;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::sync::{Mutex, PoisonError};
use std::thread;
use std::time::{Duration, Instant};

use crate::failure::{Failure, cannot};
use crate::repository;
use crate::steps::{Step, rounds};
use crate::summary::{Outcome, StepReport, Summary};

/// How often a step that still runs is named.
const PATIENCE: Duration = Duration::from_secs(60);

/// Where the output of steps is kept that run beside others, in the target folder.
const LOGS: &str = "target/steps";

/// Runs every step with `perform`, whatever becomes of the ones before it.
pub fn run(steps: &[&Step], mut perform: impl FnMut(&Step) -> Outcome) -> Summary {
    let mut reports = Vec::with_capacity(steps.len());
    for step in steps {
        println!("\n== {} (budget {} s)", step.name, step.budget.as_secs());
        let started = Instant::now();
        let outcome = perform(step);
        let report = StepReport { name: step.name, budget: step.budget, duration: started.elapsed(), outcome };
        conclude(&report);
        reports.push(report);
    }
    Summary::new(reports)
}

/// Runs all steps in rounds. Steps that share a round are processes of their own, whose output is printed when they end.
pub fn run_in_rounds(steps: &[&'static Step], mut perform: impl FnMut(&Step) -> Outcome) -> Result<Summary, Failure> {
    let logs = repository::root()?.join(LOGS);
    fs::create_dir_all(&logs).map_err(|error| cannot("create", &logs.display(), &error))?;
    let mut reports = Vec::with_capacity(steps.len());
    for [first, second] in rounds(steps) {
        if second.is_empty() || first.is_empty() {
            reports.extend(run(&[first, second].concat(), &mut perform).into_reports());
        } else {
            let side = Side { logs: &logs, printing: &Mutex::new(()) };
            let both = thread::scope(|scope| {
                let beside = scope.spawn(|| side.run(&second));
                let mut both = side.run(&first);
                both.extend(reports_of(beside.join(), &second));
                both
            });
            reports.extend(both);
        }
    }
    // In the usual order, whichever ended first.
    reports.sort_by_key(|report| steps.iter().position(|step| step.name == report.name));
    Ok(Summary::new(reports))
}

/// What a side reported; of one that broke off, that none of its steps passed.
fn reports_of(ended: thread::Result<Vec<StepReport>>, steps: &[&'static Step]) -> Vec<StepReport> {
    let broken_off = |step: &&'static Step| {
        let outcome = Outcome::Failed("the thread that runs its side panicked".to_string());
        StepReport { name: step.name, budget: step.budget, duration: Duration::ZERO, outcome }
    };
    ended.unwrap_or_else(|_| steps.iter().map(broken_off).collect())
}

fn conclude(report: &StepReport) {
    let (word, seconds) = (report.outcome.word(), report.duration.as_secs_f64());
    println!("== {} {word} after {seconds:.1} s{}", report.name, report.outcome.explanation());
    if let Some(warning) = budget_warning(report) {
        println!("{warning}");
    }
}

/// One of the two sides of a round.
#[derive(Clone, Copy)]
struct Side<'a> {
    logs: &'a Path,
    printing: &'a Mutex<()>,
}

impl Side<'_> {
    fn run(self, steps: &[&'static Step]) -> Vec<StepReport> {
        steps.iter().map(|step| self.run_step(step)).collect()
    }

    fn run_step(self, step: &'static Step) -> StepReport {
        self.print(|| println!("== {} begins (budget {} s)", step.name, step.budget.as_secs()));
        let started = Instant::now();
        let log = self.logs.join(format!("{}.log", step.name));
        let outcome = self.process(step, &log, started).unwrap_or_else(|failure| Outcome::Failed(failure.to_string()));
        let report = StepReport { name: step.name, budget: step.budget, duration: started.elapsed(), outcome };
        self.print(|| {
            let text = fs::read(&log).unwrap_or_default();
            println!("\n== {}\n{}", step.name, String::from_utf8_lossy(&text).trim_end());
            conclude(&report);
        });
        report
    }

    fn print(self, print: impl FnOnce()) {
        let _alone = self.printing.lock().unwrap_or_else(PoisonError::into_inner);
        print();
    }

    /// Runs a step as this program does where it is asked for that step alone.
    fn process(self, step: &Step, log: &Path, started: Instant) -> Result<Outcome, Failure> {
        let outcome_file = self.logs.join(format!("{}.outcome", step.name));
        // An outcome of an earlier run could be taken for that of this one.
        let _ = fs::remove_file(&outcome_file);
        let output = File::create(log).map_err(|error| cannot("create", &log.display(), &error))?;
        let errors = output.try_clone().map_err(|error| cannot("write", &log.display(), &error))?;
        let program = std::env::current_exe().map_err(|error| cannot("find", &"this program", &error))?;
        let mut command = Command::new(program);
        command.args(["test", "--only", step.name, "--outcome"]).arg(&outcome_file);
        command.stdin(Stdio::null()).stdout(output).stderr(errors);
        let mut child = command.spawn().map_err(|error| cannot("start", &step.name, &error))?;
        let mut said = started;
        let status = loop {
            if let Some(status) = child.try_wait().map_err(|error| cannot("wait for", &step.name, &error))? {
                break status;
            }
            if said.elapsed() >= PATIENCE {
                said = Instant::now();
                self.print(|| println!("   {} has run for {} s", step.name, started.elapsed().as_secs()));
            }
            thread::sleep(Duration::from_millis(20));
        };
        Ok(read_outcome(&outcome_file).unwrap_or_else(|| Outcome::Failed(format!("it ended with {status}"))))
    }
}

/// Writes how a step ended, for the process that waits for it.
pub fn write_outcome(outcome: &Outcome, file: &Path) -> Result<(), Failure> {
    let text = format!("{}{}", outcome.word(), outcome.explanation());
    fs::write(file, text).map_err(|error| cannot("write", &file.display(), &error))
}

fn read_outcome(file: &PathBuf) -> Option<Outcome> {
    let mut text = String::new();
    File::open(file).ok()?.read_to_string(&mut text).ok()?;
    match text.split_once(": ") {
        None if text == "passed" => Some(Outcome::Passed),
        Some(("failed", reason)) => Some(Outcome::Failed(reason.to_string())),
        Some(("skipped", reason)) => Some(Outcome::Skipped(reason.to_string())),
        _ => None,
    }
}

fn budget_warning(report: &StepReport) -> Option<String> {
    let (taken, budget): (Duration, Duration) = (report.duration, report.budget);
    (taken > budget).then(|| {
        format!(
            "warning: {} took {:.1} s, more than its budget of {} s",
            report.name,
            taken.as_secs_f64(),
            budget.as_secs()
        )
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::steps::chosen;

    #[test]
    fn a_failing_step_does_not_stop_the_others() {
        let names = ["format", "ruff", "pytest"].map(String::from);
        let mut performed = Vec::new();
        let summary = run(&chosen(&names), |step| {
            performed.push(step.name);
            if step.name == "format" { Outcome::Failed("exit code 1".into()) } else { Outcome::Passed }
        });
        assert_eq!(performed, ["format", "ruff", "pytest"]);
        assert!(summary.any_failed());
        assert_eq!(summary.counts(), "2 passed, 1 failed, 0 skipped");
    }

    #[test]
    fn steps_of_a_side_that_broke_off_have_failed() {
        let steps = chosen(&["ruff", "pytest"].map(String::from));
        let summary = Summary::new(reports_of(Err(Box::new("broken")), &steps));
        assert_eq!(summary.counts(), "0 passed, 2 failed, 0 skipped");
        assert!(reports_of(Ok(Vec::new()), &steps).is_empty());
    }

    #[test]
    fn an_outcome_is_read_as_it_was_written_and_none_is_no_pass() {
        let file = std::env::temp_dir().join(format!("gpuemu-outcome-{}", std::process::id()));
        for outcome in [Outcome::Passed, Outcome::Failed("a: b\nc".into()), Outcome::Skipped("no Python".into())] {
            write_outcome(&outcome, &file).unwrap();
            assert_eq!(read_outcome(&file), Some(outcome));
        }
        for text in ["", "pass", "passed: 1"] {
            fs::write(&file, text).unwrap();
            assert_eq!(read_outcome(&file), None);
        }
        fs::remove_file(&file).unwrap();
        assert_eq!(read_outcome(&file), None);
    }

    #[test]
    fn only_a_time_over_budget_is_warned_of() {
        let report = |milliseconds| StepReport {
            name: "clippy",
            budget: Duration::from_secs(2),
            duration: Duration::from_millis(milliseconds),
            outcome: Outcome::Passed,
        };
        assert_eq!(budget_warning(&report(2_000)), None);
        let warning = budget_warning(&report(3_400)).unwrap();
        assert_eq!(warning, "warning: clippy took 3.4 s, more than its budget of 2 s");
    }
}
