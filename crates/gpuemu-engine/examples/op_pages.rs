//! Writes the documentation pages of the built-in ops: `op_pages FOLDER` makes `FOLDER/NAME.md` for each and an index,
//! `FOLDER/README.md`, and removes pages of ops that are no longer there.

use std::fs;
use std::path::Path;

use gpuemu_engine::ops::builtin;
use gpuemu_engine::ops::page::{index, page};

fn main() -> Result<(), Box<dyn std::error::Error>> {
    let folder = std::env::args().nth(1).ok_or("op_pages FOLDER")?;
    let folder = Path::new(&folder);
    fs::create_dir_all(folder)?;
    let mut written = vec!["README.md".to_string()];
    fs::write(folder.join("README.md"), index(builtin().iter().map(|op| op.schema())))?;
    for op in builtin() {
        let name = format!("{}.md", op.schema().name);
        fs::write(folder.join(&name), page(op.as_ref()))?;
        written.push(name);
    }
    for entry in fs::read_dir(folder)? {
        let entry = entry?;
        let stale = |name: &str| name.ends_with(".md") && !written.iter().any(|known| known == name);
        if entry.file_name().to_str().is_some_and(stale) && is_page(&entry.path())? {
            fs::remove_file(entry.path())?;
        }
    }
    Ok(())
}

/// Whether a file is a page that this program wrote, and not something else in the folder.
fn is_page(path: &Path) -> std::io::Result<bool> {
    let text = fs::read_to_string(path)?;
    Ok(text.starts_with("# ") && text.contains("\n## Checking a kernel\n"))
}
