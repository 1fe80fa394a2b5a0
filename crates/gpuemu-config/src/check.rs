//! Values that have the right type and are still impossible, each pointed at where it stands.

use std::collections::BTreeMap;

use gpuemu_tensor::DType;

use super::calibration::check_calibrations;
use super::check_kernels::{check_kernel, check_lint};
use super::error::{ConfigError, Source};
use super::located::Located;
use super::tables::*;

pub(super) fn check(file: &ConfigFile, source: &Source) -> Result<(), ConfigError> {
    if let Some(validation) = &file.validation {
        check_dtypes(source, &validation.dtypes)?;
        check_tolerances(source, &validation.tolerances)?;
        if let Some(seed) = &validation.seed {
            parse_seed(seed, source)?;
        }
    }
    unique(source, "op", file.ops.iter().flatten().map(|op| &op.name))?;
    unique(source, "kernel", file.kernels.iter().flatten().map(|kernel| &kernel.name))?;
    for op in file.ops.iter().flatten() {
        check_op(op, source)?;
    }
    for kernel in file.kernels.iter().flatten() {
        check_kernel(kernel, source)?;
    }
    if let Some(lint) = &file.lint {
        check_lint(lint, source)?;
    }
    if let Some(policies) = &file.policies {
        if let Some(share) = &policies.warn_threshold {
            within(source, share, "warn_threshold", 0.0, 1.0)?;
        }
        if let Some(growth) = &policies.regression_threshold {
            within(source, growth, "regression_threshold", 0.0, f64::MAX)?;
        }
    }
    if let Some(ci) = &file.ci {
        check_ci(ci, source)?;
    }
    if let Some(daemon) = &file.daemon {
        for (name, value) in [
            ("idle_timeout", &daemon.idle_timeout),
            ("workers", &daemon.workers),
            ("script_memory_megabytes", &daemon.script_memory_megabytes),
        ] {
            at_least(source, value, name, 0)?;
        }
        at_least(source, &daemon.message_megabytes, "message_megabytes", 1)?;
        check_timeout(source, "script_timeout", &daemon.script_timeout)?;
    }
    if let Some(storage) = &file.storage {
        at_least(source, &storage.keep_days, "keep_days", 0)?;
        at_least(source, &storage.snapshot_bytes, "snapshot_bytes", 0)?;
    }
    for expected in file.expected_failures.iter().flatten() {
        if parse_date(&expected.expires.value).is_none() {
            let message = format!("'{}' is not a date", expected.expires.value);
            let hint = Some("write the last day on which the failure is accepted, such as 2027-01-31".to_string());
            return Err(source.invalid(&expected.expires.span, message, hint));
        }
    }
    Ok(())
}

fn check_op(op: &OpTable, source: &Source) -> Result<(), ConfigError> {
    let places: Vec<&Located<String>> = [&op.module, &op.script, &op.kernel].into_iter().flatten().collect();
    if let [_, second, ..] = places.as_slice() {
        let message = format!("op '{}' says more than once where it comes from", op.name.value);
        let hint = Some("give one of module, script and kernel".to_string());
        return Err(source.invalid(&second.span, message, hint));
    }
    let named = [
        ("module", &op.module),
        ("script", &op.script),
        ("kernel", &op.kernel),
        ("reference", &op.reference),
        ("signature", &op.signature),
        ("launches", &op.launches),
    ];
    for (name, value) in named.iter().filter_map(|(name, value)| Some((name, value.as_ref()?))) {
        if value.value.trim().is_empty() {
            return Err(source.invalid(&value.span, format!("{name} of op '{}' is empty", op.name.value), None));
        }
    }
    if let Some(launches) = &op.launches {
        check_launches(op, launches, source)?;
    }
    check_dtypes(source, &op.dtypes)?;
    check_tolerances(source, &op.tolerances)?;
    check_calibrations(source, &op.calibration)?;
    check_timeout(source, "timeout", &op.timeout)?;
    for (name, range) in op.dims.iter().flatten() {
        let problem = match &range.value {
            DimensionTable::List(sizes) if sizes.is_empty() => Some("has no sizes to choose from".to_string()),
            DimensionTable::Range { min, max } if min > max => {
                Some(format!("has a min of {min} above its max of {max}"))
            }
            _ => None,
        };
        if let Some(problem) = problem {
            return Err(source.invalid(&range.span, format!("dim '{name}' of op '{}' {problem}", op.name.value), None));
        }
    }
    Ok(())
}

/// What a call has to run is a name of a module, and only calls of functions are watched.
fn check_launches(op: &OpTable, launches: &Located<String>, source: &Source) -> Result<(), ConfigError> {
    let (name, value) = (&op.name.value, &launches.value);
    if op.module.is_none() {
        let message = format!("op '{name}' has `launches` and no module");
        let hint = Some("give the module whose function runs the kernel, or take `launches` out".to_string());
        return Err(source.invalid(&launches.span, message, hint));
    }
    let named = value.split_once(':').is_some_and(|(module, name)| !module.is_empty() && !name.is_empty());
    if !named || value.matches(':').count() > 1 {
        let message = format!("launches of op '{name}' is '{value}', which names no function of a module");
        return Err(source.invalid(&launches.span, message, Some("write `pkg.mod:name`".to_string())));
    }
    Ok(())
}

fn check_ci(ci: &CiTable, source: &Source) -> Result<(), ConfigError> {
    at_least(source, &ci.thorough_timeout, "thorough_timeout", 1)?;
    at_least(source, &ci.parallel_jobs, "parallel_jobs", 0)?;
    at_least(source, &ci.parallel, "parallel", 0)?;
    at_least(source, &ci.fuzz_iterations, "fuzz_iterations", 1)?;
    check_dtypes(source, &ci.quick_dtypes)?;
    same(source, ("parallel_jobs", &ci.parallel_jobs), ("parallel", &ci.parallel))?;
    if let Some(quick) = &ci.quick {
        at_least(source, &quick.fuzz_iterations, "fuzz_iterations", 1)?;
        check_dtypes(source, &quick.dtypes)?;
        same(source, ("quick_dtypes", &ci.quick_dtypes), ("[ci.quick] dtypes", &quick.dtypes))?;
    }
    Ok(())
}

/// Two spellings of one setting may both be there only if they agree.
fn same<T: PartialEq>(
    source: &Source,
    (first_name, first): (&str, &Option<Located<T>>),
    (second_name, second): (&str, &Option<Located<T>>),
) -> Result<(), ConfigError> {
    match (first, second) {
        (Some(first), Some(second)) if first.value != second.value => {
            let message = format!("{second_name} and {first_name} are one setting, and differ");
            Err(source.invalid(&second.span, message, Some("remove one of them".to_string())))
        }
        _ => Ok(()),
    }
}

fn unique<'a>(
    source: &Source,
    what: &str,
    names: impl Iterator<Item = &'a Located<String>>,
) -> Result<(), ConfigError> {
    let mut seen: Vec<&str> = Vec::new();
    for name in names {
        if let Some(problem) = gpuemu_model::name::problem(&name.value) {
            return Err(source.invalid(&name.span, format!("the name of the {what} {problem}"), None));
        }
        if seen.contains(&name.value.as_str()) {
            return Err(source.invalid(&name.span, format!("there is a second {what} '{}'", name.value), None));
        }
        seen.push(&name.value);
    }
    Ok(())
}

fn check_dtypes(source: &Source, dtypes: &Option<Located<Vec<DType>>>) -> Result<(), ConfigError> {
    match dtypes {
        Some(dtypes) if dtypes.value.is_empty() => {
            let hint = Some("name at least one, such as [\"float32\"]".to_string());
            Err(source.invalid(&dtypes.span, "no dtype is left to test", hint))
        }
        _ => Ok(()),
    }
}

fn check_tolerances(
    source: &Source,
    tolerances: &Option<BTreeMap<DType, Located<TolerancePair>>>,
) -> Result<(), ConfigError> {
    for (dtype, pair) in tolerances.iter().flatten() {
        for (name, value) in [("atol", pair.value.atol), ("rtol", pair.value.rtol)] {
            if !value.is_finite() || value < 0.0 {
                let message = format!("{name} of {dtype} is {value}, but must be 0 or above");
                return Err(source.invalid(&pair.span, message, None));
            }
        }
    }
    Ok(())
}

/// A month: longer than anybody waits, and far from what a clock cannot hold.
const LONGEST_TIMEOUT: f64 = 30.0 * 24.0 * 3600.0;

fn check_timeout(source: &Source, name: &str, value: &Option<Located<f64>>) -> Result<(), ConfigError> {
    match value {
        Some(seconds) if !(seconds.value > 0.0 && seconds.value <= LONGEST_TIMEOUT) => {
            let value = seconds.value;
            let message = format!("{name} is {value} seconds, but must be above 0 and at most {LONGEST_TIMEOUT}");
            Err(source.invalid(&seconds.span, message, None))
        }
        _ => Ok(()),
    }
}

fn at_least(source: &Source, value: &Option<Located<i64>>, name: &str, lowest: i64) -> Result<(), ConfigError> {
    match value {
        Some(number) if number.value < lowest => {
            let message = format!("{name} is {}, but must be {lowest} or above", number.value);
            Err(source.invalid(&number.span, message, None))
        }
        _ => Ok(()),
    }
}

fn within(source: &Source, value: &Located<f64>, name: &str, low: f64, high: f64) -> Result<(), ConfigError> {
    if (low..=high).contains(&value.value) {
        return Ok(());
    }
    let allowed = if high == f64::MAX { format!("{low} or above") } else { format!("from {low} to {high}") };
    Err(source.invalid(&value.span, format!("{name} is {}, but must be {allowed}", value.value), None))
}

/// The number that a seed stands for.
pub(super) fn parse_seed(seed: &Located<SeedValue>, source: &Source) -> Result<u64, ConfigError> {
    seed_of(&seed.value).ok_or_else(|| {
        let text = match &seed.value {
            SeedValue::Number(number) => number.to_string(),
            SeedValue::Text(text) => text.clone(),
        };
        let hint = "a seed is a whole number from 0 to 18446744073709551615; above 9223372036854775807 as a string";
        source.invalid(&seed.span, format!("'{text}' is not a seed"), Some(hint.to_string()))
    })
}

/// The number of a seed that is one.
pub(super) fn seed_of(seed: &SeedValue) -> Option<u64> {
    match seed {
        SeedValue::Number(number) => u64::try_from(*number).ok(),
        SeedValue::Text(text) => text.trim().parse().ok(),
    }
}

/// Year, month and day of a date written as YYYY-MM-DD.
pub(super) fn parse_date(text: &str) -> Option<(u16, u8, u8)> {
    let mut parts = text.split('-');
    let (year, month, day) = (parts.next()?, parts.next()?, parts.next()?);
    if parts.next().is_some() || (year.len(), month.len(), day.len()) != (4, 2, 2) {
        return None;
    }
    let (year, month, day): (u16, u8, u8) = (year.parse().ok()?, month.parse().ok()?, day.parse().ok()?);
    let leap = year.is_multiple_of(4) && (!year.is_multiple_of(100) || year.is_multiple_of(400));
    let days = match month {
        2 if leap => 29,
        2 => 28,
        4 | 6 | 9 | 11 => 30,
        1..=12 => 31,
        _ => return None,
    };
    (1..=days).contains(&day).then_some((year, month, day))
}
