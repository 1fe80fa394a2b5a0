//! The files of a project's CI system.

use std::path::{Component, Path, PathBuf};

use clap::ValueEnum;

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

const WORKFLOW: &str = include_str!("templates/ci/github.yml");

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
        let Some(way) = way.to_str() else {
            let message = format!("{} is no text, which a CI system needs its name to be", way.display());
            return Err(ExpectedError::new(message, "rename the folder"));
        };
        Ok(Self { project: if way.is_empty() { ".".to_string() } else { way.to_string() }, root })
    }

    /// A file of the repository, as short as it is from the current folder.
    fn file(&self, path: &str) -> PathBuf {
        let here = std::env::current_dir().and_then(|folder| folder.canonicalize()).unwrap_or_default();
        let file = self.root.join(path);
        file.strip_prefix(&here).map(Path::to_path_buf).unwrap_or(file)
    }
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

/// The files of a CI system, with their paths from the current folder.
pub fn files(system: CiSystem, repository: &Repository, framework: Framework) -> Vec<NewFile> {
    let file = |path: &str, text: String| NewFile { path: repository.file(path), text };
    let version = env!("CARGO_PKG_VERSION");
    match system {
        CiSystem::Github => {
            let workflow = WORKFLOW
                .replace("@VERSION@", &quoted(version))
                .replace("@PACKAGES@", framework.package())
                // The folder comes last: whatever is in its name is not looked at again.
                .replace("@DIRECTORY@", &quoted(&repository.project));
            let action = ACTION.map(|(name, text)| file(&format!(".github/actions/gpuemu/{name}"), text.to_string()));
            [vec![file(".github/workflows/gpuemu.yml", workflow)], action.to_vec()].concat()
        }
        CiSystem::Gitlab => {
            let values = [
                ("GPUEMU_VERSION", version),
                ("GPUEMU_PACKAGES", framework.package()),
                ("GPUEMU_DIRECTORY", &repository.project),
            ];
            let lines = GITLAB.lines().map(|line| {
                let set = values.iter().find(|(name, _)| line.starts_with(&format!("  {name}:")));
                // GitLab would take a dollar sign for the start of a variable.
                set.map_or(line.to_string(), |(name, value)| format!("  {name}: {}", quoted(&value.replace('$', "$$"))))
            });
            vec![file(".gitlab-ci.yml", lines.map(|line| line + "\n").collect())]
        }
    }
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
        let repository = Repository { root: PathBuf::from("/r"), project: "a \"b\" $c".to_string() };
        for framework in [Framework::Pytorch, Framework::Jax, Framework::Tensorflow, Framework::Numpy] {
            let github = files(CiSystem::Github, &repository, framework);
            assert_eq!(github.len(), 1 + ACTION.len());
            for placeholder in ["@VERSION@", "@PACKAGES@", "@DIRECTORY@"] {
                assert!(WORKFLOW.contains(placeholder) && !github[0].text.contains(placeholder));
            }
            let install = format!("pip install {}\n", framework.package());
            assert_eq!(github[0].text.matches(&install).count(), 2);
            assert_eq!(github[0].text.matches(r#"working-directory: "a \"b\" $c""#).count(), 4);
            let gitlab = &files(CiSystem::Gitlab, &repository, framework)[0].text;
            assert!(gitlab.contains(&format!("  GPUEMU_PACKAGES: \"{}\"\n", framework.package())), "{gitlab}");
            assert!(gitlab.contains("  GPUEMU_DIRECTORY: \"a \\\"b\\\" $$c\"\n"), "{gitlab}");
            assert!(gitlab.contains(concat!("  GPUEMU_VERSION: \"", env!("CARGO_PKG_VERSION"), "\"\n")), "{gitlab}");
        }
    }
}
