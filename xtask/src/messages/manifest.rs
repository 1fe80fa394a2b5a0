//! The texts of the VS Code extension's `package.json`: commands, settings and views as the editor shows them.

use serde_json::Value;

use super::{Kind, Message, text};

/// The keys whose texts are shown.
const SHOWN: &[&str] =
    &["title", "description", "markdownDescription", "enumDescriptions", "markdownEnumDescriptions", "contents"];

/// The texts of the manifest, in their order.
pub fn messages(path: &str, source: &str) -> Result<Vec<Message>, String> {
    let manifest: Value = serde_json::from_str(source).map_err(|error| format!("{path}: {error}"))?;
    let mut shown = Vec::new();
    gather(&manifest, false, &mut shown);
    let mut read = 0;
    let mut found = Vec::new();
    for value in shown {
        // Objects keep their order, so that each text stands behind the one before.
        let quoted = Value::from(value).to_string();
        read += source[read..].find(&quoted).map_or(0, |start| start + quoted.len());
        let line = source[..read].lines().count();
        found.push(Message { path: path.to_string(), line, kind: Kind::Help, text: text::on_one_line(value) });
    }
    Ok(found)
}

fn gather<'manifest>(value: &'manifest Value, is_shown: bool, shown: &mut Vec<&'manifest str>) {
    match value {
        Value::String(text) if is_shown => shown.push(text),
        Value::Array(items) => items.iter().for_each(|item| gather(item, is_shown, shown)),
        Value::Object(pairs) => pairs.iter().for_each(|(key, item)| gather(item, SHOWN.contains(&key.as_str()), shown)),
        _ => {}
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_text_has_the_line_it_stands_on() {
        let source = "{\n  \"name\": \"x\",\n  \"title\": \"Say \\\"this\\\"\",\n  \"list\": [{ \"title\": \"Say this\",\n    \"enumDescriptions\": [\n      \"nothing\",\n      \"all of it\" ] }]\n}";
        let found = messages("package.json", source).unwrap();
        let rows: Vec<(usize, &str)> = found.iter().map(|message| (message.line, message.text.as_str())).collect();
        assert_eq!(rows, [(3, "Say \"this\""), (4, "Say this"), (6, "nothing"), (7, "all of it")]);
        assert!(messages("package.json", "{").unwrap_err().starts_with("package.json: "));
    }
}
