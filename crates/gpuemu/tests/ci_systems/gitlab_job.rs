//! Runs the jobs of a GitLab pipeline: `extends` and rules are resolved, scripts run as GitLab's runner runs them.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};
use std::process::Command;

use serde_json::{Map, Value};
use snapbox::cmd::cargo_bin;
use tempfile::TempDir;

use super::packages::Packages;
use super::{programs, yaml};

pub struct Pipeline {
    file: Value,
    variables: BTreeMap<String, String>,
}

/// The image that a job runs in.
#[derive(Clone, Copy)]
pub enum Image<'packages> {
    /// It has the gpuemu of this build, and what the kernels import.
    Complete,
    /// It has a Python, which finds packages to install.
    Python(&'packages Packages),
    /// The same, in which another project's gpuemu is installed, in our version.
    AnotherProjects(&'packages Packages),
}

/// How a job ended.
pub struct JobRun {
    pub status: i32,
    /// What was printed, on both streams.
    pub log: String,
}

impl Pipeline {
    /// A pipeline of a file, with what its variables are set to.
    pub fn new(file: &Path, variables: &[(&str, &str)]) -> Self {
        let file = yaml::read(file);
        let mut all: BTreeMap<String, String> = BTreeMap::new();
        for (name, value) in file["variables"].as_object().unwrap() {
            all.insert(name.clone(), value.as_str().unwrap().replace("$$", "$"));
        }
        all.extend(variables.iter().map(|(name, value)| (name.to_string(), value.to_string())));
        Self { file, variables: all }
    }

    /// The jobs that this pipeline has.
    pub fn jobs(&self) -> Vec<String> {
        let fields = self.file.as_object().unwrap().iter();
        let jobs = fields.filter(|(name, _)| !name.starts_with('.') && *name != "variables").map(|(name, _)| name);
        jobs.filter(|name| self.rule_of(name).is_some()).cloned().collect()
    }

    /// A job with what it extends.
    pub fn job(&self, name: &str) -> Value {
        let own = self.file[name].as_object().unwrap_or_else(|| panic!("there is no job {name}"));
        match own.get("extends").and_then(Value::as_str) {
            Some(base) => merged(self.job(base), own),
            None => Value::Object(own.clone()),
        }
    }

    /// The first rule of a job that holds.
    pub fn rule_of(&self, name: &str) -> Option<Value> {
        let job = self.job(name);
        let holds = |rule: &&Value| rule["if"].as_str().unwrap().split("&&").all(|part| self.holds(part.trim()));
        job["rules"].as_array().unwrap().iter().find(holds).cloned()
    }

    fn holds(&self, comparison: &str) -> bool {
        let words: Vec<&str> = comparison.split(' ').collect();
        let [variable, operator, value] = words[..] else { panic!("'{comparison}' is not known here") };
        let empty = String::new();
        let is = self.variables.get(variable.strip_prefix('$').unwrap()).unwrap_or(&empty);
        let value = value.strip_prefix('"').and_then(|value| value.strip_suffix('"')).unwrap();
        match operator {
            "==" => is == value,
            "!=" => is != value,
            _ => panic!("'{comparison}' is not known here"),
        }
    }

    /// Runs a job in a checkout and a new container, with a shell that its image may have.
    pub fn run(
        &self,
        name: &str,
        shell: &str,
        image: Image<'_>,
        checkout: &Path,
        variables: &[(&str, &str)],
    ) -> JobRun {
        let job = self.job(name);
        let lines = |part: &str| job[part].as_array().unwrap().iter().map(|line| line.as_str().unwrap().to_string());
        let script: Vec<String> = lines("before_script").chain(lines("script")).collect();
        let container = TempDir::new().unwrap();
        let (programs, pip) = match image {
            Image::Complete => {
                std::os::unix::fs::symlink(cargo_bin!("gpuemu"), container.path().join("gpuemu")).unwrap();
                (container.path().to_path_buf(), Vec::new())
            }
            Image::Python(packages) | Image::AnotherProjects(packages) => {
                // An environment has its Python as `python`, as the image of the template has.
                let programs = packages.python(&container.path().join("python"));
                if matches!(image, Image::AnotherProjects(_)) {
                    packages.install_another(&programs);
                }
                (programs, packages.variables())
            }
        };
        let path = [programs].into_iter().chain(programs::search_path());
        let output = Command::new(shell)
            .args(if shell == "bash" { &["-eo", "pipefail", "-c"][..] } else { &["-e", "-c"] })
            .arg(script.join("\n"))
            .current_dir(checkout)
            .env_clear()
            .env("PATH", std::env::join_paths(path).unwrap())
            .env("HOME", container.path())
            // Nothing is installed outside of the container.
            .env("PIP_REQUIRE_VIRTUALENV", "1")
            .envs(pip)
            .envs([("CI", "true"), ("GITLAB_CI", "true")])
            .env("CI_PROJECT_DIR", checkout)
            .envs(&self.variables)
            .envs(variables.iter().copied())
            .output()
            .unwrap();
        let log = [output.stdout, output.stderr].map(|bytes| String::from_utf8(bytes).unwrap()).concat();
        JobRun { status: output.status.code().unwrap(), log }
    }

    /// The files that a job keeps, which must be there: paths and reports.
    pub fn kept(&self, name: &str, checkout: &Path) -> Vec<PathBuf> {
        let artifacts = &self.job(name)["artifacts"];
        assert_eq!(artifacts["when"], "always");
        let paths = artifacts["paths"].as_array().unwrap().iter();
        let reports = artifacts["reports"].as_object().into_iter().flat_map(Map::values);
        let mut files = Vec::new();
        for path in paths.chain(reports) {
            let path = checkout.join(path.as_str().unwrap());
            assert!(path.exists(), "{} is not there", path.display());
            match path.is_dir() {
                true => files.extend(std::fs::read_dir(&path).unwrap().map(|entry| entry.unwrap().path())),
                false => files.push(path),
            }
        }
        files.sort();
        files.dedup();
        files
    }
}

/// What a job has over what it extends: tables are merged, anything else is replaced.
fn merged(mut base: Value, own: &Map<String, Value>) -> Value {
    for (name, value) in own {
        let field = &mut base[name.as_str()];
        *field = match (field.take(), value) {
            (table @ Value::Object(_), Value::Object(value)) => merged(table, value),
            _ => value.clone(),
        };
    }
    base
}
