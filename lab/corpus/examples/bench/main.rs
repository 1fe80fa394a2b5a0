//! The benchmarks behind `cargo xtask bench`: every figure beside a peer measured in the same run.
#![allow(clippy::print_stdout, clippy::print_stderr, reason = "a terminal program: what it prints is its purpose")]

mod bandwidth;
mod cases;
mod comparison;
mod daemon_process;
mod detection;
mod durability;
mod generation;
mod machine;
mod numpy;
mod ping;
mod ptx;
mod python;
mod references;
mod row;
mod startup;
mod timing;
mod validation;
mod warm_scripts;

use std::process::ExitCode;

use row::Row;

/// A group of rows, by name.
type Group = (&'static str, fn() -> Vec<Row>);

const GROUPS: [Group; 14] = [
    ("comparison", comparison::rows),
    ("generation", generation::rows),
    ("references", references::rows),
    ("cases", cases::rows),
    ("detection", detection::rows),
    ("validation", validation::rows),
    ("warm-scripts", warm_scripts::rows),
    ("durability", durability::rows),
    ("ping", ping::rows),
    ("startup", startup::rows),
    ("ptx", ptx::rows),
    ("machine", machine::rows),
    ("python", python::rows),
    ("campaign", python::campaign_rows),
];

fn main() -> ExitCode {
    let mut json = false;
    let mut only: Vec<String> = Vec::new();
    let mut arguments = std::env::args().skip(1);
    while let Some(argument) = arguments.next() {
        match (argument.as_str(), argument.strip_prefix("--format="), arguments.len()) {
            ("--format", _, 1..) => json = arguments.next().as_deref() == Some("json"),
            ("--only", _, 1..) => only.extend(arguments.next()),
            (_, Some(format), _) => json = format == "json",
            _ => {
                let names = GROUPS.map(|(name, _)| name).join("|");
                eprintln!("usage: cargo xtask bench [--format text|json] [--only {names}]");
                return ExitCode::from(2);
            }
        }
    }
    let mut rows = Vec::new();
    for (name, measure) in GROUPS {
        if only.is_empty() || only.iter().any(|chosen| chosen == name) {
            eprintln!("measuring {name} ...");
            rows.extend(measure());
        }
    }
    if rows.is_empty() {
        eprintln!("no group of that name; known: {}", GROUPS.map(|(name, _)| name).join(", "));
        return ExitCode::from(2);
    }
    println!("{}", if json { row::json(&rows) } else { row::text(&rows) });
    ExitCode::SUCCESS
}
