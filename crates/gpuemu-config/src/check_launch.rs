//! Impossible launch tables, each pointed at where it stands.

use super::error::{ConfigError, Source};
use super::expression::{Expression, Value};
use super::kernels::KernelTable;
use super::launch::{ExpressionList, VariantTable};
use super::located::Located;

/// Most threads of a block, on every chip.
const MOST_THREADS: i64 = 1024;

/// Checks the launch table of one `[[kernels]]` entry. A kernel without any of its keys has none.
pub(super) fn check_launch(kernel: &KernelTable, source: &Source) -> Result<(), ConfigError> {
    let name = &kernel.name.value;
    let variants = kernel.variants.as_ref();
    if let Some(located) = variants.filter(|located| located.value.is_empty()) {
        return Err(source.invalid(&located.span, format!("kernel '{name}' has an empty list of variants"), None));
    }
    for variant in variants.iter().flat_map(|located| &located.value) {
        check_variant(name, variant, source)?;
    }
    for (key, sizes) in [("grid", &kernel.grid), ("block", &kernel.block)] {
        check_sizes(name, key, sizes, source)?;
    }
    check_shared(name, &kernel.shared, source)?;
    check_entry(name, &kernel.entry, source)?;
    complete(kernel, source)
}

/// A launch needs a grid, a block and arguments: each from the kernel, or from every variant.
fn complete(kernel: &KernelTable, source: &Source) -> Result<(), ConfigError> {
    let place = |sizes: &ExpressionList| sizes.as_ref().map(|located| located.span.clone());
    let spans = [
        kernel.variants.as_ref().map(|located| located.span.clone()),
        place(&kernel.grid),
        place(&kernel.block),
        place(&kernel.args),
        kernel.shared.as_ref().map(|located| located.span.clone()),
        kernel.entry.as_ref().map(|located| located.span.clone()),
    ];
    let Some(span) = spans.into_iter().flatten().next() else { return Ok(()) };
    let variants = kernel.variants.as_ref().map_or([].as_slice(), |located| &located.value);
    let by_all = |has: fn(&VariantTable) -> bool| !variants.is_empty() && variants.iter().all(has);
    let keys = [
        ("grid", kernel.grid.is_some() || by_all(|variant| variant.grid.is_some())),
        ("block", kernel.block.is_some() || by_all(|variant| variant.block.is_some())),
        ("args", kernel.args.is_some() || by_all(|variant| variant.args.is_some())),
    ];
    match keys.into_iter().find(|(_, there)| !there) {
        None => Ok(()),
        Some((key, _)) => {
            let message = format!("the launch table of kernel '{}' has no '{key}'", kernel.name.value);
            let hint = "a launch needs grid, block and args, of the kernel or of every variant".to_string();
            Err(source.invalid(&span, message, Some(hint)))
        }
    }
}

fn check_variant(name: &str, variant: &VariantTable, source: &Source) -> Result<(), ConfigError> {
    if !variant.ptx.value.ends_with(".ptx") {
        let message = format!("the variant '{}' of kernel '{name}' is no .ptx file", variant.ptx.value);
        return Err(source.invalid(&variant.ptx.span, message, Some("variants are compiled already".to_string())));
    }
    if let Some(value) = variant.when.value.constant().filter(|value| !matches!(value, Value::Boolean(_))) {
        let message = format!("'when' of a variant of kernel '{name}' is {value}, but must be true or false");
        return Err(source.invalid(&variant.when.span, message, None));
    }
    for (key, sizes) in [("grid", &variant.grid), ("block", &variant.block)] {
        check_sizes(name, key, sizes, source)?;
    }
    check_shared(name, &variant.shared, source)?;
    check_entry(name, &variant.entry, source)
}

fn check_entry(name: &str, entry: &Option<Located<String>>, source: &Source) -> Result<(), ConfigError> {
    match entry {
        Some(located) if located.value.trim().is_empty() => {
            Err(source.invalid(&located.span, format!("the entry of kernel '{name}' is empty"), None))
        }
        _ => Ok(()),
    }
}

fn check_sizes(name: &str, key: &str, sizes: &ExpressionList, source: &Source) -> Result<(), ConfigError> {
    let Some(sizes) = sizes else { return Ok(()) };
    let count = sizes.value.len();
    if !(1..=3).contains(&count) {
        let message = format!("{key} of kernel '{name}' has {count} sizes, but must have one to three");
        return Err(source.invalid(&sizes.span, message, None));
    }
    let mut threads = 1i64;
    for size in &sizes.value {
        match size.value.constant() {
            None => {}
            Some(Value::Integer(number)) if *number >= 1 && u32::try_from(*number).is_ok() => {
                threads = threads.saturating_mul(*number);
            }
            Some(value) => {
                let message =
                    format!("a size of {key} of kernel '{name}' is {value}, but must be from 1 to 4294967295");
                return Err(source.invalid(&size.span, message, None));
            }
        }
    }
    if key == "block" && threads > MOST_THREADS {
        let message = format!("a block of kernel '{name}' has {threads} threads, but may have at most {MOST_THREADS}");
        return Err(source.invalid(&sizes.span, message, None));
    }
    Ok(())
}

fn check_shared(name: &str, shared: &Option<Located<Expression>>, source: &Source) -> Result<(), ConfigError> {
    let Some(shared) = shared else { return Ok(()) };
    match shared.value.constant() {
        None => Ok(()),
        Some(Value::Integer(number)) if u32::try_from(*number).is_ok() => Ok(()),
        Some(value) => {
            let message =
                format!("shared of kernel '{name}' is {value}, but must be a number of bytes from 0 to 4294967295");
            Err(source.invalid(&shared.span, message, None))
        }
    }
}
