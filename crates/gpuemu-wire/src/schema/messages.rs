//! The messages of the protocol as Markdown, made from the types that read and write them.

use std::collections::VecDeque;
use std::fmt::Write;

use schemars::{JsonSchema, schema_for};
use serde_json::Value;

use super::words::{definition, is_table, plain, properties, table, text};
use crate::protocol::{Request, Response};

/// The page: every request, every answer, and what they are made of.
pub(super) fn page() -> String {
    let mut page = String::from(
        "# Messages\n\nWritten by `GPUEMU_TEST_WRITE=1 cargo xtask test --only schemas` from the types that read and \
         write messages. How they travel, and what to ask in which order, is said in [talking to the daemon](protocol.md). \
         A request is a JSON object whose `type` is one of the names below; a field that is not named here is refused. *No* \
         stands for what may be left out.\n",
    );
    let schemas = [schema_of::<Request>(), schema_of::<Response>()];
    let mut parts = Parts { schemas: &schemas, known: Vec::new(), waiting: VecDeque::new() };
    messages(&mut page, "Requests", &schemas[0], &mut parts);
    messages(&mut page, "Answers", &schemas[1], &mut parts);
    page.push_str("\n## What they are made of\n");
    while let Some(name) = parts.waiting.pop_front() {
        let described = parts.definition(&name);
        // Writing to a string cannot fail.
        let _ = writeln!(page, "\n### Part: {name}");
        if !text(described).is_empty() {
            let _ = writeln!(page, "\n{}", text(described));
        }
        part(&mut page, described, &mut parts);
    }
    page
}

fn schema_of<T: JsonSchema>() -> Value {
    schema_for!(T).to_value()
}

/// The parts that messages name: each is described once, in the order in which they are named.
struct Parts<'a> {
    schemas: &'a [Value; 2],
    known: Vec<String>,
    waiting: VecDeque<String>,
}

impl<'a> Parts<'a> {
    /// A part, of whichever messages name it.
    fn definition(&self, name: &str) -> &'a Value {
        let [requests, answers] = self.schemas;
        Some(definition(requests, name)).filter(|found| !found.is_null()).unwrap_or_else(|| definition(answers, name))
    }

    /// A link to a part.
    fn link(&mut self, name: &str) -> String {
        if !self.known.iter().any(|known| known == name) {
            self.known.push(name.to_string());
            self.waiting.push_back(name.to_string());
        }
        // Some have the name of an answer.
        format!("[{name}](#part-{})", name.to_lowercase())
    }
}

fn messages(page: &mut String, title: &str, schema: &Value, parts: &mut Parts<'_>) {
    let _ = write!(page, "\n## {title}\n");
    for message in schema["oneOf"].as_array().into_iter().flatten() {
        let name = message["properties"]["type"]["const"].as_str().unwrap_or_default();
        let _ = write!(page, "\n### `{name}`\n\n{}\n", text(message));
        // What the variant holds, where it is a type of its own.
        let held = message["$ref"].as_str().and_then(|path| path.rsplit('/').next());
        let described = held.map_or(message, |held| definition(schema, held));
        fields(page, described, parts);
    }
}

/// What one part is: its fields, one of several forms, or one of several values.
fn part(page: &mut String, described: &Value, parts: &mut Parts<'_>) {
    let forms: Vec<&Value> = ["oneOf", "anyOf"].iter().filter_map(|key| described[*key].as_array()).flatten().collect();
    if is_table(described) {
        fields(page, described, parts);
    } else if forms.iter().any(|form| is_table(form)) {
        for form in forms {
            let _ = write!(page, "\n{}\n", if text(form).is_empty() { "One form:".to_string() } else { text(form) });
            fields(page, form, parts);
        }
    } else {
        let _ = writeln!(page, "\n{}", value(described, parts));
    }
}

fn fields(page: &mut String, described: &Value, parts: &mut Parts<'_>) {
    let needed = |key: &str| described["required"].as_array().is_some_and(|all| all.iter().any(|one| one == key));
    let mut rows = String::new();
    for (key, property) in properties(described).filter(|(key, property)| *key != "type" || property["const"].is_null())
    {
        let needed = if needed(key) { "" } else { "no" };
        // Of a form with one field, what is said of the form is said of the field.
        let words = Some(text(property)).filter(|words| !words.is_empty()).unwrap_or_else(|| text(described));
        let _ = writeln!(rows, "| `{key}` | {} | {needed} | {words} |", value(property, parts));
    }
    if !rows.is_empty() {
        let _ = write!(page, "\n| field | value | needed | |\n| --- | --- | --- | --- |\n{rows}");
    }
}

/// What may stand there.
fn value(property: &Value, parts: &mut Parts<'_>) -> String {
    if property["$ref"] == "#" {
        return "a request".to_string();
    }
    let by_name = |property: &Value| property["additionalProperties"]["$ref"].is_string();
    match table(property) {
        Some((name, true)) => format!("a list of {}", parts.link(&name)),
        Some((name, false)) if by_name(property) => format!("by name: {}", parts.link(&name)),
        Some((name, false)) if by_name(parts.definition(&name)) => value(parts.definition(&name), parts),
        Some((name, false)) => parts.link(&name),
        None if property["items"].is_object() => format!("a list of {}", value(&property["items"], parts)),
        None if plain(property).is_empty() => "any JSON".to_string(),
        // The words are those of TOML.
        None => plain(property).replace("a table", "an object"),
    }
}
