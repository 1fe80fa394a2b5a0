//! Runs steps one after the other and takes their times.

use std::time::{Duration, Instant};

use crate::steps::Step;
use crate::summary::{Outcome, StepReport, Summary};

/// Runs every step with `perform`, whatever becomes of the ones before it.
pub fn run(steps: &[&Step], mut perform: impl FnMut(&Step) -> Outcome) -> Summary {
    let mut reports = Vec::with_capacity(steps.len());
    for step in steps {
        println!("\n== {} (budget {} s)", step.name, step.budget.as_secs());
        let started = Instant::now();
        let outcome = perform(step);
        let report = StepReport { name: step.name, budget: step.budget, duration: started.elapsed(), outcome };
        let (word, seconds) = (report.outcome.word(), report.duration.as_secs_f64());
        println!("== {} {word} after {seconds:.1} s{}", report.name, report.outcome.explanation());
        if let Some(warning) = budget_warning(&report) {
            println!("{warning}");
        }
        reports.push(report);
    }
    Summary::new(reports)
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
