//! The launches that were recorded on a chip, repeated by the machine.
#![allow(clippy::unwrap_used, clippy::panic, reason = "tests fail by panicking")]

use crate::fixture::Project;
use crate::fixture::kernels::{json, stderr};

const PACK: &str = concat!(env!("CARGO_MANIFEST_DIR"), "/../gpuemu-machine/tests/data/hardware");

#[test]
fn every_launch_of_the_pack_is_as_recorded() {
    let project = Project::without_python();
    let report = json(&project, &["emulate", "--conformance", PACK], 0);
    let summary = &report["summary"];
    let bad: Vec<_> =
        report["launches"].as_array().unwrap().iter().filter(|launch| launch["outcome"] == "wrong").collect();
    assert_eq!(summary["wrong"], 0, "{bad:#?}");
    assert_eq!(summary["launches"], 633);
    // The assertion that was recorded to fail, and the two launches of the kernel that has wgmma in it.
    assert_eq!((summary["expected_error"].as_u64(), summary["skipped"].as_u64()), (Some(1), Some(2)));
    // Two whose blocks add in any order, and rsqrt.approx.f64.
    assert!(summary["within_bound"].as_u64().unwrap() <= 3, "{summary}");
    assert_eq!(summary["findings"], 0, "{report}");
}

#[test]
fn a_pack_that_cannot_be_read_is_no_verdict() {
    let project = Project::without_python();
    project.write("pack/manifest.json", "{\"entries\": [{\"id\": \"a\"}]}");
    let errors = stderr(&project, &["emulate", "--conformance", "pack"], 2);
    assert!(errors.contains("manifest.json: entry 1 (a): missing field `set`"), "{errors}");
}
