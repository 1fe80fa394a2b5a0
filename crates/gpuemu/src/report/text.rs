//! Reports for people.

use std::fmt::Write;

use gpuemu_model::artifact::Severity;
use gpuemu_model::finding::Outcome;
use gpuemu_model::report::{ComparisonReport, ComparisonStatus, OpReport, OpStatus, RunReport, ValidationResult};

use super::style::{BAD, COMMAND, GOOD, WARNING, paint};

/// Failures of one op that are shown.
const SHOWN_FAILURES: usize = 3;

pub fn run(report: &RunReport) -> String {
    let mut text = String::new();
    // Writing to a string cannot fail.
    let _ = write_run(&mut text, report);
    text
}

fn write_run(text: &mut String, report: &RunReport) -> std::fmt::Result {
    let width = report.ops.iter().map(|op| op.op.len()).max().unwrap_or(0);
    for op in &report.ops {
        write_op(text, op, width)?;
    }
    text.push_str(&super::kernels::text(&report.kernels, Severity::Warning));
    if let Some(comparison) = &report.comparison {
        text.push_str(&self::comparison(comparison));
    }
    for warning in &report.warnings {
        writeln!(text, "{} {warning}", paint(WARNING, "warning:"))?;
    }
    for reservation in report.evidence.iter().flat_map(|evidence| &evidence.reservations) {
        writeln!(text, "{} {reservation}", paint(BAD, "not passed:"))?;
    }
    let mut missing: Vec<&str> = Vec::new();
    for what in report.ops.iter().flat_map(|op| &op.not_checked) {
        if !missing.contains(&what.as_str()) {
            missing.push(what);
        }
    }
    if !missing.is_empty() {
        writeln!(text, "not checked, because of how the ops run: {}", missing.join(", "))?;
    }
    writeln!(text, "\n{}", summary(report))
}

/// What became of the ops, in words.
pub fn op_counts(report: &RunReport) -> String {
    let count = |status: OpStatus| report.ops.iter().filter(|op| op.status == status).count();
    let mut parts = vec![format!("{} of {} ops passed", count(OpStatus::Passed), report.ops.len())];
    for (status, word) in [
        (OpStatus::Failed, "failed"),
        (OpStatus::ExpectedFailure, "failed as expected"),
        (OpStatus::Error, "could not be judged"),
        (OpStatus::Unfinished, "unfinished"),
    ] {
        if count(status) > 0 {
            parts.push(format!("{} {word}", count(status)));
        }
    }
    parts.join(", ")
}

/// What a run came to, in one line.
pub fn summary(report: &RunReport) -> String {
    let mut parts = Vec::new();
    if !report.ops.is_empty() || report.kernels.is_empty() {
        parts.push(op_counts(report));
    }
    if !report.kernels.is_empty() {
        parts.push(super::kernels::summary(&report.kernels));
    }
    let seed = if report.mode == "stored" { String::new() } else { format!(", base seed {}", report.seed) };
    format!("{}; {} cases, {}{seed}, {:.1} s", parts.join(", "), report.cases(), report.mode, report.seconds)
}

fn write_op(text: &mut String, op: &OpReport, width: usize) -> std::fmt::Result {
    let (style, word) = match op.status {
        OpStatus::Passed => (GOOD, "PASS "),
        OpStatus::Failed => (BAD, "FAIL "),
        OpStatus::ExpectedFailure => (WARNING, "XFAIL"),
        OpStatus::Error => (BAD, "ERROR"),
        OpStatus::Unfinished => (WARNING, "STOP "),
    };
    write!(text, "{}  {:width$}  ", paint(style, word), op.op)?;
    if op.cases > 0 {
        let dtypes: Vec<String> = op.dtypes.iter().map(|counts| counts.dtype.to_string()).collect();
        let failed = if op.failed > 0 { format!("{} of ", op.failed) } else { String::new() };
        let verb = if op.failed > 0 { " failed" } else { "" };
        write!(
            text,
            "{failed}{} cases{verb}, {}, largest error {}",
            op.cases,
            dtypes.join(" "),
            number(op.largest.max_abs_diff)
        )?;
        if op.failed == 0 {
            write!(text, " ({:.2} of the tolerance)", op.largest.tolerance_share)?;
        }
        write!(text, ", {}", op.runner)?;
    }
    text.push('\n');
    if let Some(message) = &op.message {
        for line in message.lines() {
            writeln!(text, "       {line}")?;
        }
    }
    if op.regressed {
        writeln!(text, "       it passed in the run before")?;
    }
    for failure in op.failures.iter().take(SHOWN_FAILURES) {
        write_failure(text, failure, "       ")?;
    }
    if op.failed as usize > SHOWN_FAILURES {
        let list = format!("gpuemu failures --op {}", op.op);
        writeln!(text, "       and {} more: {}", op.failed as usize - SHOWN_FAILURES, paint(COMMAND, &list))?;
    }
    for warning in &op.warnings {
        writeln!(text, "       {} {warning}", paint(WARNING, "warning:"))?;
    }
    Ok(())
}

/// What is wrong with one case, and how to see it again.
fn write_failure(text: &mut String, result: &ValidationResult, indent: &str) -> std::fmt::Result {
    writeln!(text, "{indent}{}", case_line(result))?;
    for finding in &result.failures {
        let mut lines = finding.explanation.trim_end().lines();
        let first = lines.next().unwrap_or_default();
        writeln!(text, "{indent}  {}: {first} [{}]", finding.check, finding.bug_class)?;
        for line in lines {
            writeln!(text, "{indent}    {line}")?;
        }
        if let Some(worst) = &finding.worst {
            writeln!(
                text,
                "{indent}  worst at {:?}: {}, expected {} (error {}, allowed {})",
                worst.index,
                precise(worst.actual),
                precise(worst.expected),
                number(worst.error),
                number(worst.allowed)
            )?;
        }
    }
    if result.failing_case.is_some() {
        writeln!(text, "{indent}  found by an extra case drawn from this one")?;
    }
    writeln!(text, "{indent}  {}", paint(COMMAND, &result.replay))
}

/// A case in one line: dtype, shapes, layout, values, seed.
pub fn case_line(result: &ValidationResult) -> String {
    let shapes: Vec<String> = result.shapes.iter().map(|(name, shape)| format!("{name}{shape:?}")).collect();
    let shape = if shapes.is_empty() { result.sizes.clone() } else { shapes.join(" ") };
    let mut parts = vec![result.dtype.to_string(), shape, result.layout.clone(), format!("{} values", result.values)];
    if !result.parameters.is_empty() {
        parts.push(result.parameters.clone());
    }
    parts.push(format!("seed {}", result.seed));
    parts.join(", ")
}

/// The verdict on one case.
pub fn result(result: &ValidationResult) -> String {
    let mut text = String::new();
    let (style, word) = match result.outcome {
        Outcome::Passed => (GOOD, "PASS"),
        Outcome::Failed => (BAD, "FAIL"),
        Outcome::Undetermined => (WARNING, "UNDETERMINED"),
        Outcome::Error => (BAD, "ERROR"),
    };
    // Writing to a string cannot fail.
    let _ = writeln!(text, "{}  {}", paint(style, word), result.op);
    if result.failures.is_empty() {
        let _ = writeln!(text, "  {}", case_line(result));
    } else {
        let _ = write_failure(&mut text, result, "  ");
    }
    if let Some(message) = &result.message {
        let _ = writeln!(text, "  {message}");
    }
    let largest = number(result.largest.max_abs_diff);
    let _ = writeln!(
        text,
        "  largest error {largest} ({:.2} of {}), {}",
        result.largest.tolerance_share, result.tolerance, result.runner
    );
    if !result.not_checked.is_empty() {
        let _ = writeln!(text, "  not checked: {}", result.not_checked.join(", "));
    }
    for warning in &result.warnings {
        let _ = writeln!(text, "  {} {warning}", paint(WARNING, "warning:"));
    }
    text
}

/// A comparison with a baseline.
pub fn comparison(comparison: &ComparisonReport) -> String {
    let mut text =
        format!("against baseline {} (threshold {:.0} %)\n", comparison.baseline, 100.0 * comparison.threshold);
    let width = comparison.ops.iter().map(|op| op.op.len()).max().unwrap_or(0);
    for op in &comparison.ops {
        let (style, word) = match op.status {
            ComparisonStatus::Same => (GOOD, "same      "),
            ComparisonStatus::Improved => (GOOD, "improved  "),
            ComparisonStatus::Regressed => (BAD, "REGRESSED "),
            ComparisonStatus::NotComparable => (BAD, "ERROR     "),
        };
        let _ = write!(text, "  {} {:width$}  ", paint(style, word), op.op);
        if op.status != ComparisonStatus::NotComparable {
            let errors = format!("largest error {} -> {}", number(op.before_abs), number(op.now_abs));
            let ulps = format!("{} -> {} ulp", number(op.before_ulp), number(op.now_ulp));
            let _ = write!(text, "{errors} ({ulps}), {} cases", op.cases);
        }
        if op.failing > 0 {
            let _ = write!(text, ", {} failing, {} of them newly", op.failing, op.newly_failing);
        }
        text.push('\n');
        if let Some(message) = &op.message {
            let _ = writeln!(text, "    {message}");
        }
        if let Some(worst) = op.worst.as_ref().filter(|_| op.status == ComparisonStatus::Regressed) {
            let _ = writeln!(text, "    {}", case_line(worst));
            let _ = writeln!(text, "    {}", paint(COMMAND, &worst.replay));
        }
    }
    text.push_str(&super::kernel_comparison::text(&comparison.artifacts));
    text
}

/// A number in few digits.
pub fn number(value: f64) -> String {
    digits(value, 4)
}

/// A number in enough digits to tell a float32 from its neighbours.
fn precise(value: f64) -> String {
    digits(value, 9)
}

/// A number in so many significant digits, without an exponent where that is readable.
pub fn digits(value: f64, count: usize) -> String {
    if value == 0.0 || !value.is_finite() {
        return value.to_string();
    }
    let rounded = format!("{value:.*e}", count - 1);
    let exponent: i32 = rounded.split_once('e').and_then(|(_, exponent)| exponent.parse().ok()).unwrap_or(0);
    match rounded.parse::<f64>() {
        Ok(readable) if (-4..10).contains(&exponent) => readable.to_string(),
        _ => rounded,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn numbers_are_short_and_still_tell_neighbours_apart() {
        assert_eq!(number(0.000123456), "0.0001235");
        assert_eq!(number(1.0e-7), "1.000e-7");
        assert_eq!(number(-1234567.0), "-1235000");
        assert_eq!(number(f64::NAN), "NaN");
        assert_eq!(number(0.0), "0");
        assert_eq!(precise(0.005861234567), "0.00586123457");
        assert_ne!(precise(1.0), precise(f64::from(f32::EPSILON) + 1.0));
    }
}
