//! What `gpuemu init --ci` writes, and the pipelines that come of it.

use std::collections::BTreeSet;

use serde_json::{Value, json};
use snapbox::str;
use tempfile::TempDir;

use super::fixture::{Project, text_of};
use super::github_api::GithubApi;
use super::github_job::{GithubJob, pull_request, schedule};
use super::gitlab_job::Pipeline;
use super::programs::missing;
use super::{projects, yaml};

const WORKFLOW: &str = ".github/workflows/gpuemu.yml";

const ACTION: [&str; 6] = ["action.yml", "comment.sh", "finish.sh", "install.sh", "messages.sh", "run.sh"];

fn workflow(project: &Project) -> Value {
    project.gpuemu(&["init", "--ci", "github"]).assert().success();
    yaml::read(&project.path(WORKFLOW))
}

#[test]
fn a_new_project_gets_its_pipeline_with_it() {
    let project = Project::without_python();
    project.gpuemu(&["init", "--ci", "github"]).assert().success().stderr_eq("").stdout_eq(str![[r#"
wrote gpuemu.toml
wrote .github/workflows/gpuemu.yml
wrote .github/actions/gpuemu/action.yml
wrote .github/actions/gpuemu/messages.sh
wrote .github/actions/gpuemu/install.sh
wrote .github/actions/gpuemu/run.sh
wrote .github/actions/gpuemu/comment.sh
wrote .github/actions/gpuemu/finish.sh

next:
  edit gpuemu.toml  add an [[ops]] entry that names your function; it has an example
  gpuemu test       try cases of every op

"#]]);
    // The action is the one of this repository, whole.
    let own = yaml::integration("github-action");
    let there: BTreeSet<String> = std::fs::read_dir(&own)
        .unwrap()
        .map(|entry| entry.unwrap().file_name().into_string().unwrap())
        .filter(|name| !name.ends_with(".md"))
        .collect();
    assert_eq!(there, ACTION.map(String::from).into());
    for name in ACTION {
        let written = project.read(&format!(".github/actions/gpuemu/{name}"));
        assert_eq!(written, std::fs::read_to_string(own.join(name)).unwrap());
    }
}

#[test]
fn a_project_that_is_there_gets_the_pipeline_alone() {
    let project = projects::passing();
    project.replace("gpuemu.toml", "framework = \"numpy\"", "framework = \"jax\"");
    let before = project.read("gpuemu.toml");
    project.gpuemu(&["init", "--ci", "gitlab"]).assert().success().stderr_eq("").stdout_eq(str![[r#"
wrote .gitlab-ci.yml

next:
  gpuemu ci --quick  what a change will be checked by
  git add --all      commit the new files: every change is checked from then on

"#]]);
    let pipeline = yaml::read(&project.path(".gitlab-ci.yml"));
    let variables = &pipeline["variables"];
    assert_eq!(variables["GPUEMU_VERSION"], env!("CARGO_PKG_VERSION"));
    assert_eq!((&variables["GPUEMU_PACKAGES"], &variables["GPUEMU_DIRECTORY"]), (&"jax".into(), &".".into()));
    // Apart from these values it is the template.
    let mut template = yaml::read(&yaml::integration("gitlab/gpuemu.gitlab-ci.yml"));
    for name in ["GPUEMU_VERSION", "GPUEMU_PACKAGES", "GPUEMU_DIRECTORY"] {
        template["variables"][name] = variables[name].clone();
    }
    assert_eq!(pipeline, template);
    // What is there is written over only where that is wanted, and then only the pipeline is.
    project.write(".gitlab-ci.yml", "mine\n");
    let refused = project.gpuemu(&["init", "--ci", "gitlab"]).assert().code(2).stdout_eq("");
    let words = text_of(&refused.get_output().stderr);
    assert!(words.contains(".gitlab-ci.yml is already there; nothing was written"), "{words}");
    assert!(words.contains("include: { local: gpuemu.gitlab-ci.yml }"), "{words}");
    assert_eq!(project.read(".gitlab-ci.yml"), "mine\n");
    project.gpuemu(&["init", "--ci", "gitlab", "--force"]).assert().success();
    assert_eq!((project.read("gpuemu.toml"), yaml::read(&project.path(".gitlab-ci.yml"))), (before, template));
    project.write(&format!(".github/actions/gpuemu/{}", ACTION[0]), "mine\n");
    let refused = project.gpuemu(&["init", "--ci", "github"]).assert().code(2).stdout_eq("");
    assert!(text_of(&refused.get_output().stderr).contains("action.yml is already there; nothing was written"));
    assert!(!project.path(WORKFLOW).exists());
    // With anything else that is asked for, the project is new, and nothing of the old one is lost.
    let refused = project.gpuemu(&["init", "--ci", "github", "--name", "n"]).assert().code(2);
    assert!(text_of(&refused.get_output().stderr).contains("gpuemu.toml"));
    let refused = project.gpuemu(&["init", "--ci", "jenkins"]).assert().code(2);
    assert!(text_of(&refused.get_output().stderr).contains("[possible values: github, gitlab]"));
    project.write("gpuemu.toml", "[project\n");
    project.gpuemu(&["init", "--ci", "github", "--force"]).assert().code(2);
}

#[test]
fn in_a_repository_the_pipeline_is_written_where_it_is_looked_for() {
    let project = Project::without_python();
    std::fs::create_dir(project.path(".git")).unwrap();
    project.gpuemu(&["init", "kernels/my softmax", "--with-examples", "--ci", "github"]).assert().success();
    let text = project.stdout(&["init", "kernels/my softmax", "--ci", "gitlab"], 0);
    assert!(text.starts_with("wrote .gitlab-ci.yml\n") && text.contains("  cd 'kernels/my softmax'\n"), "{text}");
    let workflow = yaml::read(&project.path(WORKFLOW));
    let folders = yaml::texts(&workflow).into_iter().filter(|(key, _)| key == "working-directory");
    assert_eq!(folders.map(|(_, text)| text).collect::<Vec<_>>(), ["kernels/my softmax"; 4]);
    let variables = &yaml::read(&project.path(".gitlab-ci.yml"))["variables"];
    assert_eq!(variables["GPUEMU_DIRECTORY"], "kernels/my softmax");
    assert!(project.path("kernels/my softmax/gpuemu.toml").is_file());
    assert!(!project.path("kernels/my softmax/.github").exists());
}

#[test]
fn the_workflow_asks_for_no_more_than_it_needs_and_is_one_of_github() {
    let workflow = workflow(&projects::passing());
    assert_eq!(workflow["permissions"], json!({ "contents": "read" }));
    let quick = json!({ "contents": "read", "pull-requests": "write", "security-events": "write" });
    assert_eq!(workflow["jobs"]["quick"]["permissions"], quick);
    assert_eq!(workflow["jobs"]["thorough"]["permissions"], Value::Null);
    let events: Vec<&String> = workflow["on"].as_object().unwrap().keys().collect();
    // Not pull_request_target: it would run a stranger's kernels with a token that may write.
    assert_eq!(events, ["pull_request", "schedule", "workflow_dispatch"]);
    for (name, job) in workflow["jobs"].as_object().unwrap() {
        assert!(job["timeout-minutes"].as_u64().is_some(), "{name}");
        for step in job["steps"].as_array().unwrap() {
            let run = step["run"].as_str().unwrap_or_default();
            assert!(!run.contains("${{"), "{run}");
            let uses = step["uses"].as_str().unwrap_or("./");
            assert!(uses.starts_with("./") || uses.contains("@v"), "{uses}");
        }
    }
}

#[test]
fn each_event_runs_its_job_alone() {
    let project = projects::passing();
    let workflow = workflow(&project);
    let mut by_hand = schedule();
    by_hand["event_name"] = "workflow_dispatch".into();
    for (github, expected) in [(pull_request(7), "quick"), (schedule(), "thorough"), (by_hand, "thorough")] {
        let context = super::expression::Context { values: json!({ "github": github }), failed: false };
        let jobs = workflow["jobs"].as_object().unwrap().iter();
        let runs: Vec<&String> = jobs.filter(|(_, job)| context.runs(job.get("if"))).map(|(name, _)| name).collect();
        assert_eq!(runs, [expected]);
    }
}

#[test]
fn a_good_night_is_the_baseline_of_the_pull_requests_after_it() {
    if missing(&["curl", "jq"]) {
        return;
    }
    let project = projects::tolerant();
    let workflow = workflow(&project);
    let caches = TempDir::new().unwrap();
    let api = GithubApi::start(Vec::new(), false);
    let job = |github: Value| {
        let mut job = GithubJob::new(&project, github).with_caches(caches.path());
        job.variables.insert("GITHUB_API_URL".to_string(), api.url.clone());
        job
    };
    // Before the first night there is nothing to compare with.
    let first = job(pull_request(7)).run_workflow_job(&workflow, "quick").unwrap();
    assert!(!first.failed, "{}", first.log);
    assert!(first.log.contains("there is no baseline"), "{}", first.log);
    assert!(first.given_to("github/codeql-action/upload-sarif").is_some());
    assert_eq!(api.comments().len(), 1);
    let night = job(schedule()).run_workflow_job(&workflow, "thorough").unwrap();
    assert!(!night.failed, "{}", night.log);
    assert_eq!(night.given_to("actions/cache/save").unwrap()["key"], "gpuemu-baseline-1001");
    let same = job(pull_request(7)).run_workflow_job(&workflow, "quick").unwrap();
    assert!(!same.failed && !same.log.contains("there is no baseline"), "{}", same.log);
    projects::worsen(&project);
    let regressed = job(pull_request(7)).run_workflow_job(&workflow, "quick").unwrap();
    assert!(regressed.failed, "{}", regressed.log);
    assert_eq!(api.comments().len(), 1, "one comment, kept up to date");
    assert!(job(pull_request(7)).run_workflow_job(&workflow, "thorough").is_none());
    // A private repository has no code scanning by itself.
    let mut private = pull_request(7);
    private["event"]["repository"]["private"] = true.into();
    let run = job(private).run_workflow_job(&workflow, "quick").unwrap();
    assert!(run.given_to("github/codeql-action/upload-sarif").is_none());
}

#[test]
fn the_workflow_of_the_guide_tells_right_from_wrong() {
    if missing(&["jq"]) {
        return;
    }
    let guide = std::fs::read_to_string(concat!(env!("CARGO_MANIFEST_DIR"), "/../../docs/guides/ci.md")).unwrap();
    let text = guide.split("```yaml\n").find(|block| block.starts_with("name: kernels\n")).unwrap();
    let shown: Value = serde_saphyr::from_str(text.split("```").next().unwrap()).unwrap();
    for (project, fails) in [(projects::passing(), false), (projects::failing(), true)] {
        // The action comes with the pipeline that is written.
        let _ = workflow(&project);
        let run = GithubJob::new(&project, pull_request(7)).run_workflow_job(&shown, "gpuemu").unwrap();
        assert_eq!(run.failed, fails, "{}", run.log);
        assert!(run.given_to("actions/upload-artifact").is_some(), "{}", run.log);
    }
}

#[test]
fn a_bad_night_is_no_baseline() {
    if missing(&["jq"]) {
        return;
    }
    let project = projects::failing();
    let workflow = workflow(&project);
    let caches = TempDir::new().unwrap();
    let mut job = GithubJob::new(&project, schedule()).with_caches(caches.path());
    let night = job.run_workflow_job(&workflow, "thorough").unwrap();
    assert!(night.failed, "{}", night.log);
    assert!(night.given_to("actions/cache/save").is_none());
    assert!(night.given_to("actions/upload-artifact").is_some());
}

#[test]
fn the_pipeline_of_gitlab_that_was_written_runs() {
    let project = projects::passing();
    project.gpuemu(&["init", "--ci", "gitlab"]).assert().success();
    let pipeline = Pipeline::new(&project.path(".gitlab-ci.yml"), &[("CI_PIPELINE_SOURCE", "merge_request_event")]);
    assert_eq!(pipeline.jobs(), ["gpuemu-quick"]);
    let run = pipeline.run("gpuemu-quick", "sh", project.folder.path(), &[]);
    assert_eq!(run.status, 0, "{}", run.log);
}
