//! The documentation page of an op, in Markdown, from its schema alone.

use std::fmt::{self, Write};

use super::{Op, classes};
use crate::case::Strategy;
use crate::oracle::tolerance::BOUND_FACTOR;
use crate::schema::{DimensionSpec, ParameterSpec, Property, Schema, TensorSpec};

/// What each field of a precision class means, by its name.
pub const PRECISION_FIELDS: [(&str, &str); 14] = [
    (
        "accumulate",
        "Dtype of running sums and of the arithmetic: float32, or float64 for float64 cases, unless declared.",
    ),
    ("order", "Order in which sums are added up: F is its depth where it is declared, else the number of terms."),
    ("intermediate", "Dtype to which intermediates are rounded on the way (flash attention's weights, a fused gate)."),
    ("tf32", "Inputs of dot products are cut off to tf32."),
    ("variance", "Form of the variance: two-pass or Welford unless declared; one-pass only where it is."),
    ("folded", "`exp2(x*c - m*c)` in place of `exp2((x - m)*c)`; `x*r - mean*r` in a norm."),
    ("fast_exp", "exp within 2 ulp, as the special-function unit has it; within 1 ulp where declared false."),
    ("fast_division", "Division within 2 ulp, such as by a reciprocal; correctly rounded where declared false."),
    ("fast_tanh", "`tanh.approx`, whose relative error is up to 2^-11."),
    ("fast_erf", "A short polynomial for erf, whose absolute error is up to 2^-20."),
    ("flush_to_zero", "Subnormal inputs and results may become zero."),
    ("tensor_core", "Sums on tensor cores, which align and cut off: F is twice the number of terms."),
    ("rounding", "How the result becomes the output dtype: to nearest unless declared."),
    ("atomics", "Sums by atomics, so that two runs may differ in bits."),
];

/// What the letters in a bound stand for.
const SYMBOLS: [(&str, &str); 13] = [
    ("y", "the value of the reference, in float64, not rounded to the output dtype"),
    ("u", "unit roundoff of the accumulator: 2^-24 for float32, 2^-53 for float64"),
    ("F", "roundings of the declared order of summation for so many terms; their number where none is declared"),
    ("E", "error of exp, in u: 5, or 3 where `fast_exp` is declared false"),
    ("Q", "error of a division, in u: 5, or 2 where `fast_division` is declared false"),
    ("R", "error of a reciprocal square root, in u: 4"),
    ("a", "roundings in the argument of an exponential: 3"),
    ("u_mid", "unit roundoff of the declared intermediate dtype; 0 where none is declared"),
    ("eta_mid", "its smallest subnormal number; 0 where none is declared"),
    ("u_in", "2^-10 where `tf32` is declared, else 0"),
    ("eta", "smallest subnormal number of the accumulator"),
    ("tiny", "smallest normal number of the accumulator"),
    ("flush", "smallest normal number of the accumulator where `flush_to_zero` is declared, else 0"),
];

/// What cases of a strategy hold.
fn strategy(strategy: Strategy) -> &'static str {
    match strategy {
        Strategy::Regular => "moderate numbers, uniform or bell-shaped",
        Strategy::Boundary => "subnormals, zeros, the largest numbers, 1 and its neighbours among moderate numbers",
        Strategy::Large => "numbers in the upper part of the range",
        Strategy::Tiny => "small numbers, subnormals included",
        Strategy::Mixed => "many magnitudes side by side",
        Strategy::Shifted => "a mean far from zero, also all negative",
        Strategy::Sparse => "mostly zeros, or few values repeated",
        Strategy::Clustered => "several elements close to the largest of their row",
        Strategy::Integers => "small whole numbers, whose sums are exact in any order",
        Strategy::Special => "NaN, infinities, whole tiles of -Inf",
        Strategy::Adversarial => "a weighted mix of all others",
        Strategy::Default => "uniform in [-10, 10)",
        Strategy::NanInjected => "uniform in [-10, 10), with NaN in one element of 64",
    }
}

/// What is done to a case to test a property.
fn property(property: Property) -> String {
    match property {
        Property::RowStochastic => {
            "Rows sum to 1: nothing is changed, but a failure says what they sum to.".to_string()
        }
        Property::PermutationEquivariant => "The leading dims of `...` are put in reverse order.".to_string(),
        Property::BatchInvariant => "The first half of the leading dims of `...` is computed alone.".to_string(),
        Property::ShiftInvariant { input } => format!("8, -16 or 64 is added to `{input}`."),
        Property::Homogeneous { input, .. } => format!("`{input}` is multiplied by 2^-3, 2^2 or 2^5."),
        Property::Linear { input } => {
            format!(
                "Small whole numbers in `{input}` and all other inputs: every sum is exact, and so must be the result."
            )
        }
        Property::MaskedOutIgnored { mask, inputs } => {
            format!("NaN is put where `{mask}` hides {} from every query.", code_list(inputs.iter().copied()))
        }
    }
}

pub fn page(op: &dyn Op) -> String {
    let mut text = String::new();
    // Writing to a string cannot fail.
    let _ = write_page(&mut text, op);
    text
}

/// The index of many ops: a table for each family, with a link to each page.
pub fn index<'a>(schemas: impl Iterator<Item = &'a Schema>) -> String {
    let mut ordered: Vec<&Schema> = schemas.collect();
    ordered.sort_by_key(|schema| (schema.family.clone(), schema.name.clone()));
    let mut text = String::new();
    let _ = write_index(&mut text, &ordered);
    text
}

fn write_index(text: &mut String, schemas: &[&Schema]) -> fmt::Result {
    writeln!(text, "# Built-in ops\n")?;
    writeln!(
        text,
        "{} ops with a reference in float64 and a bound on the error of each element. `gpuemu ops NAME` prints \
         the short form of a page; [how signatures are written](../guides/op-schema.md).",
        schemas.len()
    )?;
    writeln!(text)?;
    for group in schemas.chunk_by(|left, right| left.family == right.family) {
        let family = group.first().map_or("", |schema| schema.family.as_str());
        section(text, &capitalised(family))?;
        let rows = group.iter().map(|schema| {
            let summary = first_sentence(&schema.summary);
            [format!("[{0}]({0}.md)", schema.name), code(&schema.tensors()), summary.to_string()]
        });
        table(text, ["op", "signature", "what it computes"], rows)?;
    }
    Ok(())
}

fn write_page(text: &mut String, op: &dyn Op) -> fmt::Result {
    let schema = op.schema();
    writeln!(text, "# {}\n", schema.name)?;
    if !schema.aliases.is_empty() {
        writeln!(text, "Also called {}.\n", code_list(schema.aliases.iter().map(String::as_str)))?;
    }
    writeln!(text, "{}\n", schema.summary)?;
    section(text, "Formula")?;
    code_block(text, "text", &schema.formula)?;
    section(text, "Signature")?;
    code_block(text, "text", &schema.signature)?;
    let dtypes = code_list(schema.dtypes.iter().map(|dtype| dtype.name()));
    writeln!(text, "Cases have the dtypes {dtypes}; a tensor has that of its case unless it names one.\n")?;
    write_tensors(text, schema)?;
    write_parameters(text, schema)?;
    write_dimensions(text, schema)?;
    write_precision(text, schema, &classes(op))?;
    write_tolerance(text, schema)?;
    write_values(text, schema)?;
    write_use(text, schema)
}

fn section(text: &mut String, title: &str) -> fmt::Result {
    writeln!(text, "## {title}\n")
}

fn write_tensors(text: &mut String, schema: &Schema) -> fmt::Result {
    section(text, "Inputs")?;
    let rows = schema.inputs.iter().map(|tensor| {
        let optional = if tensor.optional { "yes" } else { "no" };
        let meaning = help(schema, &tensor.name);
        [
            code(&tensor.name),
            dtype(tensor),
            code(&tensor.dimensions_in_words()),
            tensor.domain_in_words(),
            optional.to_string(),
            meaning,
        ]
    });
    table(text, ["input", "dtype", "shape", "values", "optional", "meaning"], rows)?;
    section(text, "Outputs")?;
    let rows = schema.outputs.iter().map(|tensor| {
        let mut meaning = Vec::new();
        if schema.overwritten_by(tensor).is_some() {
            meaning.push("written in place: the input of this name is overwritten".to_string());
        } else {
            meaning.push(help(schema, &tensor.name));
        }
        if tensor.optional {
            meaning.push("only where it is asked for".to_string());
        }
        meaning.retain(|part| !part.is_empty());
        [code(&tensor.name), dtype(tensor), code(&tensor.dimensions_in_words()), meaning.join("; ")]
    });
    table(text, ["output", "dtype", "shape", "meaning"], rows)
}

fn write_parameters(text: &mut String, schema: &Schema) -> fmt::Result {
    section(text, "Parameters")?;
    if schema.parameters.is_empty() {
        return writeln!(text, "It has none.\n");
    }
    let rows = schema.parameters.iter().map(|parameter| {
        let meaning = help(schema, &parameter.name);
        [code(&parameter.name), code(&parameter.default.to_string()), tested(parameter), meaning]
    });
    table(text, ["parameter", "default", "values tested", "meaning"], rows)?;
    writeln!(text, "A function that does not take a parameter is tested with its default.\n")
}

/// The values of a parameter, each once.
fn tested(parameter: &ParameterSpec) -> String {
    let mut values: Vec<String> = Vec::new();
    let drawn = parameter.choices.iter().chain(parameter.choices.is_empty().then_some(&parameter.default));
    for value in drawn.map(ToString::to_string) {
        if !values.contains(&value) {
            values.push(value);
        }
    }
    code_list(values.iter().map(String::as_str))
}

fn write_dimensions(text: &mut String, schema: &Schema) -> fmt::Result {
    section(text, "Dims")?;
    let mut rows: Vec<[String; 3]> = Vec::new();
    if schema.has_batch() {
        rows.push([code("..."), "any number of leading dims, also none".to_string(), "no".to_string()]);
    }
    rows.extend(schema.dimensions.iter().map(|dimension| {
        let reduced = if dimension.reduced { "yes" } else { "no" };
        [code(&dimension.name), sizes(dimension), reduced.to_string()]
    }));
    if rows.is_empty() {
        return writeln!(text, "It has none.\n");
    }
    table(text, ["dim", "sizes", "reduced"], rows.into_iter())
}

fn sizes(dimension: &DimensionSpec) -> String {
    if dimension.choices.is_empty() {
        return format!("{} to {}", dimension.minimum, dimension.maximum);
    }
    dimension.choices.iter().map(ToString::to_string).collect::<Vec<_>>().join(", ")
}

fn write_precision(text: &mut String, schema: &Schema, classes: &[&str]) -> fmt::Result {
    section(text, "Precision classes")?;
    writeln!(text, "Unless a kernel declares otherwise it {}.\n", default_class(schema, classes))?;
    let declared = PRECISION_FIELDS.iter().filter(|(field, _)| classes.contains(field));
    let rows: Vec<[String; 2]> = declared.map(|(field, meaning)| [code(field), (*meaning).to_string()]).collect();
    if rows.is_empty() {
        return writeln!(text, "Nothing that it may declare changes the bound.\n");
    }
    writeln!(text, "What it declares as `precision` changes the bound in these fields:\n")?;
    table(text, ["field", "meaning"], rows.into_iter())?;
    writeln!(text, "`rounding` (of the result to its dtype) and `atomics` may be declared for every op.\n")
}

/// What a kernel may do that declares nothing, as far as it matters to the op.
fn default_class(schema: &Schema, classes: &[&str]) -> String {
    let (precision, matters) = (&schema.precision, |field: &str| classes.contains(&field));
    let mut parts = vec![match precision.accumulate {
        Some(dtype) => format!("computes in {dtype}"),
        None => "computes in float32 (float64 for float64 cases), whatever dtype its tensors have".to_string(),
    }];
    if matters("order") {
        let order = if precision.order.is_some() { "adds up in the order of the op" } else { "adds up in any order" };
        parts.push(order.to_string());
    }
    let exponentials = precision.fast_exp && matters("fast_exp");
    let divisions = precision.fast_division && matters("fast_division");
    match (exponentials, divisions) {
        (true, true) => parts.push("has exponentials and divisions within 2 ulp".to_string()),
        (true, false) => parts.push("has exponentials within 2 ulp".to_string()),
        (false, true) => parts.push("has divisions within 2 ulp".to_string()),
        (false, false) => {}
    }
    parts.push("rounds once, to nearest, when it stores".to_string());
    join(&parts)
}

fn write_tolerance(text: &mut String, schema: &Schema) -> fmt::Result {
    section(text, "Tolerance")?;
    writeln!(
        text,
        "An output passes where the distance from the reference to its rounding cell, the numbers that round to it, is at \
         most {BOUND_FACTOR} times delta. The report counts elements apart that are undetermined, or excused because a \
         named intermediate overflows. delta is\n"
    )?;
    code_block(text, "text", &wrapped(&schema.bound, 110))?;
    let used = SYMBOLS.iter().filter(|(symbol, _)| has_symbol(&schema.bound, symbol));
    let rows: Vec<[String; 2]> = used.map(|(symbol, meaning)| [code(symbol), (*meaning).to_string()]).collect();
    if rows.is_empty() { Ok(()) } else { table(text, ["symbol", "meaning"], rows.into_iter()) }
}

/// Whether a symbol stands in a formula by itself, and not as a word of the text around it: an operator or a
/// bracket comes next.
fn has_symbol(formula: &str, symbol: &str) -> bool {
    let part = |letter: char| letter.is_alphanumeric() || letter == '_';
    formula.match_indices(symbol).any(|(start, _)| {
        let after = &formula[start + symbol.len()..];
        let alone = !formula[..start].ends_with(part) && !after.starts_with(part);
        let next = after.trim_start().chars().next();
        alone && next.is_none_or(|next| !part(next))
    })
}

fn write_values(text: &mut String, schema: &Schema) -> fmt::Result {
    section(text, "Properties tested")?;
    if schema.properties.is_empty() {
        writeln!(text, "None.\n")?;
    } else {
        writeln!(text, "One case in eight is changed by one of these and judged again:\n")?;
        let rows = schema.properties.iter().map(|each| {
            let input = match each {
                Property::Homogeneous { input, degree } => format!(" of degree {degree} in `{input}`"),
                Property::Linear { input } => format!(" in `{input}`"),
                _ => String::new(),
            };
            [format!("{}{input}", each.name()), property(*each)]
        });
        table(text, ["property", "what is done to the case"], rows)?;
    }
    section(text, "Values that amplify its bugs")?;
    if schema.amplifiers.is_empty() {
        writeln!(text, "None more than others: cases mix all strategies.\n")?;
    } else {
        writeln!(text, "Cases mix all strategies; where more evidence is wanted there are more of these:\n")?;
        let rows = schema.amplifiers.iter().map(|each| [code(each.name()), strategy(*each).to_string()]);
        table(text, ["strategy", "values"], rows)?;
    }
    section(text, "Usual bugs")?;
    for bug in &schema.usual_bugs {
        writeln!(text, "- {bug}")?;
    }
    writeln!(text)
}

fn write_use(text: &mut String, schema: &Schema) -> fmt::Result {
    let name = &schema.name;
    section(text, "Checking a kernel")?;
    writeln!(text, "In `gpuemu.toml`, where `kernels/{name}.py` has a function `{name}`; it needs no reference:\n")?;
    code_block(text, "toml", &format!("[[ops]]\nname = \"{name}\"\nmodule = \"kernels.{name}\""))?;
    code_block(text, "sh", &format!("gpuemu fuzz --op {name}"))?;
    let inputs: Vec<&str> =
        schema.inputs.iter().filter(|tensor| !tensor.optional).map(|tensor| tensor.name.as_str()).collect();
    let order = if inputs.len() > 1 { " in this order or by name" } else { "" };
    writeln!(text, "In Python, with any function that takes {}{order}:\n", code_list(inputs.into_iter()))?;
    // The last block, so that the page ends with one newline.
    writeln!(text, "```python\ngpuemu.check(\"{name}\", my_{name})\n```")
}

/// What the schema says a tensor or parameter means.
fn help(schema: &Schema, name: &str) -> String {
    let meaning = schema.help.iter().find(|(known, _)| known == name);
    meaning.map(|(_, meaning)| meaning.clone()).unwrap_or_default()
}

fn dtype(tensor: &TensorSpec) -> String {
    tensor.dtype.map_or("of the case".to_string(), |dtype| dtype.to_string())
}

/// A table; a bar in a cell would end it.
fn table<const N: usize>(text: &mut String, header: [&str; N], rows: impl Iterator<Item = [String; N]>) -> fmt::Result {
    writeln!(text, "| {} |", header.join(" | "))?;
    writeln!(text, "|{}", " --- |".repeat(N))?;
    for row in rows {
        let cells = row.map(|cell| cell.replace('|', "\\|").replace('\n', " "));
        writeln!(text, "| {} |", cells.join(" | "))?;
    }
    writeln!(text)
}

fn code_block(text: &mut String, language: &str, body: &str) -> fmt::Result {
    writeln!(text, "```{language}\n{body}\n```\n")
}

fn code(text: &str) -> String {
    format!("`{text}`")
}

fn code_list<'a>(names: impl Iterator<Item = &'a str>) -> String {
    names.map(code).collect::<Vec<_>>().join(", ")
}

/// Parts of a sentence, the last with an "and".
fn join(parts: &[String]) -> String {
    match parts {
        [] => String::new(),
        [one] => one.clone(),
        [first @ .., last] => format!("{} and {last}", first.join(", ")),
    }
}

fn capitalised(word: &str) -> String {
    let mut letters = word.chars();
    letters.next().map_or(String::new(), |first| first.to_uppercase().chain(letters).collect())
}

fn first_sentence(summary: &str) -> &str {
    summary.split_once(". ").map_or(summary, |(first, _)| first).trim_end_matches('.')
}

/// Lines of at most so many characters, broken between words.
fn wrapped(text: &str, width: usize) -> String {
    let mut lines = vec![String::new()];
    for word in text.split_whitespace() {
        let line = lines.last_mut().filter(|line| line.is_empty() || line.chars().count() + 1 + word.len() <= width);
        match line {
            Some(line) if line.is_empty() => line.push_str(word),
            Some(line) => {
                line.push(' ');
                line.push_str(word);
            }
            None => lines.push(word.to_string()),
        }
    }
    lines.join("\n")
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::ops::{BuiltIn, builtin};
    use crate::schema::Precision;

    const SECTIONS: [&str; 12] = [
        "Formula",
        "Signature",
        "Inputs",
        "Outputs",
        "Parameters",
        "Dims",
        "Precision classes",
        "Tolerance",
        "Properties tested",
        "Values that amplify its bugs",
        "Usual bugs",
        "Checking a kernel",
    ];

    /// Bars that end a cell: those without a backslash.
    fn bars(line: &str) -> usize {
        line.matches('|').count() - line.matches("\\|").count()
    }

    /// Every table has as many cells in each row as in its header.
    fn assert_tables_are_whole(page: &str, name: &str) {
        let (mut wanted, mut fenced) = (None, false);
        for line in page.lines() {
            fenced ^= line.starts_with("```");
            let row = !fenced && line.starts_with('|');
            if row {
                assert_eq!(bars(line), *wanted.get_or_insert(bars(line)), "{name}: {line}");
                assert!(line.ends_with('|'), "{name}: {line}");
            } else {
                wanted = None;
            }
        }
        assert!(!fenced, "{name}: a code block is not closed");
    }

    #[test]
    fn every_page_has_every_section() {
        for op in builtin() {
            let schema = op.schema();
            let page = page(op.as_ref());
            assert!(page.starts_with(&format!("# {}\n\n", schema.name)));
            let found: Vec<&str> = page.lines().filter_map(|line| line.strip_prefix("## ")).collect();
            assert_eq!(found, SECTIONS, "{}", schema.name);
            for text in schema.aliases.iter().chain(&schema.usual_bugs).chain([&schema.summary, &schema.formula]) {
                assert!(page.contains(text.as_str()), "{}: {text}", schema.name);
            }
            for (name, meaning) in &schema.help {
                let whole = meaning.replace('|', "\\|");
                let overwritten = schema.outputs.iter().any(|tensor| tensor.name == *name);
                assert!(page.contains(&whole) || overwritten, "{}: {meaning}", schema.name);
            }
            assert_tables_are_whole(&page, &schema.name);
            assert!(page.ends_with("```\n") && !page.contains("\n\n\n"), "{}", schema.name);
        }
    }

    #[test]
    fn bars_in_cells_are_escaped() {
        let schema = Schema::from_signature("odd", "x[N] limit:float=1.0 -> out[N]").unwrap();
        let schema = schema.help("limit", "|x| above it counts").usual_bugs(&["none"]);
        let page = page(&BuiltIn::new(schema, |_| Ok(Vec::new())));
        assert!(page.contains("| `limit` | `1.0` | `1.0` | \\|x\\| above it counts |"), "{page}");
        assert_tables_are_whole(&page, "odd");
        let broken = "| a | b |\n| --- | --- |\n| |x| | y |\n";
        assert!(std::panic::catch_unwind(|| assert_tables_are_whole(broken, "broken")).is_err());
    }

    #[test]
    fn the_index_has_a_link_to_every_page() {
        let text = index(builtin().iter().map(|op| op.schema()));
        assert_tables_are_whole(&text, "index");
        assert!(!text.contains("\n\n\n"));
        for op in builtin() {
            let (name, family) = (&op.schema().name, &op.schema().family);
            assert!(text.contains(&format!("| [{name}]({name}.md) | ")), "{name}");
            assert!(text.contains(&format!("\n## {}\n", capitalised(family))), "{family}");
        }
    }

    #[test]
    fn every_field_of_a_precision_class_is_explained() {
        let precision = serde_json::to_value(Precision::default()).unwrap();
        let mut fields: Vec<&str> = precision.as_object().unwrap().keys().map(String::as_str).collect();
        let mut explained = PRECISION_FIELDS.map(|(field, _)| field);
        fields.sort_unstable();
        explained.sort_unstable();
        assert_eq!(fields, explained);
    }

    #[test]
    fn long_bounds_are_broken_between_words() {
        assert_eq!(wrapped("one two three", 7), "one two\nthree");
        assert_eq!(wrapped("", 7), "");
    }

    #[test]
    fn symbols_are_told_from_words() {
        assert!(has_symbol("u*(F + 1)*tiny", "F") && has_symbol("2*|y|", "y") && has_symbol("3*u", "u"));
        assert!(!has_symbol("u_mid*y", "u") && !has_symbol("u*x or a minimum", "a"));
    }
}
