//! JSON Schemas in words, for the tables of references.

use serde_json::Value;

/// The properties of an object, by name.
pub(crate) fn properties(schema: &Value) -> impl Iterator<Item = (&String, &Value)> {
    schema["properties"].as_object().into_iter().flatten()
}

/// A definition, by name.
pub(crate) fn definition<'a>(schema: &'a Value, kind: &str) -> &'a Value {
    &schema["$defs"][kind]
}

/// Whether something has properties.
pub(crate) fn is_table(described: &Value) -> bool {
    described["properties"].is_object()
}

/// The definition that a property refers to, and whether there may be several of it.
pub(crate) fn table(property: &Value) -> Option<(String, bool)> {
    let named = |value: &Value| Some(value["$ref"].as_str()?.rsplit('/').next()?.to_string());
    let either = property["anyOf"].as_array().into_iter().flatten().find_map(named);
    let direct = named(property).or(either).map(|kind| (kind, false));
    let listed = || named(&property["items"]).map(|kind| (kind, true));
    let mapped = || named(&property["additionalProperties"]).map(|kind| (kind, false));
    direct.or_else(listed).or_else(mapped)
}

/// What may stand there.
pub(crate) fn words_of(schema: &Value, property: &Value) -> String {
    if let Some((kind, repeated)) = table(property) {
        let described = definition(schema, &kind);
        let inner = if is_table(described) { "a table".to_string() } else { plain(described) };
        return if repeated { format!("a list: {inner}") } else { inner };
    }
    plain(property)
}

/// What may stand there, of something that has no properties.
pub(crate) fn plain(property: &Value) -> String {
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

/// What it is, for a cell of a table.
pub(crate) fn text(property: &Value) -> String {
    property["description"].as_str().unwrap_or_default().replace('\n', " ").replace('|', "\\|")
}
