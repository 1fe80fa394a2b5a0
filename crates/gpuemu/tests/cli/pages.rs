//! Pages of the repository that repeat what commands print.

use std::path::Path;

/// Fails unless the page, named by its path in the repository, has these words.
pub fn assert_shown(page: &str, words: &str) {
    let root = Path::new(env!("CARGO_MANIFEST_DIR")).join("../..");
    let text = std::fs::read_to_string(root.join(page)).unwrap();
    assert!(text.contains(words), "{page} does not have:\n{words}");
}
