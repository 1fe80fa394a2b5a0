//! The program `gpuemu` with places where a test makes it fail. Its name is its own, so that it never lies where the real
//! one does.

use std::process::ExitCode;

fn main() -> ExitCode {
    gpuemu::run()
}
