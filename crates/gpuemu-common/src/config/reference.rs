//! The reference of `gpuemu.toml` as Markdown, from the schema that editors use, which is made from the code.

use std::collections::VecDeque;
use std::fmt::Write;

use serde_json::Value;

use super::json_schema;
use crate::schema_words::{definition, is_table, properties, table, text, words_of};

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
