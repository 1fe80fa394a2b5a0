//! What became of the steps, as a table and as one line of counts.

use std::fmt;
use std::time::Duration;

/// How a step ended.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Outcome {
    /// Everything it checks is right.
    Passed,
    /// It found something wrong, or it could not run; with the reason.
    Failed(String),
    /// It was not run; with the reason.
    Skipped(String),
}

impl Outcome {
    /// One word for the outcome.
    pub fn word(&self) -> &'static str {
        match self {
            Self::Passed => "passed",
            Self::Failed(_) => "failed",
            Self::Skipped(_) => "skipped",
        }
    }

    /// The reason, if there is one, to follow other text.
    pub fn explanation(&self) -> String {
        match self {
            Self::Passed => String::new(),
            Self::Failed(reason) | Self::Skipped(reason) => format!(": {reason}"),
        }
    }

    /// The reason in one line, for a row of the table.
    fn reason(&self) -> &str {
        match self {
            Self::Passed => "",
            Self::Failed(reason) | Self::Skipped(reason) => reason.lines().next().unwrap_or_default(),
        }
    }
}

/// One step that has run.
pub struct StepReport {
    pub name: &'static str,
    /// How long it may take.
    pub budget: Duration,
    /// How long it took.
    pub duration: Duration,
    pub outcome: Outcome,
}

/// Every step that has run, in order.
pub struct Summary {
    reports: Vec<StepReport>,
}

impl Summary {
    /// The summary of these reports.
    pub fn new(reports: Vec<StepReport>) -> Self {
        Self { reports }
    }

    /// The reports, to be joined with others.
    pub fn into_reports(self) -> Vec<StepReport> {
        self.reports
    }

    /// Whether any step failed.
    pub fn any_failed(&self) -> bool {
        self.count("failed") > 0
    }

    /// The counts of steps in the form that other programs read.
    pub fn counts(&self) -> String {
        format!("{} passed, {} failed, {} skipped", self.count("passed"), self.count("failed"), self.count("skipped"))
    }

    fn count(&self, word: &str) -> usize {
        self.reports.iter().filter(|report| report.outcome.word() == word).count()
    }
}

impl fmt::Display for Summary {
    /// Writes the table, and the counts alone on the last line.
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        let width = self.reports.iter().map(|report| report.name.len()).chain([4]).max().unwrap_or(4);
        writeln!(formatter, "{:width$}  {:7}  {:>9}  {:>7}  reason", "step", "outcome", "time", "budget")?;
        for report in &self.reports {
            let time = format!("{:.1} s", report.duration.as_secs_f64());
            let budget = format!("{} s", report.budget.as_secs());
            let (word, reason) = (report.outcome.word(), report.outcome.reason());
            let row = format!("{:width$}  {word:7}  {time:>9}  {budget:>7}  {reason}", report.name);
            writeln!(formatter, "{}", row.trim_end())?;
        }
        writeln!(formatter, "{}", self.counts())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn report(name: &'static str, milliseconds: u64, outcome: Outcome) -> StepReport {
        StepReport { name, budget: Duration::from_secs(60), duration: Duration::from_millis(milliseconds), outcome }
    }

    #[test]
    fn the_counts_stand_alone_on_the_last_line() {
        let summary = Summary::new(vec![
            report("format", 812, Outcome::Passed),
            report("clippy", 61_234, Outcome::Failed("exit status: 101\nmore".into())),
            report("pytest", 0, Outcome::Skipped("no Python".into())),
        ]);
        assert!(summary.any_failed());
        let expected = "\
step    outcome       time   budget  reason
format  passed       0.8 s     60 s
clippy  failed      61.2 s     60 s  exit status: 101
pytest  skipped      0.0 s     60 s  no Python
1 passed, 1 failed, 1 skipped
";
        assert_eq!(summary.to_string(), expected);
    }

    #[test]
    fn a_skipped_step_is_no_failure() {
        let summary = Summary::new(vec![report("pytest", 0, Outcome::Skipped("no Python".into()))]);
        assert!(!summary.any_failed());
        assert_eq!(summary.counts(), "0 passed, 0 failed, 1 skipped");
    }
}
