//! What every writer makes of the same run. `SNAPSHOTS=overwrite cargo test -p gpuemu --test formats` writes the files
//! anew.

use snapbox::{Data, assert_data_eq, file};

use super::corpus_run::{report, rewritten};

/// A file is compared as text, whatever it holds.
fn text(text: String) -> Data {
    Data::text(text)
}

#[test]
fn json_is_golden() {
    let report = serde_json::to_string_pretty(&report()).unwrap() + "\n";
    assert_data_eq!(text(report.clone()), file!["../golden/report.json": Text].raw());
    // What was read is what is written.
    assert_eq!(rewritten(&super::corpus_run::report(), "json"), report);
}

#[test]
fn text_is_golden() {
    assert_data_eq!(text(rewritten(&report(), "text")), file!["../golden/report.txt": Text].raw());
}

#[test]
fn junit_is_golden() {
    assert_data_eq!(text(rewritten(&report(), "junit")), file!["../golden/report.junit.xml": Text].raw());
}

#[test]
fn sarif_is_golden() {
    assert_data_eq!(text(rewritten(&report(), "sarif")), file!["../golden/report.sarif": Text].raw());
}

#[test]
fn markdown_is_golden() {
    assert_data_eq!(text(rewritten(&report(), "markdown")), file!["../golden/report.md": Text].raw());
}

#[test]
fn html_is_golden() {
    assert_data_eq!(text(rewritten(&report(), "html")), file!["../golden/report.html": Text].raw());
}
