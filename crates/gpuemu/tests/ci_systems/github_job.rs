//! Runs the steps of GitHub's actions and workflows: conditions and expressions are evaluated, shell steps run as the
//! runner of GitHub runs them. Steps that use actions of others are recorded; caches and artifacts are folders.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};
use std::process::Command;
use std::sync::Arc;

use serde_json::{Value, json};
use snapbox::cmd::cargo_bin;
use tempfile::TempDir;

use super::expression::Context;
use super::fixture::Project;
use super::packages::Packages;
use super::{programs, yaml};

/// The steps of an action or a workflow that ran.
#[derive(Debug, Default)]
pub struct StepsRun {
    /// Name, or the action used, and exit status of each shell step and action that was run, in order.
    pub statuses: Vec<(String, i32)>,
    /// Actions of others, with what they were given.
    pub used: Vec<(String, BTreeMap<String, String>)>,
    /// What was printed, on both streams.
    pub log: String,
    pub outputs: BTreeMap<String, String>,
    /// Whether a step failed.
    pub failed: bool,
}

impl StepsRun {
    /// The status that the last step which ran ended with.
    pub fn status(&self) -> i32 {
        assert_eq!(self.failed, self.statuses.iter().any(|(_, status)| *status != 0), "{}", self.log);
        self.statuses.last().unwrap().1
    }

    /// What an action of others was given; none if it was not used.
    pub fn given_to(&self, action: &str) -> Option<&BTreeMap<String, String>> {
        self.used.iter().find(|(name, _)| name.starts_with(action)).map(|(_, with)| with)
    }

    fn add(&mut self, other: StepsRun) {
        self.statuses.extend(other.statuses);
        self.used.extend(other.used);
        self.log += &other.log;
    }
}

/// A machine of GitHub's on which one job runs.
pub struct GithubJob {
    pub workspace: PathBuf,
    /// Everything else of the machine.
    pub machine: TempDir,
    /// What is known of the event: the context `github`.
    pub github: Value,
    /// Variables of every step.
    pub variables: BTreeMap<String, String>,
    search_path: Vec<PathBuf>,
    packages: Option<Arc<Packages>>,
    caches: Option<PathBuf>,
}

impl GithubJob {
    /// A job on a project, with gpuemu on the search path.
    pub fn new(project: &Project, github: Value) -> Self {
        let machine = TempDir::new().unwrap();
        let programs = machine.path().join("programs");
        for folder in ["temp", "home", "programs", "artifacts"] {
            std::fs::create_dir(machine.path().join(folder)).unwrap();
        }
        std::os::unix::fs::symlink(cargo_bin!("gpuemu"), programs.join("gpuemu")).unwrap();
        let search_path = [programs].into_iter().chain(programs::search_path()).collect();
        let workspace = project.folder.path().to_path_buf();
        let mut github = github;
        github["workspace"] = workspace.to_str().unwrap().into();
        Self { workspace, machine, github, variables: BTreeMap::new(), search_path, packages: None, caches: None }
    }

    /// With a Python that `actions/setup-python` puts there, and packages that its pip finds.
    pub fn with_packages(mut self, packages: &Arc<Packages>) -> Self {
        self.variables.extend(packages.variables());
        self.packages = Some(packages.clone());
        self
    }

    /// With caches that other jobs see too.
    pub fn with_caches(mut self, folder: &Path) -> Self {
        self.caches = Some(folder.to_path_buf());
        self
    }

    /// Replaces gpuemu by a shell script.
    pub fn replace_gpuemu(&self, script: &str) {
        use std::os::unix::fs::PermissionsExt;
        let program = self.machine.path().join("programs/gpuemu");
        std::fs::remove_file(&program).unwrap();
        std::fs::write(&program, format!("#!/bin/sh\n{script}\n")).unwrap();
        std::fs::set_permissions(&program, std::fs::Permissions::from_mode(0o755)).unwrap();
    }

    /// Takes gpuemu off the search path.
    pub fn remove_gpuemu(&self) {
        std::fs::remove_file(self.machine.path().join("programs/gpuemu")).unwrap();
    }

    /// Runs the project's action.
    pub fn run_action(&mut self, inputs: &[(&str, &str)]) -> StepsRun {
        let inputs = inputs.iter().map(|(name, value)| (name.to_string(), value.to_string())).collect();
        self.run_action_in(&yaml::integration("github-action"), &inputs)
    }

    /// Runs the composite action of a folder.
    fn run_action_in(&mut self, folder: &Path, given: &BTreeMap<String, String>) -> StepsRun {
        let action = yaml::read(&folder.join("action.yml"));
        assert_eq!(action["runs"]["using"], "composite");
        let declared = action["inputs"].as_object().unwrap();
        let unknown: Vec<&String> = given.keys().filter(|name| !declared.contains_key(*name)).collect();
        assert!(unknown.is_empty(), "the action has no inputs {unknown:?}");
        let mut github = self.github.clone();
        github["token"] = "the-token".into();
        let context = Context { values: json!({ "github": github }), failed: false };
        let value = |name: &String, input: &Value| given.get(name).cloned().unwrap_or(context.fill(&input["default"]));
        let inputs: BTreeMap<&String, String> = declared.iter().map(|(name, one)| (name, value(name, one))).collect();
        let values = json!({ "github": github, "inputs": inputs, "steps": {} });
        let (mut run, values) = self.run_steps(&action["runs"]["steps"], values, Some(folder));
        let context = Context { values, failed: run.failed };
        let outputs = action["outputs"].as_object().unwrap().iter();
        run.outputs = outputs.map(|(name, output)| (name.clone(), context.fill(&output["value"]))).collect();
        run
    }

    /// Runs a job of a workflow, if its condition says so.
    pub fn run_workflow_job(&mut self, workflow: &Value, job: &str) -> Option<StepsRun> {
        let job = &workflow["jobs"][job];
        let values = json!({ "github": self.github, "steps": {} });
        let runs = Context { values: values.clone(), failed: false }.runs(job.get("if"));
        runs.then(|| self.run_steps(&job["steps"], values, None).0)
    }

    fn run_steps(&mut self, steps: &Value, mut values: Value, action: Option<&Path>) -> (StepsRun, Value) {
        let mut run = StepsRun::default();
        for step in steps.as_array().unwrap() {
            let context = Context { values: values.clone(), failed: run.failed };
            if !context.runs(step.get("if")) {
                continue;
            }
            let mut outputs = BTreeMap::new();
            let mut status = 0;
            if let Some(uses) = step["uses"].as_str() {
                let with = step["with"].as_object().into_iter().flatten();
                let with: BTreeMap<String, String> =
                    with.map(|(name, value)| (name.clone(), context.fill(value))).collect();
                if let Some(own) = uses.strip_prefix("./") {
                    let inner = self.run_action_in(&self.workspace.join(own), &with);
                    status = i32::from(inner.failed);
                    outputs = inner.outputs.clone();
                    run.add(inner);
                } else {
                    outputs = self.use_action(uses, &with);
                    run.used.push((uses.to_string(), with));
                }
            } else {
                let name = step["name"].as_str().unwrap().to_string();
                let (ended, log) = self.run_shell(step, &context, action, &mut outputs);
                status = ended;
                run.log += &log;
                run.statuses.push((name, status));
            }
            let may_fail = step.get("continue-on-error").is_some_and(|value| context.fill(value) == "true");
            run.failed |= status != 0 && !may_fail;
            if let Some(id) = step["id"].as_str() {
                values["steps"][id] = json!({ "outputs": outputs });
            }
        }
        (run, values)
    }

    /// A shell step, as GitHub's runner runs it.
    fn run_shell(
        &mut self,
        step: &Value,
        context: &Context,
        action: Option<&Path>,
        outputs: &mut BTreeMap<String, String>,
    ) -> (i32, String) {
        let text = step["run"].as_str().unwrap();
        // What GitHub's runner starts where a shell is named, and where none is, as no step of an action may do.
        let options: &[&str] = match step["shell"].as_str() {
            Some("bash") => &["--noprofile", "--norc", "-eo", "pipefail"],
            None if action.is_none() => &["-e"],
            other => panic!("the shell {other:?} is not known here"),
        };
        let file = |name: &str| self.machine.path().join(name);
        let (script, output_file, path_file) = (file("script.sh"), file("output"), file("path"));
        std::fs::write(&script, text).unwrap();
        std::fs::write(&output_file, "").unwrap();
        std::fs::write(&path_file, "").unwrap();
        let folder = step.get("working-directory").map_or(".".to_string(), |value| context.fill(value));
        let mut command = Command::new("bash");
        command
            .args(options)
            .arg(&script)
            .current_dir(self.workspace.join(folder))
            .env_clear()
            .env("PATH", std::env::join_paths(&self.search_path).unwrap())
            .env("HOME", file("home"))
            .env("RUNNER_TEMP", file("temp"))
            .env("GITHUB_ACTIONS", "true")
            .env("CI", "true")
            // A job that was given no Python changes none of this machine's.
            .env("PIP_REQUIRE_VIRTUALENV", "1")
            .env("GITHUB_WORKSPACE", &self.workspace)
            .env("GITHUB_REPOSITORY", "owner/kernels")
            .env("GITHUB_STEP_SUMMARY", file("summary.md"))
            .env("GITHUB_OUTPUT", &output_file)
            .env("GITHUB_PATH", &path_file)
            .envs(&self.variables);
        if let Some(action) = action {
            command.env("GITHUB_ACTION_PATH", action);
        }
        for (name, value) in step["env"].as_object().into_iter().flatten() {
            command.env(name, context.fill(value));
        }
        let output = command.output().unwrap();
        for line in std::fs::read_to_string(&output_file).unwrap().lines() {
            let (name, value) = line.split_once('=').unwrap();
            outputs.insert(name.to_string(), value.to_string());
        }
        for line in std::fs::read_to_string(&path_file).unwrap().lines() {
            self.search_path.insert(0, PathBuf::from(line));
        }
        let log = [output.stdout, output.stderr].map(|bytes| String::from_utf8(bytes).unwrap()).concat();
        (output.status.code().unwrap(), log)
    }

    /// What an action of others does to the machine.
    fn use_action(&mut self, uses: &str, with: &BTreeMap<String, String>) -> BTreeMap<String, String> {
        let mut outputs = BTreeMap::new();
        match uses.split_once('@').unwrap().0 {
            "actions/checkout" => {}
            "actions/setup-python" => {
                let packages = self.packages.as_ref().expect("a workflow needs packages for its Python");
                let programs = packages.python(&self.machine.path().join("python"));
                self.search_path.insert(0, programs);
            }
            "github/codeql-action/upload-sarif" => {
                let sarif: Value =
                    serde_json::from_str(&std::fs::read_to_string(&with["sarif_file"]).unwrap()).unwrap();
                assert_eq!(sarif["version"], "2.1.0");
            }
            "actions/upload-artifact" => {
                assert!(!with["name"].contains(['/', ':', '"', '\\']), "{with:?}");
                copy_folder(Path::new(&with["path"]), &self.machine.path().join("artifacts").join(&with["name"]));
            }
            "actions/cache/save" => {
                let cache = self.caches.as_ref().unwrap().join(&with["key"]);
                std::fs::copy(self.workspace.join(&with["path"]), cache).unwrap();
            }
            "actions/cache/restore" => {
                let caches = std::fs::read_dir(self.caches.as_ref().unwrap()).unwrap();
                let keys = caches.map(|entry| entry.unwrap().file_name().into_string().unwrap());
                let matches = |key: &String| *key == with["key"] || key.starts_with(&with["restore-keys"]);
                if let Some(key) = keys.filter(matches).max() {
                    let cache = self.caches.as_ref().unwrap().join(&key);
                    std::fs::copy(cache, self.workspace.join(&with["path"])).unwrap();
                    outputs.insert("cache-matched-key".to_string(), key);
                }
            }
            other => panic!("'{other}' is not known here"),
        }
        outputs
    }
}

fn copy_folder(from: &Path, to: &Path) {
    std::fs::create_dir_all(to).unwrap();
    for entry in std::fs::read_dir(from).unwrap() {
        let entry = entry.unwrap();
        std::fs::copy(entry.path(), to.join(entry.file_name())).unwrap();
    }
}

/// The event of a pull request.
pub fn pull_request(number: u64) -> Value {
    json!({
        "event_name": "pull_request",
        "ref": format!("refs/pull/{number}/merge"),
        "run_id": "1002",
        "event": {
            "pull_request": { "number": number, "head": { "repo": { "fork": false } } },
            "repository": { "private": false },
        },
    })
}

/// The event of a schedule.
pub fn schedule() -> Value {
    json!({ "event_name": "schedule", "ref": "refs/heads/main", "run_id": "1001", "event": {} })
}
