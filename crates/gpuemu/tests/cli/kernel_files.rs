//! PTX files, as a user looks at them: measured and checked, without a project.
#![allow(clippy::unwrap_used, clippy::panic, clippy::print_stderr, reason = "tests fail by panicking")]

use serde_json::Value;
use snapbox::str;

use crate::fixture::Project;
use crate::fixture::kernels::{
    LEAKY_RELU, TRITON_SOFTMAX, TRITON_VADD, TWO_KERNELS, compiled, gpuemu, json, stderr, stdout,
};

#[test]
fn a_file_of_two_kernels_is_shown_as_two() {
    let project = Project::without_python();
    project.write("two.ptx", TWO_KERNELS);
    gpuemu(&project, &["artifacts", "two.ptx", "--block", "128"]).assert().success().stdout_eq(str![[r#"
two.ptx: as written, PTX 8.0 for sm_80, 2 entries

  block_sum (line 8)
    block              256 x 1 x 1 threads
    declared registers predicate 3, 32 bit 15, 64 bit 9
    shared memory      1024 bytes (tile f32[256])
    local memory       0 bytes; 0 loads, 0 stores
    instructions       34: memory 9, arithmetic 14, tensor core 0, control 3, synchronisation 2, movement 6; 2 predicated
    global accesses    1 x load of 4 bytes, 1 x store of 4 bytes
    control flow       5 blocks, 1 loop, nested 1 deep
    constants          7 values, fingerprint [..]
    compiled           not measured
    occupancy with 256 threads a block, where code for sm_80 may run; an estimate
    architecture  blocks  of the warps  limited by  registers     shared bytes
    sm_80         8       100 %         threads     not measured  1024
    sm_86         6       100 %         threads     not measured  1024
    sm_89         6       100 %         threads     not measured  1024
    sm_90         8       100 %         threads     not measured  1024
    sm_100        8       100 %         threads     not measured  1024

  fill (line 61)
    block              not said
    declared registers 32 bit 4, 64 bit 5
    shared memory      0 bytes
    local memory       0 bytes; 0 loads, 0 stores
    instructions       8: memory 3, arithmetic 2, tensor core 0, control 1, synchronisation 0, movement 2; 0 predicated
    global accesses    1 x store of 4 bytes
    control flow       1 block, 0 loops, nested 0 deep
    constants          1 value, fingerprint [..]
    compiled           not measured
    occupancy with 128 threads a block, where code for sm_80 may run; an estimate
    architecture  blocks  of the warps  limited by  registers     shared bytes
    sm_80         16      100 %         threads     not measured  0
    sm_86         12      100 %         threads     not measured  0
    sm_89         12      100 %         threads     not measured  0
    sm_90         16      100 %         threads     not measured  0
    sm_100        16      100 %         threads     not measured  0
  not measured: registers, spills, stack and barriers: ptxas was not found on PATH, [..]
  not measured: machine instructions: [..]

"#]]);
    let report = json(&project, &["artifacts", "two.ptx"], 0);
    let entries = report["kernels"][0]["artifact"]["entries"].as_array().unwrap();
    let names: Vec<&str> = entries.iter().map(|entry| entry["entry"].as_str().unwrap()).collect();
    assert_eq!(names, ["block_sum", "fill"]);
    let shared = &entries[0]["shared"];
    assert_eq!((shared["bytes"].as_u64(), shared["variables"][0]["element_bytes"].as_u64()), (Some(1024), Some(4)));
    // Nothing is known of registers: that is not 0.
    assert_eq!(entries[0]["compiled"], serde_json::json!([]));
    assert!(report["kernels"][0]["artifact"]["not_measured"].as_array().unwrap().len() >= 2, "{report}");
}

#[test]
fn files_of_triton_are_read() {
    let project = Project::without_python();
    project.write("softmax.ptx", TRITON_SOFTMAX);
    project.write("vadd.ptx", TRITON_VADD);
    let report = json(&project, &["artifacts", "softmax.ptx", "vadd.ptx"], 0);
    for (number, entry) in [(0, "softmax"), (1, "vadd")] {
        let measured = &report["kernels"][number]["artifact"]["entries"][0];
        assert_eq!(measured["entry"], entry);
        assert_eq!(measured["block"]["threads"], serde_json::json!([128, 1, 1]));
        assert_eq!(measured["global_accesses"][0]["bytes"], 16, "{measured}");
    }
    // The launch's shared memory is not known, and said to be.
    let text = stdout(&project, &["artifacts", "softmax.ptx"], 0);
    assert!(text.contains("not measured: shared memory that a launch of softmax adds"), "{text}");
    let text = stdout(&project, &["artifacts", "softmax.ptx", "--shared", "512"], 0);
    assert!(!text.contains("shared memory that a launch") && text.contains(" 512\n"), "{text}");
    gpuemu(&project, &["lint", "--ptx", "softmax.ptx", "--ptx", "vadd.ptx", "--level", "error"]).assert().success();
}

#[test]
fn what_is_forbidden_fails_in_every_format() {
    let project = Project::without_python();
    project.write("two.ptx", TWO_KERNELS);
    project.write("leaky_relu.ptx", LEAKY_RELU);
    let arguments = ["lint", "--ptx", "two.ptx", "--ptx", "leaky_relu.ptx", "--forbid", "bar.sync"];
    gpuemu(&project, &[&arguments[..], &["--level", "error"]].concat()).assert().code(1).stdout_eq(str![[r#"
FAIL   two.ptx         kernel, 2 entries, PTX for sm_80, as written; [..]
       error[forbidden-instruction] block_sum: [..]bar.sync[..]
         at two.ptx:34:2
PASS   leaky_relu.ptx  kernel, 1 entry, PTX for sm_80, as written[..]

1 of 2 kernels passed, 1 failed; 1 error, [..]

"#]]);
    let arguments = [&arguments[..], &["--level", "error"]].concat();
    let report = json(&project, &arguments, 1);
    assert_eq!((report["kernels"][0]["status"].as_str(), report["project"].as_str()), (Some("failed"), Some("")));
    let findings = report["kernels"][0]["lint"]["findings"].as_array().unwrap();
    assert_eq!(findings.iter().map(|one| one["rule"].as_str().unwrap()).collect::<Vec<_>>(), ["forbidden-instruction"]);
    // Silenced, it is counted and does not fail.
    let allowed = [&arguments[..], &["--allow", "forbidden-instruction"]].concat();
    assert_eq!(json(&project, &allowed, 0)["kernels"][0]["lint"]["silenced"]["forbidden-instruction"], 1);
    let file = [&arguments[..], &["--format", "json", "--output", "lint.json"]].concat();
    gpuemu(&project, &file).assert().code(1).stdout_eq("").stderr_eq("wrote lint.json\n");
    assert_eq!(serde_json::from_str::<Value>(&project.read("lint.json")).unwrap(), report);
}

#[test]
fn a_limit_that_needs_a_tool_is_not_checked_without_it() {
    let project = Project::without_python();
    project.write("leaky_relu.ptx", LEAKY_RELU);
    let text = stdout(&project, &["lint", "--ptx", "leaky_relu.ptx", "--max-registers", "8"], 0);
    assert!(text.contains("not checked: max-registers: "), "{text}");
    let report = json(&project, &["lint", "--ptx", "leaky_relu.ptx", "--max-registers", "8"], 0);
    assert_eq!(report["kernels"][0]["lint"]["not_checked"][0]["rule"], "max-registers");
}

#[test]
fn what_is_not_ptx_is_refused_with_its_place_in_every_format() {
    let project = Project::without_python();
    project.write("note.ptx", ".version 8.0\n.target sm_80\n\nDear reader,\n");
    project.write("empty.ptx", ".version 8.0\n.target sm_80\n.address_size 64\n");
    project.write("good.ptx", LEAKY_RELU);
    for arguments in
        [&["lint", "--ptx", "note.ptx"][..], &["artifacts", "note.ptx"], &["diff", "--ptx", "good.ptx", "note.ptx"]]
    {
        let text = stdout(&project, arguments, 2);
        assert!(text.contains("note.ptx:4:1: ") && text.contains("Dear"), "{text}");
        assert!(json(&project, arguments, 2).to_string().contains("note.ptx:4:1: "));
    }
    let text = stdout(&project, &["lint", "--ptx", "empty.ptx"], 2);
    assert!(text.contains("empty.ptx has no entry"), "{text}");
    let text = stdout(&project, &["lint", "--ptx", "gone.ptx", "--ptx", "good.ptx"], 2);
    assert!(text.contains("gone.ptx: cannot be read") && text.contains("PASS   good.ptx"), "{text}");
    assert_eq!(json(&project, &["artifacts", "gone.ptx"], 2)["kernels"][0]["status"], "error");
    std::fs::write(project.path("bytes.ptx"), b".version 8.0\n\xff\xfe").unwrap();
    assert!(stdout(&project, &["lint", "--ptx", "bytes.ptx"], 2).contains("bytes.ptx:2:1: not text"));
}

#[test]
fn usage_errors_are_2_and_say_what_to_do() {
    let project = compiled();
    for (arguments, words) in [
        (&["lint", "--ptx", "kernels/leaky_relu.ptx", "--allow", "scalar-acess"][..], "did you mean 'scalar-access'?"),
        (&["--no-daemon", "lint", "--allow", "scalar-acess"], "did you mean 'scalar-access'?"),
        (&["--no-daemon", "lint", "--kernel", "pear"], "did you mean 'pair'?"),
        (&["--no-daemon", "artifacts", "--kernel", "softmax"], "there are: leaky_relu, pair"),
        (&["lint", "--explain", "max-register"], "did you mean 'max-registers'?"),
        (&["lint", "--ptx", "kernels/leaky_relu.ptx", "--kernel", "pair"], "cannot be used with"),
        (&["lint", "--architecture", "80"], "write it as in sm_80"),
        (&["artifacts", "--block", "2048"], "2048"),
        (&["diff"], "--baseline"),
        (&["diff", "--baseline", "good", "--architecture", "sm_90"], "--architecture goes with --ptx"),
        (&["--no-daemon", "ci", "--baseline", "none"], "there is no baseline 'none'"),
        (&["--no-daemon", "diff", "--baseline", "none"], "there is no baseline 'none'"),
        (&["lint", "--ptx", "kernels/leaky_relu.ptx", "--rules-file", "none.toml"], "none.toml"),
        (&["--no-daemon", "lint", "--rules-file", "none.toml"], "none.toml"),
    ] {
        let errors = stderr(&project, arguments, 2);
        assert!(errors.contains(words), "{arguments:?}\n{errors}");
    }
    project.replace(
        "gpuemu.toml",
        "kernels/two_kernels.ptx\"",
        "kernels/two_kernels.ptx\"\n[kernels.artifact_checks]\nallow = [\"spils\"]",
    );
    let errors = stderr(&project, &["--no-daemon", "lint"], 2);
    assert!(errors.contains("kernel 'pair'") && errors.contains("'spils'"), "{errors}");
}

#[test]
fn rules_are_listed_and_explained() {
    let project = Project::without_python();
    let text = stdout(&project, &["lint", "--rules"], 0);
    assert!(text.contains("max-registers") && text.contains("address-overflow"), "{text}");
    let rules = json(&project, &["lint", "--rules"], 0);
    for rule in rules.as_array().unwrap() {
        let name = rule["name"].as_str().unwrap();
        assert!(text.contains(name), "{name}");
        assert!(stdout(&project, &["lint", "--explain", name], 0).starts_with(&format!("{name}: ")));
        assert_eq!(json(&project, &["lint", "--explain", name], 0), *rule);
    }
}
