//! Programs of the system that tests talk to. They are installed only in CI; elsewhere the test that
//! needs one says that it was skipped.

use std::process::{Command, Stdio};

use crate::failure::Failure;
use crate::process;

/// A program, and the Debian package that it is in.
struct SystemProgram {
    program: &'static str,
    package: &'static str,
}

/// NNG's own command-line client: the transport is tested with it. What verifies signatures without gpuemu. And what
/// the scripts of the GitHub action start, and are checked by.
const PROGRAMS: &[SystemProgram] = &[
    SystemProgram { program: "nngcat", package: "nng-utils" },
    SystemProgram { program: "openssl", package: "openssl" },
    SystemProgram { program: "curl", package: "curl" },
    SystemProgram { program: "jq", package: "jq" },
    SystemProgram { program: "shellcheck", package: "shellcheck" },
];

/// Installs what is missing.
pub fn install() -> Result<(), Failure> {
    let missing: Vec<&str> =
        PROGRAMS.iter().filter(|needed| !starts(needed.program)).map(|needed| needed.package).collect();
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
