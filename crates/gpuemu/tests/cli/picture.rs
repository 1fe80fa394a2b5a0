//! Pictures of terminals for the README and the documentation, drawn from what the program prints.

use std::path::PathBuf;

use anstyle_svg::{Term, WIN10_CONSOLE};

use crate::fixture::{Project, text_of};

/// Columns after which a terminal begins a new line.
const COLUMNS: usize = 112;

/// What somebody sees who types commands, with colours.
pub struct Terminal {
    text: String,
}

impl Terminal {
    /// A terminal with nothing on it.
    pub fn new() -> Self {
        Self { text: String::new() }
    }

    /// Shows a remark of whoever types.
    pub fn remark(&mut self, text: &str) {
        self.text.push_str(&format!("$ \x1b[2m# {text}\x1b[0m\n"));
    }

    /// Runs gpuemu, shows the command and what it prints, and returns that without colours.
    pub fn run(&mut self, project: &Project, arguments: &[&str], status: i32) -> String {
        let command = project.gpuemu(arguments).env_remove("NO_COLOR").env("CLICOLOR_FORCE", "1");
        let printed = text_of(&command.assert().code(status).get_output().stdout);
        self.text.push_str(&format!("$ \x1b[1mgpuemu {}\x1b[0m\n{printed}\n", arguments.join(" ")));
        anstream::adapter::strip_str(&printed).to_string()
    }

    /// Fails unless the picture shows this, whatever was measured; `SNAPSHOTS=overwrite` draws it anew.
    pub fn assert_drawn(&self, name: &str) {
        let file = PathBuf::from(concat!(env!("CARGO_MANIFEST_DIR"), "/../../docs/pictures")).join(name);
        let drawn = Term::new().palette(WIN10_CONSOLE).render_svg(&wrapped(self.text.trim_end()));
        if std::env::var_os("SNAPSHOTS").is_some_and(|wish| wish == "overwrite") {
            std::fs::write(&file, &drawn).unwrap();
        }
        let kept = std::fs::read_to_string(&file).unwrap();
        let [kept, drawn] = [kept, drawn].map(|svg| without_measures(&text_in(&svg)));
        assert_eq!(kept, drawn, "{} is not what the program prints; draw it by SNAPSHOTS=overwrite", file.display());
    }
}

/// Breaks lines as a terminal does. Escapes take no room.
fn wrapped(text: &str) -> String {
    let mut wrapped = String::new();
    let (mut column, mut is_escape) = (0, false);
    for character in text.chars() {
        is_escape |= character == '\x1b';
        if character == '\n' {
            column = 0;
        } else if !is_escape {
            if column == COLUMNS {
                wrapped.push('\n');
                column = 0;
            }
            column += 1;
        }
        wrapped.push(character);
        is_escape &= character != 'm';
    }
    wrapped
}

/// The words of a picture.
fn text_in(svg: &str) -> String {
    let body = &svg[svg.find("<text").unwrap()..];
    let mut text = String::new();
    for part in body.split('<').skip(1) {
        text.push_str(part.split_once('>').unwrap().1);
    }
    [("&lt;", "<"), ("&gt;", ">"), ("&quot;", "\""), ("&#x27;", "'"), ("&amp;", "&")]
        .into_iter()
        .fold(text, |text, (escape, character)| text.replace(escape, character))
}

/// The text on one line, with `#` for what differs from machine to machine: errors, shares, times, and the z of a test.
fn without_measures(text: &str) -> String {
    // Where a line was broken depends on how long the measures are.
    let text = text.replace('\n', "");
    let mut rest = text.as_str();
    let mut masked = String::new();
    while let Some(start) = rest.find(|character: char| character.is_ascii_digit()) {
        let (before, number) = rest.split_at(start);
        let is_of_number = |character: char| character.is_ascii_digit() || ".e-".contains(character);
        let (number, after) = number.split_at(number.find(|one| !is_of_number(one)).unwrap_or(number.len()));
        let is_measured = number.contains('.') || before.ends_with("(z = ");
        masked.push_str(before);
        masked.push_str(if is_measured { "#" } else { number });
        rest = after;
    }
    (masked + rest).trim().to_string()
}

#[test]
fn lines_are_broken_by_what_is_seen_of_them() {
    let line = format!("\x1b[1m{}\x1b[0mend\nnext", "x".repeat(COLUMNS));
    assert_eq!(wrapped(&line), format!("\x1b[1m{}\x1b[0m\nend\nnext", "x".repeat(COLUMNS)));
}

#[test]
fn a_count_or_a_seed_that_differs_is_seen_and_a_measure_is_not() {
    let drawn = |text: &str| without_measures(&text_in(&Term::new().render_svg(text)));
    let line = "3 of 200 cases <failed>, 'out' off by 1.5e-3 (z = 12), seed 17, 2.5 s";
    assert_eq!(drawn(line), "3 of 200 cases <failed>, 'out' off by # (z = #), seed 17, # s");
}
