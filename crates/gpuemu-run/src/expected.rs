//! Failures that the project expects, with a reason and a last day.

use std::time::{SystemTime, UNIX_EPOCH};

use gpuemu_config::{Config, ExpectedFailure};
use gpuemu_model::report::{OpReport, OpStatus};

/// Holds a run's reports against what the project expects. Returns things worth knowing.
pub fn apply(config: &Config, ops: &mut [OpReport]) -> Vec<String> {
    let today = date_of(SystemTime::now().duration_since(UNIX_EPOCH).map_or(0, |elapsed| elapsed.as_secs() / 86_400));
    let mut warnings = Vec::new();
    for report in ops.iter_mut() {
        let entries: Vec<&ExpectedFailure> =
            config.expected_failures.iter().filter(|expected| expected.op == report.op).collect();
        for expected in &entries {
            warnings.extend(remark(report, expected, today));
        }
        let covered = |failed: &gpuemu_model::report::DtypeCounts| {
            entries
                .iter()
                .any(|expected| expected.expires >= today && expected.dtype.is_none_or(|dtype| dtype == failed.dtype))
        };
        let all_covered = report.dtypes.iter().filter(|counts| counts.failed > 0).all(covered);
        let regressed = config.policies.fail_on_regression && report.regressed;
        // A run that broke off, or whose reference failed, is no proof that nothing else is wrong.
        let complete = report.cases == report.planned && report.errors == 0;
        if report.status == OpStatus::Failed && all_covered && complete && !entries.is_empty() && !regressed {
            report.status = OpStatus::ExpectedFailure;
            let reasons: Vec<&str> = entries.iter().map(|expected| expected.reason.as_str()).collect();
            report.message = Some(format!("expected: {}", reasons.join("; ")));
        }
    }
    warnings
}

/// An entry that is expired or no longer needed.
fn remark(report: &OpReport, expected: &ExpectedFailure, today: (u16, u8, u8)) -> Option<String> {
    let concerned = |dtype| expected.dtype.is_none_or(|only| only == dtype);
    let failed = report.dtypes.iter().any(|counts| concerned(counts.dtype) && counts.failed > 0);
    let ran = report.dtypes.iter().any(|counts| concerned(counts.dtype) && counts.cases > 0);
    let what = match expected.dtype {
        Some(dtype) => format!("'{}' in {dtype}", expected.op),
        None => format!("'{}'", expected.op),
    };
    let (year, month, day) = expected.expires;
    if expected.expires < today {
        Some(format!("the expected failure of {what} expired on {year:04}-{month:02}-{day:02}"))
    } else if ran && !failed && report.status == OpStatus::Passed {
        Some(format!("the expected failure of {what} passes now: remove it from expected_failures"))
    } else {
        None
    }
}

/// Year, month and day of a number of days since 1970.
pub fn date_of(days: u64) -> (u16, u8, u8) {
    let leap = |year: u64| year.is_multiple_of(4) && (!year.is_multiple_of(100) || year.is_multiple_of(400));
    let (mut year, mut rest) = (1970, days);
    while rest >= 365 + u64::from(leap(year)) {
        rest -= 365 + u64::from(leap(year));
        year += 1;
    }
    let mut month = 1;
    for length in [31, 28 + u64::from(leap(year)), 31, 30, 31, 30, 31, 31, 30, 31, 30, 31] {
        if rest < length {
            break;
        }
        rest -= length;
        month += 1;
    }
    (year as u16, month, rest as u8 + 1)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn days_are_dates() {
        assert_eq!(date_of(0), (1970, 1, 1));
        assert_eq!(date_of(58), (1970, 2, 28));
        assert_eq!(date_of(11_016), (2000, 2, 29));
        assert_eq!(date_of(20_454), (2026, 1, 1));
        assert_eq!(date_of(20_818), (2026, 12, 31));
    }
}
