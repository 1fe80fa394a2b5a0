//! Changes of a configuration file that leave everything else in it as it was written.

use std::collections::BTreeMap;
use std::path::Path;

use toml_edit::{Array, ArrayOfTables, DocumentMut, InlineTable, Item, Table, TableLike, Value};

use super::calibration::Calibration;
use super::check::check;
use super::error::{ConfigError, Source};
use super::tables::ConfigFile;
use crate::DType;

/// The text of a file with the calibrations of an op set. Comments, order and formatting stay; so do calibrations of
/// dtypes that are not among the new ones.
pub fn with_calibrations(
    path: &Path,
    text: &str,
    op: &str,
    calibrations: &BTreeMap<DType, Calibration>,
) -> Result<String, ConfigError> {
    let source = Source { path: path.to_path_buf(), text: text.to_string() };
    let before = parse(&source)?;
    let mut document: DocumentMut = text.parse().map_err(|error: toml_edit::TomlError| {
        source.invalid(&error.span().unwrap_or(0..0), error.message().trim(), None)
    })?;
    let changed = match document.get_mut("ops") {
        Some(Item::ArrayOfTables(ops)) => set_in_tables(ops, op, calibrations),
        Some(Item::Value(Value::Array(ops))) => set_in_array(ops, op, calibrations),
        _ => None,
    };
    if changed.is_none() {
        let message = format!("there is no [[ops]] entry '{op}' to keep a calibration in");
        let hint = format!("add one to {}: [[ops]] with name = \"{op}\"", path.display());
        return Err(source.invalid(&(0..0), message, Some(hint)));
    }
    let mut edited = document.to_string();
    if text.contains("\r\n") {
        // New lines end as the others do.
        edited = edited.replace("\r\n", "\n").replace('\n', "\r\n");
    }
    let after = parse(&Source { path: path.to_path_buf(), text: edited.clone() })?;
    if without_calibration(before, op) != without_calibration(after, op) {
        let message = format!("the calibration of op '{op}' cannot be added without changing something else");
        let hint = "write the op as an [[ops]] table of its own".to_string();
        return Err(source.invalid(&(0..0), message, Some(hint)));
    }
    Ok(edited)
}

/// A file that is valid, as values.
fn parse(source: &Source) -> Result<toml::Table, ConfigError> {
    let file: ConfigFile = toml::from_str(&source.text).map_err(|error| source.unparsed(&error))?;
    check(&file, source)?;
    toml::from_str(&source.text).map_err(|error| source.unparsed(&error))
}

fn without_calibration(mut file: toml::Table, op: &str) -> toml::Table {
    let ops = file.get_mut("ops").and_then(toml::Value::as_array_mut);
    let entries = ops.into_iter().flatten().filter_map(toml::Value::as_table_mut);
    for entry in entries.filter(|entry| entry.get("name").and_then(toml::Value::as_str) == Some(op)) {
        entry.remove("calibration");
    }
    file
}

fn is_named(entry: &dyn TableLike, op: &str) -> bool {
    entry.get("name").and_then(Item::as_str) == Some(op)
}

fn set_in_tables(ops: &mut ArrayOfTables, op: &str, calibrations: &BTreeMap<DType, Calibration>) -> Option<()> {
    let entry = ops.iter_mut().find(|entry| is_named(*entry, op))?;
    let held = entry.entry("calibration").or_insert_with(|| {
        let mut table = Table::new();
        // Only the tables of the dtypes have a line of their own.
        table.set_implicit(true);
        Item::Table(table)
    });
    match held {
        Item::Table(table) => set_all(table, calibrations, || Item::Table(Table::new())),
        Item::Value(Value::InlineTable(table)) => set_all(table, calibrations, inline),
        _ => None,
    }
}

fn set_in_array(ops: &mut Array, op: &str, calibrations: &BTreeMap<DType, Calibration>) -> Option<()> {
    let entries = ops.iter_mut().filter_map(Value::as_inline_table_mut);
    let entry = entries.into_iter().find(|entry| is_named(*entry, op))?;
    let held = entry.entry("calibration").or_insert_with(|| Value::InlineTable(InlineTable::new()));
    set_all(held.as_inline_table_mut()?, calibrations, inline)
}

fn inline() -> Item {
    Item::Value(Value::InlineTable(InlineTable::new()))
}

fn set_all(
    held: &mut dyn TableLike,
    calibrations: &BTreeMap<DType, Calibration>,
    empty: impl Fn() -> Item,
) -> Option<()> {
    for (dtype, calibration) in calibrations {
        if !held.contains_key(dtype.name()) {
            held.insert(dtype.name(), empty());
        }
        set(held.get_mut(dtype.name())?.as_table_like_mut()?, calibration);
    }
    Some(())
}

fn set(table: &mut dyn TableLike, calibration: &Calibration) {
    let seed = i64::try_from(calibration.seed).map_or_else(|_| calibration.seed.to_string().into(), Value::from);
    let values = [
        ("atol", number(calibration.atol)),
        ("rtol", number(calibration.rtol)),
        ("control", calibration.control.as_str().into()),
        ("cases", i64::try_from(calibration.cases).unwrap_or(i64::MAX).into()),
        ("seed", seed),
        ("values", calibration.values.name().into()),
    ];
    for (name, mut value) in values {
        match table.get_mut(name).and_then(Item::as_value_mut) {
            Some(old) => {
                // Spaces and a comment behind a value stay.
                *value.decor_mut() = old.decor().clone();
                *old = value;
            }
            None => {
                table.insert(name, Item::Value(value));
            }
        }
    }
}

/// A number as people write small ones: 1.5e-7, not twenty zeros.
fn number(value: f64) -> Value {
    format!("{value:e}").parse().unwrap_or_else(|_| Value::from(value))
}
