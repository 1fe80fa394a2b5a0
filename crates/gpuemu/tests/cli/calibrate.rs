//! `gpuemu calibrate`, with compiled kernels as op and as control: no Python and no GPU.
#![allow(clippy::unwrap_used, clippy::panic, clippy::print_stderr, reason = "tests fail by panicking")]

use crate::fixture::Project;
use crate::fixture::kernels::{gpuemu, json, softmax_kernel, stderr, stdout};

/// A project whose op is the kernel `fast`, beside a kernel that is trusted and one that masks with 0.
fn project(fast: &str, tolerance: &str) -> Project {
    let project = Project::without_python();
    let kernels = [("fast", fast), ("trusted", "softmax"), ("masked", "softmax_other_zero")];
    let kernels: String = kernels.iter().map(|(name, code)| softmax_kernel(&project, name, code)).collect();
    project.write(
        "gpuemu.toml",
        &format!(
            "# Our kernels.\n[project]\nname   = \"compiled\" # odd spaces stay\nframework = \"numpy\"\n\n{kernels}[[ops]]\n\
             name = \"softmax\"\nkernel = \"fast\" # the op under test\ndtypes = [\"float32\"]\n{tolerance}\n# The end.\n"
        ),
    );
    project
}

const CALIBRATED: &str = "tolerance = \"calibrated\"\n";
const MEASURE: [&str; 7] = ["calibrate", "--op", "softmax", "--control", "trusted", "--seed", "1"];

/// What calibrate says of why it did nothing.
fn refused(project: &Project, arguments: &[&str]) -> String {
    let before = project.read("gpuemu.toml");
    let said = stderr(project, &[&["calibrate"], arguments].concat(), 2);
    assert_eq!(project.read("gpuemu.toml"), before, "{said}");
    said
}

#[test]
fn what_is_measured_is_written_and_decides() {
    let project = project("softmax", CALIBRATED);
    let before = project.read("gpuemu.toml");
    // Without a calibration nothing is judged, and the command is named.
    let said = stdout(&project, &["test"], 2) + &stderr(&project, &["test"], 2);
    assert!(said.contains("no calibration is stored for float32"), "{said}");
    assert!(said.contains("gpuemu calibrate --op softmax --control ..."), "{said}");

    let text = stdout(&project, &[&MEASURE[..], &["--dry-run"]].concat(), 0);
    assert!(text.contains("nothing is written: this was a dry run"), "{text}");
    assert_eq!(project.read("gpuemu.toml"), before);

    let report = json(&project, &MEASURE, 0);
    let measured = &report["dtypes"][0];
    assert_eq!((measured["dtype"].as_str(), measured["before"].is_null()), (Some("float32"), true), "{report:#}");
    let number = |name: &str| measured[name].as_f64().unwrap();
    assert!(number("p95") > 0.0 && number("p95") <= number("largest"), "{report:#}");
    assert_eq!(number("atol"), 1.5 * number("p95"));
    assert_eq!(number("rtol"), number("atol").max(2f64.powi(-22)));
    assert!(number("over_bound") > 0.0, "{report:#}");

    // Everything that was there is there, and the table is all that is new.
    let after = project.read("gpuemu.toml");
    let mut old = before.lines().peekable();
    let new: Vec<&str> = after.lines().filter(|line| old.next_if_eq(line).is_none() && !line.is_empty()).collect();
    assert_eq!(old.next(), None, "{after}");
    let expected = [
        "[ops.calibration.float32]".to_string(),
        format!("atol = {:e}", number("atol")),
        format!("rtol = {:e}", number("rtol")),
        "control = \"kernel trusted in the PTX machine\"".to_string(),
        format!("cases = {}", measured["cases"]),
        "seed = 1".to_string(),
        "values = \"adversarial\"".to_string(),
    ];
    assert_eq!(new, expected, "{after}");

    // It decides from now on, and says so.
    json(&project, &["test", "--base-seed", "2", "--iterations", "40"], 0);
    let (atol, rtol) = (number("atol"), number("rtol"));
    let case = json(&project, &["reproduce", "3", "--op", "softmax"], 0);
    assert_eq!(case["tolerance"], format!("calibrated (atol = {atol:e}, rtol = {rtol:e})"), "{case:#}");

    // The same seed measures the same, in another process too, and the file stays byte for byte.
    gpuemu(&project, &["daemon", "stop"]).assert().success();
    let again = json(&project, &[&["--no-daemon"][..], &MEASURE].concat(), 0);
    assert_eq!(again["dtypes"][0]["before"]["atol"], measured["atol"], "{again:#}");
    assert_eq!(again["dtypes"][0]["p95"], measured["p95"]);
    assert_eq!(project.read("gpuemu.toml"), after);
}

#[test]
fn a_bug_is_caught_by_what_a_control_allows() {
    let project = project("softmax_other_zero", CALIBRATED);
    stdout(&project, &MEASURE, 0);
    let report = json(&project, &["test", "--base-seed", "2", "--iterations", "40"], 1);
    assert_eq!(report["ops"][0]["status"], "failed", "{report:#}");
    // Another strategy than that of the calibration is said to be one.
    let warned = json(&project, &["fuzz", "--iterations", "5", "--seed", "1", "--values", "tiny"], 1);
    assert!(warned["ops"][0]["warnings"].to_string().contains("calibrated with values adversarial, these are tiny"));
}

#[test]
fn a_control_has_to_be_right_and_another() {
    let project = project("softmax", "");
    let said = refused(&project, &["--op", "softmax"]);
    assert!(said.contains("calibrating 'softmax' on itself would bless its bugs"), "{said}");
    let said = refused(&project, &["--op", "softmax", "--control", "fast"]);
    assert!(said.contains("on itself would bless its bugs") && said.contains("--trust-op"), "{said}");
    // Masked lanes that are loaded as 0 break the bound: no tolerance comes of that, whoever trusts it.
    let said = refused(&project, &["--op", "softmax", "--control", "masked", "--seed", "1"]);
    assert!(said.contains("the control failed on the case with seed"), "{said}");
    assert!(said.contains("a control that fails is no control"), "{said}");
    let said = refused(&project, &["--op", "softmax", "--control", "trusetd"]);
    assert!(said.contains("'trusetd' is no kernel of the project") && said.contains("did you mean"), "{said}");
    let said = refused(&project, &["--op", "sotfmax", "--control", "trusted"]);
    assert!(said.contains("the project has no op 'sotfmax'") && said.contains("'softmax'"), "{said}");
    let said = refused(&project, &["--op", "softmax", "--control", "trusted", "--cases", "19"]);
    assert!(said.contains("19 cases are too few"), "{said}");

    let itself = ["calibrate", "--op", "softmax", "--trust-op", "--seed", "1", "--cases", "40"];
    let text = stdout(&project, &itself, 0);
    assert!(text.contains("still judged by its rigorous bound"), "{text}");
    assert!(project.read("gpuemu.toml").contains("control = \"itself: kernel fast in the PTX machine\""));
    // What is stored changes nothing as long as the bound decides.
    let case = json(&project, &["reproduce", "3", "--op", "softmax"], 0);
    assert!(case["tolerance"].as_str().unwrap().starts_with("bound"), "{case:#}");
}

#[test]
fn a_tolerance_that_grows_is_said_to_grow() {
    let project = project("softmax", CALIBRATED);
    stdout(&project, &MEASURE, 0);
    let atol = json(&project, &MEASURE, 0)["dtypes"][0]["atol"].as_f64().unwrap();
    project.replace("gpuemu.toml", &format!("atol = {atol:e}"), "atol = 1e-12 # by hand");
    let text = stdout(&project, &MEASURE, 0);
    assert!(text.contains("before: atol = 1e-12"), "{text}");
    assert!(text.contains("warning: float32 is looser than before"), "{text}");
    assert!(project.read("gpuemu.toml").contains(&format!("atol = {atol:e} # by hand")));
}
