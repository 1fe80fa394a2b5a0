//! How the action comes by its gpuemu: one that is there, or a package that pip installs, and never by its name.

use std::path::Path;

use tempfile::TempDir;

use super::fixture::Project;
use super::github_job::{GithubJob, StepsRun, schedule};
use super::packages::{ANOTHER_PROJECT, Packages, VERSION};
use super::programs::missing;
use super::projects;

/// Runs the action on a project, with a Python that pip may install into and no gpuemu on the search path.
fn install(project: &Project, packages: &Packages, inputs: &[(&str, &str)]) -> StepsRun {
    let mut job = GithubJob::new(project, schedule());
    job.remove_gpuemu();
    job.variables.extend(packages.variables());
    let run = job.run_action(&[&[("quick", "true")], inputs].concat());
    assert!(!run.log.contains(ANOTHER_PROJECT), "{}", run.log);
    run
}

/// What is said of a gpuemu that was installed.
fn installed(programs: &Path) -> String {
    format!("installed gpuemu {VERSION} in {}", programs.display())
}

#[test]
fn a_wheel_or_an_address_is_installed_even_over_another_project_of_this_name_and_version() {
    if missing(&["jq"]) {
        return;
    }
    let Some(packages) = Packages::shared() else { return };
    let project = projects::passing();
    let wheel = packages.wheel.to_str().unwrap();
    let file = packages.wheel.file_name().unwrap().to_str().unwrap();
    std::fs::create_dir(project.path("my wheels")).unwrap();
    std::fs::copy(wheel, project.path("my wheels").join(file)).unwrap();
    std::fs::create_dir(project.path("inner")).unwrap();
    let machine = TempDir::new().unwrap();
    let programs = packages.python(machine.path());
    let python = programs.join("python3");
    let inside = format!("my wheels/{file}");
    let frozen = format!("gpuemu @ file://{wheel}");
    for package in [inside.as_str(), &frozen] {
        packages.install_another(&programs);
        let run = install(&project, &packages, &[("package", package), ("python", python.to_str().unwrap())]);
        assert!(run.status() == 0 && run.log.contains(&installed(&programs)), "{package}: {}", run.log);
    }
    // A Python may be named from the working directory, and a wheel may lie elsewhere.
    std::os::unix::fs::symlink(machine.path(), project.path("inner/venv")).unwrap();
    let inputs = [("working-directory", "inner"), ("python", "venv/bin/python3"), ("package", wheel)];
    let relative = install(&project, &packages, &inputs);
    assert!(relative.status() == 0 && relative.log.contains("/inner/venv/bin"), "{}", relative.log);
}

#[test]
fn a_gpuemu_on_the_search_path_is_enough() {
    if missing(&["jq"]) {
        return;
    }
    let project = projects::passing();
    for package in ["", "installed"] {
        let mut job = GithubJob::new(&project, schedule());
        let there = job.run_action(&[("quick", "true"), ("package", package)]);
        assert!(there.status() == 0 && there.log.contains("gpuemu is there already: "), "{}", there.log);
        job.remove_gpuemu();
        let absent = job.run_action(&[("package", package)]);
        assert_eq!(absent.status(), 2, "{}", absent.log);
        let words = "::error title=gpuemu::there is no gpuemu on the search path: set the input 'package' to ";
        assert!(absent.log.contains(words), "{}", absent.log);
    }
}

#[test]
fn what_is_no_package_of_ours_is_refused_or_fails() {
    let Some(packages) = Packages::shared() else { return };
    let project = projects::passing();
    let machine = TempDir::new().unwrap();
    let python = packages.python(machine.path()).join("python3");
    let hostile = "\"'$(touch owned)`touch owned`;touch owned\\";
    for (package, words) in [
        ("gpuemu".to_string(), "package is 'gpuemu': give 'installed', the path of a wheel"),
        (format!("gpuemu=={VERSION}"), "the path of a wheel in the repository, or an address"),
        ("wheels/gpuemu-1.whl".to_string(), "wheels/gpuemu-1.whl', but there is no file "),
        (format!("{hostile}.whl"), "but there is no file "),
        ("file:///nowhere/gpuemu-1-py3-none-any.whl".to_string(), "No such file or directory"),
        (format!("file:///{hostile}/gpuemu-1-py3-none-any.whl"), ""),
    ] {
        let run = install(&project, &packages, &[("package", &package), ("python", python.to_str().unwrap())]);
        assert!(run.failed && run.status() == 2, "{package}: {}", run.log);
        assert!(run.log.contains(words), "{package}: {}", run.log);
        assert!(!project.path("owned").exists(), "{package}");
    }
}
