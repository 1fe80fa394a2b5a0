//! `gpuemu study`, as a user sees it. Small runs: `docs/studies.md` has the figures of the whole ones.
#![allow(clippy::unwrap_used, reason = "tests fail by panicking")]

use std::path::Path;

use serde_json::Value;
use snapbox::cmd::{Command, OutputAssert, cargo_bin};
use snapbox::{Data, file, str};
use tempfile::TempDir;

use crate::pages::assert_shown;

/// The command in a folder with no tools: what is measured with them differs from machine to machine.
fn gpuemu(arguments: &[&str]) -> Command {
    Command::new(cargo_bin!("gpuemu"))
        .args(arguments)
        .env("NO_COLOR", "1")
        .env("PATH", "/nowhere")
        .env("GPUEMU_PYTHON", "/nowhere/python3")
        .env_remove("CUDA_HOME")
        .env_remove("CUDA_PATH")
}

/// Runs a study for people, which must print the snapshot, and reads the files that it wrote.
fn check(arguments: &[&str], name: &str, snapshot: Data) -> Value {
    let folder = tempfile::tempdir().unwrap();
    // A folder that is not there yet is made.
    let folder = folder.path().join("new");
    run(arguments, &folder, name).stdout_eq(snapshot);
    let read = |extension: &str| std::fs::read_to_string(folder.join(format!("{name}.{extension}"))).unwrap();
    check_svg(&read("svg"));
    let document: Value = serde_json::from_str(&read("json")).unwrap();
    assert_eq!((&document["study"], &document["holds"]), (&name.into(), &true.into()));
    assert_eq!(document["gpuemu_version"], env!("CARGO_PKG_VERSION"));
    assert!(document["generator_version"].is_u64());
    document
}

fn run(arguments: &[&str], folder: &Path, name: &str) -> OutputAssert {
    let written = format!("wrote {0}/{name}.json\nwrote {0}/{name}.svg\n", folder.display());
    gpuemu(arguments).args(["--output", folder.to_str().unwrap()]).assert().success().stderr_eq(written)
}

#[test]
fn the_same_seed_gives_the_same_bytes_on_stdout_and_in_files() {
    for (name, arguments) in
        [("artifacts", &["study", "artifacts"][..]), ("inputs", &["study", "inputs", "--cases", "2"])]
    {
        let [first, second] = [tempfile::tempdir().unwrap(), tempfile::tempdir().unwrap()];
        let arguments = [arguments, &["--format", "json"]].concat();
        let [printed, again] = [&first, &second]
            .map(|folder| gpuemu(&arguments).args(["--output", folder.path().to_str().unwrap()]).assert());
        let read = |folder: &TempDir, extension: &str| {
            std::fs::read_to_string(folder.path().join(format!("{name}.{extension}"))).unwrap()
        };
        assert_eq!(read(&first, "json").as_bytes(), printed.get_output().stdout, "{name}");
        assert!(
            printed.get_output().stdout == again.get_output().stdout && read(&first, "svg") == read(&second, "svg")
        );
    }
}

#[test]
fn the_oracle_study() {
    let document = check(&["study", "oracle", "--cases", "20"], "oracle", file!["../data/study/oracle.txt"]);
    let most: Vec<&Value> = document["checks"].as_array().unwrap().iter().map(|one| &one["most_accepted"]).collect();
    assert_eq!((document["seed"].as_str(), most), (Some("0"), vec![&3.into(); 3]));
    let kernels = document["kernels"].as_array().unwrap();
    let settings = |kernel: &Value| kernel["settings"].as_array().unwrap().clone();
    assert_eq!(settings(&kernels[0]).len(), 72);
    let row = "| wrong ones accepted in the worst of 72 settings of shape, inputs and dtype | 3 of 10 | 0 of 10 |";
    assert_shown("README.md", row);
    let controls: Vec<&Value> = kernels.iter().filter(|kernel| kernel["role"] == "control").collect();
    let rejected = controls.iter().filter(|kernel| settings(kernel).iter().any(|one| one["accepted"][0] == false));
    let (rejected, flagged) = (rejected.count(), controls.iter().filter(|one| one["gpuemu_rejects"] == true).count());
    let row =
        format!("`assert_close` | {rejected} of {0} | {flagged} of {0} | `gpuemu study oracle` |", controls.len());
    assert_shown("README.md", &row);
}

#[test]
fn the_tolerance_study() {
    let document = check(&["study", "tolerance", "--cases", "50"], "tolerance", file!["../data/study/tolerance.txt"]);
    for rule in document["rules"].as_array().unwrap().iter().filter(|rule| rule["rule"] == "bound") {
        assert_eq!((&rule["observable"]["share"], &rule["false_alarms"]["part"]), (&1.0.into(), &0.into()), "{rule}");
    }
    let of_rules = |column: &str| {
        let cell = |rule: &str| {
            let rules = document["rules"].as_array().unwrap();
            let found = rules.iter().find(|one| one["inputs"] == "ours" && one["rule"] == rule).unwrap();
            format!("{} of {}", found[column]["part"], found[column]["whole"])
        };
        ["fixed", "calibrated", "bound"].map(cell).join(" | ")
    };
    let found = format!("| cases found, of those in which the bug is observable | {} |", of_rules("observable"));
    assert_shown("docs/studies.md", &found);
    assert_shown("docs/studies.md", &format!("| false alarms on right kernels | {} |", of_rules("false_alarms")));
    let closest = &document["closest"];
    assert!(closest["correct"].as_f64() < Some(1.0) && closest["wrong"].as_f64() > Some(1.0), "{closest}");
}

#[test]
fn the_study_of_inputs() {
    let document = check(&["study", "inputs", "--cases", "15"], "inputs", file!["../data/study/inputs.txt"]);
    let strategies = document["strategies"].as_array().unwrap();
    let ours: Vec<&Value> = strategies.iter().filter(|one| one["is_our_default"] == true).collect();
    assert_eq!((strategies.len(), ours.len()), (7, 1));
    assert_eq!(ours[0]["checks"]["ours"]["kernels"]["part"], 10);
}

#[test]
fn the_study_of_artifacts() {
    let document = check(&["study", "artifacts"], "artifacts", file!["../data/study/artifacts.txt"]);
    let seen = |name: &str, by: &str| {
        let pair = document["pairs"].as_array().unwrap().iter().find(|pair| pair["wrong"] == name).unwrap();
        pair[by].as_bool()
    };
    assert_eq!(
        (seen("softmax_other_zero", "seen_by_count"), seen("gelu_no_half", "seen_by_count")),
        (Some(false), Some(true))
    );
    assert_eq!(
        (seen("softmax_other_zero", "seen_by_constants"), seen("softmax_numpy_padded", "seen_by_count")),
        (Some(true), None)
    );
}

/// Every element is closed, in order, and there is a title.
fn check_svg(svg: &str) {
    let mut open: Vec<&str> = Vec::new();
    for piece in svg.split('<').skip(1) {
        let (tag, text) = piece.split_once('>').unwrap();
        assert_eq!(tag.matches('"').count() % 2, 0, "{tag}");
        assert!(!text.contains(['"', '>']) && !tag.contains("NaN") && !tag.contains("inf"), "{piece}");
        let name = tag.trim_start_matches('/').split([' ', '/']).next().unwrap();
        match (tag.starts_with('/'), tag.ends_with('/')) {
            (true, _) => assert_eq!(open.pop(), Some(name)),
            (false, true) => {}
            (false, false) => open.push(name),
        }
    }
    assert!(open.is_empty() && svg.starts_with("<svg ") && svg.contains("<title>P"), "{open:?}");
}

#[test]
fn another_seed_gives_other_cases() {
    let run = |seed: &str| {
        let arguments = ["study", "inputs", "--cases", "3", "--format", "json", "--seed", seed];
        let output = gpuemu(&arguments).assert();
        let report: Value = serde_json::from_slice(&output.get_output().stdout).unwrap();
        assert_eq!(report["seed"], seed);
        report["kernels"].clone()
    };
    assert_ne!(run("18446744073709551615"), run("1"));
}

#[test]
fn what_ran_is_said() {
    let arguments = ["study", "oracle", "--cases", "2", "--runner", "ptx", "--format", "json"];
    let output = gpuemu(&arguments).assert();
    let report: Value = serde_json::from_slice(&output.get_output().stdout).unwrap();
    let kernels = report["kernels"].as_array().unwrap();
    let of = |name: &str| kernels.iter().find(|kernel| kernel["name"] == name).unwrap();
    assert_eq!((report["runner"].as_str(), &of("softmax")["runner"]), (Some("ptx"), &"ptx_machine".into()));
    assert_eq!(of("softmax_numpy")["runner"], "stand_in");
    // The compiled attention has no form for 1,024 keys: that is neither accepted nor rejected.
    let wide = |setting: &&Value| setting["shape"] == "1024";
    let settings = of("attention_no_scale")["settings"].as_array().unwrap();
    assert!(settings.iter().filter(wide).all(|setting| setting["accepted"].is_null()));
    assert!(settings.iter().any(|setting| setting["accepted"].is_array()));
}

#[test]
fn mistakes_are_usage_errors() {
    gpuemu(&["study"]).assert().code(2).stdout_eq("");
    gpuemu(&["study", "speed"]).assert().code(2).stdout_eq("");
    gpuemu(&["study", "inputs", "--cases", "0"]).assert().code(2).stdout_eq("");
    // Nothing is drawn at random there.
    gpuemu(&["study", "artifacts", "--seed", "1"]).assert().code(2).stdout_eq("");
    let folder = tempfile::tempdir().unwrap();
    let file = folder.path().join("file");
    std::fs::write(&file, "").unwrap();
    gpuemu(&["study", "artifacts", "--output", file.to_str().unwrap()]).assert().code(2).stdout_eq("").stderr_eq(str![
        [r#"
error: the study cannot be written to [..]file: [..]
hint: name a folder that can be written with --output

"#]
    ]);
}
