//! The built-in ops: one file each, with schema, fp64 reference and condition side by side.
//!
//! To add one, write a file in the folder of its group with a function `op` that puts a schema and a reference
//! together, and name it in the group's list. The reference gets inputs as row-major `f64` slices, already rounded to the
//! case's dtype, and returns for each element its value y and δ: how far a correct kernel of
//! the declared precision class may stray from y before it rounds to the output dtype.

mod attention;
mod backward;
mod call;
mod classes;
mod convolution;
mod elementwise;
mod expectation;
mod experts;
mod exponential;
mod finite_difference;
pub mod gradient;
mod indexing;
mod linear;
mod loss;
mod normalisation;
mod optimiser;
pub mod page;
mod quantisation;
mod reduction;
mod rounded;

use std::sync::{Arc, LazyLock};

pub use call::{Call, OpError, check_domains};
pub use classes::classes;
pub use expectation::{Excuse, ExcuseKind, Expectation};
pub use gradient::GradientOp;
pub use rounded::{Arithmetic, Overflow, Rounded};

use crate::schema::Schema;

/// An op that gpuemu can judge.
pub trait Op: Send + Sync {
    /// What the op is.
    fn schema(&self) -> &Schema;

    /// What each output must be, and how far from it a correct kernel may be.
    fn expect(&self, call: &Call<'_>) -> Result<Vec<Expectation>, OpError>;
}

/// A built-in op: its schema, and the function that is its reference.
pub struct BuiltIn {
    schema: Schema,
    expect: fn(&Call<'_>) -> Result<Vec<Expectation>, OpError>,
}

impl BuiltIn {
    fn new(schema: Schema, expect: fn(&Call<'_>) -> Result<Vec<Expectation>, OpError>) -> Self {
        Self { schema, expect }
    }

    fn of_family(mut self, family: &str) -> Self {
        self.schema.family = family.to_string();
        self
    }
}

impl Op for BuiltIn {
    fn schema(&self) -> &Schema {
        &self.schema
    }

    fn expect(&self, call: &Call<'_>) -> Result<Vec<Expectation>, OpError> {
        (self.expect)(call)
    }
}

static BUILTIN: LazyLock<Vec<Arc<dyn Op>>> = LazyLock::new(|| {
    let groups: [(&str, Vec<BuiltIn>); 12] = [
        ("attention", attention::ops()),
        ("backward", backward::ops()),
        ("convolution", convolution::ops()),
        ("elementwise", elementwise::ops()),
        ("experts", experts::ops()),
        ("indexing", indexing::ops()),
        ("linear", linear::ops()),
        ("loss", loss::ops()),
        ("normalisation", normalisation::ops()),
        ("optimiser", optimiser::ops()),
        ("quantisation", quantisation::ops()),
        ("reduction", reduction::ops()),
    ];
    let mut ops = Vec::new();
    for (family, group) in groups {
        ops.extend(group.into_iter().map(|op| op.of_family(family)));
    }
    ops.sort_by(|left, right| left.schema.name.cmp(&right.schema.name));
    ops.into_iter().map(|op| Arc::new(op) as Arc<dyn Op>).collect()
});

/// Every built-in op, by name.
pub fn builtin() -> &'static [Arc<dyn Op>] {
    &BUILTIN
}

/// The built-in op of a name or alias.
pub fn find(name: &str) -> Option<Arc<dyn Op>> {
    let known = |op: &&Arc<dyn Op>| op.schema().name == name || op.schema().aliases.iter().any(|alias| alias == name);
    builtin().iter().find(known).cloned()
}

/// The built-in ops that have every one of some words in their name, aliases, keywords, family or description; those
/// with the first word in their name come first.
pub fn search(words: &[String]) -> Vec<Arc<dyn Op>> {
    let words: Vec<String> = words.iter().map(|word| word.to_lowercase()).collect();
    let named = |schema: &Schema, word: &str| {
        schema.name.contains(word) || schema.aliases.iter().any(|alias| alias.to_lowercase().contains(word))
    };
    let has = |schema: &Schema, word: &str| {
        named(schema, word)
            || schema.family.contains(word)
            || schema.keywords.iter().any(|keyword| keyword.to_lowercase().contains(word))
            || schema.summary.to_lowercase().contains(word)
    };
    let mut found: Vec<Arc<dyn Op>> =
        builtin().iter().filter(|op| words.iter().all(|word| has(op.schema(), word))).cloned().collect();
    found.sort_by_key(|op| !words.first().is_some_and(|word| named(op.schema(), word)));
    found
}

/// The built-in name closest to a misspelt one.
pub fn nearest(name: &str) -> Option<&'static str> {
    gpuemu_model::nearest::nearest(name, builtin().iter().map(|op| op.schema().name.as_str()))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_builtin_signature_parses() {
        assert!(builtin().len() >= 22);
        for op in builtin() {
            let schema = op.schema();
            assert!(!schema.summary.is_empty() && !schema.formula.is_empty(), "{}", schema.name);
            assert!(Schema::from_signature(&schema.name, &schema.signature).is_ok());
        }
    }

    #[test]
    fn names_are_unique_and_sorted() {
        let names: Vec<&str> = builtin().iter().map(|op| op.schema().name.as_str()).collect();
        let mut sorted = names.clone();
        sorted.sort_unstable();
        sorted.dedup();
        assert_eq!(names, sorted);
    }

    fn described() -> &'static [Arc<dyn Op>] {
        builtin()
    }

    #[test]
    fn names_and_aliases_are_unique() {
        let mut names: Vec<&str> = Vec::new();
        for op in builtin() {
            names.push(&op.schema().name);
            names.extend(op.schema().aliases.iter().map(String::as_str));
        }
        names.sort_unstable();
        assert_eq!(names.windows(2).find(|pair| pair[0] == pair[1]), None);
    }

    #[test]
    fn every_op_has_a_bound_in_words_keywords_and_usual_bugs() {
        for op in described() {
            let schema = op.schema();
            assert!(!schema.bound.is_empty(), "{}", schema.name);
            assert!(!schema.keywords.is_empty(), "{}", schema.name);
            assert!(schema.usual_bugs.len() >= 3, "{}", schema.name);
        }
    }

    #[test]
    fn help_is_about_what_is_there_and_every_parameter_has_some() {
        for op in described() {
            let schema = op.schema();
            let tensors = schema.inputs.iter().chain(&schema.outputs).map(|spec| spec.name.as_str());
            let parameters: Vec<&str> = schema.parameters.iter().map(|spec| spec.name.as_str()).collect();
            let known: Vec<&str> = tensors.chain(parameters.iter().copied()).collect();
            let helped: Vec<&str> = schema.help.iter().map(|(name, _)| name.as_str()).collect();
            for name in &helped {
                assert!(known.contains(name), "{}: no '{name}'", schema.name);
                assert_eq!(helped.iter().filter(|other| other == &name).count(), 1, "{}: {name}", schema.name);
            }
            for name in parameters {
                assert!(helped.contains(&name), "{}: '{name}' has no help", schema.name);
            }
        }
    }

    #[test]
    fn aliases_and_misspellings_are_found() {
        assert_eq!(find("flash_attention").map(|op| op.schema().name.clone()), Some("attention".to_string()));
        assert_eq!(nearest("sofmax"), Some("softmax"));
        assert_eq!(nearest("something_else_entirely"), None);
    }
}
