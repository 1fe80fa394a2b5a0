//! Reading a file of rules.

use std::collections::HashSet;
use std::ops::Range;
use std::path::Path;

use gpuemu_config::{ConfigError, InvalidFile, Located};
use gpuemu_model::artifact::Severity;
use gpuemu_model::nearest::nearest;
use serde::Deserialize;

use super::metric::{Metric, MetricError, metric_names};
use super::{Counted, ProjectRule};
use crate::lint::patterns::Pattern;
use crate::lint::rule;

#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
struct RuleFile {
    #[serde(default)]
    rules: Vec<Located<RuleTable>>,
}

#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
struct RuleTable {
    name: Located<String>,
    severity: Option<Severity>,
    pattern: Option<Located<String>>,
    metric: Option<Located<String>>,
    threshold: Option<u64>,
    minimum: Option<Located<u64>>,
    message: Located<String>,
    explanation: Option<String>,
    #[serde(default)]
    kernels: Vec<Located<String>>,
}

/// Reads a file of rules.
pub fn read_rules(path: &Path) -> Result<Vec<ProjectRule>, ConfigError> {
    let text = std::fs::read_to_string(path)
        .map_err(|error| ConfigError::Unreadable { path: path.to_path_buf(), message: error.to_string() })?;
    parse_rules(path, &text)
}

/// Reads the text of a file of rules.
pub fn parse_rules(path: &Path, text: &str) -> Result<Vec<ProjectRule>, ConfigError> {
    let reader = Reader { path, text };
    let file: RuleFile = toml::from_str(text).map_err(|error| reader.unparsed(&error))?;
    let mut names = HashSet::new();
    let mut rules = Vec::with_capacity(file.rules.len());
    for table in file.rules {
        let (name, span) = (table.value.name.value.clone(), table.value.name.span.clone());
        let rule = reader.rule(table)?;
        if !names.insert(name.clone()) {
            return Err(reader.invalid(&span, format!("rule '{name}' is there twice"), None));
        }
        rules.push(rule);
    }
    Ok(rules)
}

struct Reader<'t> {
    path: &'t Path,
    text: &'t str,
}

impl Reader<'_> {
    fn rule(&self, table: Located<RuleTable>) -> Result<ProjectRule, ConfigError> {
        let (span, table) = (table.span, table.value);
        let name = table.name.value;
        if !is_kebab_case(&name) {
            let hint = Some("use lower-case words and digits with '-' between them".to_string());
            return Err(self.invalid(&table.name.span, format!("'{name}' is no name of a rule"), hint));
        }
        if rule::find(&name).is_some() {
            let hint = Some("its severity is set in `[lint.severity]`".to_string());
            return Err(self.invalid(&table.name.span, format!("'{name}' is the name of a built-in rule"), hint));
        }
        if table.message.value.trim().is_empty() {
            return Err(self.invalid(&table.message.span, "the message is empty", None));
        }
        if let Some(kernel) = table.kernels.iter().find(|kernel| kernel.value.is_empty()) {
            let hint = Some("leave `kernels` out to check all".to_string());
            return Err(self.invalid(&kernel.span, "the name of a kernel is empty", hint));
        }
        let counted = match (table.pattern, table.metric) {
            (Some(pattern), None) => Counted::Pattern(self.pattern(&pattern)?),
            (None, Some(metric)) => Counted::Metric(self.metric(&metric)?),
            (Some(_), Some(metric)) => {
                return Err(self.invalid(&metric.span, format!("rule '{name}' has a pattern and a metric"), None));
            }
            (None, None) => {
                let hint = Some("add `pattern = \"…\"` or `metric = \"…\"`".to_string());
                return Err(self.invalid(&span, format!("rule '{name}' has neither a pattern nor a metric"), hint));
            }
        };
        let minimum = table.minimum.as_ref().map(|minimum| minimum.value);
        let threshold = match (table.threshold, minimum, &counted) {
            (None, None, Counted::Pattern(_)) => Some(0),
            (None, None, Counted::Metric(_)) => {
                let hint = Some("add `threshold = …` or `minimum = …`".to_string());
                return Err(self.invalid(&span, format!("rule '{name}' has no limit"), hint));
            }
            (threshold, ..) => threshold,
        };
        if let (Some(most), Some(least)) = (threshold, &table.minimum)
            && least.value > most
        {
            let message = format!("the minimum {} is more than the threshold {most}", least.value);
            return Err(self.invalid(&least.span, message, None));
        }
        Ok(ProjectRule {
            name,
            severity: table.severity.unwrap_or(Severity::Warning),
            counted,
            threshold,
            minimum,
            message: table.message.value,
            explanation: table.explanation,
            kernels: table.kernels.into_iter().map(|kernel| kernel.value).collect(),
        })
    }

    fn pattern(&self, text: &Located<String>) -> Result<Pattern, ConfigError> {
        Pattern::parse(&text.value)
            .map_err(|error| self.invalid(&text.span, format!("pattern '{}' {error}", text.value), None))
    }

    fn metric(&self, name: &Located<String>) -> Result<Metric, ConfigError> {
        Metric::parse(&name.value).map_err(|error| match error {
            MetricError::Pattern(error) => {
                self.invalid(&name.span, format!("the pattern of metric '{}' {error}", name.value), None)
            }
            MetricError::Unknown => {
                let meant = nearest(&name.value, metric_names()).map(|meant| format!("did you mean `{meant}`?"));
                let hint =
                    meant.unwrap_or_else(|| format!("known are {}", metric_names().collect::<Vec<_>>().join(", ")));
                self.invalid(&name.span, format!("unknown metric '{}'", name.value), Some(hint))
            }
        })
    }

    fn invalid(&self, span: &Range<usize>, message: impl Into<String>, hint: Option<String>) -> ConfigError {
        let end = self.text.len();
        ConfigError::Invalid(Box::new(InvalidFile {
            path: self.path.to_path_buf(),
            text: self.text.to_string(),
            span: span.start.min(end)..span.end.min(end),
            message: message.into(),
            hint,
        }))
    }

    /// An error of the TOML reader, with the nearest name where one is unknown.
    fn unparsed(&self, error: &toml::de::Error) -> ConfigError {
        let message = error.message().trim().to_string();
        let mut names = message.split('`').skip(1).step_by(2);
        let unknown = names.next().filter(|_| message.starts_with("unknown "));
        let known: Vec<&str> = names.collect();
        let meant = unknown.and_then(|unknown| nearest(unknown, known.iter().copied()));
        let hint = meant.map(|meant| format!("did you mean `{meant}`?"));
        self.invalid(&error.span().unwrap_or(0..0), message, hint)
    }
}

fn is_kebab_case(name: &str) -> bool {
    let word =
        |word: &str| !word.is_empty() && word.bytes().all(|byte| byte.is_ascii_lowercase() || byte.is_ascii_digit());
    name.split('-').all(word)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn parse(text: &str) -> Result<Vec<ProjectRule>, ConfigError> {
        parse_rules(Path::new("rules.toml"), text)
    }

    #[test]
    fn rules_are_read_with_their_defaults() {
        let text = "[[rules]]\nname = \"no-atomics\"\npattern = \"atom.global\"\nmessage = \"m\"\n\
                    [[rules]]\nname = \"uses-tensor-cores\"\nseverity = \"error\"\n\
                    metric = \"instructions.tensor_core\"\n\
                    minimum = 1\nmessage = \"m\"\nexplanation = \"e\"\nkernels = [\"matmul_*\"]\n";
        let rules = parse(text).unwrap();
        assert_eq!((rules[0].severity, rules[0].threshold, rules[0].minimum), (Severity::Warning, Some(0), None));
        assert_eq!((rules[1].severity, rules[1].threshold, rules[1].minimum), (Severity::Error, None, Some(1)));
        assert_eq!(rules[1].kernels, ["matmul_*"]);
        assert!(parse("").unwrap().is_empty());
    }

    #[test]
    fn what_is_wrong_is_said_with_its_place() {
        let head = "[[rules]]\nname = \"a\"\nmessage = \"m\"\n";
        let cases = [
            (format!("{head}patern = \"ld\"\n"), 4, "did you mean `pattern`?"),
            (format!("{head}metric = \"instructions.totl\"\nthreshold = 1\n"), 4, "did you mean `instructions.total`?"),
            (format!("{head}metric = \"x\"\nthreshold = 1\n"), 4, "unknown metric 'x'"),
            (format!("{head}metric = \"blocks\"\n"), 1, "has no limit"),
            (head.to_string(), 1, "neither a pattern nor a metric"),
            (format!("{head}pattern = \"ld\"\nmetric = \"blocks\"\n"), 5, "a pattern and a metric"),
            (format!("{head}pattern = \"ld..x\"\n"), 4, "pattern 'ld..x' has nothing between two dots"),
            (format!("{head}pattern = \"ld\"\nseverity = \"eror\"\n"), 5, "did you mean `error`?"),
            (format!("{head}pattern = \"ld\"\nthreshold = -1\n"), 5, "invalid value"),
            (format!("{head}pattern = \"ld\"\nthreshold = 1\nminimum = 2\n"), 6, "more than the threshold"),
            (format!("{head}pattern = \"ld\"\nkernels = [\"\"]\n"), 5, "is empty"),
            (format!("{head}pattern = \"ld\"\n{head}pattern = \"ld\"\n"), 6, "'a' is there twice"),
            ("[[rules]]\nname = \"A b\"\nmessage = \"m\"\npattern = \"ld\"\n".into(), 2, "no name of a rule"),
            ("[[rules]]\nname = \"max-spills\"\nmessage = \"m\"\npattern = \"ld\"\n".into(), 2, "built-in rule"),
            ("[[rules]]\nname = \"a\"\nmessage = \" \"\npattern = \"ld\"\n".into(), 3, "message is empty"),
            ("[[rule]]\nname = \"a\"\n".into(), 1, "did you mean `rules`?"),
        ];
        for (text, line, words) in cases {
            let error = parse(&text).unwrap_err();
            let ConfigError::Invalid(invalid) = &error else { panic!("{error}") };
            assert_eq!(invalid.range().start.line, line, "{error}");
            assert!(error.to_string().contains(words) && error.to_string().contains("rules.toml:"), "{error}");
        }
    }

    #[test]
    fn a_file_that_is_not_there_is_named() {
        let error = read_rules(Path::new("no-such-rules.toml")).unwrap_err();
        assert!(error.to_string().contains("no-such-rules.toml"), "{error}");
    }
}
