//! What `gpuemu init --ci` writes, and the pipelines that come of it.

use std::collections::BTreeSet;

use serde_json::{Value, json};
use snapbox::str;
use tempfile::TempDir;

use super::fixture::{Project, text_of};
use super::github_api::GithubApi;
use super::github_job::{GithubJob, pull_request, schedule};
use super::packages::{Packages, VERSION};
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
    let written = project.gpuemu(&["init", "--ci", "github"]).assert().success();
    // This gpuemu was built here, and is at no address.
    let written = written.stderr_eq(str![[r#"
note: CI does not know what to install gpuemu from: until `package` is set in .github/workflows/gpuemu.yml, its jobs end with status 2
hint: copy a wheel into the repository and write the files again with --package WHEEL --force, or give --package an address

"#]]);
    written.stdout_eq(str![[r#"
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
    project.gpuemu(&["--quiet", "init", "--ci", "gitlab"]).assert().success().stderr_eq("").stdout_eq(str![[r#"
wrote .gitlab-ci.yml

next:
  gpuemu ci --quick  what a change will be checked by
  git add --all      commit the new files: every change is checked from then on

"#]]);
    let pipeline = yaml::read(&project.path(".gitlab-ci.yml"));
    let variables = &pipeline["variables"];
    assert_eq!(variables["GPUEMU_PACKAGE"], "");
    assert_eq!((&variables["GPUEMU_PACKAGES"], &variables["GPUEMU_DIRECTORY"]), (&"jax".into(), &".".into()));
    // Apart from these values it is the template.
    let mut template = yaml::read(&yaml::integration("gitlab/gpuemu.gitlab-ci.yml"));
    for name in ["GPUEMU_PACKAGE", "GPUEMU_PACKAGES", "GPUEMU_DIRECTORY"] {
        template["variables"][name] = variables[name].clone();
    }
    assert_eq!(pipeline, template);
    // What is there is written over only where that is wanted, and then only the pipeline is.
    project.write(".gitlab-ci.yml", "mine\n");
    let refused = project.gpuemu(&["init", "--ci", "gitlab"]).assert().code(2).stdout_eq("");
    let words = text_of(&refused.get_output().stderr);
    assert!(words.contains(".gitlab-ci.yml already exists; nothing was written"), "{words}");
    assert!(words.contains("include: { local: gpuemu.gitlab-ci.yml }"), "{words}");
    assert_eq!(project.read(".gitlab-ci.yml"), "mine\n");
    project.gpuemu(&["init", "--ci", "gitlab", "--force"]).assert().success();
    assert_eq!((project.read("gpuemu.toml"), yaml::read(&project.path(".gitlab-ci.yml"))), (before, template));
    project.write(&format!(".github/actions/gpuemu/{}", ACTION[0]), "mine\n");
    let refused = project.gpuemu(&["init", "--ci", "github"]).assert().code(2).stdout_eq("");
    assert!(text_of(&refused.get_output().stderr).contains("action.yml already exists; nothing was written"));
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
    let Some(packages) = Packages::shared() else { return };
    let project = projects::tolerant();
    let workflow = workflow(&project);
    let caches = TempDir::new().unwrap();
    let api = GithubApi::start(Vec::new(), false);
    let job = |github: Value| {
        let mut job = GithubJob::new(&project, github).with_packages(&packages).with_caches(caches.path());
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
    let Some(packages) = Packages::shared() else { return };
    let guide = std::fs::read_to_string(concat!(env!("CARGO_MANIFEST_DIR"), "/../../docs/guides/ci.md")).unwrap();
    let text = guide
        .split("```yaml\n")
        .find(|block| block.starts_with("name: kernels\n"))
        .unwrap()
        .split("```")
        .next()
        .unwrap();
    // The guide names the wheel of the usual machine.
    let named = format!("wheels/gpuemu-{VERSION}-cp310-abi3-linux_x86_64.whl");
    let wheel = format!("wheels/{}", packages.wheel.file_name().unwrap().to_str().unwrap());
    assert_eq!(text.matches(&named).count(), 1);
    let shown: Value = serde_saphyr::from_str(&text.replace(&named, &wheel)).unwrap();
    for (project, fails) in [(projects::passing(), false), (projects::failing(), true)] {
        // The action comes with the pipeline that is written.
        let _ = workflow(&project);
        std::fs::create_dir(project.path("wheels")).unwrap();
        std::fs::copy(&packages.wheel, project.path(&wheel)).unwrap();
        let mut job = GithubJob::new(&project, pull_request(7)).with_packages(&packages);
        job.remove_gpuemu();
        let run = job.run_workflow_job(&shown, "gpuemu").unwrap();
        assert_eq!(run.failed, fails, "{}", run.log);
        assert!(run.given_to("actions/upload-artifact").is_some(), "{}", run.log);
    }
}

#[test]
fn a_bad_night_is_no_baseline() {
    if missing(&["jq"]) {
        return;
    }
    let Some(packages) = Packages::shared() else { return };
    let project = projects::failing();
    let workflow = workflow(&project);
    let caches = TempDir::new().unwrap();
    let mut job = GithubJob::new(&project, schedule()).with_packages(&packages).with_caches(caches.path());
    let night = job.run_workflow_job(&workflow, "thorough").unwrap();
    assert!(night.failed, "{}", night.log);
    assert!(night.given_to("actions/cache/save").is_none());
    assert!(night.given_to("actions/upload-artifact").is_some());
}

#[test]
fn a_package_is_written_into_the_pipeline_as_the_user_names_it() {
    let project = Project::without_python();
    std::fs::create_dir(project.path(".git")).unwrap();
    let wheel = format!("gpuemu-{VERSION}-cp310-abi3-linux_x86_64.whl");
    project.write(&format!("wheels/{wheel}"), "");
    let init = |system: &str, package: &str| {
        let arguments = ["init", "kernels", "--ci", system, "--package", package, "--force"];
        project.gpuemu(&arguments)
    };
    let address = "git+https://example.org/owner/gpuemu@v1";
    let (inside, above) = (format!("wheels/{wheel}"), format!("kernels/../wheels/{wheel}"));
    for (given, written) in [(inside.as_str(), inside.as_str()), (&above, &inside), (address, address)] {
        init("github", given).assert().success().stderr_eq("");
        let workflow = yaml::read(&project.path(WORKFLOW));
        let packages = yaml::texts(&workflow).into_iter().filter(|(key, _)| key == "package");
        assert_eq!(packages.map(|(_, text)| text).collect::<Vec<_>>(), [written; 2]);
        init("gitlab", given).assert().success().stderr_eq("");
        assert_eq!(yaml::read(&project.path(".gitlab-ci.yml"))["variables"]["GPUEMU_PACKAGE"], written);
    }
    init("github", "gpuemu==0.1.0").assert().code(2).stdout_eq("").stderr_eq(str![[r#"
error: 'gpuemu==0.1.0' is neither a wheel nor an address, and in the public package index the name gpuemu belongs to another project
hint: give the path of a wheel that lies in the repository, or an address such as git+https://HOST/REPOSITORY@REVISION or https://HOST/gpuemu-VERSION-....whl

"#]]);
    let elsewhere = TempDir::new().unwrap();
    let outside = elsewhere.path().join(&wheel);
    std::fs::write(&outside, "").unwrap();
    let refused = init("gitlab", outside.to_str().unwrap()).assert().code(2).stdout_eq("");
    let words = text_of(&refused.get_output().stderr);
    assert!(words.contains("lies outside of the repository") && words.contains("copy it into"), "{words}");
    // It is for CI alone.
    let refused = project.gpuemu(&["init", "other", "--package", address]).assert().code(2);
    assert!(text_of(&refused.get_output().stderr).contains("--ci <SYSTEM>"));
}

#[test]
fn the_address_that_gpuemu_was_installed_from_is_what_ci_installs() {
    let project = Project::without_python();
    let machine = TempDir::new().unwrap();
    let program = machine.path().join("bin/gpuemu");
    let description = machine.path().join(format!("lib/python3.12/site-packages/gpuemu-{VERSION}.dist-info"));
    std::fs::create_dir_all(&description).unwrap();
    std::fs::create_dir_all(program.parent().unwrap()).unwrap();
    std::fs::copy(snapbox::cmd::cargo_bin!("gpuemu"), &program).unwrap();
    std::fs::write(description.join("RECORD"), "../../../bin/gpuemu,,\n").unwrap();
    let record = |url: &str| {
        let record = json!({ "url": url, "vcs_info": { "vcs": "git", "commit_id": "c0de" } });
        std::fs::write(description.join("direct_url.json"), record.to_string()).unwrap();
        let init = project.gpuemu_at(&program, &["init", "--ci", "gitlab", "--force"]).assert().success();
        let package = yaml::read(&project.path(".gitlab-ci.yml"))["variables"]["GPUEMU_PACKAGE"].clone();
        (package, text_of(&init.get_output().stderr))
    };
    let (package, words) = record("https://example.org/owner/gpuemu");
    assert_eq!(package, "git+https://example.org/owner/gpuemu@c0de");
    assert!(words.starts_with("note: CI installs gpuemu from git+https://example.org/owner/gpuemu@c0de, "), "{words}");
    for mine in ["file:///home/me/gpuemu", "https://localhost/gpuemu", "https://me:secret@example.org/gpuemu"] {
        let (package, words) = record(mine);
        assert_eq!(package, "", "{mine}");
        assert!(words.starts_with("note: CI does not know") && words.contains("GPUEMU_PACKAGE"), "{words}");
    }
}
