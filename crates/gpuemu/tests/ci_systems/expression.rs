//! Expressions of GitHub's workflows, as far as the project's files use them.
//!
//! Operators, precedence and conversions are those of GitHub's documentation: texts are compared without their case,
//! values of different types as numbers, `&&` and `||` return one of their sides. What is not known here fails the test.

use serde_json::Value;

/// What an expression is evaluated in.
#[derive(Debug, Clone)]
pub struct Context {
    /// `github`, `inputs`, `steps`, ...
    pub values: Value,
    /// Whether a step before has failed.
    pub failed: bool,
}

impl Context {
    /// Whether a step or job with this condition runs. Without a function that asks for the state, `success()` is meant.
    pub fn runs(&self, condition: Option<&Value>) -> bool {
        let Some(condition) = condition else { return !self.failed };
        let text = condition.as_str().unwrap().trim();
        let text = text.strip_prefix("${{").and_then(|text| text.strip_suffix("}}")).unwrap_or(text);
        let asks = ["always()", "cancelled()", "success()", "failure()"].iter().any(|name| text.contains(name));
        (asks || !self.failed) && is_true(&self.evaluate(text))
    }

    /// A text with its expressions replaced by their values.
    pub fn fill(&self, value: &Value) -> String {
        let text = text_of(value);
        let mut filled = String::new();
        let mut rest = text.as_str();
        while let Some((before, after)) = rest.split_once("${{") {
            let (expression, after) = after.split_once("}}").unwrap();
            filled.push_str(before);
            filled.push_str(&text_of(&self.evaluate(expression)));
            rest = after;
        }
        filled + rest
    }

    /// The value of an expression.
    pub fn evaluate(&self, text: &str) -> Value {
        let mut parser = Parser { context: self, rest: text.trim() };
        let value = parser.either();
        assert!(parser.rest.is_empty(), "'{}' is left of '{text}'", parser.rest);
        value
    }
}

/// Whether a value counts as true.
fn is_true(value: &Value) -> bool {
    match value {
        Value::Null => false,
        Value::Bool(value) => *value,
        Value::Number(number) => number.as_f64() != Some(0.0),
        Value::String(text) => !text.is_empty(),
        _ => true,
    }
}

fn text_of(value: &Value) -> String {
    match value {
        Value::Null => String::new(),
        Value::String(text) => text.clone(),
        other => other.to_string(),
    }
}

fn number_of(value: &Value) -> f64 {
    match value {
        Value::Null => 0.0,
        Value::Bool(value) => f64::from(u8::from(*value)),
        Value::String(text) if text.is_empty() => 0.0,
        Value::String(text) => text.parse().unwrap_or(f64::NAN),
        other => other.as_f64().unwrap_or(f64::NAN),
    }
}

fn equal(left: &Value, right: &Value) -> bool {
    match (left, right) {
        (Value::String(left), Value::String(right)) => left.eq_ignore_ascii_case(right),
        (Value::Null, Value::Null) => true,
        _ => number_of(left) == number_of(right),
    }
}

struct Parser<'a> {
    context: &'a Context,
    rest: &'a str,
}

impl<'a> Parser<'a> {
    fn takes(&mut self, word: &str) -> bool {
        let Some(rest) = self.rest.strip_prefix(word) else { return false };
        self.rest = rest.trim_start();
        true
    }

    fn either(&mut self) -> Value {
        let mut value = self.both();
        while self.takes("||") {
            let other = self.both();
            value = if is_true(&value) { value } else { other };
        }
        value
    }

    fn both(&mut self) -> Value {
        let mut value = self.comparison();
        while self.takes("&&") {
            let other = self.comparison();
            value = if is_true(&value) { other } else { value };
        }
        value
    }

    fn comparison(&mut self) -> Value {
        let left = self.operand();
        if self.takes("==") {
            return equal(&left, &self.operand()).into();
        }
        if self.takes("!=") {
            return (!equal(&left, &self.operand())).into();
        }
        left
    }

    fn operand(&mut self) -> Value {
        // `!=` is looked for after an operand, never before one.
        if self.takes("!") {
            return (!is_true(&self.operand())).into();
        }
        if self.takes("(") {
            let value = self.either();
            assert!(self.takes(")"), "a parenthesis is not closed before '{}'", self.rest);
            return value;
        }
        if let Some(text) = self.rest.strip_prefix('\'') {
            let (text, rest) = text.split_once('\'').unwrap();
            self.rest = rest.trim_start();
            return text.into();
        }
        let part_of_name = |letter: char| letter.is_ascii_alphanumeric() || "_-.".contains(letter);
        let end = self.rest.find(|letter| !part_of_name(letter)).unwrap_or(self.rest.len());
        let (name, rest) = self.rest.split_at(end);
        self.rest = rest.trim_start();
        if self.takes("(") {
            return self.call(name);
        }
        match name {
            "true" => true.into(),
            "false" => false.into(),
            name => self.look_up(name),
        }
    }

    fn call(&mut self, name: &str) -> Value {
        let mut arguments = Vec::new();
        while !self.takes(")") {
            arguments.push(self.either());
            self.takes(",");
        }
        match (name, arguments.as_slice()) {
            ("always", []) => true.into(),
            ("cancelled", []) => false.into(),
            ("success", []) => (!self.context.failed).into(),
            ("failure", []) => self.context.failed.into(),
            ("format", [pattern, value]) => text_of(pattern).replace("{0}", &text_of(value)).into(),
            _ => panic!("there is no function {name} with {} arguments", arguments.len()),
        }
    }

    /// A path of names. The context must be known; what it does not hold is null.
    fn look_up(&self, path: &str) -> Value {
        let mut names = path.split('.');
        let first = names.next().unwrap();
        let context = self.context.values.get(first).unwrap_or_else(|| panic!("there is no context '{path}'"));
        names.try_fold(context, |value, name| value.get(name)).cloned().unwrap_or(Value::Null)
    }
}

#[test]
fn expressions_are_evaluated_as_github_does() {
    let values = serde_json::json!({
        "github": { "event_name": "schedule", "event": { "pull_request": { "number": 7 } } },
        "inputs": { "upload-sarif": "TRUE" },
    });
    let context = Context { values, failed: true };
    for (expression, expected) in [
        ("github.event_name == 'Schedule'", true.into()),
        ("github.event_name != 'schedule' || inputs.upload-sarif == 'true'", true.into()),
        ("!cancelled() && github.event.pull_request.number", 7.into()),
        ("github.event.release.name && 'there' || 'gone'", "gone".into()),
        ("github.event.release == true", false.into()),
        ("(true || false) && !(false)", true.into()),
        ("format('{0}/file', github.event_name)", "schedule/file".into()),
        ("success() || failure()", Value::from(true)),
    ] {
        assert_eq!(context.evaluate(expression), expected, "{expression}");
    }
    assert_eq!(context.fill(&"a ${{ github.event.pull_request.number }} b ${{ github.none }}".into()), "a 7 b ");
    assert!(
        !context.runs(None) && !context.runs(Some(&"true".into())) && context.runs(Some(&"${{ always() }}".into()))
    );
}
