//! `--format html`: the page on a run, with failures run again for their pictures.
#![allow(clippy::unwrap_used, reason = "tests fail by panicking")]

use std::os::unix::fs::PermissionsExt;

use crate::fixture::kernels::{gpuemu, softmax_kernel};
use crate::fixture::{Project, text_of};

/// Two ops of compiled kernels: a right one, and one whose padding enters the denominator.
fn project() -> Project {
    let project = Project::without_python();
    let kernels =
        softmax_kernel(&project, "right", "softmax") + &softmax_kernel(&project, "masked", "softmax_other_zero");
    project.write(
        "gpuemu.toml",
        &format!(
            "[project]\nname = \"pages\"\nframework = \"numpy\"\n\n[validation]\nseed = 7\n\n{kernels}\
             [[ops]]\nname = \"softmax\"\nkernel = \"right\"\ndtypes = [\"float32\"]\n\n\
             [[ops]]\nname = \"masked\"\nop = \"softmax\"\nkernel = \"masked\"\ndtypes = [\"float32\"]\nvalues = \"regular\"\n"
        ),
    );
    project
}

fn page_of(project: &Project, arguments: &[&str], status: i32) -> String {
    text_of(&gpuemu(project, &[arguments, &["--no-daemon"]].concat()).assert().code(status).get_output().stdout)
}

fn count(text: &str, part: &str) -> usize {
    text.matches(part).count()
}

#[test]
fn a_page_shows_failures_as_they_are_now_and_stores_nothing() {
    let project = project();
    let run = ["fuzz", "--iterations", "30", "--format", "html", "--output", "page.html"];
    let output = gpuemu(&project, &[&run[..], &["--no-daemon"]].concat()).assert().code(1);
    let said = text_of(&output.get_output().stderr);
    assert!(said.contains("running a failure again for its picture") && said.contains("wrote page.html"), "{said}");
    let page = project.read("page.html");
    assert_eq!((count(&page, "<svg class=\"map\""), count(&page, "<svg class=\"histogram\"")), (1, 1));
    assert!(page.contains("Failed") && page.contains("Smallest failing case"), "{page}");
    assert!(page.contains("gpuemu reproduce ") && page.contains("Around the worst element"), "{page}");
    let cards = count(&page, "<details class=\"card\"");
    assert!(cards > 1 && count(&page, "<details class=\"card\" id=\"failure-1\" open=\"\"") == 1, "{cards}");
    assert!(page.contains("passed in 0 of 1 stored run; in the newest"), "the history of 'masked'");

    let failures = |project: &Project| {
        let listed = page_of(project, &["failures", "--format", "json", "--limit", "10000"], 0);
        serde_json::from_str::<serde_json::Value>(&listed).unwrap().as_array().unwrap().len()
    };
    let before = failures(&project);
    let stored = page_of(&project, &["report", "--format", "html", "--op", "masked"], 1);
    assert_eq!((count(&stored, "<svg class=\"map\""), failures(&project)), (1, before));
    assert!(!stored.contains("<th scope=\"row\"><a href=\"#op-0\">softmax</a>"), "{stored}");
    let plain = page_of(&project, &["report", "--format", "html", "--op", "masked", "--no-minimize"], 1);
    assert_eq!((count(&plain, "<svg class=\"map\""), count(&plain, "Smallest failing case")), (1, 0));

    // The kernel is mended: what is stored is shown as what it was.
    project.replace("gpuemu.toml", "kernel = \"masked\"", "kernel = \"right\"");
    let mended = page_of(&project, &["report", "--format", "html", "--op", "masked"], 1);
    assert!(mended.contains("<strong>Passes now: </strong>it failed on 20"), "{mended}");
    assert_eq!(count(&mended, "<svg class=\"map\""), 0);
    // It is gone.
    project.replace("gpuemu.toml", "name = \"masked\"\nop", "name = \"other\"\nop");
    let gone = page_of(&project, &["report", "--format", "html", "--op", "masked"], 1);
    assert!(gone.contains("<strong>No picture: </strong>"), "{gone}");
}

#[test]
fn shards_are_joined_to_a_page() {
    let project = project();
    for shard in ["1", "2"] {
        let home = tempfile::tempdir().unwrap();
        let (part, file) = (format!("{shard}/2"), format!("{shard}.json"));
        let run =
            ["fuzz", "--iterations", "20", "--shard", &part, "--format", "json", "--output", &file, "--no-daemon"];
        gpuemu(&project, &run).env("GPUEMU_HOME", home.path()).assert().code(1);
    }
    // Nothing of these runs is stored here: the cases are drawn anew from their seeds.
    let page = page_of(&project, &["report", "--format", "html", "--merge", "1.json", "2.json"], 1);
    assert_eq!(count(&page, "<svg class=\"map\""), 1, "{page}");
    assert!(page.contains("no stored run"), "{page}");
}

#[test]
fn a_page_is_opened_where_that_is_asked_for() {
    let project = project();
    page_of(&project, &["fuzz", "--op", "softmax", "--iterations", "3"], 0);
    let refused = |arguments: &[&str], words: &str| {
        let output = gpuemu(&project, &[arguments, &["--no-daemon"]].concat())
            .env("BROWSER", "no-such-browser")
            .env("PATH", "")
            .assert()
            .code(2);
        let said = text_of(&output.get_output().stderr);
        assert!(said.contains(words), "{said}");
    };
    refused(&["report", "--format", "html", "--open"], "--output");
    refused(&["report", "--open", "--output", "r.txt"], "--open opens a page, and this report is none");
    let open = ["report", "--format", "html", "--output", "r.html", "--open"];
    refused(&open, "no browser could be started: no-such-browser cannot be started");
    refused(&["test", "--seed", "3", "--format", "html"], "one case has no report as html");
    assert!(project.path("r.html").is_file(), "the page is there, whoever opens it");

    project.write("browser", "#!/bin/sh\necho \"$1\" > opened\n");
    std::fs::set_permissions(project.path("browser"), std::fs::Permissions::from_mode(0o755)).unwrap();
    let browser = project.path("browser");
    gpuemu(&project, &[&open[..], &["--no-daemon"]].concat()).env("BROWSER", &browser).assert().code(0);
    assert_eq!(project.read("opened").trim_end(), project.path("r.html").display().to_string());
}

#[test]
fn the_page_of_an_earlier_report_has_pictures_where_its_project_is() {
    let project = project();
    let run = ["fuzz", "--op", "masked", "--iterations", "30", "--format", "json", "--output", "r.json", "--no-daemon"];
    gpuemu(&project, &run).assert().code(1);
    let from = ["report", "--from", "r.json", "--format", "html"];
    let page = page_of(&project, &from, 1);
    assert_eq!((count(&page, "<svg class=\"map\""), count(&page, "Smallest failing case")), (1, 1));
    // Another project, or the same one with another configuration: the failures are there, and nothing is run.
    let elsewhere = Project::without_python();
    elsewhere.write("r.json", &project.read("r.json"));
    project.replace("gpuemu.toml", "seed = 7", "seed = 8");
    for place in [&elsewhere, &project] {
        let page = page_of(place, &from, 1);
        assert_eq!(count(&page, "<svg class=\"map\""), 0);
        assert!(count(&page, "<details class=\"card\"") > 1, "{page}");
    }
}
