//! The places where gpuemu can be made to fail, as the sources name them: none can be forgotten.

use std::path::Path;

/// A place where gpuemu can be made to fail.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord)]
pub struct Point {
    pub name: String,
    /// Whether it can return an error; it can always panic.
    pub fallible: bool,
}

impl Point {
    /// What makes gpuemu fail the `hit`th time that it comes by, in the words of the crate `fail`.
    pub fn armed(&self, hit: usize, panics: bool) -> String {
        let skipped = if hit > 1 { format!("{}*off->", hit - 1) } else { String::new() };
        format!("{}={skipped}1*{}", self.name, kind(panics))
    }

    /// What is said on the error stream where it did.
    pub fn struck(&self, panics: bool) -> String {
        format!("failpoint {} {}", self.name, kind(panics))
    }

    /// Whether it comes after everything that a report is made of: a file that was written before is right.
    pub fn is_after_the_report(&self) -> bool {
        self.name == "stdout.write"
    }

    /// Whether the run has no verdict yet when this place is passed: nothing of it may be stored as passed.
    pub fn is_before_the_verdict(&self) -> bool {
        let area = self.name.split('.').next().unwrap_or_default();
        let before = ["case", "op", "kernel", "script", "process", "worker", "callable", "warm", "runner", "reference"];
        before.contains(&area)
    }
}

fn kind(panics: bool) -> &'static str {
    if panics { "panic" } else { "return" }
}

/// Every `fault!` in the sources of gpuemu.
pub fn all() -> Result<Vec<Point>, String> {
    let crates = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../crates");
    let mut points = Vec::new();
    for name in
        ["gpuemu-runners", "gpuemu-run", "gpuemu-store", "gpuemu-wire", "gpuemu-service", "gpuemu-daemon", "gpuemu"]
    {
        collect(&crates.join(name).join("src"), &mut points)?;
    }
    points.sort();
    if let Some(pair) = points.windows(2).find(|pair| pair[0].name == pair[1].name) {
        return Err(format!("two places are named '{}'", pair[0].name));
    }
    if points.is_empty() { Err("the sources name no place to fail at".to_string()) } else { Ok(points) }
}

fn collect(folder: &Path, points: &mut Vec<Point>) -> Result<(), String> {
    let unreadable = |error: std::io::Error| format!("{}: {error}", folder.display());
    for entry in std::fs::read_dir(folder).map_err(unreadable)? {
        let path = entry.map_err(unreadable)?.path();
        if path.is_dir() {
            collect(&path, points)?;
        } else if path.extension().is_some_and(|extension| extension == "rs") && !path.ends_with("fault.rs") {
            points.extend(in_text(&std::fs::read_to_string(&path).map_err(unreadable)?));
        }
    }
    Ok(())
}

fn in_text(text: &str) -> Vec<Point> {
    let after = text.split("fault!(").skip(1);
    let point = |rest: &str| {
        let (name, rest) = rest.trim_start().strip_prefix('"')?.split_once('"')?;
        Some(Point { name: name.to_string(), fallible: rest.trim_start().starts_with(',') })
    };
    after.filter_map(point).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_place_is_found_in_the_sources() {
        let text = "fault!(\"a.one\");\nlet x = fault!(\n    \"b.two\",\n    error(),\n    step()\n)?;";
        let point = |name: &str, fallible| Point { name: name.to_string(), fallible };
        assert_eq!(in_text(text), [point("a.one", false), point("b.two", true)]);
        assert!(all().is_ok_and(|points| points.len() > 50 && points.contains(&point("case.judge", false))));
    }
}
