//! The comment on the pull request: one, kept up to date, and never the reason for a verdict.

use super::fixture::Project;
use super::github_api::{Comment, GithubApi};
use super::github_job::{GithubJob, StepsRun, pull_request};
use super::programs::missing;
use super::projects;

const MARKER: &str = "<!-- gpuemu-report -->\n";

fn comment_on(project: &Project, api: &GithubApi, inputs: &[(&str, &str)]) -> StepsRun {
    let mut job = GithubJob::new(project, pull_request(7));
    job.variables.insert("GITHUB_API_URL".to_string(), api.url.clone());
    let all = [&[("comment", "true"), ("quick", "true"), ("seed", "1")], inputs].concat();
    job.run_action(&all)
}

#[test]
fn the_first_run_posts_a_comment_and_the_next_ones_bring_it_up_to_date() {
    if missing(&["curl", "jq"]) {
        return;
    }
    let project = projects::passing();
    let others = (1..=250).map(|id| Comment { id, body: format!("{id}: I quote {MARKER}") }).collect::<Vec<_>>();
    let api = GithubApi::start(others.clone(), false);
    let first = comment_on(&project, &api, &[]);
    assert_eq!(first.status(), 0, "{}", first.log);
    assert!(first.log.contains("the report is on the pull request: https://github.com/"), "{}", first.log);
    assert_eq!(api.methods(), ["GET", "GET", "GET", "POST"], "every page is looked at");
    let comments = api.comments();
    assert_eq!((comments.len(), &comments[..250]), (251, &others[..]));
    assert!(comments[250].body.starts_with(MARKER), "{}", comments[250].body);
    assert!(comments[250].body.contains("softmax"), "{}", comments[250].body);
    // It is found although others came later, on a page before theirs.
    let later = (1000..1100).map(|id| Comment { id, body: "later".to_string() });
    api.served.lock().unwrap().comments.extend(later);
    projects::worsen(&project);
    let second = comment_on(&project, &api, &[]);
    assert_eq!(second.status(), 1, "a comment changes nothing about the verdict: {}", second.log);
    assert_eq!(api.methods(), ["GET", "GET", "GET", "PATCH"]);
    let now = api.comments();
    assert_eq!((now.len(), now[250].id), (351, comments[250].id));
    assert!(now[250].body.starts_with(MARKER) && now[250].body != comments[250].body, "{}", now[250].body);
    // Another project of the same repository has a comment of its own.
    assert_eq!(comment_on(&project, &api, &[("artifact", "other")]).status(), 1);
    assert_eq!(api.methods(), ["GET", "GET", "GET", "GET", "POST"]);
    assert_eq!(api.comments().len(), 352);
}

#[test]
fn who_may_not_write_is_warned_and_gets_the_verdict() {
    if missing(&["curl", "jq"]) {
        return;
    }
    for (project, status) in [(projects::passing(), 0), (projects::failing(), 1)] {
        let api = GithubApi::start(Vec::new(), true);
        let run = comment_on(&project, &api, &[]);
        assert_eq!(run.status(), status, "{}", run.log);
        assert_eq!(api.methods(), ["GET", "POST"]);
        assert!(run.log.contains("::warning title=gpuemu::the report was not posted"), "{}", run.log);
        assert!(run.log.contains("403 Resource not accessible by integration"), "{}", run.log);
    }
    let api = GithubApi::start(Vec::new(), false);
    let run = comment_on(&projects::passing(), &api, &[("token", "of somebody else")]);
    assert_eq!(run.status(), 0, "{}", run.log);
    assert!(run.log.contains("401 Bad credentials") && !run.log.contains("somebody else"), "{}", run.log);
    // Nobody answers at all.
    let project = projects::passing();
    let mut job = GithubJob::new(&project, pull_request(7));
    job.variables.insert("GITHUB_API_URL".to_string(), "http://127.0.0.1:9".to_string());
    let run = job.run_action(&[("comment", "true"), ("quick", "true")]);
    assert_eq!(run.status(), 0, "{}", run.log);
    assert!(run.log.contains("::warning title=gpuemu::the report was not posted"), "{}", run.log);
}

#[test]
fn a_report_that_is_too_long_is_cut() {
    if missing(&["curl", "jq"]) {
        return;
    }
    let api = GithubApi::start(Vec::new(), false);
    let folder = tempfile::TempDir::new().unwrap();
    let report = folder.path().join("report.md");
    std::fs::write(&report, MARKER.to_string() + &"ä".repeat(70_000)).unwrap();
    let post = |report: &std::path::Path| {
        std::process::Command::new("bash")
            .arg(super::yaml::integration("github-action/comment.sh"))
            .env("REPORT_MARKDOWN", report)
            .envs([("PULL_REQUEST", "7"), ("COMMENT_NAME", "c"), ("GITHUB_TOKEN", "the-token")])
            .envs([("GITHUB_API_URL", api.url.as_str()), ("GITHUB_REPOSITORY", "owner/kernels")])
            .output()
            .unwrap()
    };
    assert!(post(&report).status.success());
    assert!(post(&report).status.success());
    assert_eq!(api.methods(), ["GET", "POST", "GET", "PATCH"]);
    let body = &api.comments()[0].body;
    assert!(body.contains("The rest is in the artifact") && body.chars().count() < 65_536, "{}", body.len());
    // What is no report is not posted, and no pass either.
    std::fs::write(&report, "something else").unwrap();
    assert_eq!(post(&report).status.code(), Some(2));
    assert_eq!(api.methods(), Vec::<String>::new());
}
