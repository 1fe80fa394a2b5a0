//! The files of a project's CI system.

use std::path::{Component, Path, PathBuf};

use clap::ValueEnum;

use super::package::Package;
use super::templates::{Framework, NewFile};
use crate::expected_error::ExpectedError;

/// A CI system.
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub enum CiSystem {
    /// GitHub Actions: a workflow, and the action that it uses.
    Github,
    /// GitLab CI.
    Gitlab,
}

impl CiSystem {
    /// The file that says what gpuemu is installed from, from the root of the repository, and what it calls that.
    pub fn package_setting(self) -> (&'static str, &'static str) {
        match self {
            CiSystem::Github => (WORKFLOW_FILE, "package"),
            CiSystem::Gitlab => (GITLAB_FILE, "GPUEMU_PACKAGE"),
        }
    }
}

/// The action, file by file. It is written beside the workflow: what runs in CI is then what was written with this
/// gpuemu, reviewed with the project, and fetched from nowhere.
const ACTION: [(&str, &str); 6] = [
    ("action.yml", include_str!("../../../../../integrations/github-action/action.yml")),
    ("messages.sh", include_str!("../../../../../integrations/github-action/messages.sh")),
    ("install.sh", include_str!("../../../../../integrations/github-action/install.sh")),
    ("run.sh", include_str!("../../../../../integrations/github-action/run.sh")),
    ("comment.sh", include_str!("../../../../../integrations/github-action/comment.sh")),
    ("finish.sh", include_str!("../../../../../integrations/github-action/finish.sh")),
];

const WORKFLOW_FILE: &str = ".github/workflows/gpuemu.yml";
const WORKFLOW: &str = include_str!("templates/ci/github.yml");

const GITLAB_FILE: &str = ".gitlab-ci.yml";
const GITLAB: &str = include_str!("../../../../../integrations/gitlab/gpuemu.gitlab-ci.yml");

/// The folder that a CI system looks into, and the way from there to the project.
pub struct Repository {
    root: PathBuf,
    project: String,
}

impl Repository {
    /// The repository that a project is in; without one the project's own folder. The folder may not be there yet.
    pub fn of(directory: &Path) -> Result<Self, ExpectedError> {
        let project = real_path(directory)?;
        let root = project.ancestors().find(|folder| folder.join(".git").exists()).unwrap_or(&project).to_path_buf();
        let way = project.strip_prefix(&root).unwrap_or(Path::new(""));
        let way = way.to_str().ok_or_else(|| no_text(way))?;
        Ok(Self { project: if way.is_empty() { ".".to_string() } else { way.to_string() }, root })
    }

    /// The folder that it lies in.
    pub fn root(&self) -> &Path {
        &self.root
    }

    /// The path of a file from the root; `None` for one that lies elsewhere.
    pub fn path_of(&self, file: &Path) -> Result<Option<String>, ExpectedError> {
        let file = real_path(file)?;
        let Ok(inside) = file.strip_prefix(&self.root) else { return Ok(None) };
        inside.to_str().map(|path| Some(path.to_string())).ok_or_else(|| no_text(inside))
    }

    /// A file of the repository, as short as it is from the current folder.
    fn file(&self, path: &str) -> PathBuf {
        let here = std::env::current_dir().and_then(|folder| folder.canonicalize()).unwrap_or_default();
        let file = self.root.join(path);
        file.strip_prefix(&here).map(Path::to_path_buf).unwrap_or(file)
    }
}

fn no_text(path: &Path) -> ExpectedError {
    let message = format!("the path {} is not valid UTF-8, which CI systems need", path.display());
    ExpectedError::new(message, "rename it")
}

/// A path without links and without `..`, of which the last parts may not be there yet.
fn real_path(path: &Path) -> Result<PathBuf, ExpectedError> {
    let unknown = |error| ExpectedError::plain(format!("{} cannot be looked up: {error}", path.display()));
    let full = std::path::absolute(path).map_err(unknown)?;
    let there = full.ancestors().find(|folder| folder.exists()).unwrap_or(Path::new("/"));
    let mut real = there.canonicalize().map_err(unknown)?;
    for part in full.strip_prefix(there).unwrap_or(Path::new("")).components() {
        match part {
            Component::ParentDir => drop(real.pop()),
            part => real.push(part),
        }
    }
    Ok(real)
}

/// The files of a CI system, with their paths from the current folder. Without a package they say that none is named.
pub fn files(
    system: CiSystem,
    repository: &Repository,
    framework: Framework,
    package: Option<&Package>,
) -> Vec<NewFile> {
    let file = |path: &str, text: String| NewFile { path: repository.file(path), text };
    let package = package.map_or("", Package::as_str);
    match system {
        CiSystem::Github => {
            let values = [
                ("@PACKAGE@", quoted(package)),
                ("@PACKAGES@", framework.package().to_string()),
                ("@DIRECTORY@", quoted(&repository.project)),
            ];
            // A line has one place to fill in, and what is filled in is not looked at again.
            let workflow = filled(WORKFLOW, |line| {
                let (place, value) = values.iter().find(|(place, _)| line.contains(place))?;
                Some(line.replacen(place, value, 1))
            });
            let action = ACTION.map(|(name, text)| file(&format!(".github/actions/gpuemu/{name}"), text.to_string()));
            [vec![file(WORKFLOW_FILE, workflow)], action.to_vec()].concat()
        }
        CiSystem::Gitlab => {
            let values = [
                ("GPUEMU_PACKAGE", package),
                ("GPUEMU_PACKAGES", framework.package()),
                ("GPUEMU_DIRECTORY", &repository.project),
            ];
            let pipeline = filled(GITLAB, |line| {
                let (name, value) = values.iter().find(|(name, _)| line.starts_with(&format!("  {name}:")))?;
                // GitLab would take a dollar sign for the start of a variable.
                Some(format!("  {name}: {}", quoted(&value.replace('$', "$$"))))
            });
            vec![file(GITLAB_FILE, pipeline)]
        }
    }
}

/// A template with some of its lines replaced.
fn filled(template: &str, replacement: impl Fn(&str) -> Option<String>) -> String {
    template.lines().map(|line| replacement(line).unwrap_or_else(|| line.to_string()) + "\n").collect()
}

/// A text in YAML, which reads strings of JSON as JSON does.
fn quoted(text: &str) -> String {
    serde_json::Value::from(text).to_string()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_project_is_found_in_the_repository_that_it_is_in_even_before_it_is_there() {
        let folder = tempfile::TempDir::new().unwrap();
        let root = folder.path().canonicalize().unwrap();
        let nested = folder.path().join("a/b/../c");
        let alone = Repository::of(&nested).unwrap();
        assert_eq!((alone.root, alone.project.as_str()), (root.join("a/c"), "."));
        std::fs::create_dir(folder.path().join(".git")).unwrap();
        let inside = Repository::of(&nested).unwrap();
        assert_eq!((&inside.root, inside.project.as_str()), (&root, "a/c"));
        assert_eq!(inside.file("x/y"), root.join("x/y"));
        let top = Repository::of(folder.path()).unwrap();
        assert_eq!((top.root, top.project.as_str()), (root, "."));
    }

    #[test]
    fn nothing_is_left_to_fill_in() {
        let repository = Repository { root: PathBuf::from("/r"), project: "a \"b\" $c @PACKAGE@".to_string() };
        let address = "git+https://example.org/gpuemu@v1#subdirectory=@DIRECTORY@$d";
        let package = Package::named(address, &repository).unwrap();
        for framework in [Framework::Pytorch, Framework::Jax, Framework::Tensorflow, Framework::Numpy] {
            let github = files(CiSystem::Github, &repository, framework, Some(&package));
            assert_eq!(github.len(), 1 + ACTION.len());
            let install = format!("pip install {}\n", framework.package());
            assert_eq!(github[0].text.matches(&install).count(), 2);
            assert_eq!(github[0].text.matches(r#"working-directory: "a \"b\" $c @PACKAGE@""#).count(), 4);
            assert_eq!(github[0].text.matches(&format!("package: \"{address}\"")).count(), 2);
            let gitlab = &files(CiSystem::Gitlab, &repository, framework, Some(&package))[0].text;
            assert!(gitlab.contains(&format!("  GPUEMU_PACKAGES: \"{}\"\n", framework.package())), "{gitlab}");
            assert!(gitlab.contains("  GPUEMU_DIRECTORY: \"a \\\"b\\\" $$c @PACKAGE@\"\n"), "{gitlab}");
            let doubled = address.replace('$', "$$");
            assert!(gitlab.contains(&format!("  GPUEMU_PACKAGE: \"{doubled}\"\n")), "{gitlab}");
        }
        // Without a package there is the place to name one.
        let github = &files(CiSystem::Github, &repository, Framework::Numpy, None)[0].text;
        assert_eq!(github.matches("package: \"\"").count(), 2);
        let gitlab = &files(CiSystem::Gitlab, &repository, Framework::Numpy, None)[0].text;
        assert!(gitlab.contains("  GPUEMU_PACKAGE: \"\"\n"), "{gitlab}");
        for (system, files) in [(CiSystem::Github, github), (CiSystem::Gitlab, gitlab)] {
            assert!(files.contains(&format!("  {}:", system.package_setting().1)));
        }
    }
}
