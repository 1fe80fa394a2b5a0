//! The reference of `gpuemu.toml` as Markdown, from the schema that editors use, which is made from the code.

use std::collections::VecDeque;
use std::fmt::Write;

use serde_json::Value;

use super::json_schema;

/// The page: every table with its keys.
pub fn reference_page() -> String {
    let schema: Value = serde_json::from_str(&json_schema()).unwrap_or_default();
    let mut page = String::from(
        "# Configuration\n\nWritten by `cargo run -p gpuemu-common --example config_reference` from the \
         [JSON Schema](gpuemu.schema.json) of a configuration file. Three files are merged, each key from the first \
         that has it: the project's `gpuemu.toml` (the nearest one upwards from the current folder, or the file of \
         `GPUEMU_CONFIG`), `gpuemu/config.toml` in the user's folder for configurations, and `daemon.toml` in gpuemu's own \
         folder. `gpuemu config check` says what is wrong with them, with the line.\n",
    );
    let mut seen: Vec<String> = Vec::new();
    let mut waiting: VecDeque<(String, &Value)> = VecDeque::new();
    for (name, property) in properties(&schema) {
        if let Some((kind, repeated)) = table(property) {
            let title = if repeated { format!("[[{name}]]") } else { format!("[{name}]") };
            waiting.push_back((title, definition(&schema, &kind)));
            seen.push(kind);
        }
    }
    while let Some((title, described)) = waiting.pop_front() {
        // Writing to a string cannot fail.
        let _ = write!(page, "\n## `{title}`\n\n| key | value | |\n| --- | --- | --- |\n");
        for (key, property) in properties(described) {
            let _ = writeln!(page, "| `{key}` | {} | {} |", words_of(&schema, property), text(property));
            if let Some((kind, _)) = table(property).filter(|(kind, _)| !seen.contains(kind))
                && is_table(definition(&schema, &kind))
            {
                let inner = format!("{}.{key}", title.trim_matches(['[', ']']));
                waiting.push_back((format!("[{inner}]"), definition(&schema, &kind)));
                seen.push(kind);
            }
        }
    }
    page
}

fn properties(schema: &Value) -> impl Iterator<Item = (&String, &Value)> {
    schema["properties"].as_object().into_iter().flatten()
}

fn definition<'a>(schema: &'a Value, kind: &str) -> &'a Value {
    &schema["$defs"][kind]
}

fn is_table(described: &Value) -> bool {
    described["properties"].is_object()
}

/// The definition that a property refers to, and whether there may be several of it.
fn table(property: &Value) -> Option<(String, bool)> {
    let named = |value: &Value| Some(value["$ref"].as_str()?.rsplit('/').next()?.to_string());
    let either = property["anyOf"].as_array().into_iter().flatten().find_map(named);
    let direct = named(property).or(either).map(|kind| (kind, false));
    let listed = || named(&property["items"]).map(|kind| (kind, true));
    let mapped = || named(&property["additionalProperties"]).map(|kind| (kind, false));
    direct.or_else(listed).or_else(mapped)
}

/// What may stand there.
fn words_of(schema: &Value, property: &Value) -> String {
    if let Some((kind, repeated)) = table(property) {
        let described = definition(schema, &kind);
        let inner = if is_table(described) { "a table".to_string() } else { plain(described) };
        return if repeated { format!("a list: {inner}") } else { inner };
    }
    plain(property)
}

fn plain(property: &Value) -> String {
    if let Some(values) = property["enum"].as_array() {
        let values: Vec<String> =
            values.iter().map(|value| format!("`{}`", value.to_string().replace('"', ""))).collect();
        return values.join(", ");
    }
    let among = |key: &str| {
        let parts: Vec<String> = property[key].as_array().into_iter().flatten().map(plain).collect();
        let mut distinct: Vec<String> = Vec::new();
        parts.into_iter().filter(|part| !part.is_empty()).for_each(|part| {
            if !distinct.contains(&part) {
                distinct.push(part);
            }
        });
        distinct.join(" or ")
    };
    if let Some(value) = property["const"].as_str() {
        return format!("`{value}`");
    }
    for key in ["anyOf", "oneOf"] {
        if property[key].is_array() {
            return among(key);
        }
    }
    let kinds: Vec<&str> = match &property["type"] {
        Value::String(kind) => vec![kind.as_str()],
        Value::Array(kinds) => kinds.iter().filter_map(Value::as_str).collect(),
        _ => Vec::new(),
    };
    let word = |kind: &&str| match *kind {
        "string" => Some("text"),
        "integer" => Some("a whole number"),
        "number" => Some("a number"),
        "boolean" => Some("true or false"),
        "array" => Some("a list"),
        "object" => Some("a table"),
        _ => None,
    };
    kinds.iter().filter_map(word).collect::<Vec<_>>().join(" or ")
}

fn text(property: &Value) -> String {
    property["description"].as_str().unwrap_or_default().replace('\n', " ").replace('|', "\\|")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_page_in_the_documentation_is_up_to_date() {
        let path = std::path::Path::new(env!("CARGO_MANIFEST_DIR")).join("../../docs/reference/configuration.md");
        let page = std::fs::read_to_string(path).unwrap_or_default();
        assert!(
            page == reference_page(),
            "write it again: cargo run -p gpuemu-common --example config_reference > docs/reference/configuration.md"
        );
    }

    #[test]
    fn every_key_says_what_it_is() {
        let page = reference_page();
        let bare = |line: &&str| line.starts_with("| `") && (line.ends_with("|  |") || line.contains("` |  | "));
        let bare: Vec<&str> = page.lines().filter(bare).collect();
        assert!(bare.is_empty(), "{bare:#?}");
        for title in ["## `[project]`", "## `[[ops]]`", "## `[[kernels]]`", "## `[ci]`", "| `dtypes` |"] {
            assert!(page.contains(title), "{title}");
        }
    }
}
