//! The reference of `gpuemu.toml` as Markdown, from the schema that editors use, which is made from the code.

use std::collections::VecDeque;
use std::fmt::Write;

use serde_json::Value;

use super::words::{definition, is_table, properties, table, text, words_of};

/// The page: every table with its keys.
pub(super) fn page(schema: &Value) -> String {
    let mut page = String::from(
        "# Configuration\n\nWritten by `GPUEMU_TEST_WRITE=1 cargo xtask test --only schemas` from the \
         [JSON Schema](gpuemu.schema.json) of a configuration file. Three files are merged, each key from the first \
         that has it: the project's `gpuemu.toml` (the nearest one upwards from the current folder, or the file of \
         `GPUEMU_CONFIG`), `gpuemu/config.toml` in the user's folder for configurations, and `daemon.toml` in gpuemu's own \
         folder. `gpuemu config check` reports their errors, with the line.\n",
    );
    let mut seen: Vec<String> = Vec::new();
    let mut waiting: VecDeque<(String, &Value)> = VecDeque::new();
    for (name, property) in properties(schema) {
        if let Some((kind, repeated)) = table(property) {
            let title = if repeated { format!("[[{name}]]") } else { format!("[{name}]") };
            waiting.push_back((title, definition(schema, &kind)));
            seen.push(kind);
        }
    }
    while let Some((title, described)) = waiting.pop_front() {
        // Writing to a string cannot fail.
        let _ = write!(page, "\n## `{title}`\n\n| key | value | |\n| --- | --- | --- |\n");
        for (key, property) in properties(described) {
            let _ = writeln!(page, "| `{key}` | {} | {} |", words_of(schema, property), text(property));
            if let Some((kind, _)) = table(property).filter(|(kind, _)| !seen.contains(kind))
                && is_table(definition(schema, &kind))
            {
                let inner = format!("{}.{key}", title.trim_matches(['[', ']']));
                waiting.push_back((format!("[{inner}]"), definition(schema, &kind)));
                seen.push(kind);
            }
        }
    }
    page
}
