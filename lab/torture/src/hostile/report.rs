//! Report files: read, joined, contradicted, and written in every format; signatures and keys.

use std::path::PathBuf;
use std::sync::LazyLock;

use gpuemu::report::illustrations::Illustrations;
use gpuemu::report::{html, junit, markdown, sarif, text};
use gpuemu::signing;
use gpuemu_config::Config;
use gpuemu_model::evidence::contradiction;
use gpuemu_model::report::{Conclusion, RunReport};
use gpuemu_run::merge::merge;

use super::Target;

/// The target. The first byte says whether a report, a key or a signature is read.
pub const TARGET: Target = Target {
    name: "report",
    run,
    words: &[
        "\"part\":{\"shard\":{\"index\":1,\"count\":1}}",
        "\"evidence\":",
        "\"verdicts\":[",
        "\"passed\":true",
        "\"status\":\"failed\"",
        "\"outcome\":\"passed\"",
        "\"cases\":",
        "\"ops\":[",
        "\"kernels\":[",
        "\"failures\":[",
        "\"NaN\"",
        "\"Infinity\"",
        "null",
        "\"shapes\":[[",
        "\"entries\":[",
        "18446744073709551615",
        "<script>alert",
        "]]>",
        "\\u0000",
        "\\ud800",
    ],
    thousands: 350,
    thousands_short: 30,
};

static CONFIG: LazyLock<Config> = LazyLock::new(|| Config::without_file(PathBuf::from("/project")));

fn run(bytes: &[u8]) {
    match bytes.split_first() {
        Some((b'K', key)) => read_key(key),
        Some((b'S', signed)) => verify(signed),
        _ => read(bytes),
    }
}

fn read(bytes: &[u8]) {
    let Ok(report) = serde_json::from_slice::<RunReport>(bytes) else { return };
    let contradicted = contradiction(&report).is_some();
    assert!(contradicted || report.passed == (report.conclusion() == Conclusion::Passed));
    let _ = (text::run(&report), junit::run(&report), sarif::run(&report), markdown::run(&report));
    let page = html::page(&report, &Illustrations::default());
    assert!(!page.contains("<script>alert"), "a report runs a script of its own");
    // As if it were on the project that is there: how it is joined is what matters.
    let mut part = report.clone();
    part.config_digest.clone_from(&CONFIG.digest);
    if let Ok(joined) = merge(&CONFIG, vec![("part.json".to_string(), part)]) {
        assert_eq!(joined.passed, joined.conclusion() == Conclusion::Passed);
        let _ = text::run(&joined);
    }
    let again = serde_json::to_vec(&report).map(|text| serde_json::from_slice::<RunReport>(&text).map(|_| ()));
    assert!(matches!(again, Ok(Ok(()))), "a report that was read cannot be read again: {again:?}");
}

fn read_key(bytes: &[u8]) {
    if let Ok(pem) = std::str::from_utf8(bytes)
        && let Ok(key) = signing::public_key(pem)
    {
        assert_eq!(signing::fingerprint(&key).len(), 64);
    }
}

fn verify(bytes: &[u8]) {
    let Ok(key) = signing::public_key(PUBLIC_KEY) else { return };
    let (signature, report) = bytes.split_at(bytes.len().min(64));
    assert!(!signing::is_valid(&key, report, signature), "a signature was forged");
}

/// A key whose private half nobody has kept.
const PUBLIC_KEY: &str = "-----BEGIN PUBLIC KEY-----
MCowBQYDK2VwAyEAGb9ECWmEzf6FQbrBZ9w7lshQhqowtrbLDFw4rXAxZuE=
-----END PUBLIC KEY-----
";

#[cfg(test)]
mod tests {
    use super::*;
    use crate::hostile::inputs;

    /// Changes of a seed that is not understood would try the parser alone.
    #[test]
    fn the_seeds_are_reports() {
        for (name, bytes) in inputs(TARGET.name).unwrap() {
            if ["run", "failed", "race", "evidence", "part", "empty"].contains(&name.as_str()) {
                serde_json::from_slice::<RunReport>(&bytes).unwrap_or_else(|error| panic!("{name}: {error}"));
            }
        }
    }
}
