//! docs/guides/ci.md says what the action has, and its examples are valid.

use std::collections::BTreeMap;

use serde_json::Value;

use super::yaml;

fn page() -> String {
    std::fs::read_to_string(concat!(env!("CARGO_MANIFEST_DIR"), "/../../docs/guides/ci.md")).unwrap()
}

/// The cells of the table under a heading, without the heads.
fn table(page: &str, heading: &str) -> Vec<Vec<String>> {
    let section = page.split(&format!("\n## {heading}\n")).nth(1).unwrap().split("\n## ").next().unwrap();
    let rows = section.lines().filter(|line| line.starts_with('|')).skip(2);
    rows.map(|row| row.trim_matches('|').split('|').map(|cell| cell.trim().to_string()).collect()).collect()
}

/// A description in one line.
fn described(value: &Value) -> String {
    value["description"].as_str().unwrap().split_whitespace().collect::<Vec<_>>().join(" ")
}

#[test]
fn the_tables_are_those_of_the_action() {
    let action = yaml::read(&yaml::integration("github-action/action.yml"));
    let inputs = action["inputs"].as_object().unwrap().iter().map(|(name, input)| {
        let default = input["default"].as_str().unwrap();
        let default = if default.is_empty() { String::new() } else { format!("`{default}`") };
        vec![format!("`{name}`"), default, described(input)]
    });
    assert_eq!(table(&page(), "Inputs"), inputs.collect::<Vec<_>>());
    let outputs = action["outputs"].as_object().unwrap().iter();
    let outputs = outputs.map(|(name, output)| vec![format!("`{name}`"), described(output)]);
    assert_eq!(table(&page(), "Outputs"), outputs.collect::<Vec<_>>());
}

#[test]
fn the_examples_are_yaml_and_give_the_action_inputs_that_it_has() {
    let action = yaml::read(&yaml::integration("github-action/action.yml"));
    let page = page();
    let blocks: Vec<&str> = page.split("```yaml\n").skip(1).map(|rest| rest.split("```").next().unwrap()).collect();
    assert!(blocks.len() >= 3);
    let mut uses = 0;
    for block in blocks {
        let value: Value = serde_saphyr::from_str(block).unwrap_or_else(|error| panic!("{error}\n{block}"));
        for step in steps(&value) {
            if step["uses"] == "./.github/actions/gpuemu" {
                let given: BTreeMap<String, Value> =
                    serde_json::from_value(step.get("with").cloned().unwrap_or(serde_json::json!({}))).unwrap();
                let unknown: Vec<&String> = given.keys().filter(|name| action["inputs"].get(name).is_none()).collect();
                assert!(unknown.is_empty(), "{unknown:?}");
                uses += 1;
            }
        }
    }
    assert!(uses >= 3, "{uses}");
}

/// Every step of a workflow, a list of steps, or a job.
fn steps(value: &Value) -> Vec<Value> {
    match value {
        Value::Object(fields) if fields.contains_key("uses") => vec![value.clone()],
        Value::Object(fields) => fields.values().flat_map(steps).collect(),
        Value::Array(items) => items.iter().flat_map(steps).collect(),
        _ => Vec::new(),
    }
}
