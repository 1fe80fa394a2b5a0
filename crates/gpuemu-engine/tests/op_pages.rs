//! The pages in `docs/ops` are those that the ops' own files make.
#![allow(clippy::unwrap_used, clippy::panic, reason = "tests fail by panicking")]

use std::fs;
use std::path::Path;

use gpuemu_engine::ops::builtin;
use gpuemu_engine::ops::page::{index, page};

#[test]
fn the_pages_are_up_to_date() {
    let folder = Path::new(concat!(env!("CARGO_MANIFEST_DIR"), "/../../docs/ops"));
    let hint = "write them anew: cargo run -p gpuemu-engine --example op_pages docs/ops";
    let check = |name: &str, expected: String| {
        let found = fs::read_to_string(folder.join(name)).unwrap_or_default();
        assert!(found == expected, "{name} is not what the op says; {hint}");
    };
    check("README.md", index(builtin().iter().map(|op| op.schema())));
    for op in builtin() {
        check(&format!("{}.md", op.schema().name), page(op.as_ref()));
    }
    assert_eq!(fs::read_dir(folder).unwrap().count(), builtin().len() + 1, "a page has no op; {hint}");
}
