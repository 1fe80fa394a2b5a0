//! The tests of every `unsafe` block under AddressSanitizer.

use std::path::Path;
use std::process::{Command, Stdio};

use crate::trial::{Ended, Extent, Trial};

pub const TRIAL: Trial =
    Trial { name: "sanitizers", about: "the tests of all unsafe code under AddressSanitizer", run };

/// Packages with `unsafe` code, and the tests that go through all of it.
const TESTS: [(&str, &[&str]); 2] = [
    ("gpuemu-ptx", &["memory::", "registers::", "tensor_core::", "machine::"]),
    ("gpuemu-engine", &["case::", "ops::linear::"]),
];

fn run(extent: &Extent) -> Ended {
    if extent.short {
        return Ended::LeftOut("every crate is built anew for it".to_string());
    }
    test_all().into()
}

fn test_all() -> Result<Vec<String>, String> {
    let here = std::env::current_exe().map_err(|error| error.to_string())?;
    let target_folder = here.parent().and_then(Path::parent).ok_or("this program is not in a target folder")?;
    let mut figures = Vec::new();
    for (package, tests) in TESTS {
        let output = command(&target_folder.join("sanitizers"), package, tests).output();
        let output = output.map_err(|error| format!("cargo cannot be started: {error}"))?;
        let text = String::from_utf8_lossy(&output.stdout);
        if !output.status.success() {
            let errors = String::from_utf8_lossy(&output.stderr);
            return Err(format!("the tests of {package} ended with {}:\n{text}\n{errors}", output.status));
        }
        let passed = text.lines().find_map(|line| line.strip_prefix("test result: ok. ")?.split_once(" passed"));
        match passed.and_then(|(count, _)| count.parse::<u64>().ok()) {
            Some(count @ 1..) => figures.push(format!("{count} tests of {package}")),
            _ => return Err(format!("no test of {package} was run:\n{text}")),
        }
    }
    figures.push("0 errors of AddressSanitizer".to_string());
    Ok(figures)
}

fn command(folder: &Path, package: &str, tests: &[&str]) -> Command {
    let cargo = std::env::var_os("CARGO").unwrap_or_else(|| "cargo".into());
    let mut command = Command::new(cargo);
    command.current_dir(Path::new(env!("CARGO_MANIFEST_DIR")).join("../..")).stdin(Stdio::null());
    // The sanitizer is part of every toolchain; only its flag asks to be let in by name.
    command.env("RUSTC_BOOTSTRAP", "1").env("RUSTFLAGS", "-Zsanitizer=address").env_remove("CARGO_ENCODED_RUSTFLAGS");
    command.env("CARGO_TARGET_DIR", folder);
    command.args(["test", "--locked", "--lib", "--target", &format!("{}-unknown-linux-gnu", std::env::consts::ARCH)]);
    command.args(["--package", package, "--"]).args(tests);
    command
}
