//! The reference of the command line, as Markdown, from the definitions that the program itself reads its arguments by.

use std::fmt::Write;

use clap::{Arg, ArgAction, Command, CommandFactory};

/// The page: every command with its arguments and options.
pub fn markdown() -> String {
    let mut definition = crate::Arguments::command();
    definition.build();
    let mut page = String::from(
        "# The command line\n\nWritten by `cargo run -p gpuemu --example cli_reference` from the definitions of the \
         commands; `gpuemu COMMAND --help` prints the same, `gpuemu man` as manual pages.\n\n",
    );
    let about = "Exit status: 0 if everything passed, 1 if a validation failed or regressed, 2 if something could not be \
                 judged or the command could not be carried out.";
    let _ = writeln!(page, "{about}\n\n## Options of every command\n");
    for option in options(&definition).filter(|option| option.is_global_set()) {
        page.push_str(&described(option));
    }
    for command in definition.get_subcommands().filter(|command| command.get_name() != "help") {
        section(&mut page, &format!("gpuemu {}", command.get_name()), command, 2);
    }
    page
}

fn section(page: &mut String, name: &str, command: &Command, level: usize) {
    let about = command.get_long_about().or(command.get_about()).map(ToString::to_string).unwrap_or_default();
    // Writing to a string cannot fail.
    let _ = writeln!(page, "\n{} `{name}`\n\n{about}\n", "#".repeat(level));
    let usage = command.clone().render_usage().to_string();
    let _ = writeln!(page, "```text\n{}\n```\n", usage.trim_start_matches("Usage:").trim());
    let (positional, named): (Vec<&Arg>, Vec<&Arg>) = options(command).partition(|option| option.is_positional());
    for argument in positional.into_iter().chain(named).filter(|argument| !argument.is_global_set()) {
        page.push_str(&described(argument));
    }
    for inner in command.get_subcommands().filter(|inner| inner.get_name() != "help") {
        section(page, &format!("{name} {}", inner.get_name()), inner, (level + 1).min(4));
    }
}

/// What can be given, help and version left out.
fn options(command: &Command) -> impl Iterator<Item = &Arg> {
    let of_clap = |argument: &&Arg| matches!(argument.get_id().as_str(), "help" | "version");
    command.get_arguments().filter(move |argument| !argument.is_hide_set() && !of_clap(argument))
}

/// An item of a list: how it is written, and what it is.
fn described(argument: &Arg) -> String {
    let value = || {
        let names = argument.get_value_names().unwrap_or_default();
        names.iter().map(|name| format!("<{name}>")).collect::<Vec<_>>().join(" ")
    };
    let takes_value = !matches!(
        argument.get_action(),
        ArgAction::SetTrue | ArgAction::SetFalse | ArgAction::Count | ArgAction::Help | ArgAction::Version
    );
    let mut written = match (argument.get_short(), argument.get_long()) {
        (Some(short), Some(long)) => format!("-{short}, --{long}"),
        (Some(short), None) => format!("-{short}"),
        (None, Some(long)) => format!("--{long}"),
        (None, None) => value(),
    };
    if takes_value && !argument.is_positional() {
        let _ = write!(written, " {}", value());
    }
    let mut text = argument.get_help().map(ToString::to_string).unwrap_or_default().replace('\n', " ");
    // Help has no full stop at its end: clap takes it away.
    if !text.is_empty() && !text.ends_with(['.', ']']) {
        text.push('.');
    }
    let values: Vec<String> = argument
        .get_possible_values()
        .iter()
        .filter(|value| !value.is_hide_set() && takes_value)
        .map(|value| format!("`{}`", value.get_name()))
        .collect();
    if !values.is_empty() {
        let _ = write!(text, " One of {}.", values.join(", "));
    }
    let defaults: Vec<String> = argument
        .get_default_values()
        .iter()
        .filter(|_| takes_value)
        .map(|value| format!("`{}`", value.to_string_lossy()))
        .collect();
    if !defaults.is_empty() {
        let _ = write!(text, " Default: {}.", defaults.join(", "));
    }
    format!("- `{}`: {text}\n", written.trim())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_page_in_the_documentation_is_up_to_date() {
        let path = std::path::Path::new(env!("CARGO_MANIFEST_DIR")).join("../../docs/reference/cli.md");
        let page = std::fs::read_to_string(path).unwrap_or_default();
        assert!(
            page == markdown(),
            "write it again: cargo run -p gpuemu --example cli_reference > docs/reference/cli.md"
        );
    }

    #[test]
    fn every_command_and_option_is_described() {
        let page = markdown();
        let described = |line: &&str| line.starts_with("- `") && line.trim_end().ends_with("`:");
        let without: Vec<&str> = page.lines().filter(described).collect();
        assert!(without.is_empty(), "{without:?}");
        for name in ["gpuemu fuzz", "gpuemu failures replay", "--engine <ENGINE>", "--no-daemon"] {
            assert!(page.contains(name), "{name}");
        }
    }
}
