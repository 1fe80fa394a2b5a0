//! Demands that what the repository publishes is what the types say; `GPUEMU_TEST_WRITE=1` writes it anew.

use std::path::Path;

use gpuemu_config::ConfigFile;
use gpuemu_model::report::RunReport;
use schemars::generate::SchemaSettings;
use schemars::{Schema, schema_for};

use super::{configuration, messages};

fn holds(name: &str, expected: &str) {
    let path = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../docs/reference").join(name);
    if std::env::var_os("GPUEMU_TEST_WRITE").is_some_and(|value| value == "1") {
        std::fs::write(&path, expected).unwrap();
    }
    let published = std::fs::read_to_string(&path).unwrap();
    assert!(published == expected, "{name} is out of date: GPUEMU_TEST_WRITE=1 cargo xtask test --only schemas");
}

fn pretty(schema: &Schema) -> String {
    serde_json::to_string_pretty(schema).unwrap() + "\n"
}

/// Rows of a page whose last column or whose kind is empty.
fn bare(page: &str) -> Vec<&str> {
    let bare = |line: &&str| line.starts_with("| `") && (line.ends_with("|  |") || line.contains("` |  | "));
    page.lines().filter(bare).collect()
}

#[test]
fn the_schema_of_a_configuration_file() {
    holds("gpuemu.schema.json", &pretty(&schema_for!(ConfigFile)));
}

#[test]
fn the_schema_of_a_report() {
    let schema = SchemaSettings::default().for_serialize().into_generator().into_root_schema_for::<RunReport>();
    holds("report.schema.json", &pretty(&schema));
}

#[test]
fn the_reference_of_a_configuration_file() {
    let page = configuration::page(&schema_for!(ConfigFile).to_value());
    assert_eq!(bare(&page), [""; 0]);
    for title in ["## `[project]`", "## `[[ops]]`", "## `[[kernels]]`", "## `[ci]`", "| `dtypes` |"] {
        assert!(page.contains(title), "{title}");
    }
    holds("configuration.md", &page);
}

#[test]
fn the_reference_of_messages() {
    let page = messages::page();
    assert_eq!(bare(&page), [""; 0]);
    for title in ["### `Ping`", "### `KeepPart`", "### `Pong`", "### Part: RunReport", "| `seed` | [Seed](#part-seed)"]
    {
        assert!(page.contains(title), "{title}");
    }
    holds("messages.md", &page);
}
