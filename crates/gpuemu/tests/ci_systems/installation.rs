//! How the action comes by its gpuemu: one that is there, or a package that pip installs.

use std::path::{Path, PathBuf};

use snapbox::cmd::{Command, cargo_bin};

use super::fixture;
use super::github_job::{GithubJob, schedule};
use super::programs::missing;
use super::projects;

/// Writes wheels `gpuemu-VERSION` with a program that is the gpuemu of this build.
const WHEELS: &str = r#"
import pathlib, sys, zipfile

folder, program, *versions = sys.argv[1:]
for version in versions:
    described = f"gpuemu-{version}.dist-info"
    script = f'#!/bin/sh\n[ "$1" = --version ] && echo gpuemu {version} || exec "{program}" "$@"\n'
    files = {
        "gpuemu/__init__.py": "",
        f"gpuemu-{version}.data/scripts/gpuemu": script,
        f"{described}/METADATA": f"Metadata-Version: 2.1\nName: gpuemu\nVersion: {version}\n",
        f"{described}/WHEEL": "Wheel-Version: 1.0\nGenerator: test\nRoot-Is-Purelib: true\nTag: py3-none-any\n",
    }
    files[f"{described}/RECORD"] = "".join(f"{name},,\n" for name in [*files, f"{described}/RECORD"])
    with zipfile.ZipFile(pathlib.Path(folder, f"gpuemu-{version}-py3-none-any.whl"), "w") as wheel:
        for name, text in files.items():
            entry = zipfile.ZipInfo(name)
            entry.external_attr = 0o100755 << 16
            wheel.writestr(entry, text)
"#;

/// A Python of its own, and a folder with wheels that its pip takes packages from.
fn python_with_wheels(folder: &Path, python: &Path) -> PathBuf {
    let (environment, wheels) = (folder.join("environment"), folder.join("wheels"));
    std::fs::create_dir(&wheels).unwrap();
    Command::new(python).args(["-m", "venv"]).arg(&environment).assert().success();
    let arguments = [wheels.as_path(), cargo_bin!("gpuemu")];
    Command::new(python).args(["-c", WHEELS]).args(arguments).args(["0.0.8", "0.0.9"]).assert().success();
    environment.join("bin/python3")
}

#[test]
fn pip_installs_the_version_that_is_asked_for() {
    if missing(&["jq"]) {
        return;
    }
    let Some(python) = fixture::python() else {
        eprintln!("skipped: GPUEMU_TEST_PYTHON is not set; `cargo xtask test` sets it");
        return;
    };
    let folder = tempfile::TempDir::new().unwrap();
    let python = python_with_wheels(folder.path(), &python);
    let project = projects::passing();
    let run = |inputs: &[(&str, &str)], there: bool| {
        let mut job = GithubJob::new(&project, schedule());
        if !there {
            job.remove_gpuemu();
        }
        let wheels = folder.path().join("wheels").display().to_string();
        job.variables.insert("PIP_NO_INDEX".to_string(), "1".to_string());
        job.variables.insert("PIP_FIND_LINKS".to_string(), wheels);
        // What is named later counts.
        let python = ("python", python.to_str().unwrap());
        job.run_action(&[&[python, ("quick", "true")], inputs].concat())
    };
    let one = run(&[("version", "0.0.8")], true);
    assert!(one.status() == 0 && one.log.contains("installed gpuemu 0.0.8 in "), "{}", one.log);
    // Without a version the newest, where there is none.
    let uninstall = ["-m", "pip", "uninstall", "--quiet", "--yes", "gpuemu"];
    Command::new(&python).args(uninstall).assert().success();
    let newest = run(&[], false);
    assert!(newest.status() == 0 && newest.log.contains("installed gpuemu 0.0.9 in "), "{}", newest.log);
    // A Python may be named from the working directory.
    std::fs::create_dir(project.path("inner")).unwrap();
    std::os::unix::fs::symlink(folder.path().join("environment"), project.path("inner/venv")).unwrap();
    let inputs = [("working-directory", "inner"), ("python", "venv/bin/python3"), ("version", "0.0.8")];
    let relative = run(&inputs, true);
    assert!(relative.status() == 0 && relative.log.contains("/inner/venv/bin"), "{}", relative.log);
    let kept = run(&[], true);
    assert!(kept.status() == 0 && kept.log.contains("is there already"), "{}", kept.log);
    let same = run(&[("version", env!("CARGO_PKG_VERSION"))], true);
    assert!(same.status() == 0 && same.log.contains("is there already"), "{}", same.log);
    let unknown = run(&[("version", "7.7.7")], true);
    assert!(unknown.failed && unknown.status() == 2, "{}", unknown.log);
    assert!(unknown.log.contains("No matching distribution found for gpuemu==7.7.7"), "{}", unknown.log);
    let absent = run(&[("version", "installed")], false);
    assert!(absent.failed && absent.log.contains("there is no gpuemu on the search path"), "{}", absent.log);
}
