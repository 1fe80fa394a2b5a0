//! Baselines of ops that are compiled kernels: a tag and a file say the same.

use super::fixture::kernels::{gpuemu, stdout};
use super::projects;

#[test]
fn a_tag_and_a_file_catch_an_error_that_grew_within_the_tolerance() {
    let project = projects::tolerant();
    gpuemu(&project, &["ci", "--seed", "1", "--format", "json", "--output", "good.json"]).assert().success();
    gpuemu(&project, &["baseline", "good"]).assert().success().stdout_eq("good  1 ops, 40 cases, 1 kernel\n");
    for baseline in ["good", "good.json"] {
        let text = stdout(&project, &["ci", "--quick", "--baseline", baseline, "--fail-on-regression"], 0);
        assert!(text.contains("same       softmax"), "{text}");
    }
    projects::worsen(&project);
    for baseline in ["good", "good.json"] {
        let text = stdout(&project, &["ci", "--quick", "--baseline", baseline, "--fail-on-regression"], 1);
        assert!(text.contains("REGRESSED  softmax"), "{text}");
        stdout(&project, &["ci", "--quick", "--baseline", baseline], 0);
        // What counts as growth is a setting.
        let config = project.read("gpuemu.toml");
        project.write("gpuemu.toml", &format!("{config}\n[policies]\nregression_threshold = 1e30\n"));
        stdout(&project, &["ci", "--quick", "--baseline", baseline, "--fail-on-regression"], 0);
        project.write("gpuemu.toml", &config);
    }
}
