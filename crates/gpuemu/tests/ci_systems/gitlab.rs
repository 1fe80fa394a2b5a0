//! The GitLab template: which jobs a pipeline has, and how they end.

use serde_json::Value;

use super::fixture::Project;
use super::gitlab_job::{Image, Pipeline};
use super::packages::{ANOTHER_PROJECT, Packages, VERSION};
use super::{projects, yaml};

const SHELLS: [&str; 2] = ["bash", "sh"];

/// The pipeline of the template. The image has what the kernels import.
fn pipeline(variables: &[(&str, &str)]) -> Pipeline {
    let all = [&[("GPUEMU_PACKAGES", "")], variables].concat();
    Pipeline::new(&yaml::integration("gitlab/gpuemu.gitlab-ci.yml"), &all)
}

const MERGE_REQUEST: (&str, &str) = ("CI_PIPELINE_SOURCE", "merge_request_event");
const SCHEDULE: (&str, &str) = ("CI_PIPELINE_SOURCE", "schedule");

fn names(pipeline: &Pipeline, job: &str, project: &Project) -> Vec<String> {
    let files = pipeline.kept(job, project.folder.path());
    files.iter().map(|file| file.file_name().unwrap().to_str().unwrap().to_string()).collect()
}

const REPORTS: [&str; 4] = ["report.html", "report.json", "report.md", "report.xml"];

#[test]
fn merge_requests_are_checked_quickly_and_schedules_thoroughly() {
    assert_eq!(pipeline(&[MERGE_REQUEST]).jobs(), ["gpuemu-quick"]);
    assert_eq!(pipeline(&[SCHEDULE]).jobs(), ["gpuemu-thorough"]);
    let sharded = pipeline(&[SCHEDULE, ("GPUEMU_SHARDS", "true")]);
    assert_eq!(sharded.jobs(), ["gpuemu-shard", "gpuemu-merge"]);
    assert_eq!(sharded.rule_of("gpuemu-merge").unwrap()["when"], "always");
    assert_eq!(sharded.job("gpuemu-merge")["needs"], serde_json::json!(["gpuemu-shard"]));
    assert_eq!(pipeline(&[("CI_PIPELINE_SOURCE", "push")]).jobs(), Vec::<String>::new());
}

#[test]
fn a_job_ends_as_gpuemu_does_and_keeps_its_reports() {
    for shell in SHELLS {
        let project = projects::passing();
        let quick = pipeline(&[MERGE_REQUEST]);
        let run = quick.run("gpuemu-quick", shell, Image::Complete, project.folder.path(), &[]);
        assert_eq!(run.status, 0, "{shell}: {}", run.log);
        assert!(run.log.contains("PASS   softmax"), "{}", run.log);
        assert_eq!(names(&quick, "gpuemu-quick", &project), REPORTS);
        let report: Value = serde_json::from_str(&project.read("gpuemu-report/report.json")).unwrap();
        assert_eq!(report["mode"], "quick");
    }
    let project = projects::failing();
    let nightly = pipeline(&[SCHEDULE]);
    let run = nightly.run("gpuemu-thorough", "sh", Image::Complete, project.folder.path(), &[]);
    assert_eq!(run.status, 1, "{}", run.log);
    assert!(run.log.contains("FAIL   masked"), "{}", run.log);
    assert_eq!(names(&nightly, "gpuemu-thorough", &project), REPORTS);
    let project = projects::passing();
    project.write("gpuemu.toml", "[project\n");
    for shell in SHELLS {
        let run = nightly.run("gpuemu-thorough", shell, Image::Complete, project.folder.path(), &[]);
        assert_eq!(run.status, 2, "{shell}: {}", run.log);
        assert!(run.log.contains("gpuemu.toml"), "{}", run.log);
    }
}

#[test]
fn a_project_may_lie_in_a_folder_and_names_are_not_run() {
    let project = projects::passing();
    let folder = "a b$(touch owned)";
    std::fs::create_dir(project.path(folder)).unwrap();
    for name in ["gpuemu.toml", "kernels"] {
        std::fs::rename(project.path(name), project.path(folder).join(name)).unwrap();
    }
    let quick = pipeline(&[MERGE_REQUEST, ("GPUEMU_DIRECTORY", folder)]);
    let run = quick.run("gpuemu-quick", "sh", Image::Complete, project.folder.path(), &[]);
    assert_eq!(run.status, 0, "{}", run.log);
    assert_eq!(names(&quick, "gpuemu-quick", &project), REPORTS);
    let hostile =
        pipeline(&[MERGE_REQUEST, ("GPUEMU_DIRECTORY", folder), ("GPUEMU_BASELINE", "x $(touch owned).json")]);
    let run = hostile.run("gpuemu-quick", "sh", Image::Complete, project.folder.path(), &[]);
    assert_eq!(run.status, 2, "{}", run.log);
    assert!(run.log.contains("there is no report x $(touch owned).json"), "{}", run.log);
    assert!(!project.files().iter().any(|file| file.ends_with("owned")), "{:?}", project.files());
}

#[test]
fn a_baseline_is_a_file_of_the_repository() {
    let project = projects::tolerant();
    let nightly = pipeline(&[SCHEDULE]);
    assert_eq!(nightly.run("gpuemu-thorough", "sh", Image::Complete, project.folder.path(), &[]).status, 0);
    std::fs::copy(project.path("gpuemu-report/report.json"), project.path("gpuemu baseline.json")).unwrap();
    let gate = pipeline(&[MERGE_REQUEST, ("GPUEMU_BASELINE", "gpuemu baseline.json")]);
    for (status, shell) in [(0, "bash"), (0, "sh"), (1, "sh")] {
        if status == 1 {
            projects::worsen(&project);
        }
        let run = gate.run("gpuemu-quick", shell, Image::Complete, project.folder.path(), &[]);
        assert_eq!(run.status, status, "{}", run.log);
    }
    // Nothing but the comparison fails it.
    let run = pipeline(&[MERGE_REQUEST]).run("gpuemu-quick", "sh", Image::Complete, project.folder.path(), &[]);
    assert_eq!(run.status, 0, "{}", run.log);
}

#[test]
fn shards_are_joined_by_the_last_job() {
    let project = projects::failing();
    let sharded = pipeline(&[SCHEDULE, ("GPUEMU_SHARDS", "true"), ("CI_PIPELINE_ID", "4711")]);
    let count = sharded.job("gpuemu-shard")["parallel"].as_u64().unwrap();
    for index in 1..=count {
        let (index, total) = (index.to_string(), count.to_string());
        let variables = [("CI_NODE_INDEX", index.as_str()), ("CI_NODE_TOTAL", total.as_str())];
        let run = sharded.run("gpuemu-shard", "sh", Image::Complete, project.folder.path(), &variables);
        assert_eq!(run.status, 1, "{}", run.log);
        assert!(names(&sharded, "gpuemu-shard", &project).contains(&format!("shard-{index}.json")));
    }
    let run = sharded.run("gpuemu-merge", "sh", Image::Complete, project.folder.path(), &[]);
    assert_eq!(run.status, 1, "{}", run.log);
    let report: Value = serde_json::from_str(&project.read("gpuemu-report/report.json")).unwrap();
    assert_eq!((&report["seed"], &report["ops"][0]["cases"]), (&"4711".into(), &40.into()));
    assert!(REPORTS.iter().all(|name| names(&sharded, "gpuemu-merge", &project).contains(&name.to_string())));
    std::fs::remove_file(project.path("gpuemu-report/shard-2.json")).unwrap();
    let run = sharded.run("gpuemu-merge", "sh", Image::Complete, project.folder.path(), &[]);
    assert_eq!(run.status, 2, "{}", run.log);
}

#[test]
fn a_wheel_or_an_address_is_installed_even_over_another_project_of_this_name_and_version() {
    let Some(packages) = Packages::shared() else { return };
    let project = projects::passing();
    let wheel = packages.wheel.to_str().unwrap();
    std::fs::create_dir(project.path("my wheels")).unwrap();
    let inside = format!("my wheels/{}", packages.wheel.file_name().unwrap().to_str().unwrap());
    std::fs::copy(wheel, project.path(&inside)).unwrap();
    let packages: &Packages = &packages;
    for (shell, image, package) in [
        ("sh", Image::AnotherProjects(packages), inside.as_str()),
        ("bash", Image::AnotherProjects(packages), &format!("file://{wheel}")),
        ("sh", Image::Python(packages), wheel),
    ] {
        let quick = pipeline(&[MERGE_REQUEST, ("GPUEMU_PACKAGE", package)]);
        let run = quick.run("gpuemu-quick", shell, image, project.folder.path(), &[]);
        assert!(run.status == 0 && !run.log.contains(ANOTHER_PROJECT), "{package}: {}", run.log);
    }
}

#[test]
fn what_is_no_package_of_ours_ends_with_2_and_is_not_run() {
    let Some(packages) = Packages::shared() else { return };
    let project = projects::passing();
    for (name, shell) in
        [("", "sh"), ("gpuemu", "bash"), (&format!("gpuemu=={VERSION}"), "sh"), ("$(touch owned)", "sh")]
    {
        let quick = pipeline(&[MERGE_REQUEST, ("GPUEMU_PACKAGE", name)]);
        let run = quick.run("gpuemu-quick", shell, Image::Python(&packages), project.folder.path(), &[]);
        assert_eq!(run.status, 2, "{name}: {}", run.log);
        let words =
            format!("GPUEMU_PACKAGE is '{name}': set it to the path of a wheel in the repository, or to an address");
        assert!(run.log.contains(&words), "{name}: {}", run.log);
    }
    assert!(!project.path("owned").exists());
}
