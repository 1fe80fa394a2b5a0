//! Counts by cutting the text at semicolons: as plain as possible, and nothing of it shared with the parser.

use std::collections::{BTreeMap, BTreeSet};

/// What a plain count finds in the body of one function.
#[derive(Debug, Default, Clone, PartialEq, Eq)]
pub struct PlainCount {
    pub forms: BTreeMap<String, u64>,
    pub predicated: u64,
    /// Bits of registers by the type that they are declared with.
    pub registers: BTreeMap<String, u64>,
    /// Every word of the body.
    pub words: BTreeSet<String>,
}

impl PlainCount {
    pub fn total(&self) -> u64 {
        self.forms.values().sum()
    }

    /// How many instructions have this opcode, and this word among their modifiers.
    pub fn with(&self, opcode: &str, modifier: &str) -> u64 {
        let wanted = |form: &str| {
            let mut words = form.split('.');
            words.next() == Some(opcode) && words.any(|word| word.split("::").next() == Some(modifier))
        };
        self.forms.iter().filter(|(form, _)| wanted(form)).map(|(_, count)| count).sum()
    }

    pub fn add(&mut self, other: &PlainCount) {
        self.words.extend(other.words.iter().cloned());
        for (form, count) in &other.forms {
            *self.forms.entry(form.clone()).or_insert(0) += count;
        }
        for (kind, count) in &other.registers {
            *self.registers.entry(kind.clone()).or_insert(0) += count;
        }
        self.predicated += other.predicated;
    }
}

/// The functions of a file that have a body: name, whether it can be launched, and counts.
pub fn functions(text: &str) -> Vec<(String, bool, PlainCount)> {
    let text = without_comments(text);
    let mut found = Vec::new();
    let mut rest = text.as_str();
    while let Some(place) = [rest.find(".entry "), rest.find(".func ")].into_iter().flatten().min() {
        let launchable = rest[place..].starts_with(".entry");
        rest = &rest[place + 5..];
        let (open, end) = (rest.find('{'), rest.find(';').unwrap_or(rest.len()));
        let Some(open) = open.filter(|open| *open < end) else { continue };
        let head = &rest[..open];
        // The name is the last word before the parameters, after the results of a function.
        let parameters = if launchable { head.find('(') } else { head.rfind('(') };
        let name = head[..parameters.unwrap_or(head.len())].split_whitespace().last().unwrap_or_default();
        let length = matching_brace(&rest[open..]);
        found.push((name.to_string(), launchable, body(&rest[open + 1..open + length])));
        rest = &rest[open + length..];
    }
    found
}

fn without_comments(text: &str) -> String {
    let mut plain = String::new();
    for line in text.lines() {
        plain.push_str(line.split("//").next().unwrap_or_default());
        plain.push('\n');
    }
    while let Some(start) = plain.find("/*") {
        let end = plain[start..].find("*/").map_or(plain.len(), |length| start + length + 2);
        plain.replace_range(start..end, " ");
    }
    plain
}

fn matching_brace(text: &str) -> usize {
    let mut depth = 0;
    for (place, character) in text.char_indices() {
        match character {
            '{' => depth += 1,
            '}' => depth -= 1,
            _ => {}
        }
        if depth == 0 {
            return place;
        }
    }
    panic!("a body has no end");
}

fn body(text: &str) -> PlainCount {
    let mut count = PlainCount::default();
    let words = text.split(|character: char| !character.is_alphanumeric() && character != '_' && character != '$');
    count.words.extend(words.map(str::to_string));
    for piece in text.split(';') {
        let mut piece = piece.trim();
        loop {
            piece = piece.trim_start_matches(|character: char| character.is_whitespace() || "{}".contains(character));
            let word =
                piece.find(|character: char| character.is_whitespace() || character == ':').unwrap_or(piece.len());
            let after = piece[word..].trim_start();
            if piece.starts_with(".loc") {
                piece = piece.find('\n').map_or("", |end| &piece[end..]);
            } else if after.starts_with(':') && !after.starts_with("::") {
                piece = &after[1..];
            } else {
                break;
            }
        }
        if piece.starts_with(".reg") {
            registers(piece, &mut count);
        }
        if piece.is_empty() || piece.starts_with('.') {
            continue;
        }
        let mut words = piece.split_whitespace();
        let mut opcode = words.next().unwrap_or_default();
        if opcode.starts_with('@') {
            count.predicated += 1;
            opcode = words.next().unwrap_or_default();
        }
        *count.forms.entry(opcode.to_string()).or_insert(0) += 1;
    }
    count
}

fn registers(piece: &str, count: &mut PlainCount) {
    let kind = piece.split_whitespace().nth(1).unwrap_or_default().trim_start_matches('.');
    let bits = kind.trim_start_matches(|character: char| character.is_alphabetic());
    let kind = if kind == "pred" { "pred" } else { bits };
    let names = piece.split_once(kind).map_or("", |(_, rest)| rest);
    for name in names.split(',') {
        let many = name.split_once('<').and_then(|(_, rest)| rest.split_once('>')).map(|(number, _)| number.trim());
        *count.registers.entry(kind.to_string()).or_insert(0) += many.map_or(1, |number| number.parse().unwrap());
    }
}
