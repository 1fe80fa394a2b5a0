//! `gpuemu ops`: list the built-in ops, or describe one.

use std::fmt::Write;

use comfy_table::{ContentArrangement, Table, presets};
use gpuemu_engine::Op;
use gpuemu_engine::ops::{builtin, find, nearest};
use gpuemu_engine::oracle::Tolerance;
use gpuemu_engine::schema::{Domain, Schema, TensorSpec};
use serde_json::{Value, json};

use crate::exit_code;
use crate::expected_error::ExpectedError;
use crate::format::{Format, write_json, write_text};

/// Arguments of `gpuemu ops`.
#[derive(Debug, clap::Args)]
pub struct Arguments {
    /// The op to describe; all of them are listed without it.
    name: Option<String>,
    /// Format of the result.
    #[arg(long, value_enum, default_value_t = Format::Text)]
    format: Format,
}

/// Runs the command.
pub fn run(arguments: &Arguments) -> Result<u8, ExpectedError> {
    let Some(name) = &arguments.name else {
        match arguments.format {
            Format::Json => write_json(&builtin().iter().map(|op| describe_json(op.schema())).collect::<Vec<_>>())?,
            Format::Text => write_text(&list())?,
        }
        return Ok(exit_code::PASSED);
    };
    let Some(op) = find(name) else {
        let hint = match nearest(name) {
            Some(known) => format!("did you mean '{known}'? `gpuemu ops` lists all of them"),
            None => "`gpuemu ops` lists all of them".to_string(),
        };
        return Err(ExpectedError::new(format!("unknown op '{name}'"), hint));
    };
    match arguments.format {
        Format::Json => write_json(&describe_json(op.schema()))?,
        Format::Text => write_text(&describe(op.as_ref()))?,
    }
    Ok(exit_code::PASSED)
}

fn list() -> String {
    let mut table = Table::new();
    table.load_style(presets::NOTHING).set_content_arrangement(ContentArrangement::Dynamic);
    table.set_header(["op", "signature", "what it computes"]);
    for op in builtin() {
        let schema = op.schema();
        table.add_row([&schema.name, &tensors(schema), &schema.formula]);
    }
    format!("{table}\n\n{} ops; `gpuemu ops NAME` describes one.\n", builtin().len())
}

/// The tensors of a signature, without domains and parameters.
fn tensors(schema: &Schema) -> String {
    let join = |tensors: &[TensorSpec]| tensors.iter().map(shape).collect::<Vec<_>>().join(" ");
    format!("{} -> {}", join(&schema.inputs), join(&schema.outputs))
}

fn shape(tensor: &TensorSpec) -> String {
    let mut dimensions: Vec<String> = tensor.dimensions.iter().map(ToString::to_string).collect();
    if tensor.batch {
        dimensions.insert(0, "...".to_string());
    }
    let optional = if tensor.optional { "?" } else { "" };
    format!("{}{optional}[{}]", tensor.name, dimensions.join(","))
}

fn domain(tensor: &TensorSpec) -> String {
    match &tensor.domain {
        Domain::Real if tensor.dtype == Some(gpuemu_common::DType::Bool) => "true or false".to_string(),
        Domain::Real => "any number, NaN and infinities included".to_string(),
        Domain::Positive => "above 0".to_string(),
        Domain::NonNegative => "0 and above".to_string(),
        Domain::Probability => "0 to 1".to_string(),
        Domain::Range { low, high } => format!("whole numbers in {low}..{high}"),
        Domain::Whole => "every whole number of its dtype".to_string(),
        Domain::Offsets { end } => format!("offsets: 0 first, {end} last, never decreasing"),
        Domain::Permutation { count } => format!("a permutation of 0..{count}"),
    }
}

fn describe(op: &dyn Op) -> String {
    let schema = op.schema();
    let mut text = String::new();
    // Writing to a string cannot fail.
    let _ = describe_into(&mut text, schema);
    text
}

fn describe_into(text: &mut String, schema: &Schema) -> std::fmt::Result {
    writeln!(text, "{}: {}", schema.name, schema.summary)?;
    if !schema.aliases.is_empty() {
        writeln!(text, "  also called    {}", schema.aliases.join(", "))?;
    }
    writeln!(text, "  formula        {}", schema.formula)?;
    writeln!(text, "  signature      {}", schema.signature)?;
    for tensor in &schema.inputs {
        let dtype = tensor.dtype.map_or("case dtype".to_string(), |dtype| dtype.to_string());
        let optional = if tensor.optional { ", optional" } else { "" };
        writeln!(text, "  input          {} ({dtype}{optional}): {}", shape(tensor), domain(tensor))?;
    }
    for tensor in &schema.outputs {
        let dtype = tensor.dtype.map_or("case dtype".to_string(), |dtype| dtype.to_string());
        writeln!(text, "  output         {} ({dtype})", shape(tensor))?;
    }
    for parameter in &schema.parameters {
        let choices: Vec<String> = parameter.choices.iter().map(ToString::to_string).collect();
        let tested = if choices.is_empty() { String::new() } else { format!(" (tested: {})", choices.join(", ")) };
        writeln!(text, "  parameter      {} = {}{tested}", parameter.name, parameter.default)?;
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

fn precision(schema: &Schema) -> String {
    let precision = &schema.precision;
    let order = if precision.order.is_some() { "declared order" } else { "any order of summation" };
    let exp = if precision.fast_exp { ", exp and division within 2 ulp" } else { "" };
    format!("accumulates in float32 (float64 for float64), {order}{exp}, rounds once to nearest")
}

fn describe_json(schema: &Schema) -> Value {
    json!({
        "schema": schema,
        "fingerprint": schema.fingerprint(),
        "tolerance": Tolerance::Bound,
    })
}
