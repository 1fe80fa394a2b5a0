//! Judges the corpus the way a user does and reads the verdict from the report.

use serde_json::Value;

use crate::failure::Failure;
use crate::process;

/// The arguments of cargo: few enough cases for every run of the checks.
pub const ARGUMENTS: &[&str] =
    &["run", "--release", "--package", "gpuemu", "--", "corpus", "--cases", "60", "--format", "json"];

/// Fails unless the command exits with 0 and reports every bug caught and no false alarm.
pub fn run() -> Result<(), Failure> {
    let (report, exit) = process::run_keeping_output(process::cargo()?.args(ARGUMENTS))?;
    let wrong = match (exit, judge(&report)) {
        (Ok(()), Ok(verdict)) => {
            println!("{verdict}");
            return Ok(());
        }
        (Ok(()), Err(wrong)) => wrong,
        (Err(failure), Ok(verdict) | Err(verdict)) => format!("{failure}: {verdict}"),
    };
    // The report is long, and of interest only when something is wrong.
    println!("{}", report.trim_end());
    Err(Failure::Check(wrong))
}

/// One line on a report without fault, or what is wrong with it.
fn judge(report: &str) -> Result<String, String> {
    let report: Value = serde_json::from_str(report).map_err(|error| format!("the report is no JSON: {error}"))?;
    let count = |name: &str| {
        report["summary"][name].as_u64().ok_or_else(|| format!("the report has no whole number summary.{name}"))
    };
    let (bugs, caught, false_alarms) = (count("bugs")?, count("caught")?, count("false_alarms")?);
    let verdict = format!("{caught} of {bugs} bugs caught, {false_alarms} false alarms");
    // A corpus without bugs would be judged perfectly by a tool that finds none.
    if bugs == 0 || caught != bugs || false_alarms != 0 { Err(verdict) } else { Ok(verdict) }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn judge_counts(bugs: u64, caught: u64, false_alarms: u64) -> Result<String, String> {
        let summary = serde_json::json!({ "bugs": bugs, "caught": caught, "false_alarms": false_alarms });
        judge(&serde_json::json!({ "summary": summary, "kernels": [] }).to_string())
    }

    #[test]
    fn every_bug_has_to_be_caught_without_a_false_alarm() {
        assert_eq!(judge_counts(20, 20, 0), Ok("20 of 20 bugs caught, 0 false alarms".into()));
        assert_eq!(judge_counts(20, 19, 0), Err("19 of 20 bugs caught, 0 false alarms".into()));
        assert_eq!(judge_counts(20, 20, 1), Err("20 of 20 bugs caught, 1 false alarms".into()));
        assert!(judge_counts(0, 0, 0).is_err());
    }

    #[test]
    fn a_report_in_another_form_is_refused() {
        assert!(judge("").unwrap_err().contains("no JSON"));
        assert!(judge("{}").unwrap_err().contains("summary.bugs"));
        assert!(judge("[1]").unwrap_err().contains("summary.bugs"));
        let negative = r#"{"summary": {"bugs": 1, "caught": 1, "false_alarms": -1}}"#;
        assert!(judge(negative).unwrap_err().contains("summary.false_alarms"));
    }
}
