use super::*;

fn rows(source: &str) -> Vec<(usize, Kind, String)> {
    let found = messages("a.rs", source).unwrap();
    found.into_iter().map(|message| (message.line, message.kind, message.text)).collect()
}

#[test]
fn texts_are_told_by_what_takes_them() {
    let source = r#"
#[derive(Debug, Error)]
enum StoreError {
    #[error("cancelled")]
    Cancelled,
    #[error("the store has version {0}")]
    Version(u32),
}
fn look(report: &mut Report) -> Result<(), ExpectedError> {
    report.warnings.push(format!("{} was left out", name()));
    let value = read().ok_or("there is no value")?;
    tracing::warn!(path = %path, "the file is old");
    fault!("store.read", injected("no text of users"), read()).map_err(|_| format!("cannot read it"))?;
    println!("{} of {} cases passed", value, value);
    if value == "a name" { panic!("this is not for users") }
    Err(ExpectedError::new("no such op", "name one of the ops"))
}
"#;
    let expected = [
        (4, Kind::Error, "cancelled"),
        (6, Kind::Error, "the store has version {0}"),
        (10, Kind::Warning, "{} was left out"),
        (11, Kind::Error, "there is no value"),
        (12, Kind::Warning, "the file is old"),
        (13, Kind::Error, "cannot read it"),
        (14, Kind::Note, "{} of {} cases passed"),
        (16, Kind::Error, "no such op"),
        (16, Kind::Hint, "name one of the ops"),
    ];
    assert_eq!(rows(source), expected.map(|(line, kind, text)| (line, kind, text.to_string())));
}

#[test]
fn comments_of_the_command_line_are_help_and_others_are_not() {
    let source = r#"
/// Judge kernels.
#[derive(Parser)]
struct Arguments {
    /// Take this
    /// file.
    #[arg(long, help_heading = "Cases to try")]
    file: String,
}
/// No help.
#[derive(Subcommand)]
enum Command {
    /// Print the version.
    Version { /** Choose the form. */ format: String },
}
/// No help either.
struct Other { /** Nor this one. */ field: u8 }
"#;
    let mut found = rows(source);
    found.sort();
    let texts: Vec<(usize, &str)> = found.iter().map(|(line, _, text)| (*line, text.as_str())).collect();
    let expected = [
        (2, "Judge kernels."),
        (5, "Take this file."),
        (7, "Cases to try"),
        (13, "Print the version."),
        (14, "Choose the form."),
    ];
    assert_eq!(texts, expected);
    assert!(found.iter().all(|(_, kind, _)| *kind == Kind::Help));
}

#[test]
fn tests_are_left_out() {
    let source = "#[cfg(test)] mod tests;\n#[cfg(test)] mod more { fn f() -> E { E(\"this is wrong here\") } }\nmod kept;\n#[test] fn g() { print!(\"one two three\") }\n#[cfg(unix)] mod other { fn f() { print!(\"one two three\") } }";
    assert_eq!(rows(source), [(5, Kind::Note, "one two three".to_string())]);
    assert_eq!(test_modules(source), ["tests"]);
    assert!(rows("#![cfg(test)]\nfn g() { print!(\"one two three\") }").is_empty());
}

#[test]
fn what_is_no_rust_is_named_with_its_line() {
    assert!(messages("a.rs", "fn a() {}\nfn {").unwrap_err().starts_with("a.rs:2: "));
    assert!(test_modules("fn {").is_empty());
}
