//! The program `gpuemu`.

use std::process::ExitCode;

fn main() -> ExitCode {
    gpuemu::run()
}
