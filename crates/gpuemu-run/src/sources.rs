//! The files that an op is made of.

use std::collections::BTreeSet;
use std::path::{Path, PathBuf};

use gpuemu_model::report::SourceDigest;
use sha2::{Digest, Sha256};

/// What files, and the files of the project that they import, are at this moment.
pub fn digests(root: &Path, files: &[PathBuf]) -> Vec<SourceDigest> {
    let inside = |file: &PathBuf| file.strip_prefix(root).map(Path::to_path_buf).unwrap_or_else(|_| file.clone());
    let files: Vec<PathBuf> = files.iter().map(inside).collect();
    let digest =
        |file: &PathBuf| SourceDigest { path: file.display().to_string(), sha256: sha256_of(&root.join(file)) };
    closure(root, &files).iter().map(digest).collect()
}

/// SHA-256 of a file's bytes, in hexadecimal; `None` if it cannot be read.
pub fn sha256_of(file: &Path) -> Option<String> {
    Some(sha256(&std::fs::read(file).ok()?))
}

/// SHA-256 of bytes, in hexadecimal.
pub fn sha256(bytes: &[u8]) -> String {
    Sha256::digest(bytes).iter().map(|byte| format!("{byte:02x}")).collect()
}

/// Files, and the files of the project that they import, as far as import statements tell.
pub fn closure(root: &Path, files: &[PathBuf]) -> BTreeSet<PathBuf> {
    let mut found: BTreeSet<PathBuf> = BTreeSet::new();
    let mut open: Vec<PathBuf> = files.to_vec();
    while let Some(file) = open.pop() {
        if !found.insert(file.clone()) {
            continue;
        }
        let Ok(text) = std::fs::read_to_string(root.join(&file)) else { continue };
        let here = file.parent().unwrap_or(Path::new("")).to_path_buf();
        for module in joined(&text).lines().flat_map(imported_modules) {
            // An import is relative to the project or to the script's own folder.
            let levels = module.bytes().take_while(|byte| *byte == b'.').count();
            let mut base = here.clone();
            (1..levels).for_each(|_| {
                base.pop();
            });
            let path = module.trim_start_matches('.').replace('.', "/");
            let folders = if levels > 0 { vec![base] } else { vec![PathBuf::new(), here.clone()] };
            for folder in folders {
                let target = folder.join(&path);
                let candidates = [target.with_extension("py"), target.join("__init__.py")];
                open.extend(candidates.into_iter().filter(|candidate| root.join(candidate).is_file()));
            }
        }
    }
    found
}

/// A text in which an import over several lines is one line.
fn joined(text: &str) -> String {
    let mut joined = String::with_capacity(text.len());
    let mut open = false;
    for line in text.lines() {
        open |= line.trim_start().starts_with("from ") && line.contains("import (");
        open &= !line.contains(')');
        joined.push_str(line.split('#').next().unwrap_or_default().trim_end_matches('\\'));
        joined.push(if open || line.ends_with('\\') { ' ' } else { '\n' });
    }
    joined
}

/// The modules that a line imports; of `from a import b`, both `a` and `a.b`.
fn imported_modules(line: &str) -> Vec<String> {
    let line = line.trim();
    let names = |list: &str| -> Vec<String> {
        let cleaned = list.split('#').next().unwrap_or_default().replace(['(', ')', '\\'], " ");
        let names = cleaned.split(',').filter_map(|part| part.split_whitespace().next().map(ToString::to_string));
        names.collect()
    };
    if let Some(list) = line.strip_prefix("import ") {
        return names(list);
    }
    let Some((module, list)) = line.strip_prefix("from ").and_then(|rest| rest.split_once(" import ")) else {
        return Vec::new();
    };
    let module = module.trim();
    let separator = if module.ends_with('.') { "" } else { "." };
    let inner = names(list).into_iter().map(|name| format!("{module}{separator}{name}"));
    std::iter::once(module.to_string()).chain(inner).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn imports_are_followed() {
        assert_eq!(imported_modules("import os, pkg.mod as m  # why"), ["os", "pkg.mod"]);
        assert_eq!(imported_modules("from pkg import a, b"), ["pkg", "pkg.a", "pkg.b"]);
        assert_eq!(imported_modules("from . import helper"), [".", ".helper"]);
        assert!(imported_modules("x = 1").is_empty());
        let folder = tempfile::tempdir().unwrap();
        let write = |name: &str, text: &str| {
            let path = folder.path().join(name);
            std::fs::create_dir_all(path.parent().unwrap()).unwrap();
            std::fs::write(path, text).unwrap();
        };
        write("ops/one.py", "from ops import (\n    helper,\n)\nfrom .two import f\n");
        write("ops/helper.py", "import deep.inner\n");
        write("ops/two.py", "");
        write("deep/inner.py", "");
        write("other.py", "");
        let found = closure(folder.path(), &[PathBuf::from("ops/one.py")]);
        let names: Vec<String> = found.iter().map(|path| path.display().to_string()).collect();
        assert_eq!(names, ["deep/inner.py", "ops/helper.py", "ops/one.py", "ops/two.py"]);
        let digests = digests(folder.path(), &[folder.path().join("ops/one.py"), PathBuf::from("ops/gone.py")]);
        let of = |name: &str| digests.iter().find(|digest| digest.path == name).unwrap().sha256.clone();
        let nothing = "e3b0c44298fc1c149afbf4c8996fb92427ae41e4649b934ca495991b7852b855";
        assert_eq!((of("ops/two.py").as_deref(), of("ops/gone.py")), (Some(nothing), None));
        assert_ne!(of("ops/one.py").as_deref(), Some(nothing));
    }
}
