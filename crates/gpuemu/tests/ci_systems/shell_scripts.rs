//! Every shell script is read by shellcheck: those of the action, and those inside YAML files.

use std::io::Write;
use std::process::{Command, Stdio};

use super::programs::missing;
use super::yaml;

fn check(shell: &str, name: &str, script: &str) {
    let mut child = Command::new("shellcheck")
        .args(["--shell", shell, "--severity", "style", "-"])
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .spawn()
        .unwrap();
    child.stdin.take().unwrap().write_all(script.as_bytes()).unwrap();
    let output = child.wait_with_output().unwrap();
    assert!(output.status.success(), "{name}: {}\n{script}", String::from_utf8_lossy(&output.stdout));
}

#[test]
fn shellcheck_finds_nothing() {
    if missing(&["shellcheck"]) {
        return;
    }
    let folder = yaml::integration("github-action");
    let mut scripts = 0;
    for entry in std::fs::read_dir(&folder).unwrap() {
        let path = entry.unwrap().path();
        if path.extension().is_some_and(|extension| extension == "sh") {
            let output = Command::new("shellcheck").arg("-x").arg(&path).current_dir(&folder).output().unwrap();
            assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stdout));
            let text = std::fs::read_to_string(&path).unwrap();
            assert!(path.ends_with("messages.sh") || text.contains("\nset -euo pipefail\n"), "{}", path.display());
            scripts += 1;
        }
    }
    assert_eq!(scripts, 5);
    let gitlab = super::gitlab_job::Pipeline::new(&yaml::integration("gitlab/gpuemu.gitlab-ci.yml"), &[]);
    for job in ["gpuemu-quick", "gpuemu-thorough", "gpuemu-shard", "gpuemu-merge"] {
        let job = gitlab.job(job);
        let lines = ["before_script", "script"].iter().flat_map(|part| job[*part].as_array().unwrap());
        // One package or several: that variable is to be split.
        let script: Vec<String> =
            lines.map(|line| line.as_str().unwrap().replace(" $GPUEMU_PACKAGES", " \"$GPUEMU_PACKAGES\"")).collect();
        check("sh", "gitlab", &script.join("\n"));
    }
}
