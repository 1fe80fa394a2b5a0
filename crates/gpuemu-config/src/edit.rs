//! Changes of a configuration file that leave everything else in it as it was written.

use std::collections::BTreeMap;
use std::path::Path;

use gpuemu_tensor::DType;
use toml_edit::{DocumentMut, InlineTable, Item, Table, TableLike, Value};

use super::calibration::Calibration;
use super::check::check;
use super::error::{ConfigError, Source};
use super::tables::{ConfigFile, TolerancePair};

/// The text of a file with the calibrations of an op set. Comments, order and formatting stay; so do calibrations of
/// dtypes that are not among the new ones.
pub fn with_calibrations(
    path: &Path,
    text: &str,
    op: &str,
    calibrations: &BTreeMap<DType, Calibration>,
) -> Result<String, ConfigError> {
    with_entry(path, text, op, &["calibration"], |entry| {
        let form = entry.form;
        let held = entry.table.entry("calibration").or_insert_with(|| form.group());
        let form = if held.is_value() { Form::Inline } else { form };
        set_all(held.as_table_like_mut()?, calibrations, || form.leaf())
    })
}

/// The text of a file with the tolerance of an op in one dtype set, and made the one that decides. Comments, order and
/// formatting stay.
pub fn with_tolerance(
    path: &Path,
    text: &str,
    op: &str,
    dtype: DType,
    tolerance: TolerancePair,
) -> Result<String, ConfigError> {
    with_entry(path, text, op, &["tolerance", "tolerances"], |entry| {
        if entry.table.contains_key("tolerance") {
            set_value(entry.table, "tolerance", "fixed".into());
        }
        let form = entry.form;
        let held = entry.table.entry("tolerances").or_insert_with(|| form.leaf()).as_table_like_mut()?;
        // The dtype may be there under another of its names.
        let written = held.iter().map(|(name, _)| name.to_string()).find(|name| name.parse() == Ok(dtype));
        let name = written.unwrap_or_else(|| dtype.name().to_string());
        if !held.contains_key(&name) {
            held.insert(&name, Form::Inline.leaf());
        }
        let pair = held.get_mut(&name)?.as_table_like_mut()?;
        set_value(pair, "atol", number(tolerance.atol));
        set_value(pair, "rtol", number(tolerance.rtol));
        Some(())
    })
}

/// How tables within an entry are written.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Form {
    /// With headers of their own.
    Headers,
    Inline,
}

impl Form {
    /// An empty table that holds values.
    fn leaf(self) -> Item {
        match self {
            Form::Headers => Item::Table(Table::new()),
            Form::Inline => Item::Value(Value::InlineTable(InlineTable::new())),
        }
    }

    /// An empty table that holds tables: only they have a line of their own.
    fn group(self) -> Item {
        let mut item = self.leaf();
        if let Item::Table(table) = &mut item {
            table.set_implicit(true);
        }
        item
    }
}

/// An `[[ops]]` entry that is changed.
struct Entry<'a> {
    table: &'a mut dyn TableLike,
    form: Form,
}

/// The text of a file with the entry of an op changed, of which only the named keys may read differently afterwards.
fn with_entry(
    path: &Path,
    text: &str,
    op: &str,
    keys: &[&str],
    change: impl FnOnce(&mut Entry<'_>) -> Option<()>,
) -> Result<String, ConfigError> {
    let source = Source { path: path.to_path_buf(), text: text.to_string() };
    let before = parse(&source)?;
    let mut document: DocumentMut = text.parse().map_err(|error: toml_edit::TomlError| {
        source.invalid(&error.span().unwrap_or(0..0), error.message().trim(), None)
    })?;
    let Some(mut entry) = document.get_mut("ops").and_then(|ops| entry_of(ops, op)) else {
        let message = format!("there is no [[ops]] entry '{op}' to keep {} in", keys.join(" or "));
        let hint = format!("add one to {}: [[ops]] with name = \"{op}\"", path.display());
        return Err(source.invalid(&(0..0), message, Some(hint)));
    };
    let changed = change(&mut entry);
    let mut edited = document.to_string();
    if text.contains("\r\n") {
        // New lines end as the others do.
        edited = edited.replace("\r\n", "\n").replace('\n', "\r\n");
    }
    let after = parse(&Source { path: path.to_path_buf(), text: edited.clone() })?;
    if changed.is_none() || without(before, op, keys) != without(after, op, keys) {
        let keys = keys.join(" and ");
        let message = format!("{keys} of op '{op}' cannot be set without changing something else");
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

fn without(mut file: toml::Table, op: &str, keys: &[&str]) -> toml::Table {
    let ops = file.get_mut("ops").and_then(toml::Value::as_array_mut);
    let entries = ops.into_iter().flatten().filter_map(toml::Value::as_table_mut);
    for entry in entries.filter(|entry| entry.get("name").and_then(toml::Value::as_str) == Some(op)) {
        keys.iter().for_each(|key| drop(entry.remove(*key)));
    }
    file
}

fn is_named(entry: &dyn TableLike, op: &str) -> bool {
    entry.get("name").and_then(Item::as_str) == Some(op)
}

fn entry_of<'a>(ops: &'a mut Item, op: &str) -> Option<Entry<'a>> {
    match ops {
        Item::ArrayOfTables(ops) => {
            let table = ops.iter_mut().find(|entry| is_named(*entry, op))?;
            Some(Entry { table, form: Form::Headers })
        }
        Item::Value(Value::Array(ops)) => {
            let mut entries = ops.iter_mut().filter_map(Value::as_inline_table_mut);
            let table = entries.find(|entry| is_named(*entry, op))?;
            Some(Entry { table, form: Form::Inline })
        }
        _ => None,
    }
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
    for (name, value) in values {
        set_value(table, name, value);
    }
}

fn set_value(table: &mut dyn TableLike, name: &str, mut value: Value) {
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

/// A number as people write it: small ones as 1.5e-7, not with twenty zeros.
fn number(value: f64) -> Value {
    let text = if value == 0.0 || (0.01..1e6).contains(&value) { format!("{value:?}") } else { format!("{value:e}") };
    text.parse().unwrap_or_else(|_| Value::from(value))
}
