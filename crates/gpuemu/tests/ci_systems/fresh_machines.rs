//! What `gpuemu init --ci` writes, run as a whole by machines that have nothing of it: every step, from the installation
//! of gpuemu to the last report. `cargo xtask test` does it with the wheel that users install.

use std::collections::BTreeSet;

use serde_json::Value;
use tempfile::TempDir;

use super::fixture::{Project, text_of};
use super::github_api::GithubApi;
use super::github_job::{GithubJob, StepsRun, pull_request, schedule};
use super::gitlab_job::{Image, Pipeline};
use super::packages::{ANOTHER_PROJECT, Packages, VERSION};
use super::programs::missing;
use super::yaml;

const WORKFLOW: &str = ".github/workflows/gpuemu.yml";
const PIPELINE: &str = ".gitlab-ci.yml";

/// A new project, made by a gpuemu that was installed from the wheel, with that wheel in it where it is `named`; and what
/// was said of that on standard error.
fn project(packages: &Packages, system: &str, named: bool) -> (Project, String) {
    let project = Project::without_python();
    let machine = TempDir::new().unwrap();
    let programs = packages.python(machine.path());
    packages.install(&programs);
    let wheel = format!("wheels/{}", packages.wheel.file_name().unwrap().to_str().unwrap());
    let mut arguments = vec!["init", "--with-examples", "--ci", system];
    if named {
        std::fs::create_dir(project.path("wheels")).unwrap();
        std::fs::copy(&packages.wheel, project.path(&wheel)).unwrap();
        arguments.extend(["--package", &wheel]);
    }
    let init = project.gpuemu_at(&programs.join("gpuemu"), &arguments).assert().success();
    let words = text_of(&init.get_output().stderr);
    (project, words)
}

/// Names of the steps of a list that run a script.
fn scripts(steps: &Value) -> BTreeSet<String> {
    let steps = steps.as_array().unwrap().iter().filter(|step| step.get("run").is_some());
    steps.map(|step| step["name"].as_str().unwrap().to_string()).collect()
}

/// What ran, in order, and what was only named.
fn ran(run: &StepsRun) -> (Vec<&str>, Vec<&str>) {
    assert!(!run.log.contains(ANOTHER_PROJECT), "{}", run.log);
    (
        run.statuses.iter().map(|(name, _)| name.as_str()).collect(),
        run.used.iter().map(|(action, _)| action.as_str()).collect(),
    )
}

#[test]
fn every_step_for_github_runs_and_passes() {
    if missing(&["curl", "jq"]) {
        return;
    }
    let Some(packages) = Packages::shared() else { return };
    let (project, words) = project(&packages, "github", true);
    assert_eq!(words, "");
    let workflow = yaml::read(&project.path(WORKFLOW));
    let caches = TempDir::new().unwrap();
    let api = GithubApi::start(Vec::new(), false);
    let run = |github: Value, name: &str| {
        let mut job = GithubJob::new(&project, github).with_packages(&packages).with_caches(caches.path());
        job.remove_gpuemu();
        job.variables.insert("GITHUB_API_URL".to_string(), api.url.clone());
        let run = job.run_workflow_job(&workflow, name).unwrap();
        assert!(!run.failed && run.statuses.iter().all(|(_, status)| *status == 0), "{name}: {}", run.log);
        assert!(
            run.log.contains(&format!("installed gpuemu {VERSION} in {}", job.machine.path().display())),
            "{}",
            run.log
        );
        run
    };
    let night = run(schedule(), "thorough");
    assert_eq!(
        ran(&night),
        (
            vec![
                "Install what the kernels import",
                "Install gpuemu",
                "Run gpuemu",
                "Pass or fail",
                "Make the report the baseline",
            ],
            // What these do is GitHub's; here they are folders of the test.
            vec![
                "actions/checkout@v6",
                "actions/setup-python@v6",
                "actions/upload-artifact@v6",
                "actions/cache/save@v5"
            ],
        )
    );
    let change = run(pull_request(7), "quick");
    assert_eq!(
        ran(&change),
        (
            vec![
                "Install what the kernels import",
                "Install gpuemu",
                "Run gpuemu",
                "Comment on the pull request",
                "Pass or fail",
            ],
            vec![
                "actions/checkout@v6",
                "actions/setup-python@v6",
                "actions/cache/restore@v5",
                "github/codeql-action/upload-sarif@v4",
                "actions/upload-artifact@v6",
            ],
        )
    );
    assert!(change.log.contains("same       softmax") && api.comments().len() == 1, "{}", change.log);
    // No script is left that never ran.
    let action = yaml::read(&project.path(".github/actions/gpuemu/action.yml"));
    let jobs = workflow["jobs"].as_object().unwrap().values().map(|job| scripts(&job["steps"]));
    let all: BTreeSet<String> = jobs.chain([scripts(&action["runs"]["steps"])]).flatten().collect();
    let names = night.statuses.iter().chain(&change.statuses).map(|(name, _)| name.clone());
    assert_eq!(names.collect::<BTreeSet<_>>(), all);
}

#[test]
fn every_job_for_gitlab_runs_and_passes() {
    let Some(packages) = Packages::shared() else { return };
    let (project, words) = project(&packages, "gitlab", true);
    assert_eq!(words, "");
    let checkout = project.folder.path();
    let mut names = BTreeSet::new();
    for (source, sharded) in [("merge_request_event", "false"), ("schedule", "false"), ("schedule", "true")] {
        let variables = [("CI_PIPELINE_SOURCE", source), ("GPUEMU_SHARDS", sharded), ("CI_PIPELINE_ID", "4711")];
        let pipeline = Pipeline::new(&project.path(PIPELINE), &variables);
        for name in pipeline.jobs() {
            let total = pipeline.job(&name)["parallel"].as_u64().unwrap_or(1).to_string();
            for index in 1..=total.parse().unwrap() {
                let node: &[(&str, &str)] = &[("CI_NODE_INDEX", &index.to_string()), ("CI_NODE_TOTAL", &total)];
                let run = pipeline.run(&name, "bash", Image::Python(&packages), checkout, node);
                assert!(run.status == 0 && !run.log.contains(ANOTHER_PROJECT), "{name} {index}: {}", run.log);
                assert!(!pipeline.kept(&name, checkout).is_empty());
            }
            names.insert(name);
        }
    }
    let file = yaml::read(&project.path(PIPELINE));
    let all = file.as_object().unwrap().iter().filter(|(_, job)| job.get("script").is_some());
    assert_eq!(names, all.map(|(name, _)| name.clone()).collect());
}

#[test]
fn without_a_package_every_job_says_what_to_set_and_ends_with_2() {
    if missing(&["jq"]) {
        return;
    }
    let Some(packages) = Packages::shared() else { return };
    // The wheel was a file of that machine, which no other reaches.
    let (github, words) = project(&packages, "github", false);
    assert!(words.starts_with("note: CI does not know what to install gpuemu from"), "{words}");
    let workflow = yaml::read(&github.path(WORKFLOW));
    for (event, name) in [(pull_request(7), "quick"), (schedule(), "thorough")] {
        let caches = TempDir::new().unwrap();
        let mut job = GithubJob::new(&github, event).with_packages(&packages).with_caches(caches.path());
        job.remove_gpuemu();
        let run = job.run_workflow_job(&workflow, name).unwrap();
        assert!(run.failed && run.status() == 2, "{name}: {}", run.log);
        assert!(run.log.contains("set the input 'package' to the path of a wheel in the repository"), "{}", run.log);
        assert_eq!(ran(&run).0.last(), Some(&"Pass or fail"));
    }
    let (gitlab, words) = project(&packages, "gitlab", false);
    assert!(words.contains("until `GPUEMU_PACKAGE` is set in .gitlab-ci.yml"), "{words}");
    let pipeline = Pipeline::new(&gitlab.path(PIPELINE), &[("CI_PIPELINE_SOURCE", "schedule")]);
    let run = pipeline.run("gpuemu-thorough", "sh", Image::Python(&packages), gitlab.folder.path(), &[]);
    assert_eq!(run.status, 2, "{}", run.log);
    assert!(run.log.contains("set it to the path of a wheel in the repository"), "{}", run.log);
}
