//! YAML as JSON values.

use std::path::{Path, PathBuf};

use serde_json::Value;

/// A file or folder of `integrations/`.
pub fn integration(path: &str) -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../../integrations").join(path).canonicalize().unwrap()
}

/// Reads a YAML file.
pub fn read(path: &Path) -> Value {
    let text = std::fs::read_to_string(path).unwrap();
    serde_saphyr::from_str(&text).unwrap_or_else(|error| panic!("{}: {error}", path.display()))
}

/// The texts of a value, at any depth, each with the key that leads to it.
pub fn texts(value: &Value) -> Vec<(String, String)> {
    fn collect(key: &str, value: &Value, texts: &mut Vec<(String, String)>) {
        match value {
            Value::String(text) => texts.push((key.to_string(), text.clone())),
            Value::Array(items) => items.iter().for_each(|item| collect(key, item, texts)),
            Value::Object(fields) => fields.iter().for_each(|(key, item)| collect(key, item, texts)),
            _ => {}
        }
    }
    let mut texts = Vec::new();
    collect("", value, &mut texts);
    texts
}
