//! The page of the documentation that lists the rules, made from the rules themselves.

use std::fmt::Write as _;

use super::project_rules::metric_names;
use super::rule::rules;

/// The page, as Markdown.
pub fn page() -> String {
    let mut text = String::from(
        "# Rules of the linter\n\n\
         <!-- Written by `cargo run -p gpuemu-ptx --example lint_rules`; a test compares. -->\n\n\
         `gpuemu lint` checks compiled kernels against these rules and those of the project. `gpuemu lint --explain RULE` \
         prints the same. A *heuristic* guesses: what it finds may be right. A finding of severity `error` fails a run.\n\n\
         | rule | severity | | what it finds |\n| --- | --- | --- | --- |\n",
    );
    for rule in rules() {
        let kind = if rule.heuristic { "heuristic" } else { "" };
        // Writing to a string cannot fail.
        let _ = writeln!(text, "| [{0}](#{0}) | {1} | {kind} | {2} |", rule.name, rule.severity.name(), rule.summary);
    }
    for rule in rules() {
        let kind = if rule.heuristic { ", a heuristic" } else { "" };
        let _ = write!(text, "\n## {}\n\n*{}{kind}.* {}\n\n", rule.name, rule.severity.name(), rule.summary);
        let _ = writeln!(text, "{}", rule.explanation);
    }
    text.push_str(
        "\n## Rules of a project\n\n\
         `[lint] rule_files = [\"rules.toml\"]` in `gpuemu.toml`, or `gpuemu lint --rules-file FILE`:\n\n\
         ```toml\n[[rules]]\nname = \"no-global-atomics\"\nseverity = \"error\"        # default \"warning\"\n\
         pattern = \"atom.global\"   # instructions, as in forbidden_instructions; or: metric = \"loops\"\n\
         threshold = 0             # the most that is allowed; 0 for a pattern that says neither\n\
         minimum = 1               # the least that is wanted; either or both\n\
         message = \"atomics make results differ from run to run\"\n\
         explanation = \"why, and what to do instead\"\n\
         kernels = [\"matmul_*\"]    # names of kernels or entries; all if left out\n```\n\n\
         Metrics: ",
    );
    let mut names: Vec<String> = metric_names().map(|name| format!("`{name}`")).collect();
    names.push("`instructions.forms.PATTERN`".to_string());
    names.push("`compiled.sass.PATTERN`".to_string());
    let _ = writeln!(text, "{}.", names.join(", "));
    text
}
