//! One op, with everything that judges it.

use std::fmt::Write;

use gpuemu_engine::Op;
use gpuemu_engine::ops::classes;
use gpuemu_engine::oracle::Tolerance;
use gpuemu_engine::schema::{Schema, TensorSpec};
use serde_json::{Value, json};

/// Everything about an op, for a terminal.
pub fn text(op: &dyn Op) -> String {
    let mut text = String::new();
    // Writing to a string cannot fail.
    let _ = describe_into(&mut text, op.schema(), &classes(op));
    text
}

fn describe_into(text: &mut String, schema: &Schema, classes: &[&str]) -> std::fmt::Result {
    writeln!(text, "{}: {}", schema.name, schema.summary)?;
    if !schema.aliases.is_empty() {
        writeln!(text, "  also called    {}", schema.aliases.join(", "))?;
    }
    writeln!(text, "  formula        {}", schema.formula)?;
    writeln!(text, "  signature      {}", schema.signature)?;
    writeln!(text, "  family         {}", schema.family)?;
    for tensor in &schema.inputs {
        let dtype = tensor.dtype.map_or("case dtype".to_string(), |dtype| dtype.to_string());
        let optional = if tensor.optional { ", optional" } else { "" };
        let meaning = meaning(schema, &tensor.name);
        writeln!(
            text,
            "  input          {} ({dtype}{optional}): {}{meaning}",
            tensor.form(),
            tensor.domain_in_words()
        )?;
    }
    for tensor in &schema.outputs {
        let dtype = tensor.dtype.map_or("case dtype".to_string(), |dtype| dtype.to_string());
        let (place, meaning) = (in_place(schema, tensor), meaning(schema, &tensor.name));
        writeln!(text, "  output         {} ({dtype}{place}){meaning}", tensor.form())?;
    }
    for parameter in &schema.parameters {
        let mut choices: Vec<String> = parameter.choices.iter().map(ToString::to_string).collect();
        // A value that is drawn more often than others is named more than once.
        choices.dedup();
        let tested = if choices.is_empty() { String::new() } else { format!(" (tested: {})", choices.join(", ")) };
        let meaning = meaning(schema, &parameter.name);
        writeln!(text, "  parameter      {} = {}{tested}{meaning}", parameter.name, parameter.default)?;
    }
    for dimension in &schema.dimensions {
        let reduced = if dimension.reduced { ", reduced" } else { "" };
        writeln!(text, "  dim            {}: {}..={}{reduced}", dimension.name, dimension.minimum, dimension.maximum)?;
    }
    let dtypes: Vec<&str> = schema.dtypes.iter().map(|dtype| dtype.name()).collect();
    writeln!(text, "  dtypes         {}", dtypes.join(", "))?;
    let properties: Vec<&str> = schema.properties.iter().map(|property| property.name()).collect();
    writeln!(text, "  properties     {}", properties.join(", "))?;
    writeln!(text, "  precision      {}", precision(schema))?;
    writeln!(text, "  declare        {}", if classes.is_empty() { "nothing".to_string() } else { classes.join(", ") })?;
    if !schema.bound.is_empty() {
        writeln!(text, "  bound          {}", schema.bound)?;
    }
    writeln!(
        text,
        "  tolerance      {}: distance from the fp64 reference to the output's rounding cell",
        Tolerance::Bound.describe()
    )?;
    let amplifiers: Vec<&str> = schema.amplifiers.iter().map(|strategy| strategy.name()).collect();
    if !amplifiers.is_empty() {
        writeln!(text, "  escalates to   {}", amplifiers.join(", "))?;
    }
    writeln!(text, "  usual bugs     {}", schema.usual_bugs.join("; "))
}

fn meaning(schema: &Schema, name: &str) -> String {
    let found = schema.help.iter().find(|(known, _)| known == name);
    found.map_or(String::new(), |(_, meaning)| format!("; {meaning}"))
}

fn in_place(schema: &Schema, output: &TensorSpec) -> &'static str {
    if schema.overwritten_by(output).is_some() { ", written over the input" } else { "" }
}

fn precision(schema: &Schema) -> String {
    let precision = &schema.precision;
    let order = if precision.order.is_some() { "declared order" } else { "any order of summation" };
    let exp = if precision.fast_exp { ", exp and division within 2 ulp" } else { "" };
    format!("accumulates in float32 (float64 for float64), {order}{exp}, rounds once to nearest")
}

/// Everything about an op, for programs; what of a precision class matters to it takes a moment to find out, and is
/// told where one op is asked for.
pub fn json(schema: &Schema, classes: Option<&[&str]>) -> Value {
    let mut described = json!({
        "schema": schema,
        "fingerprint": schema.fingerprint(),
        "tolerance": Tolerance::Bound,
    });
    if let Some(classes) = classes {
        described["classes"] = json!(classes);
    }
    described
}
