//! Where in its sources something is defined, for editors that point at it.

use std::path::{Path, PathBuf};

use gpuemu_config::TextRange;

/// A place in a source file.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Definition {
    pub file: PathBuf,
    /// The name that is defined; the start of the file where no name is.
    pub range: TextRange,
}

impl Definition {
    /// The first definition of one of these names, the earlier names first, or else the start of the first file. `None`
    /// if there is no file that can be read.
    pub fn find(files: &[PathBuf], names: &[&str]) -> Option<Self> {
        let texts: Vec<(&PathBuf, String)> =
            files.iter().filter_map(|file| Some((file, std::fs::read_to_string(file).ok()?))).collect();
        for name in names {
            for (file, text) in &texts {
                if let Some(at) = defined_at(text, name, is_python(file)) {
                    let range = TextRange::of(text, &(at..at + name.len()));
                    return Some(Self { file: (*file).clone(), range });
                }
            }
        }
        let (file, text) = texts.first()?;
        Some(Self { file: (*file).clone(), range: TextRange::of(text, &(0..0)) })
    }
}

fn is_python(file: &Path) -> bool {
    file.extension().is_some_and(|extension| extension == "py")
}

/// The byte where a name is defined: by `def`, `class` or an assignment in Python, otherwise as the entry of PTX or a
/// function of CUDA C++, which is where it stands first before a parenthesis.
fn defined_at(text: &str, name: &str, python: bool) -> Option<usize> {
    let mut start = 0;
    for line in text.split_inclusive('\n') {
        let found = if python { in_python(line, name) } else { in_c(line, name) };
        if let Some(column) = found {
            return Some(start + column);
        }
        start += line.len();
    }
    None
}

fn in_python(line: &str, name: &str) -> Option<usize> {
    let keyword = ["def ", "async def ", "class "].iter().find_map(|keyword| {
        let rest = line.strip_prefix(keyword)?;
        Some(line.len() - rest.trim_start().len())
    });
    let at = keyword.unwrap_or(0);
    let rest = line.get(at..)?.strip_prefix(name)?;
    let next = rest.trim_start();
    let defines = if keyword.is_some() {
        next.starts_with(['(', ':', '['])
    } else {
        next.starts_with('=') && !next.starts_with("==") || next.starts_with(':')
    };
    defines.then_some(at)
}

fn in_c(line: &str, name: &str) -> Option<usize> {
    let code = line.split("//").next().unwrap_or_default();
    let is_word = |character: char| character.is_alphanumeric() || character == '_' || character == '$';
    code.match_indices(name).map(|(at, _)| at).find(|at| {
        let (before, after) = (&code[..*at], &code[at + name.len()..]);
        !before.ends_with(is_word) && after.trim_start().starts_with('(') && !before.trim().is_empty()
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    fn place(name: &str, text: &str, python: bool) -> Option<&'static str> {
        let at = defined_at(text, name, python)?;
        Some(if text[at..].starts_with(name) { "found" } else { "elsewhere" })
    }

    #[test]
    fn definitions_of_python_are_told_from_uses() {
        let text = "import numpy as np\nsoftmax_rows = 1\nprint(softmax)\n\ndef  softmax(x):\n    softmax = 3\n";
        assert_eq!(defined_at(text, "softmax", true), text.find("softmax(x)"));
        assert_eq!(defined_at("relu = jit(f)\n", "relu", true), Some(0));
        assert_eq!(defined_at("relu == f\n    relu = 3\n", "relu", true), None);
        assert_eq!(place("Softmax", "class Softmax(Base):\n", true), Some("found"));
    }

    #[test]
    fn entries_of_ptx_and_functions_of_cuda_are_found() {
        let ptx = "// softmax (\n.visible .entry softmax(\n    .param .u64 softmax_param_0\n";
        assert_eq!(defined_at(ptx, "softmax", false), ptx.rfind("softmax("));
        let cuda = "#include <x>\n__global__ void scale_rows(float* x);\n__global__ void scale(float* x) {\n";
        assert_eq!(defined_at(cuda, "scale", false), cuda.find("scale(float"));
    }

    #[test]
    fn the_start_of_the_file_stands_for_what_is_not_found() {
        let folder = tempfile::tempdir().unwrap();
        let file = folder.path().join("kernel.py");
        std::fs::write(&file, "import x\nrun = x.run\n").unwrap();
        let files = [folder.path().join("gone.py"), file.clone()];
        let line = |names: &[&str]| Definition::find(&files, names).map(|found| found.range.start.line);
        assert_eq!((line(&["softmax", "run"]), line(&["softmax"])), (Some(2), Some(1)));
        assert_eq!(Definition::find(&files[..1], &["run"]), None);
    }
}
