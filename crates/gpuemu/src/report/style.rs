//! Colours with fixed meanings; every line reads the same without them.

use anstyle::{AnsiColor, Style};

pub const GOOD: Style = AnsiColor::Green.on_default().bold();

pub const BAD: Style = AnsiColor::Red.on_default().bold();

/// What is worth a look.
pub const WARNING: Style = AnsiColor::Yellow.on_default();

/// What can be typed.
pub const COMMAND: Style = AnsiColor::Cyan.on_default();

pub fn paint(style: Style, text: &str) -> String {
    format!("{style}{text}{style:#}")
}

/// Text without any style.
pub fn plain(text: &str) -> String {
    anstream::adapter::strip_str(text).to_string()
}
