//! Signed reports: what they hold, what keeps them from passing, and that nothing in them can be changed.
#![allow(clippy::unwrap_used, clippy::panic, clippy::print_stderr, reason = "tests fail by panicking")]

use std::path::PathBuf;

use gpuemu_model::finding::Outcome;
use gpuemu_store::{ResultQuery, ResultRecord, RunRecord, Store};
use gpuemu_tensor::Stream;
use serde_json::Value;

use crate::fixture::kernels::{gpuemu, softmax_kernel, stdout};
use crate::fixture::{Project, text_of};

/// A project whose op is a compiled kernel, with more of its entry.
fn project(code: &str, more: &str) -> Project {
    let project = Project::without_python();
    let kernel = softmax_kernel(&project, "compiled", code);
    project.write(
        "gpuemu.toml",
        &format!(
            "[project]\nname = \"evidence\"\nframework = \"numpy\"\n\n[validation]\nseed = 7\n\n{kernel}\
             [[ops]]\nname = \"softmax\"\nkernel = \"compiled\"\ndtypes = [\"float32\"]\n{more}"
        ),
    );
    project
}

/// What gpuemu prints, without a daemon.
fn run(project: &Project, arguments: &[&str], status: i32) -> String {
    let output = gpuemu(project, &[arguments, &["--no-daemon"]].concat()).assert().code(status);
    text_of(&output.get_output().stdout) + &text_of(&output.get_output().stderr)
}

const TEST: [&str; 3] = ["test", "--iterations", "40"];
const SIGN: [&str; 4] = ["report", "--signed", "--output", "r.json"];

fn written(project: &Project) -> Value {
    serde_json::from_str(&project.read("r.json")).unwrap()
}

#[test]
fn a_signed_report_holds_what_its_verdicts_rest_on() {
    let project = project("softmax", "");
    run(&project, &TEST, 0);
    let said = run(&project, &SIGN, 0);
    assert!(said.contains("PASSED: signed by key ") && said.contains("made a key: "), "{said}");
    let report = written(&project);
    let evidence = &report["evidence"];
    assert_eq!((&report["passed"], &evidence["reservations"]), (&true.into(), &Value::Array(Vec::new())));
    assert_eq!(evidence["configuration"], project.read("gpuemu.toml"));
    let op = &evidence["ops"][0];
    assert_eq!((&op["op"], &op["seed"], &op["mode"]), (&"softmax".into(), &"7".into(), &"thorough".into()));
    let verdicts = op["verdicts"].as_array().unwrap();
    assert_eq!(verdicts.len(), 40);
    for verdict in verdicts {
        assert_eq!(verdict["inputs_sha256"].as_str().unwrap().len(), 64, "{verdict}");
        assert!(verdict["seed"].is_string() && verdict["outcome"] != "failed", "{verdict}");
    }
    let sources = op["sources"].as_array().unwrap();
    assert!(sources.iter().any(|source| source["path"] == "kernels/softmax_float32_64.ptx"), "{sources:?}");
    assert!(sources.iter().all(|source| source["sha256"].as_str().is_some_and(|hash| hash.len() == 64)));
    // The same results give the same verdicts and hashes again.
    let again = written(&project)["evidence"]["ops"][0]["verdicts"].clone();
    run(&project, &SIGN, 0);
    assert_eq!(written(&project)["evidence"]["ops"][0]["verdicts"], again);

    let said = run(&project, &["verify", "r.json"], 0);
    assert!(
        said.contains("VALID  r.json: signed by key") && said.contains("PASSED  evidence: 1 ops, 40 cases"),
        "{said}"
    );
    // A report with evidence that is signed later, by a key of somebody else.
    run(&project, &["report", "--evidence", "--format", "json", "--output", "later.json"], 0);
    run(&project, &["sign", "later.json"], 0);
    run(&project, &["verify", "later.json"], 0);
    run(&project, &["test", "--iterations", "40", "--format", "json", "--output", "plain.json"], 0);
    let said = run(&project, &["sign", "plain.json"], 2);
    assert!(said.contains("it holds no evidence"), "{said}");
}

#[test]
fn openssl_verifies_the_same_bytes() {
    if std::process::Command::new("openssl").arg("version").output().is_err() {
        assert!(std::env::var_os("CI").is_none(), "openssl is not installed");
        eprintln!("skipped: openssl is not installed");
        return;
    }
    let project = project("softmax", "");
    run(&project, &TEST, 0);
    run(&project, &SIGN, 0);
    project.write("public.pem", &stdout(&project, &["sign", "--public-key"], 0));
    let openssl = |report: &str| {
        let files = ["-inkey", "public.pem", "-rawin", "-in", report, "-sigfile", "r.json.sig"];
        let command = std::process::Command::new("openssl")
            .args(["pkeyutl", "-verify", "-pubin"])
            .args(files)
            .current_dir(project.folder.path())
            .output();
        command.unwrap().status.success()
    };
    assert!(openssl("r.json"));
    project.write("changed.json", &project.read("r.json").replacen("softmax", "softmay", 1));
    assert!(!openssl("changed.json"));
    run(&project, &["verify", "r.json", "--key", "public.pem"], 0);
}

#[test]
fn every_change_of_one_byte_is_rejected() {
    let project = project("softmax", "");
    run(&project, &TEST, 0);
    run(&project, &SIGN, 0);
    let files = ["r.json", "r.json.sig"].map(|name| std::fs::read(project.path(name)).unwrap());
    let attempt = |number: u64| {
        let mut random = Stream::new(number, "tampering");
        let which = usize::from(random.below(4) == 0);
        let mut changed = files.clone();
        let place = random.below(changed[which].len() as u64) as usize;
        changed[which][place] ^= 1 + random.below(255) as u8;
        let folder = tempfile::tempdir().unwrap();
        let report = folder.path().join("r.json");
        std::fs::write(&report, &changed[0]).unwrap();
        std::fs::write(folder.path().join("r.json.sig"), &changed[1]).unwrap();
        let output = gpuemu(&project, &["verify", report.to_str().unwrap()]).assert().code(1);
        let said = text_of(&output.get_output().stdout);
        assert!(said.starts_with("REJECTED  "), "byte {place} of file {which}: {said}");
    };
    std::thread::scope(|scope| {
        for half in 0..2 {
            scope.spawn(move || (0..500).for_each(|number| attempt(2 * number + half)));
        }
    });
}

#[test]
fn another_key_a_missing_signature_and_a_missing_report_do_not_verify() {
    let (project, other) = (project("softmax", ""), project("softmax", ""));
    run(&project, &TEST, 0);
    run(&project, &SIGN, 0);
    other.write("public.pem", &stdout(&other, &["sign", "--public-key"], 0));
    let key = other.path("public.pem");
    let said = run(&project, &["verify", "r.json", "--key", key.to_str().unwrap()], 1);
    assert!(said.contains("REJECTED  r.json: these bytes were not signed by key"), "{said}");
    std::fs::remove_file(project.path("r.json.sig")).unwrap();
    assert!(run(&project, &["verify", "r.json"], 2).contains("r.json.sig cannot be read"));
    assert!(run(&project, &["verify", "none.json"], 2).contains("none.json cannot be read"));
    let nobody = Project::without_python();
    nobody.write("r.json", "{}");
    nobody.write("r.json.sig", "");
    assert!(run(&nobody, &["verify", "r.json"], 2).contains("give the public key of who signed the report with --key"));
}

#[test]
fn what_failed_is_weak_missing_or_out_of_date_does_not_pass() {
    let wrong = project("softmax_other_zero", "values = \"regular\"\n");
    run(&wrong, &TEST, 1);
    let said = run(&wrong, &SIGN, 1);
    assert!(said.contains("NOT PASSED: signed by key"), "{said}");
    let said = run(&wrong, &["verify", "r.json"], 1);
    assert!(said.contains("VALID  r.json") && said.contains("NOT PASSED  evidence"), "{said}");
    run(&wrong, &["verify", "r.json", "--signature-only"], 0);

    let weak = project("softmax", "tolerance = \"fixed\"\n[ops.tolerances.float32]\natol = 10.0\nrtol = 0.0\n");
    run(&weak, &TEST, 0);
    let said = run(&weak, &SIGN, 2);
    assert!(said.contains("its cases of float32 are weak"), "{said}");

    let edited = project("softmax", "");
    run(&edited, &TEST, 0);
    let file = "kernels/softmax_float32_64.ptx";
    edited.write(file, &(edited.read(file) + "\n// touched\n"));
    assert!(run(&edited, &SIGN, 2).contains("kernels/softmax_float32_64.ptx has changed since it ran"));
    run(&edited, &TEST, 0);
    run(&edited, &SIGN, 0);
    edited.replace("gpuemu.toml", "[[ops]]", "# A remark.\n[[ops]]");
    assert!(run(&edited, &SIGN, 2).contains("the configuration has changed since it ran"));
    edited.write(
        "gpuemu.toml",
        &(edited.read("gpuemu.toml") + "\n[[ops]]\nname = \"more\"\nop = \"softmax\"\nkernel = \"compiled\"\n"),
    );
    run(&edited, &[&TEST[..], &["--op", "softmax"]].concat(), 0);
    let said = run(&edited, &SIGN, 2);
    assert!(said.contains("more: no run of it is stored") && !said.contains("softmax: the"), "{said}");
    assert_eq!(written(&edited)["passed"], false);
}

/// The file of a project's store.
fn store_file(project: &Project) -> PathBuf {
    project.home.path().join("db/gpuemu.redb")
}

#[test]
fn one_failure_among_ten_thousand_results_is_a_failure() {
    let project = project("softmax", "");
    run(&project, &["test", "--iterations", "1"], 0);
    {
        let store = Store::open(&store_file(&project)).unwrap();
        let key = std::fs::canonicalize(project.folder.path()).unwrap().display().to_string();
        let sample = store.results(&key, &ResultQuery::default()).unwrap().remove(0);
        let run = store.next_run();
        let mut records = Vec::new();
        for index in 0..10_000 {
            let mut record = sample.clone();
            (record.run, record.index, record.result.seed) = (run, index, index);
            record.result.outcome = if index == 7_919 { Outcome::Failed } else { Outcome::Passed };
            records.push(record);
        }
        store.append(&records, &[]).unwrap();
    }
    run(&project, &SIGN, 1);
    let report = written(&project);
    assert_eq!((&report["passed"], &report["ops"][0]["failed"]), (&false.into(), &1.into()));
    assert!(run(&project, &["verify", "r.json"], 1).contains("1 of 10000 cases failed"));
}

/// Changes what is stored of a project's newest run.
fn change_stored(project: &Project, change: impl Fn(&mut ResultRecord), change_run: impl Fn(&mut RunRecord)) {
    let store = Store::open(&store_file(project)).unwrap();
    let key = std::fs::canonicalize(project.folder.path()).unwrap().display().to_string();
    let mut records = store.results(&key, &ResultQuery::default()).unwrap();
    records.iter_mut().for_each(change);
    store.append(&records, &[]).unwrap();
    let mut runs = store.runs(&key, None, 1).unwrap();
    runs.iter_mut().for_each(change_run);
    store.put_runs(&runs).unwrap();
}

#[test]
fn what_is_not_known_of_a_case_or_a_kernel_keeps_a_report_from_passing() {
    let unmade = project("softmax", "");
    run(&unmade, &TEST, 0);
    // As if another generator had drawn the case: its inputs cannot be made again.
    let version = |record: &mut ResultRecord| {
        if record.index == 3 {
            record.result.case.generator = 77;
        }
    };
    change_stored(&unmade, version, |_| {});
    let said = run(&unmade, &SIGN, 2);
    assert!(said.contains("there is no hash of the inputs of 1 of 40 cases: the case was generated by"), "{said}");
    assert_eq!(written(&unmade)["passed"], false);

    let nameless = project("softmax", "");
    run(&nameless, &TEST, 0);
    change_stored(&nameless, |_| {}, |record| record.run.op.sources.clear());
    let said = run(&nameless, &SIGN, 2);
    assert!(said.contains("no file is known that it is made of"), "{said}");
}

#[test]
fn a_newer_case_that_did_not_pass_stands_against_an_older_run() {
    let project = project("softmax", "");
    run(&project, &TEST, 0);
    for outcome in [Outcome::Failed, Outcome::Undetermined, Outcome::Error] {
        run(&project, &SIGN, 0);
        {
            let store = Store::open(&store_file(&project)).unwrap();
            let key = std::fs::canonicalize(project.folder.path()).unwrap().display().to_string();
            let mut record = store.results(&key, &ResultQuery::default()).unwrap().remove(0);
            (record.run, record.index) = (store.next_run(), 0);
            (record.result.seed, record.result.outcome) = (1234, outcome);
            store.append(&[record], &[]).unwrap();
        }
        let status = if outcome == Outcome::Failed { 1 } else { 2 };
        let said = run(&project, &SIGN, status);
        assert!(said.contains("a newer result, of the case with seed 1234, did not pass"), "{outcome:?}: {said}");
        run(&project, &TEST, 0);
    }
}

#[test]
fn a_store_that_cannot_be_read_gives_an_error_and_no_file() {
    let project = project("softmax", "");
    run(&project, &TEST, 0);
    std::fs::write(store_file(&project), "this is no store, whatever its name says").unwrap();
    run(&project, &SIGN, 2);
    assert!(!project.path("r.json").exists() && !project.path("r.json.sig").exists());
}
