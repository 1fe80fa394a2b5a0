//! `docs/reference/lint-rules.md` is what the rules say of themselves.
#![allow(clippy::unwrap_used, reason = "tests fail by panicking")]

#[test]
fn the_page_is_up_to_date() {
    let path = concat!(env!("CARGO_MANIFEST_DIR"), "/../../docs/reference/lint-rules.md");
    let found = std::fs::read_to_string(path).unwrap();
    let hint = "write it anew: cargo run -p gpuemu-ptx --example lint_rules > docs/reference/lint-rules.md";
    assert!(found == gpuemu_ptx::lint::page::page(), "{hint}");
}
