//! Whether the builds choose the same features of what they share. Where they do, the command line, the Python module and
//! the tests are made of the same compiled crates; where they do not, cargo compiles some of them, and all that are built
//! on those, once more.

use std::collections::{BTreeMap, BTreeSet};

use crate::failure::Failure;
use crate::process;

/// What the step runs, as one would type it.
pub const COMMAND: &str = "cargo tree for the command line, the Python module and the tests";

/// Where features are asked for that one of the builds needs and the others do not.
const LIST: &str = "crates/gpuemu-model/Cargo.toml";

/// The build that a newcomer starts, whose crates the others use.
const FIRST: (&str, &[&str]) = ("the command line", &["--package", "gpuemu", "--edges", "normal,build"]);

/// The builds that come after it.
const LATER: &[(&str, &[&str])] = &[
    ("the Python module", &["--package", "gpuemu-python", "--edges", "normal"]),
    ("the tests", &["--workspace", "--edges", "normal,build,dev"]),
];

/// By crate with its version, every choice of features that it is built with.
type Choices = BTreeMap<String, BTreeSet<String>>;

/// Fails where a later build chooses other features than the first, and says which.
pub fn run() -> Result<(), Failure> {
    let first = choices_of(FIRST.1)?;
    let mut differences = Vec::new();
    for (name, arguments) in LATER {
        differences.extend(missing(&first, &choices_of(arguments)?, name));
    }
    if differences.is_empty() {
        return Ok(());
    }
    Err(Failure::Check(format!("{}\nask for these features in {LIST}", differences.join("\n"))))
}

fn choices_of(arguments: &[&str]) -> Result<Choices, Failure> {
    let mut command = process::cargo()?;
    command.args(["tree", "--locked", "--quiet", "--prefix", "none", "--format", "{p} [{f}]"]).args(arguments);
    let (text, verdict) = process::run_keeping_output(&mut command)?;
    verdict?;
    Ok(choices(&text))
}

/// Reads lines such as `serde v1.0.229 [default,derive] (*)`.
fn choices(text: &str) -> Choices {
    let mut choices = Choices::new();
    for line in text.lines() {
        let Some((package, rest)) = line.split_once(" [") else { continue };
        let Some((features, _)) = rest.split_once(']') else { continue };
        // The crates of the workspace are named with their folder, and have no features in these builds.
        if !package.contains('(') {
            choices.entry(package.to_string()).or_default().insert(features.to_string());
        }
    }
    choices
}

/// What the first build chooses and a later one, which has the crate too, does not.
fn missing(first: &Choices, later: &Choices, name: &str) -> Vec<String> {
    let mut found = Vec::new();
    for (package, chosen) in first {
        let Some(others) = later.get(package) else { continue };
        if chosen.is_disjoint(others) {
            let words = |choices: &BTreeSet<String>| choices.iter().cloned().collect::<Vec<_>>().join(" or ");
            found.push(format!(
                "{package} is built with [{}] for {name}, with [{}] for {}",
                words(others),
                words(chosen),
                FIRST.0
            ));
        }
    }
    found
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_crate_with_other_features_is_named() {
        let first = choices("serde v1.0.229 [default,derive]\nlibc v0.2.0 []\nlibc v0.2.0 [std] (*)\n");
        let same = choices("serde v1.0.229 [default,derive] (*)\nlibc v0.2.0 [std]\nmemchr v2.0.0 [std]\n");
        assert!(missing(&first, &same, "the tests").is_empty());
        let other = choices("gpuemu v0.1.0 (/gpuemu) [default]\nserde v1.0.229 [default]\n");
        let found = missing(&first, &other, "the tests");
        assert_eq!(
            found,
            ["serde v1.0.229 is built with [default] for the tests, with [default,derive] for the command line"]
        );
    }
}
