//! Names of source files in PTX, without the folders of one machine.
//!
//! The same source has to give the same PTX wherever a project lies: otherwise no fingerprint could be compared.

use std::path::Path;

/// Python packages lie below a folder of this name.
const PACKAGES: &str = "/site-packages/";

/// Makes the names in `.file` lines relative: to the project's folder, or to the folder of Python's packages.
pub(super) fn without_folders(ptx: &str, root: &Path) -> String {
    let root = root.to_string_lossy();
    let folder = format!("{}/", root.trim_end_matches('/'));
    let mut text = String::with_capacity(ptx.len());
    for line in ptx.split_inclusive('\n') {
        match line.trim_start().starts_with(".file").then(|| shortened(line, &folder)).flatten() {
            Some(shortened) => text.push_str(&shortened),
            None => text.push_str(line),
        }
    }
    text
}

fn shortened(line: &str, root: &str) -> Option<String> {
    let (before, rest) = line.split_once('"')?;
    let (name, after) = rest.split_once('"')?;
    let short = match (name.strip_prefix(root), name.rsplit_once(PACKAGES)) {
        (Some(short), _) => short,
        (None, Some((_, short))) => short,
        (None, None) => return None,
    };
    Some(format!("{before}\"{short}\"{after}"))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_the_names_of_files_are_changed() {
        let ptx = "\t.file\t1 \"/home/me/project/k/x.cu\"\n.file 2 \"/usr/lib/python3/site-packages/triton/core.py\", 5\n\
                   .file 3 \"/usr/include/x.h\"\n// \"/home/me/project/k\"\n.file 4 \"cut";
        let expected = "\t.file\t1 \"k/x.cu\"\n.file 2 \"triton/core.py\", 5\n\
                        .file 3 \"/usr/include/x.h\"\n// \"/home/me/project/k\"\n.file 4 \"cut";
        assert_eq!(without_folders(ptx, Path::new("/home/me/project")), expected);
        assert_eq!(without_folders(ptx, Path::new("/home/me/project/")), expected);
        assert!(without_folders(ptx, Path::new("/home/me/pro")).contains("/home/me/project/k/x.cu"));
    }
}
