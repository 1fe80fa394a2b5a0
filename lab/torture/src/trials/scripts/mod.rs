//! References and ops that hang, flood, fork, crash and lie, through the real daemon with a real Python.

mod behaviours;
mod bystander;
mod large_input;

use std::path::Path;
use std::sync::Mutex;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::{Duration, Instant};

use gpuemu_model::report::{OpReport, OpStatus};
use gpuemu_model::settings::{FuzzConfig, Mode, ProjectReference};
use gpuemu_tensor::Stream;
use gpuemu_wire::Client;
use gpuemu_wire::protocol::{Request, Response, RunCi};

use self::behaviours::{BEHAVIOURS, Behaviour, Expected, Way, Words};
use crate::daemon_process::{DaemonProcess, PATIENCE, python};
use crate::requests::stored;
use crate::trial::{Ended, Extent, Trial};

pub const TRIAL: Trial =
    Trial { name: "scripts", about: "references and ops that hang, flood, fork, crash and lie", run };

/// Pairs of a behaviour and a way that the short form tries.
const SHORT: usize = 14;

/// Pairs that are tried at once.
const AT_ONCE: usize = 3;

/// How long a bystander may wait: far below what a script that hangs is given.
const LONGEST_WAIT: Duration = Duration::from_secs(2);

/// How long a script may take, in seconds: one that never ends, and any other on a busy machine.
const TIMEOUTS: (u64, u64) = (4, 60);

/// Files in which scripts note their processes: those of their children, and their own.
const CHILDREN: &str = "children";
const CALLS: &str = "calls";

fn run(extent: &Extent) -> Ended {
    if python().is_none() {
        return Ended::Impossible("there is no Python: GPUEMU_TEST_PYTHON".to_string());
    }
    misbehave(extent).into()
}

fn misbehave(extent: &Extent) -> Result<Vec<String>, String> {
    let mut pairs: Vec<(&Behaviour, Way)> = BEHAVIOURS
        .iter()
        .flat_map(|behaviour| Way::ALL.map(|way| (behaviour, way)))
        .filter(|(behaviour, way)| way.part(behaviour).is_some())
        .collect();
    let all = pairs.len();
    if extent.short {
        let mut choices = Stream::new(extent.seed, "torture/scripts");
        while pairs.len() > SHORT {
            pairs.swap_remove(choices.below(pairs.len() as u64) as usize);
        }
    }
    let tried = pairs.len();
    let mut daemon = DaemonProcess::start()?;
    let (queue, problems) = (Mutex::new(pairs), Mutex::new(Vec::new()));
    let over = AtomicBool::new(false);
    let waits = std::thread::scope(|scope| {
        let bystander = scope.spawn(|| bystander::watch(&daemon, &over));
        let work = || {
            while let Some((behaviour, way)) = queue.lock().ok().and_then(|mut queue| queue.pop()) {
                if let Err(problem) = misbehaves(&daemon, behaviour, way) {
                    let problem = format!("'{}' as {way:?}: {problem}", behaviour.name);
                    problems.lock().map(|mut problems| problems.push(problem)).unwrap_or_default();
                }
            }
        };
        if !extent.short
            && let Err(problem) = large_input::ignore(&daemon)
        {
            problems.lock().map(|mut problems| problems.push(problem)).unwrap_or_default();
        }
        let workers: Vec<_> = (0..AT_ONCE).map(|_| scope.spawn(work)).collect();
        workers.into_iter().for_each(|worker| drop(worker.join()));
        over.store(true, Ordering::Relaxed);
        bystander.join().unwrap_or_else(|_| Err("the bystander panicked".to_string()))
    })?;
    let mut problems = problems.into_inner().unwrap_or_default();
    problems.extend(outlive(&mut daemon)?);
    if waits.ping > LONGEST_WAIT || waits.validation > LONGEST_WAIT {
        problems.push(format!("others waited: {waits}"));
    }
    if !problems.is_empty() {
        return Err(problems.join("\n"));
    }
    Ok(vec![
        format!("{tried} of {all} pairs of {} behaviours and {} ways", BEHAVIOURS.len(), Way::ALL.len()),
        "each named, nothing stored as passed, no process left".to_string(),
        waits.to_string(),
    ])
}

/// Has an op do it; what did not hold.
fn misbehaves(daemon: &DaemonProcess, behaviour: &Behaviour, way: Way) -> Result<(), String> {
    let Some((body, expected)) = way.part(behaviour) else { return Ok(()) };
    let name = format!("{}-{way:?}", behaviour.name.replace(' ', "-"));
    let root = daemon.folder.path().join(&name);
    let project = make_project(daemon, &name, &root, behaviour, body, way)?;
    let mut client = daemon.client()?;
    let (report, words) = run_op(&mut client, &project)?;
    let in_its_words = match behaviour.in_its_words {
        Words::Always => true,
        Words::OfReferences => way.is_reference(),
        Words::Never => false,
    };
    match expected {
        Expected::Right if report.status != OpStatus::Passed => return Err(format!("it does not pass: {words}")),
        Expected::Said(texts) if !texts.iter().any(|text| words.contains(text)) => {
            return Err(format!("none of {texts:?} is said: {words}"));
        }
        Expected::Said(_) if in_its_words && !words.contains(&format!("words of {}", behaviour.name)) => {
            return Err(format!("its own words are missing: {words}"));
        }
        Expected::Said(_) if report.status == OpStatus::Passed => return Err("it passes".to_string()),
        _ => {}
    }
    if matches!(expected, Expected::Said(_)) && any_passed(&mut client, &project)? {
        return Err("a case is stored as passed".to_string());
    }
    if body.contains("os.fork()") && noted(&root, CHILDREN).is_empty() {
        return Err("its child was never there".to_string());
    }
    if way.is_cold() { gone(&root) } else { Ok(()) }
}

fn make_project(
    daemon: &DaemonProcess,
    name: &str,
    root: &Path,
    behaviour: &Behaviour,
    body: &str,
    way: Way,
) -> Result<ProjectReference, String> {
    let prelude = format!(
        "import base64, json, os, sys, time\nPATH = {:?}\n\ndef note(file={CHILDREN:?}):\n    \
         with open(os.path.join({:?}, file), 'a') as noted:\n        noted.write(f'{{os.getpid()}} ')\n\n",
        root.join(if way == Way::Function { "function.py" } else { "script.py" }).display().to_string(),
        root.display().to_string(),
    );
    let timeout = if behaviour.endless { TIMEOUTS.0 } else { TIMEOUTS.1 };
    let words = format!("print('words of {}', file=sys.stderr, flush=True)", behaviour.name);
    let script = format!(
        "{prelude}request = json.load(sys.stdin)\ntensor = request['inputs']['input']\n\ndef answer():\n    \
         print(json.dumps({{'outputs': {{'out': tensor}}}}))\n\nif os.path.exists({:?}): note({CALLS:?})\n{words}\n{body}\n",
        root.join("cold").display().to_string(),
    );
    let indented = body.replace('\n', "\n    ");
    let function = format!("{prelude}import numpy\n\ndef op(input):\n    {words}\n    {indented}\n");
    // Executed directly, and without imports of others: it starts quickly on any machine.
    let python = python().ok_or("there is no Python")?;
    let plain = format!(
        "#!{} -S\nimport json, sys\nprint(json.dumps({{'outputs': {{'out': json.load(sys.stdin)['inputs']['input']}}}}))\n",
        python.display()
    );
    let mode = if matches!(way, Way::WarmReference | Way::WarmScript) { "daemon_orchestrated" } else { "script_based" };
    let (op, reference) = match way {
        Way::ColdReference | Way::WarmReference => ("module = \"plain_function:op\"", "script.py"),
        Way::ColdScript | Way::WarmScript => ("script = \"script.py\"", "plain"),
        Way::Function => ("module = \"function:op\"", "plain"),
    };
    let config = format!(
        "[project]\nname = \"p\"\nframework = \"numpy\"\n\n[daemon]\nscript_memory_megabytes = 6000\nmessage_megabytes = 16\n\n[[ops]]\n\
         name = \"op\"\nsignature = \"input[N] -> out[N]\"\ndtypes = [\"float32\"]\nvalues = \"regular\"\n{op}\n\
         reference = \"{reference}\"\nexecution_mode = \"{mode}\"\ntimeout = {timeout}\n"
    );
    let mut files = vec![
        ("gpuemu.toml", config.as_str()),
        ("script.py", script.as_str()),
        ("function.py", function.as_str()),
        ("plain", plain.as_str()),
        ("plain_function.py", "def op(input):\n    return input + 0\n"),
    ];
    if way.is_cold() {
        files.push(("cold", ""));
    }
    let project = daemon.project(name, &files)?;
    let executable = std::os::unix::fs::PermissionsExt::from_mode(0o755);
    std::fs::set_permissions(root.join("plain"), executable).map_err(|error| error.to_string())?;
    Ok(project)
}

fn run_op(client: &mut Client, project: &ProjectReference) -> Result<(OpReport, String), String> {
    let request = RunCi {
        project: project.clone(),
        ops: vec!["op".to_string()],
        mode: Mode::Fuzz,
        config: FuzzConfig {
            iterations: Some(2),
            seed: Some(7),
            min_shape: vec![3],
            max_shape: vec![9],
            ..Default::default()
        },
        parallel: Some(1),
        fail_fast: true,
        shard: None,
        baseline: None,
        fail_on_regression: false,
        kernels: Some(false),
        tools: None,
    };
    match client.call(&Request::RunCi(request)).map_err(|error| error.to_string())? {
        Response::Report { report } => {
            let op = report.ops.first().cloned().ok_or("the report has no op")?;
            let found = op.failures.iter().flat_map(|failure| &failure.failures);
            let mut words: Vec<String> = found.map(|finding| finding.explanation.clone()).collect();
            words.extend(op.message.clone());
            Ok((op, words.join("\n")))
        }
        _ => Err("unexpected response to RunCi".to_string()),
    }
}

fn any_passed(client: &mut Client, project: &ProjectReference) -> Result<bool, String> {
    Ok(stored(client, project)?.iter().any(|result| result.passed))
}

fn noted(root: &Path, file: &str) -> String {
    std::fs::read_to_string(root.join(file)).unwrap_or_default()
}

/// That none of the processes that a project's scripts noted is left.
fn gone(root: &Path) -> Result<(), String> {
    let noted = noted(root, CHILDREN) + &noted(root, CALLS);
    let deadline = Instant::now() + Duration::from_secs(5);
    let is_there = |process: &&str| {
        let status = std::fs::read_to_string(format!("/proc/{process}/stat")).unwrap_or_default();
        // One that only waits to be taken out of the system's table does nothing any more.
        !status.is_empty() && !status.contains(") Z ")
    };
    while noted.split_ascii_whitespace().any(|process| is_there(&process)) {
        if Instant::now() > deadline {
            return Err(format!("of its processes {noted} some are left"));
        }
        std::thread::sleep(Duration::from_millis(10));
    }
    Ok(())
}

/// Ends the daemon as a user does; what is left running after it.
fn outlive(daemon: &mut DaemonProcess) -> Result<Vec<String>, String> {
    let ended = daemon.client()?.call(&Request::Shutdown);
    ended.map_err(|error| error.to_string())?;
    std::thread::sleep(Duration::from_millis(200));
    let deadline = Instant::now() + PATIENCE;
    while daemon.client().is_ok() && Instant::now() < deadline {
        std::thread::sleep(Duration::from_millis(20));
    }
    let mut problems = Vec::new();
    for entry in std::fs::read_dir(daemon.folder.path()).map_err(|error| error.to_string())?.flatten() {
        if let Err(problem) = gone(&entry.path()) {
            problems.push(format!("{} outlives the daemon: {problem}", entry.file_name().display()));
        }
    }
    Ok(problems)
}
