//! What a workflow of GitHub is told, beside the result.

use super::corpus_run::corpus_project;
use crate::fixture::kernels::gpuemu;
use crate::fixture::text_of;

#[test]
fn a_workflow_gets_annotations_and_a_summary_and_stdout_stays_the_result() {
    let project = corpus_project(&["relu_one_more"]);
    let ci = ["--no-daemon", "ci", "--seed", "7", "--iterations", "3", "--format", "json"];
    let in_workflow = |arguments: &[&str]| {
        let command = gpuemu(&project, arguments).env("GITHUB_ACTIONS", "true");
        command.env("GITHUB_STEP_SUMMARY", project.path("summary.md")).env("GITHUB_WORKSPACE", project.folder.path())
    };
    let output = in_workflow(&ci).assert().code(1);
    let (result, said) = (text_of(&output.get_output().stdout), text_of(&output.get_output().stderr));
    let report: serde_json::Value = serde_json::from_str(&result).unwrap();
    assert_eq!(report["passed"], false);
    let annotation = said.lines().find(|line| line.starts_with("::error ")).unwrap();
    assert!(annotation.starts_with("::error file=cuda/ptx/relu_elements_one_more.ptx,line="), "{annotation}");
    assert!(annotation.contains(",title=gpuemu relu_one_more%3A failed::out_of_bounds in float32: "), "{annotation}");
    assert!(annotation.contains("%0Agpuemu reproduce "), "{annotation}");
    let summary = project.read("summary.md");
    assert!(
        summary.starts_with("<!-- gpuemu-report -->\n") && summary.contains("| FAIL | `relu_one_more` |"),
        "{summary}"
    );
    // A second run adds to the summary; the same report in another format is no second run.
    in_workflow(&ci).assert().code(1);
    let twice = project.read("summary.md");
    assert_eq!(twice.matches("<!-- gpuemu-report -->").count(), 2);
    project.write("report.json", &result);
    let from = in_workflow(&["report", "--from", "report.json", "--format", "sarif"]).assert().code(1);
    assert_eq!(text_of(&from.get_output().stderr), "");
    assert_eq!(project.read("summary.md"), twice);
    // Elsewhere nobody is told.
    let output = gpuemu(&project, &ci).env("GITHUB_STEP_SUMMARY", project.path("other.md")).assert().code(1);
    assert!(!text_of(&output.get_output().stderr).contains("::error"));
    assert!(!project.path("other.md").exists());
    // A summary that cannot be written changes nothing of the result.
    let output = gpuemu(&project, &ci).env("GITHUB_ACTIONS", "true").env("GITHUB_STEP_SUMMARY", "/dev/null/x").assert();
    let output = output.code(1);
    assert!(text_of(&output.get_output().stderr).contains("the summary of the step cannot be written"));
    serde_json::from_slice::<serde_json::Value>(&output.get_output().stdout).unwrap();
}
