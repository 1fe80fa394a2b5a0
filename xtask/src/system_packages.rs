//! Programs of the system that tests talk to. They are installed only in CI; elsewhere the test or the step that
//! needs one says that it was skipped.

use std::process::{Command, Stdio};
use std::sync::{Mutex, PoisonError};

use crate::failure::Failure;
use crate::process;

/// A program, and the Debian package that it is in.
pub struct SystemProgram {
    program: &'static str,
    package: &'static str,
}

/// NNG's own command-line client: the transport is tested with it. What verifies signatures without gpuemu. And what
/// the scripts of the GitHub action start, and are checked by.
pub const OF_RUST_TESTS: &[SystemProgram] = &[
    SystemProgram { program: "nngcat", package: "nng-utils" },
    SystemProgram { program: "openssl", package: "openssl" },
    SystemProgram { program: "curl", package: "curl" },
    SystemProgram { program: "jq", package: "jq" },
    SystemProgram { program: "shellcheck", package: "shellcheck" },
];

/// The browser that pages are opened in.
pub const BROWSER: &[SystemProgram] = &[SystemProgram { program: "chromium", package: "chromium" }];

/// What code-server, a real VS Code, is built with.
pub const CODE_SERVER_BUILD: &[SystemProgram] = &[
    SystemProgram { program: "npm", package: "npm" },
    SystemProgram { program: "make", package: "make" },
    SystemProgram { program: "g++", package: "g++" },
    SystemProgram { program: "krb5-config", package: "libkrb5-dev" },
];

/// What cannot be started of these programs, as a reason to skip what needs them: with the names of the packages.
pub fn missing(programs: &[SystemProgram]) -> Option<String> {
    let missing: Vec<&str> =
        programs.iter().filter(|needed| !starts(needed.program)).map(|needed| needed.package).collect();
    let packages = missing.join(" ");
    (!missing.is_empty()).then(|| format!("the system package {packages} is missing: apt-get install {packages}"))
}

/// One installation at a time: environments are made beside the steps, and the system's packages have one lock.
static INSTALLING: Mutex<()> = Mutex::new(());

/// Installs what is missing.
pub fn install(programs: &[SystemProgram]) -> Result<(), Failure> {
    let _one = INSTALLING.lock().unwrap_or_else(PoisonError::into_inner);
    let missing: Vec<&str> =
        programs.iter().filter(|needed| !starts(needed.program)).map(|needed| needed.package).collect();
    if missing.is_empty() {
        return Ok(());
    }
    process::run(Command::new("apt-get").args(["update", "-qq"]))?;
    let mut install = Command::new("apt-get");
    install.args(["install", "-y", "-qq", "--no-install-recommends"]).args(missing);
    process::run(install.env("DEBIAN_FRONTEND", "noninteractive"))
}

fn starts(program: &str) -> bool {
    Command::new(program).arg("--version").stdout(Stdio::null()).stderr(Stdio::null()).status().is_ok()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_program_that_cannot_be_started_is_missing() {
        let none = [SystemProgram { program: "no-such-program", package: "none" }];
        let reason = missing(&none).unwrap();
        assert_eq!(reason, "the system package none is missing: apt-get install none");
        assert_eq!(missing(&[SystemProgram { program: "cargo", package: "cargo" }]), None);
    }
}
