//! What is done while gpuemu is made to fail: each command that says whether something passed.

use std::path::{Path, PathBuf};

use crate::daemon_process::project;

/// Something that is done.
pub struct Scenario {
    pub name: &'static str,
    /// The folder of the project.
    pub project: &'static str,
    /// The arguments of the command line.
    pub arguments: &'static [&'static str],
    /// The exit status where nothing fails.
    pub status: i32,
    /// The report that it writes.
    pub report: Option<&'static str>,
    /// Whether it runs ops, so that what is stored is its own.
    pub runs: bool,
    /// Whether it reads what was stored before.
    pub reads: bool,
    /// Whether gpuemu has another way to the same verdict, and may pass by it.
    pub recovers: bool,
    /// Whether it reads files alone, and never asks a daemon.
    pub by_itself: bool,
}

const fn scenario(name: &'static str, project: &'static str, arguments: &'static [&'static str]) -> Scenario {
    Scenario {
        name,
        project,
        arguments,
        status: 0,
        report: None,
        runs: false,
        reads: true,
        recovers: false,
        by_itself: false,
    }
}

/// Few cases, the same ones in every run.
macro_rules! run {
    ($name:literal, $project:literal, $status:literal, $report:literal, [$($more:literal),*]) => {
        Scenario {
            status: $status,
            report: Some($report),
            runs: true,
            reads: false,
            ..scenario($name, $project, &["ci", "--iterations", "4", "--seed", "7", $($more,)* "--output", $report])
        }
    };
}

pub const SCENARIOS: &[Scenario] = &[
    run!("text", "kernel", 0, "report.txt", []),
    run!("json", "kernel", 0, "report.json", ["--format", "json"]),
    run!("junit", "kernel", 0, "report.xml", ["--format", "junit"]),
    run!("sarif", "kernel", 0, "report.sarif", ["--format", "sarif"]),
    run!("markdown", "kernel", 0, "report.md", ["--format", "markdown"]),
    run!("html", "kernel", 0, "report.html", ["--format", "html"]),
    Scenario {
        runs: true,
        reads: false,
        ..scenario("test", "kernel", &["test", "--iterations", "4", "--base-seed", "7"])
    },
    run!("python", "python", 0, "report.json", ["--format", "json"]),
    Scenario { recovers: true, ..run!("warm", "warm", 0, "report.json", ["--format", "json"]) },
    run!("wrong", "wrong", 1, "report.json", ["--format", "json"]),
    run!("wrong page", "wrong", 1, "report.html", ["--format", "html", "--no-minimize"]),
    Scenario {
        reads: true,
        ..run!(
            "baseline",
            "kernel",
            0,
            "report.json",
            ["--format", "json", "--baseline", "good", "--fail-on-regression"]
        )
    },
    scenario("stored", "kernel", &["report", "--format", "json"]),
    Scenario {
        report: Some("signed.json"),
        ..scenario("signed", "kernel", &["report", "--signed", "--output", "signed.json"])
    },
    Scenario { by_itself: true, ..scenario("verify", "kernel", &["verify", "kept.json"]) },
    Scenario {
        by_itself: true,
        ..scenario("merge", "kernel", &["report", "--merge", "one.json", "two.json", "--format", "json"])
    },
    scenario("diff", "kernel", &["diff", "--baseline", "good"]),
    scenario("reproduce", "kernel", &["reproduce", "SEED", "--op", "softmax"]),
];

/// What is done before, with the gpuemu that users have, so that there is something to read.
pub const BEFORE: &[(&str, &[&str], i32)] = &[
    ("kernel", &["ci", "--iterations", "4", "--seed", "7", "--format", "json", "--output", "run.json"], 0),
    ("kernel", &["baseline", "good"], 0),
    ("kernel", &["report", "--signed", "--output", "kept.json"], 0),
    (
        "kernel",
        &["ci", "--iterations", "8", "--seed", "7", "--shard", "1/2", "--format", "json", "--output", "one.json"],
        0,
    ),
    (
        "kernel",
        &["ci", "--iterations", "8", "--seed", "7", "--shard", "2/2", "--format", "json", "--output", "two.json"],
        0,
    ),
    // The newest run is a whole one again: a shard alone proves nothing, and would not be signed as passed.
    ("kernel", &["ci", "--iterations", "4", "--seed", "7"], 0),
    ("wrong", &["ci", "--iterations", "2", "--seed", "9"], 1),
];

const HEAD: &str = "[project]\nname = \"faults\"\nframework = \"numpy\"\n\n[validation]\nseed = 7\n\n";

/// One that reads floats and prints them: a cold one without imports of its own starts quickly.
const SCRIPT: &str = r#"#!PYTHON -S
import json, sys
request = json.load(sys.stdin)
print(json.dumps({"outputs": {"out": request["inputs"]["input"]}}))
"#;

/// Makes the projects below a folder.
pub fn make_projects(folder: &Path, python: &Path) -> Result<(), String> {
    let corpus = Path::new(env!("CARGO_MANIFEST_DIR")).join("../corpus/ptx");
    let softmax = |name: &str, code: &str| -> Result<(String, Vec<(String, String)>), String> {
        let (mut variants, mut files) = (String::new(), Vec::new());
        for (block, shared) in [(8, 0), (16, 0), (32, 0), (64, 8)] {
            let file = format!("{code}_float32_{block}.ptx");
            let text = std::fs::read_to_string(corpus.join(&file)).map_err(|error| format!("{file}: {error}"))?;
            let when = format!("dtype == 'float32' && next_pow2(H) == {block} && numel(out) > 0");
            variants.push_str(&format!("  {{ when = \"{when}\", ptx = \"{file}\", shared = {shared} }},\n"));
            files.push((file, text));
        }
        let kernel = format!(
            "[[kernels]]\nname = \"{name}\"\nsource = \"{code}_float32_64.ptx\"\ngrid = [\"rows(input)\"]\nblock = [128]\n\
             args = [\"out\", \"input\", \"H\", \"null\", \"null\"]\nvariants = [\n{variants}]\n\n"
        );
        Ok((kernel, files))
    };
    let write = |name: &str, config: String, files: &[(String, String)]| {
        let mut all = vec![("gpuemu.toml", config.as_str())];
        all.extend(files.iter().map(|(file, text)| (file.as_str(), text.as_str())));
        project(&folder.join(name), &all).map(drop)
    };
    let (kernel, files) = softmax("right", "softmax")?;
    let op = "[[ops]]\nname = \"softmax\"\nkernel = \"right\"\ndtypes = [\"float32\"]\n";
    write("kernel", format!("{HEAD}{kernel}{op}"), &files)?;
    let (kernel, files) = softmax("masked", "softmax_other_zero")?;
    let op = "[[ops]]\nname = \"softmax\"\nkernel = \"masked\"\ndtypes = [\"float32\"]\nvalues = \"regular\"\n\
              tolerance = \"fixed\"\n[ops.tolerances.float32]\natol = 1e-6\nrtol = 1e-5\n";
    write("wrong", format!("{HEAD}{kernel}{op}"), &files)?;
    let entry = |name: &str, more: &str| {
        format!(
            "[[ops]]\nname = \"{name}\"\nsignature = \"input[N] -> out[N]\"\ndtypes = [\"float32\"]\n\
             values = \"regular\"\n{more}\n"
        )
    };
    let script = SCRIPT.replace("PYTHON", &python.display().to_string());
    let files = [
        ("ops.py".to_string(), "def copied(input):\n    return input + 0\n".to_string()),
        ("script".to_string(), script.clone()),
        ("reference".to_string(), script.clone()),
        ("warm.py".to_string(), script),
    ];
    let python_ops = [
        entry("copied", "module = \"ops\"\nreference = \"reference\"\nexecution_mode = \"script_based\""),
        entry("scripted", "script = \"script\"\nreference = \"reference\"\nexecution_mode = \"script_based\""),
    ];
    write("python", format!("{HEAD}{}", python_ops.concat()), &files)?;
    let warm = entry("warm", "script = \"warm.py\"\nreference = \"warm.py\"\nexecution_mode = \"daemon_orchestrated\"");
    write("warm", format!("{HEAD}{warm}"), &files)?;
    for (name, file) in [("python", "script"), ("python", "reference")] {
        make_executable(&folder.join(name).join(file))?;
    }
    Ok(())
}

fn make_executable(path: &PathBuf) -> Result<(), String> {
    use std::os::unix::fs::PermissionsExt;
    std::fs::set_permissions(path, std::fs::Permissions::from_mode(0o755)).map_err(|error| error.to_string())
}
