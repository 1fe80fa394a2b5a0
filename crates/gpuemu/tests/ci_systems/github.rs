//! The GitHub action: what it makes of inputs, and how it ends.

use std::collections::BTreeSet;

use serde_json::Value;

use super::expression::Context;
use super::fixture::Project;
use super::github_job::{GithubJob, StepsRun, pull_request, schedule};
use super::programs::missing;
use super::{projects, yaml};

const REPORTS: [(&str, &str); 5] = [
    ("report-json", "report.json"),
    ("report-junit", "report.xml"),
    ("report-sarif", "report.sarif"),
    ("report-markdown", "report.md"),
    ("report-html", "report.html"),
];

/// What stands behind a word in expressions: of `inputs.` the names of inputs.
fn named_after(text: &str, word: &str) -> BTreeSet<String> {
    let part_of_name = |letter: char| letter.is_ascii_alphanumeric() || "_-".contains(letter);
    let expressions = text.split("${{").skip(1).map(|rest| rest.split("}}").next().unwrap());
    let names = expressions.flat_map(|expression| expression.split(word).skip(1));
    names.map(|rest| rest.chars().take_while(|letter| part_of_name(*letter)).collect()).collect()
}

fn keys(value: &Value) -> BTreeSet<String> {
    value.as_object().unwrap().keys().cloned().collect()
}

#[test]
fn every_input_is_used_and_every_expression_names_what_there_is() {
    let folder = yaml::integration("github-action");
    let action = yaml::read(&folder.join("action.yml"));
    let all: String = yaml::texts(&action).into_iter().map(|(_, text)| text + "\n").collect();
    assert_eq!(named_after(&all, "inputs."), keys(&action["inputs"]));
    let steps = action["runs"]["steps"].as_array().unwrap();
    let ids: BTreeSet<String> = steps.iter().filter_map(|step| Some(step["id"].as_str()?.to_string())).collect();
    assert_eq!(named_after(&all, "steps."), ids);
    // Every output that is read is written by the script, and what is read of its result is an output of the action.
    let script = std::fs::read_to_string(folder.join("run.sh")).unwrap();
    let written = |name: &String| {
        ["output ", "render junit ", "render sarif ", "render markdown ", "render html "]
            .iter()
            .any(|call| script.contains(&format!("{call}{name} ")))
    };
    let read = named_after(&all, "outputs.");
    assert!(read.iter().all(written), "{read:?}");
    assert!(keys(&action["outputs"]).is_subset(&read));
    for step in steps.iter().filter(|step| step.get("run").is_some()) {
        // Values reach scripts by the environment: in the text of a script they would be run.
        assert!(!step["run"].as_str().unwrap().contains("${{"), "{step}");
        assert_eq!(step["shell"], "bash");
        let script = step["run"].as_str().unwrap().split('/').nth(1).unwrap().trim_end_matches('"');
        let script = std::fs::read_to_string(folder.join(script)).unwrap();
        for name in keys(&step["env"]) {
            assert!(
                script.contains(&format!("${name}")) || script.contains(&format!("${{{name}")),
                "{name} is not read"
            );
        }
    }
}

#[test]
fn a_project_that_passes_ends_with_0_and_leaves_every_report() {
    if missing(&["jq"]) {
        return;
    }
    let project = projects::passing();
    let mut job = GithubJob::new(&project, schedule());
    let run = job.run_action(&[("quick", "true"), ("upload-sarif", "true"), ("comment", "true")]);
    assert_eq!((run.status(), run.outputs["exit-status"].as_str()), (0, "0"), "{}", run.log);
    // The op and the kernel that it is made of.
    assert_eq!((run.outputs["passed"].as_str(), run.outputs["failed"].as_str()), ("2", "0"));
    for (output, file) in REPORTS {
        assert!(run.outputs[output].ends_with(file), "{:?}", run.outputs);
        assert!(std::fs::metadata(&run.outputs[output]).unwrap().len() > 0);
        assert!(job.machine.path().join("artifacts/gpuemu-report").join(file).is_file(), "{file}");
    }
    let report: Value = serde_json::from_str(&std::fs::read_to_string(&run.outputs["report-json"]).unwrap()).unwrap();
    assert_eq!((&report["mode"], &report["passed"]), (&"quick".into(), &true.into()));
    assert!(run.given_to("github/codeql-action/upload-sarif").is_some());
    assert!(run.log.contains("PASS   softmax"), "{}", run.log);
    let summary = std::fs::read_to_string(job.machine.path().join("summary.md")).unwrap();
    assert_eq!(summary.matches("gpuemu-report").count(), 1, "written once, by the run: {summary}");
    // There is no pull request to comment on.
    assert!(!run.statuses.iter().any(|(name, _)| name.contains("Comment")), "{:?}", run.statuses);
    let home = job.machine.path().join("home/.gpuemu");
    assert!(home.is_dir() && !home.join("gpuemu.sock").exists(), "a daemon was left behind");
}

#[test]
fn a_project_that_fails_ends_with_1_after_its_reports_were_kept() {
    if missing(&["jq"]) {
        return;
    }
    let project = projects::failing();
    let mut job = GithubJob::new(&project, schedule());
    let run = job.run_action(&[("seed", "1")]);
    assert_eq!((run.status(), run.outputs["exit-status"].as_str()), (1, "1"), "{}", run.log);
    assert_eq!((run.outputs["passed"].as_str(), run.outputs["failed"].as_str()), ("3", "1"));
    for (_, file) in REPORTS {
        assert!(job.machine.path().join("artifacts/gpuemu-report").join(file).is_file(), "{file}");
    }
    assert!(run.log.contains("FAIL   masked") && run.log.contains("::error "), "{}", run.log);
    let failed: Vec<&str> =
        run.statuses.iter().filter(|(_, status)| *status != 0).map(|(name, _)| name.as_str()).collect();
    assert_eq!(failed, ["Pass or fail"]);
}

#[test]
fn what_cannot_be_judged_ends_with_2() {
    let project = projects::passing();
    let refused = |inputs: &[(&str, &str)], words: &str| {
        let mut job = GithubJob::new(&project, schedule());
        let run = job.run_action(inputs);
        assert_eq!((run.failed, run.status()), (true, 2), "{inputs:?}: {}", run.log);
        assert!(run.log.contains(words), "{words}: {}", run.log);
        assert!(run.used.is_empty(), "{:?}", run.used);
        run
    };
    refused(&[("config", "none.toml")], "none.toml");
    refused(&[("quick", "yes")], "::error title=gpuemu::quick is 'yes': give true or false");
    refused(&[("comment", "on")], "comment is 'on'");
    refused(&[("upload-sarif", "1")], "upload-sarif is '1'");
    refused(&[("fail-on-regression", "TRUE")], "fail-on-regression is 'TRUE'");
    refused(&[("baseline", "none.json")], "there is no report none.json");
    refused(&[("shard", "5")], "is no shard");
    refused(&[("python", "no-such-python")], "there is no Python 'no-such-python'");
    refused(&[("merge", "nowhere")], "which is no folder");
    refused(&[("merge", "kernels")], "holds no report.json");
    refused(&[("merge", "kernels"), ("shard", "1/2")], "merge joins reports and runs nothing");
    project.write("gpuemu.toml", "[project\n");
    let run = refused(&[], "gpuemu.toml");
    assert_eq!((run.outputs["exit-status"].as_str(), run.outputs["passed"].as_str()), ("2", ""));
}

#[test]
fn a_gpuemu_that_crashes_or_leaves_no_report_never_passes() {
    if missing(&["jq"]) {
        return;
    }
    let project = projects::passing();
    let with_program = |script: &str, action: &str| -> StepsRun {
        let mut job = GithubJob::new(&project, schedule());
        job.replace_gpuemu(&format!(
            "case \"$*\" in --version) echo gpuemu 1 ;; *status*) exit 2 ;; {action}) {script} ;; esac"
        ));
        job.run_action(&[])
    };
    let killed = with_program("kill -KILL $$", "*ci*");
    assert_eq!((killed.status(), killed.outputs["exit-status"].as_str()), (137, "137"), "{}", killed.log);
    let silent = with_program("exit 0", "*ci*");
    assert_eq!(silent.status(), 2, "{}", silent.log);
    assert!(silent.log.contains("gpuemu wrote no report"), "{}", silent.log);
    // A report of which not all forms can be made: what there is is kept, and the run is no pass.
    let real = snapbox::cmd::cargo_bin!("gpuemu").display();
    let partial = with_program(&format!("exit 0 ;; *) exec {real} \"$@\""), "*html*");
    assert_eq!((partial.status(), partial.outputs["exit-status"].as_str()), (2, "2"), "{}", partial.log);
    assert!(partial.log.contains("could not be written as html"), "{}", partial.log);
    assert_eq!(partial.outputs["report-html"], "");
    assert!(partial.given_to("actions/upload-artifact").is_some());
}

#[test]
fn inputs_are_never_run_by_the_shell() {
    if missing(&["jq"]) {
        return;
    }
    let hostile = "a b\"'$(touch owned)`touch owned`;touch owned\\";
    for input in ["config", "quick", "seed", "baseline", "shard", "merge", "package", "python"] {
        let project = projects::passing();
        let mut job = GithubJob::new(&project, pull_request(1));
        let run = job.run_action(&[(input, hostile)]);
        assert_eq!(run.status(), 2, "{input}: {}", run.log);
        assert!(!project.path("owned").exists(), "{input}");
    }
    // Names with anything in them work.
    let project = projects::passing();
    let config = "a b\"'$(touch owned);`x`.toml";
    std::fs::rename(project.path("gpuemu.toml"), project.path(config)).unwrap();
    let mut job = GithubJob::new(&project, schedule());
    let run = job.run_action(&[("config", config), ("quick", "true"), ("artifact", "it's $(touch owned)")]);
    assert_eq!(run.status(), 0, "{}", run.log);
    assert!(!project.path("owned").exists());
    assert!(job.machine.path().join("artifacts/it's $(touch owned)/report.json").is_file());
}

#[test]
fn a_line_break_in_an_input_is_no_command_to_the_runner() {
    if missing(&["jq"]) {
        return;
    }
    let project = projects::passing();
    let mut job = GithubJob::new(&project, schedule());
    let run = job.run_action(&[("quick", "x\n::error::not from gpuemu\r100%")]);
    assert!(run.log.contains("quick is 'x%0A::error::not from gpuemu%0D100%25'"), "{}", run.log);
    assert!(!run.log.lines().any(|line| line.starts_with("::error::not")), "{}", run.log);
    let run = job.run_action(&[("quick", "true"), ("artifact", "a\nexit-status=0")]);
    assert!(run.status() == 2 && run.log.contains("artifact has a line break in it"), "{}", run.log);
}

#[test]
fn shards_are_joined_and_only_the_whole_is_published() {
    if missing(&["jq"]) {
        return;
    }
    let project = projects::failing();
    let shards = project.path("shards");
    for shard in ["1/2", "2/2"] {
        let mut job = GithubJob::new(&project, pull_request(1));
        let inputs = [("shard", shard), ("seed", "1"), ("comment", "true"), ("upload-sarif", "true")];
        let run = job.run_action(&inputs);
        assert_eq!(run.status(), 1, "{}", run.log);
        let artifact = format!("gpuemu-report-{}", shard.replace('/', "-of-"));
        assert_eq!(run.given_to("actions/upload-artifact").unwrap()["name"], artifact);
        assert!(run.given_to("github/codeql-action/upload-sarif").is_none());
        assert!(!run.statuses.iter().any(|(name, _)| name.contains("Comment")), "{:?}", run.statuses);
        // As actions/download-artifact does with a pattern.
        std::fs::create_dir_all(&shards).unwrap();
        std::fs::rename(job.machine.path().join("artifacts").join(&artifact), shards.join(&artifact)).unwrap();
    }
    let mut job = GithubJob::new(&project, schedule());
    let merged = job.run_action(&[("merge", "shards"), ("upload-sarif", "true")]);
    assert_eq!(merged.status(), 1, "{}", merged.log);
    assert!(merged.given_to("github/codeql-action/upload-sarif").is_some());
    assert_eq!(merged.given_to("actions/upload-artifact").unwrap()["name"], "gpuemu-report");
    let cases = |run: &StepsRun| {
        let report: Value =
            serde_json::from_str(&std::fs::read_to_string(&run.outputs["report-json"]).unwrap()).unwrap();
        let count =
            |name: &str| report["ops"].as_array().unwrap().iter().map(|op| op[name].as_u64().unwrap()).sum::<u64>();
        (count("cases"), count("failed"))
    };
    let mut job = GithubJob::new(&project, schedule());
    let whole = job.run_action(&[("seed", "1")]);
    assert_eq!(cases(&merged), cases(&whole));
    assert_eq!(merged.outputs["failed"], whole.outputs["failed"]);
    // A shard that is missing is no pass.
    std::fs::remove_dir_all(shards.join("gpuemu-report-1-of-2")).unwrap();
    let mut job = GithubJob::new(&project, schedule());
    let partly = job.run_action(&[("merge", "shards")]);
    assert_eq!(partly.status(), 2, "{}", partly.log);
}

#[test]
fn a_regression_fails_where_that_is_asked_for() {
    if missing(&["jq"]) {
        return;
    }
    let project = projects::tolerant();
    let act = |project: &Project, inputs: &[(&str, &str)]| GithubJob::new(project, schedule()).run_action(inputs);
    let mut job = GithubJob::new(&project, schedule());
    let good = job.run_action(&[("seed", "1")]);
    assert_eq!(good.status(), 0, "{}", good.log);
    std::fs::copy(&good.outputs["report-json"], project.path("my baseline.json")).unwrap();
    let gate = [("quick", "true"), ("baseline", "my baseline.json"), ("fail-on-regression", "true")];
    let same = act(&project, &gate);
    assert_eq!(same.status(), 0, "{}", same.log);
    projects::worsen(&project);
    assert_eq!(act(&project, &gate[..2]).status(), 0);
    let regressed = act(&project, &gate);
    assert_eq!(regressed.status(), 1, "{}", regressed.log);
    // Nothing failed by itself.
    assert_eq!(regressed.outputs["failed"], "0", "{}", regressed.log);
    let without = act(&project, &[("quick", "true"), ("fail-on-regression", "true")]);
    assert_eq!(without.status(), 0, "{}", without.log);
    assert!(without.log.contains("::notice title=gpuemu::there is no baseline"), "{}", without.log);
}

#[test]
fn a_daemon_that_was_started_before_does_the_work() {
    if missing(&["jq"]) {
        return;
    }
    let project = projects::passing();
    let mut job = GithubJob::new(&project, schedule());
    job.variables.insert("GPUEMU_HOME".to_string(), project.home.path().display().to_string());
    project.gpuemu(&["daemon", "start", "--background"]).assert().success();
    let run = job.run_action(&[("quick", "true")]);
    assert_eq!(run.status(), 0, "{}", run.log);
    project.gpuemu(&["daemon", "status"]).assert().success();
}

#[test]
fn an_upload_that_is_refused_fails_the_job_except_on_a_fork() {
    let action = yaml::read(&yaml::integration("github-action/action.yml"));
    let steps = action["runs"]["steps"].as_array().unwrap();
    let upload = steps.iter().find(|step| step["uses"].as_str().is_some_and(|uses| uses.contains("sarif"))).unwrap();
    let may_fail = |github: &Value| {
        let context = Context { values: serde_json::json!({ "github": github }), failed: false };
        context.fill(&upload["continue-on-error"])
    };
    let mut fork = pull_request(7);
    assert_eq!((may_fail(&fork), may_fail(&schedule())), ("false".to_string(), "false".to_string()));
    fork["event"]["pull_request"]["head"]["repo"]["fork"] = true.into();
    assert_eq!(may_fail(&fork), "true");
}
