//! Places where a test makes gpuemu fail. Without the feature `faults`, which nothing that users run has, they are nothing.

/// A place where a test makes gpuemu panic, or a step that it makes return an error in place of being done.
///
/// `cargo xtask torture faults` finds every one of them in the sources, and fails where one is never reached.
#[macro_export]
macro_rules! fault {
    ($name:literal) => {
        // Where nothing can be returned, there is only the panic.
        let _ = $crate::fault::strikes($name);
    };
    ($name:literal, $error:expr, $step:expr) => {
        if $crate::fault::strikes($name) { Err($error) } else { $step }
    };
}

/// Whether the step has to fail now; panics where that is what the test wants. Either is said on stderr.
#[cfg(feature = "faults")]
#[allow(clippy::print_stderr, reason = "the test has to know that the place was reached")]
pub fn strikes(name: &str) -> bool {
    let struck = fail::eval(name, |_| ()).is_some();
    if struck {
        eprintln!("failpoint {name} return");
    }
    struck
}

/// Whether the step has to fail now: never.
#[cfg(not(feature = "faults"))]
#[inline(always)]
pub fn strikes(_: &str) -> bool {
    false
}

/// Reads from the environment where to fail: `FAILPOINTS`, as the crate `fail` takes it. With `GPUEMU_FAULTS_SEEN` a
/// line is added to the file of that name whenever one of the places in `GPUEMU_FAULTS_NAMES` is passed.
#[cfg(feature = "faults")]
pub fn arm() {
    use std::io::Write;

    // Kept for as long as the process lives.
    std::mem::forget(fail::FailScenario::setup());
    let (Ok(file), Ok(names)) = (std::env::var("GPUEMU_FAULTS_SEEN"), std::env::var("GPUEMU_FAULTS_NAMES")) else {
        return;
    };
    for name in names.split(',').map(ToString::to_string) {
        let (file, line) = (file.clone(), format!("{name}\n"));
        let note = move || {
            let opened = std::fs::OpenOptions::new().create(true).append(true).open(&file);
            // One write: lines of several threads and processes stay whole.
            let _ = opened.and_then(|mut file| file.write_all(line.as_bytes()));
        };
        let _ = fail::cfg_callback(name, note);
    }
}

/// Reads from the environment where to fail: nowhere.
#[cfg(not(feature = "faults"))]
pub fn arm() {}
