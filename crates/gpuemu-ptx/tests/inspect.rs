//! Real kernels, looked at from their file to the comparison with another state, where no tool is installed.
#![allow(clippy::unwrap_used, clippy::panic, reason = "tests fail by panicking")]

use std::path::{Path, PathBuf};

use gpuemu_config::ArtifactChecks;
use gpuemu_model::artifact::OccupancyLaunch;
use gpuemu_model::artifact::{ArtifactStatus, KernelArtifact, KernelReport, KernelStatus, ToolSearch};
use gpuemu_ptx::diff::compare;
use gpuemu_ptx::inspect::Inspector;
use gpuemu_ptx::tools::Toolchain;

fn data(path: &str) -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/data/ptx").join(path)
}

fn inspected(path: &Path) -> KernelReport {
    let toolchain = Toolchain::find(&ToolSearch::default());
    let inspector =
        Inspector { toolchain: &toolchain, architectures: &[], rules: &[], launch: OccupancyLaunch::default() };
    inspector.file(path, &ArtifactChecks::default())
}

fn artifact(path: &Path) -> KernelArtifact {
    let report = inspected(path);
    report.artifact.unwrap_or_else(|| panic!("{}: {:?}", path.display(), report.message))
}

#[test]
fn every_real_kernel_is_measured_travels_and_equals_itself() {
    let mut looked_at = 0;
    for folder in ["triton_sm80", "triton_sm90", "nvrtc_sm80"] {
        for file in std::fs::read_dir(data(folder)).unwrap() {
            let file = file.unwrap().path();
            let report = inspected(&file);
            assert_ne!(report.status, KernelStatus::Error, "{}: {:?}", file.display(), report.message);
            let text = serde_json::to_string(&report).unwrap();
            assert_eq!(serde_json::from_str::<KernelReport>(&text).unwrap(), report);
            let artifact = report.artifact.unwrap();
            assert!(artifact.not_measured.iter().any(|missing| missing.what.contains("registers")), "{artifact:?}");
            for comparison in compare(&artifact, &artifact, 0.1) {
                assert_eq!(comparison.status, ArtifactStatus::Same, "{comparison:?}");
            }
            looked_at += 1;
        }
    }
    assert!(looked_at >= 40, "{looked_at}");
}

#[test]
fn kernels_that_differ_in_a_constant_only_are_told_apart() {
    for (one, other) in [("softmax", "softmax_zero"), ("leaky_relu", "leaky_relu_steep")] {
        let before = artifact(&data(&format!("pairs/{one}.ptx")));
        let now = artifact(&data(&format!("pairs/{other}.ptx")));
        let comparison = compare(&before, &now, 0.1).remove(0);
        assert_eq!((comparison.status, comparison.changes.as_slice()), (ArtifactStatus::Changed, [].as_slice()));
        assert!(!comparison.constants.is_empty());
        assert_ne!(before.entries[0].constants.fingerprint, now.entries[0].constants.fingerprint);
    }
}

#[test]
fn a_limit_that_could_not_be_checked_is_an_error_where_that_is_demanded() {
    let toolchain = Toolchain::find(&ToolSearch::default());
    let inspector =
        Inspector { toolchain: &toolchain, architectures: &[], rules: &[], launch: OccupancyLaunch::default() };
    let status = |checks: &ArtifactChecks| inspector.file(&data("pairs/tile.ptx"), checks).status;
    let limit = ArtifactChecks { max_registers: Some(64), ..ArtifactChecks::default() };
    assert_eq!(status(&limit), KernelStatus::Passed);
    let demanded = ArtifactChecks { fail_on_unchecked: true, ..limit };
    assert_eq!(status(&demanded), KernelStatus::Error);
    // A rule that is silenced need not be checked, and a failure weighs more.
    let silenced = ArtifactChecks { allow: vec!["max-registers".to_string()], ..demanded.clone() };
    assert_eq!(status(&silenced), KernelStatus::Passed);
    let forbidden = ArtifactChecks { forbidden_instructions: vec!["st.shared".to_string()], ..demanded };
    assert_eq!(status(&forbidden), KernelStatus::Failed);
}
