use proptest::prelude::*;

use super::*;

/// A case: `input` of 3 x 5 x 200, transposed in memory, dims B and H, parameters eps, causal and mode.
struct Case;

const SHAPE: [usize; 3] = [3, 5, 200];
const STRIDES: [isize; 3] = [1000, 1, 5];
const HUGE: [usize; 2] = [usize::MAX, 2];

impl LaunchContext for Case {
    fn value(&self, name: &str) -> Option<Value> {
        Some(match name {
            "B" => Value::Integer(3),
            "H" => Value::Integer(200),
            "eps" => Value::Float(0.5),
            "causal" => Value::Boolean(true),
            "mode" => Value::Text("mean".to_string()),
            _ => return None,
        })
    }
    fn tensor(&self, name: &str) -> Option<TensorFacts<'_>> {
        match name {
            "input" => Some(TensorFacts { shape: &SHAPE, strides: &STRIDES, dtype: DType::F16 }),
            "scalar" => Some(TensorFacts { shape: &[], strides: &[], dtype: DType::I32 }),
            "huge" => Some(TensorFacts { shape: &HUGE, strides: &[2, 1], dtype: DType::U8 }),
            _ => None,
        }
    }
    fn dtype(&self) -> DType {
        DType::F16
    }
}

fn value(text: &str) -> Value {
    text.parse::<Expression>().unwrap().evaluate(&Case).unwrap()
}

fn refusal(text: &str) -> String {
    text.parse::<Expression>().unwrap_err().message
}

fn failure(text: &str) -> String {
    text.parse::<Expression>().unwrap().evaluate(&Case).unwrap_err().message
}

#[test]
fn numbers_bind_as_everywhere() {
    for (text, expected) in [
        ("1 + 2 * 3", 7),
        ("(1 + 2) * 3", 9),
        ("10 - 4 - 3", 3),
        ("2 * -3", -6),
        ("-7 / 2", -3),
        ("-7 % 3", -1),
        ("- - 4", 4),
        ("7 % 4 * 2", 6),
        ("ceil_div(H, 64)", 4),
        ("ceil_div(-7, 2)", -3),
        ("ceil_div(-7, -2)", 4),
        ("next_pow2(H)", 256),
        ("next_pow2(256)", 256),
        ("next_pow2(0)", 1),
        ("min(H, 64, 3 * B)", 9),
        ("max(1, B)", 3),
        ("rows(input)", 15),
        ("rows(scalar) + numel(scalar)", 2),
        ("numel(input)", 3000),
        ("size(input, -1) + size(input, B - 2)", 205),
        ("stride(input, 0) + stride(input,-1)", 1005),
    ] {
        assert_eq!(value(text), Value::Integer(expected), "{text}");
    }
    assert_eq!(value("eps * 3 + B"), Value::Float(4.5));
    assert_eq!(value("1e-6"), Value::Float(1e-6));
    assert_eq!(value("max(eps, 0)"), Value::Float(0.5));
}

#[test]
fn conditions_are_true_or_false() {
    for (text, expected) in [
        ("next_pow2(H) == 256 && dtype == 'float16'", true),
        ("dtype == \"bf16\" || dtype(scalar) == 'int32'", true),
        ("dtype == dtype(scalar)", false),
        ("dtype != 'fp16'", false),
        ("H >= 200 && H < 201 && !(B > 3)", true),
        ("mode == 'mean' && causal", true),
        ("causal == false", false),
        ("eps <= 1", true),
        ("true", true),
        // The right side makes no sense, and is not asked.
        ("B == 3 || 1 / 0 == 1", true),
        ("B == 4 && 1 / 0 == 1", false),
    ] {
        let expression: Expression = text.parse().unwrap();
        assert_eq!(expression.holds(&Case), Ok(expected), "{text}");
    }
}

#[test]
fn what_is_no_expression_is_refused_in_words() {
    for (text, expected) in [
        ("", "a value is missing at the end"),
        ("rows(input", "')' was expected before the end"),
        ("rosw(input)", "there is no function 'rosw' (did you mean 'rows'?)"),
        (
            "banana(1)",
            "there is no function 'banana' (there are stride, size, rows, numel, dtype, ceil_div, next_pow2, min, max)",
        ),
        ("stride(input)", "stride takes a tensor and a dim, but was given 1"),
        ("rows(input, 1)", "rows takes a tensor, but was given 2"),
        ("size(3, 1)", "size takes the name of a tensor first"),
        ("ceil_div(1)", "ceil_div takes two numbers, but was given 1"),
        ("min(1)", "min takes two numbers or more, but was given 1"),
        ("1 2", "'2' was not expected"),
        ("1 +", "a value is missing at the end"),
        ("* 2", "a value was expected before '*'"),
        ("a = b", "'=' means nothing; equality is written '=='"),
        ("a & b", "'&' means nothing; 'and' is written '&&'"),
        ("8 // 2", "'//' is no operator; '/' of whole numbers rounds towards zero"),
        ("1 < 2 == true", "comparisons cannot be chained; join them by '&&'"),
        ("1 < 2 < 3", "comparisons cannot be chained; join them by '&&'"),
        ("9223372036854775808", "9223372036854775808 is too large"),
        ("1.2.3", "1.2.3 is not a number"),
        ("'open", "a text is not closed"),
        ("é + ☃", "'☃' means nothing"),
    ] {
        assert_eq!(refusal(text), expected, "{text}");
    }
    assert!(refusal("dtype == 'float61'").starts_with("unknown dtype 'float61'"));
    assert!(refusal("'halv' != dtype(x)").starts_with("unknown dtype 'halv'"));
    assert_eq!(refusal(&"(".repeat(900)), "brackets nested more than 40 deep");
    assert_eq!(refusal(&"-".repeat(900)), "brackets nested more than 40 deep");
    assert_eq!(refusal(&"1+".repeat(501)), "more than 1000 bytes");
}

#[test]
fn what_comes_to_nothing_says_why() {
    for (text, expected) in [
        ("9223372036854775807 + 1", "a number leaves 64 bits"),
        ("9223372036854775807 * B", "a number leaves 64 bits"),
        ("(-9223372036854775807 - 1) / -1", "a number leaves 64 bits"),
        ("-(-9223372036854775807 - 1)", "a number leaves 64 bits"),
        ("(-9223372036854775807 - 1) % -1", "a number leaves 64 bits"),
        ("ceil_div(-9223372036854775807 - 1, -1)", "a number leaves 64 bits"),
        ("next_pow2(9223372036854775807)", "a number leaves 64 bits"),
        ("numel(huge)", "a number leaves 64 bits"),
        ("H / 0", "200 is divided by zero"),
        ("H % (B - 3)", "200 is divided by zero"),
        ("ceil_div(1, 0)", "1 is divided by zero"),
        ("eps / 0", "0.5 / 0 is inf"),
        ("W", "there is no dim and no parameter 'W'"),
        ("numel(W)", "there is no tensor 'W'"),
        ("input + 1", "'input' is a tensor; take a number of it, as in size(input, 0)"),
        ("size(input, 3)", "size of dim 3: input has 3 dims"),
        ("stride(scalar, 0)", "stride of dim 0: scalar has 0 dims"),
        ("size(input, eps)", "a dim is a whole number, not 0.5"),
        ("mode + 1", "'+' takes numbers, not 'mean' and 1"),
        ("mode < 1", "'<' cannot compare 'mean' with 1"),
        ("dtype == mode", "unknown dtype 'mean'"),
        ("B && true", "'&&' takes true or false, but 3 is neither"),
        ("!B", "'!' takes true or false, but 3 is neither"),
        ("-mode", "'-' takes a number, but 'mean' is none"),
        ("ceil_div(eps, 2)", "ceil_div takes whole numbers, not 0.5, 2"),
        ("min(mode, mode)", "'min' cannot compare 'mean' with 'mean'"),
    ] {
        assert!(failure(text).starts_with(expected), "{text}: {}", failure(text));
    }
    let error = "eps".parse::<Expression>().unwrap().integer(&Case).unwrap_err().to_string();
    assert_eq!(error, "\"eps\" cannot be evaluated: it is 0.5, and should be a whole number");
    let error = "B".parse::<Expression>().unwrap().holds(&Case).unwrap_err().to_string();
    assert_eq!(error, "\"B\" cannot be evaluated: it is 3, and should be true or false");
}

#[test]
fn the_names_that_it_needs_are_known() {
    let expression: Expression = "min(H, size(input, B)) + numel(out) > 1 && dtype == 'f32'".parse().unwrap();
    let mut names = expression.names();
    names.values.sort_unstable();
    names.tensors.sort_unstable();
    assert_eq!(names, Names { values: vec!["B", "H"], tensors: vec!["input", "out"] });
    assert_eq!(("x".parse::<Expression>().unwrap().name(), Expression::from(3).name()), (Some("x"), None));
}

/// Trees of whole numbers, with their values.
fn tree() -> impl proptest::strategy::Strategy<Value = (String, Option<i64>)> {
    let leaf = (0i64..2000).prop_map(|number| (number.to_string(), Some(number)));
    leaf.prop_recursive(4, 24, 2, |inner| {
        (inner.clone(), inner, 0usize..5).prop_map(|((left, first), (right, second), operator)| {
            let both = first.zip(second);
            let (symbol, value) = match operator {
                0 => ("+", both.and_then(|(first, second)| first.checked_add(second))),
                1 => ("-", both.and_then(|(first, second)| first.checked_sub(second))),
                2 => ("*", both.and_then(|(first, second)| first.checked_mul(second))),
                3 => ("/", both.and_then(|(first, second)| first.checked_div(second))),
                _ => ("%", both.and_then(|(first, second)| first.checked_rem(second))),
            };
            (format!("({left}{symbol}{right})"), value)
        })
    })
}

proptest! {
    #[test]
    fn trees_come_to_what_they_are((text, expected) in tree()) {
        let found = text.parse::<Expression>().unwrap().integer(&Case).ok();
        prop_assert_eq!(found, expected, "{}", text);
    }

    #[test]
    fn any_text_is_read_or_refused_without_panic(text in "(rows|min|H|input|[0-9]{1,20}|[-+*/%()<>=!&|,'\" .eé]){0,30}") {
        if let Ok(expression) = text.parse::<Expression>() {
            let _ = expression.evaluate(&Case);
        }
    }
}
