//! `gpuemu report --from`: one run in every format, without running anything again.

use super::corpus_run::{report, written};
use crate::fixture::kernels::gpuemu;
use crate::fixture::{Project, text_of};

#[test]
fn a_report_is_shown_as_the_run_showed_it() {
    let project = Project::without_python();
    project.write("report.json", written());
    for format in ["text", "json", "junit", "sarif", "markdown"] {
        let file = format!("out.{format}");
        let to_file = ["report", "--from", "report.json", "--format", format, "--output", &file];
        gpuemu(&project, &to_file).assert().code(1).stdout_eq("");
        let to_stdout = gpuemu(&project, &to_file[..5]).assert().code(1);
        assert_eq!(text_of(&to_stdout.get_output().stdout), project.read(&file), "{format}");
    }
    assert_eq!(project.read("out.json"), written());
    // Neither a project nor a store nor a daemon was needed, and none was made.
    assert_eq!(std::fs::read_dir(project.home.path()).unwrap().count(), 0);
}

#[test]
fn what_is_no_report_is_refused() {
    let project = Project::without_python();
    let refused = |text: &str, words: &str| {
        project.write("report.json", text);
        let output = gpuemu(&project, &["report", "--from", "report.json", "--format", "sarif"]).assert().code(2);
        let said = text_of(&output.get_output().stderr);
        assert!(said.contains(words) && output.get_output().stdout.is_empty(), "{said}");
    };
    refused("{}", "report.json is not a report of gpuemu");
    let mut later = report();
    later["version"] = 99.into();
    refused(&later.to_string(), "a report of version 99");
    // A report that says passed over failed ops is nobody's pass.
    let mut forged = report();
    forged["passed"] = true.into();
    refused(&forged.to_string(), "contradicts itself");
    let output = gpuemu(&project, &["report", "--from", "none.json"]).assert().code(2);
    assert!(text_of(&output.get_output().stderr).contains("none.json is not a report of gpuemu"));
    gpuemu(&project, &["report", "--from", "report.json", "--merge", "report.json"]).assert().code(2);
}

#[test]
fn nothing_to_do_is_a_pass_in_every_format() {
    let mut report = report();
    report["mode"] = "changed".into();
    report["passed"] = true.into();
    report["ops"] = serde_json::json!([]);
    report["kernels"] = serde_json::json!([]);
    for format in ["text", "json", "junit", "sarif", "markdown"] {
        assert!(!super::corpus_run::rewritten(&report, format).is_empty());
    }
    // Without a case, a run that had ops to try is none.
    report["mode"] = "quick".into();
    let project = Project::without_python();
    report["passed"] = false.into();
    project.write("report.json", &report.to_string());
    let output = gpuemu(&project, &["report", "--from", "report.json", "--format", "markdown"]).assert().code(2);
    let comment = text_of(&output.get_output().stdout);
    assert!(comment.contains("could not be judged.**") && comment.contains("no case was run"), "{comment}");
    let junit = gpuemu(&project, &["report", "--from", "report.json", "--format", "junit"]).assert().code(2);
    let junit = text_of(&junit.get_output().stdout);
    assert!(junit.contains("errors=\"1\"") && junit.contains("no case was run"), "{junit}");
}
