//! Where an issue is: files relative to the root of the repository, as services that show code want them.

use std::path::{Component, Path, PathBuf};

use gpuemu_model::artifact::{KernelReport, LintFinding};
use gpuemu_model::finding::KernelPlace;
use gpuemu_model::report::{OpReport, RunReport, SourceDigest};
use gpuemu_run::sources::sha256;

/// A place in a file.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord)]
pub struct Place {
    /// The file, relative to the repository's root, with `/` between its parts.
    pub file: String,
    /// The line, from 1; none where all of the file is meant.
    pub line: Option<u64>,
    /// The column, from 1.
    pub column: Option<u64>,
    pub what: String,
}

/// What the files of a report are relative to.
#[derive(Debug, Clone)]
pub struct Roots {
    project: PathBuf,
    /// The repository's root; the project's folder where there is no repository.
    repository: PathBuf,
    config: PathBuf,
}

impl Roots {
    /// Of a report. A report from another machine may name folders that this one does not have: the project's folder
    /// is the root then.
    pub fn of(report: &RunReport) -> Self {
        let config = Path::new(&report.config);
        let config = plain(&std::path::absolute(config).unwrap_or_else(|_| config.to_path_buf()));
        let project = config.parent().map(Path::to_path_buf).unwrap_or_default();
        let repository = project.ancestors().find(|folder| folder.join(".git").exists());
        let workspace = std::env::var_os("GITHUB_WORKSPACE").map(PathBuf::from);
        let workspace = workspace.filter(|folder| !folder.as_os_str().is_empty() && project.starts_with(folder));
        let repository = repository.map(Path::to_path_buf).or(workspace).unwrap_or_else(|| project.clone());
        Self { project, repository, config }
    }

    /// A file of the project, relative to the repository's root; nothing if it lies outside.
    fn relative(&self, file: &str) -> Option<String> {
        let path = plain(&self.project.join(file));
        let inside = path.strip_prefix(&self.repository).ok()?;
        let parts: Vec<String> = inside.components().map(|part| part.as_os_str().to_string_lossy().into()).collect();
        (!parts.is_empty()).then(|| parts.join("/"))
    }

    /// The configuration, at a line if there is one.
    pub fn configuration(&self, line: usize, what: &str) -> Place {
        let name = self.config.file_name().unwrap_or_default().to_string_lossy();
        let file = self.relative(&self.config.to_string_lossy()).unwrap_or_else(|| name.to_string());
        let line = (line > 0).then_some(line as u64);
        Place { file, line, column: None, what: what.to_string() }
    }

    /// Where an op's failure is, the most telling place first: the code that the finding names, the function that
    /// runs, the op in the configuration.
    pub fn op(&self, op: &OpReport, found: &[KernelPlace]) -> Vec<Place> {
        let mut places: Vec<Place> = found.first().into_iter().flat_map(|place| self.code(op, place)).collect();
        places.extend(self.function(op));
        places.push(self.configuration(op.line, &format!("op '{}'", op.op)));
        places
    }

    /// The other sides of a finding: what it races with.
    pub fn others(&self, op: &OpReport, found: &[KernelPlace]) -> Vec<Place> {
        found.iter().skip(1).flat_map(|place| self.code(op, place)).collect()
    }

    /// A place in compiled code: the line that it was compiled from if that file is in the repository, and the PTX.
    fn code(&self, op: &OpReport, place: &KernelPlace) -> Vec<Place> {
        let sources: Vec<&str> = op.sources.iter().map(|source| source.path.as_str()).collect();
        let written = place.code.file.as_deref().and_then(|file| self.source(file, &sources));
        let written = written.zip(place.code.line);
        let ptx = place.ptx.as_deref().or_else(|| match sources.as_slice() {
            [only] if only.ends_with(".ptx") => Some(only),
            _ => None,
        });
        let ptx = ptx.filter(|_| place.code.ptx_line > 0).and_then(|ptx| self.relative(ptx));
        let instruction = format!("`{}`", place.code.instruction);
        let at = |file: String, line: u64| Place { file, line: Some(line), column: None, what: instruction.clone() };
        let written = written.map(|(file, line)| at(file, line));
        written.into_iter().chain(ptx.map(|file| at(file, place.code.ptx_line as u64))).collect()
    }

    /// A file as a compiler named it: it may be absolute, relative to the project, or a mere name.
    fn source(&self, file: &str, sources: &[&str]) -> Option<String> {
        if let Some(relative) = self.relative(file).filter(|_| plain(&self.project.join(file)).is_file()) {
            return Some(relative);
        }
        let name = Path::new(file).file_name()?;
        let named = sources.iter().find(|source| Path::new(source).file_name() == Some(name))?;
        self.relative(named)
    }

    /// The Python function that is the op, in a file that has not changed since the run.
    fn function(&self, op: &OpReport) -> Option<Place> {
        let module = op.runner.strip_prefix("module ")?;
        let (module, named) = module.split_once(':').map_or((module, None), |(module, name)| (module, Some(name)));
        let path = format!("{}.py", module.replace('.', "/"));
        let source = op.sources.iter().find(|source| source.path == path)?;
        let text = unchanged(&self.project, source)?;
        let names: Vec<&str> = named.map_or(vec![op.op.as_str(), "run"], |name| vec![name]);
        let line_of = |name: &str| {
            let head = format!("def {name}(");
            text.lines().position(|line| line.strip_prefix("async ").unwrap_or(line).starts_with(&head))
        };
        let (name, line) = names.into_iter().find_map(|name| Some((name, line_of(name)?)))?;
        let file = self.relative(&path)?;
        Some(Place { file, line: Some(line as u64 + 1), column: None, what: format!("function '{name}'") })
    }

    /// Where a finding of the linter is, the most telling place first.
    pub fn lint(&self, kernel: &KernelReport, finding: &LintFinding) -> Vec<Place> {
        let source = kernel.artifact.as_ref().map_or("", |artifact| artifact.source.as_str());
        // `file.py:kernel` is in `file.py`.
        let file = source.split_once(".py:").map_or(source.to_string(), |(stem, _)| format!("{stem}.py"));
        let what = format!("entry '{}'", finding.entry);
        let origin = finding.origin.as_ref().and_then(|origin| {
            let column = (origin.column > 0).then_some(origin.column);
            let file = self.source(&origin.file, &[&file])?;
            Some(Place { file, line: Some(origin.line), column, what: what.clone() })
        });
        let ptx = self.relative(source).filter(|_| source.ends_with(".ptx"));
        let ptx = ptx.zip(finding.line).map(|(file, line)| Place {
            file,
            line: Some(line as u64),
            column: finding.column.map(|column| column as u64),
            what,
        });
        origin.into_iter().chain(ptx).chain([self.kernel(kernel)]).collect()
    }

    /// A kernel in the configuration.
    pub fn kernel(&self, kernel: &KernelReport) -> Place {
        self.configuration(kernel.config_line.unwrap_or(0), &format!("kernel '{}'", kernel.kernel))
    }
}

/// The text of a source, if it is still what ran.
fn unchanged(project: &Path, source: &SourceDigest) -> Option<String> {
    let bytes = std::fs::read(project.join(&source.path)).ok()?;
    (source.sha256.as_deref() == Some(sha256(&bytes).as_str())).then_some(())?;
    String::from_utf8(bytes).ok()
}

/// A path without `.` and `..`.
fn plain(path: &Path) -> PathBuf {
    let mut plain = PathBuf::new();
    for part in path.components() {
        match part {
            Component::CurDir => {}
            Component::ParentDir => {
                plain.pop();
            }
            part => plain.push(part),
        }
    }
    plain
}

#[cfg(test)]
mod tests {
    use super::*;

    /// A project in a folder of a repository, with an op that failed in compiled code.
    fn project() -> (tempfile::TempDir, RunReport) {
        let folder = tempfile::tempdir().unwrap();
        std::fs::create_dir_all(folder.path().join(".git")).unwrap();
        std::fs::create_dir_all(folder.path().join("sub/kernels")).unwrap();
        let mut report: RunReport = serde_json::from_str(include_str!("../../tests/golden/report.json")).unwrap();
        report.config = folder.path().join("sub/gpuemu.toml").display().to_string();
        report.ops.retain(|op| op.op == "relu_one_more");
        (folder, report)
    }

    fn shown(places: &[Place]) -> Vec<String> {
        let line = |place: &Place| place.line.map_or(String::new(), |line| format!(":{line}"));
        places.iter().map(|place| format!("{}{}", place.file, line(place))).collect()
    }

    #[test]
    fn compiled_code_is_shown_where_it_was_written() {
        let (folder, report) = project();
        let (op, roots) = (&report.ops[0], Roots::of(&report));
        let mut found = op.failures[0].failures[0].places.clone();
        let (ptx, config) = (format!("sub/cuda/ptx/relu_elements_one_more.ptx:{}", found[0].code.ptx_line), op.line);
        // The source that the compiler named is not in this repository.
        assert_eq!(shown(&roots.op(op, &found)), [ptx.clone(), format!("sub/gpuemu.toml:{config}")]);
        std::fs::write(folder.path().join("sub/kernels/relu.cu"), "").unwrap();
        for file in
            ["kernels/relu.cu".to_string(), folder.path().join("sub/kernels/../kernels/relu.cu").display().to_string()]
        {
            (found[0].code.file, found[0].code.line) = (Some(file), Some(16));
            let expected = ["sub/kernels/relu.cu:16".to_string(), ptx.clone(), format!("sub/gpuemu.toml:{config}")];
            assert_eq!(shown(&roots.op(op, &found)), expected);
        }
        // A file outside of the repository is nobody's place.
        found[0].code.file = Some("/usr/include/stdio.h".to_string());
        assert_eq!(shown(&roots.op(op, &found))[0], ptx);
    }

    #[test]
    fn a_function_is_shown_as_long_as_it_is_the_one_that_ran() {
        let (folder, mut report) = project();
        let file = folder.path().join("sub/kernels/relu.py");
        let text =
            "import numpy as np\n\ndef helper(x):\n    return x\n\ndef relu_one_more(input):\n    return input\n";
        std::fs::write(&file, text).unwrap();
        let roots = Roots::of(&report);
        let op = &mut report.ops[0];
        op.runner = "module kernels.relu".to_string();
        op.sources = vec![SourceDigest { path: "kernels/relu.py".to_string(), sha256: Some(sha256(text.as_bytes())) }];
        let config = format!("sub/gpuemu.toml:{}", op.line);
        assert_eq!(shown(&roots.op(op, &[])), ["sub/kernels/relu.py:6".to_string(), config.clone()]);
        op.runner = "module kernels.relu:helper".to_string();
        assert_eq!(shown(&roots.op(op, &[])), ["sub/kernels/relu.py:3".to_string(), config.clone()]);
        std::fs::write(&file, format!("# moved\n{text}")).unwrap();
        assert_eq!(shown(&roots.op(op, &[])), [config]);
    }

    #[test]
    fn folders_of_another_machine_are_no_hindrance() {
        let (_folder, mut report) = project();
        report.config = "/nowhere/at/all/gpuemu.toml".to_string();
        report.ops[0].line = 0;
        let places = Roots::of(&report).op(&report.ops[0], &[]);
        assert_eq!(shown(&places), ["gpuemu.toml"]);
    }
}
