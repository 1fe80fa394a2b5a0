//! The files that hold messages: what users run and what contributors run, without tests.

use std::collections::BTreeSet;
use std::path::{Path, PathBuf};

use super::tokens::Language;
use super::{Message, calls, manifest, rust};
use crate::failure::{Failure, cannot};

/// Where users' and contributors' programs lie.
const FOLDERS: &[&str] =
    &["crates", "lab/corpus/src", "lab/torture/src", "python/gpuemu", "python/native", "vscode-gpuemu/src", "xtask"];

/// What the editor shows of the extension before it runs.
const MANIFEST: &str = "vscode-gpuemu/package.json";

/// What is built, tested with or fetched.
const LEFT_OUT: &[&str] = &["tests", "test", "target", "node_modules", "fuzz", "data", "examples"];

/// Every message, by file and line.
pub fn messages(root: &Path) -> Result<Vec<Message>, Failure> {
    let mut files = Vec::new();
    for folder in FOLDERS {
        gather(&root.join(folder), &mut files)?;
    }
    files.push(root.join(MANIFEST));
    let mut sources = Vec::new();
    let mut of_tests = BTreeSet::new();
    for path in files {
        let source = std::fs::read_to_string(&path).map_err(|error| cannot("read", &path.display(), &error))?;
        if path.extension().is_some_and(|extension| extension == "rs") {
            for module in rust::test_modules(&source) {
                of_tests.insert(module_folder(&path).join(module));
            }
        }
        sources.push((path, source));
    }
    let mut found = Vec::new();
    for (path, source) in &sources {
        if of_tests.contains(&path.with_extension("")) {
            continue;
        }
        let name = path.strip_prefix(root).unwrap_or(path).to_string_lossy().replace('\\', "/");
        let of_file = match path.extension().and_then(|extension| extension.to_str()) {
            Some("rs") => rust::messages(&name, source).map_err(Failure::Check)?,
            Some("py") => calls::messages(Language::Python, &name, source),
            Some("ts") => calls::messages(Language::TypeScript, &name, source),
            _ => manifest::messages(&name, source).map_err(Failure::Check)?,
        };
        found.extend(of_file);
    }
    found.sort();
    Ok(found)
}

/// Where the modules lie that a file declares.
fn module_folder(file: &Path) -> PathBuf {
    let stem = file.file_stem().and_then(|stem| stem.to_str()).unwrap_or_default();
    let folder = file.parent().unwrap_or(Path::new(""));
    if matches!(stem, "mod" | "lib" | "main") { folder.to_path_buf() } else { folder.join(stem) }
}

fn gather(folder: &Path, files: &mut Vec<PathBuf>) -> Result<(), Failure> {
    let entries = std::fs::read_dir(folder).map_err(|error| cannot("read", &folder.display(), &error))?;
    for entry in entries {
        let path = entry.map_err(|error| cannot("read", &folder.display(), &error))?.path();
        let name = path.file_name().and_then(|name| name.to_str()).unwrap_or_default();
        if name.starts_with('.') || LEFT_OUT.contains(&name) {
            continue;
        }
        if path.is_dir() {
            gather(&path, files)?;
        } else if matches!(path.extension().and_then(|extension| extension.to_str()), Some("rs" | "py" | "ts")) {
            files.push(path);
        }
    }
    Ok(())
}
