//! Writes the reference of the command line from its definitions: `docs/reference/cli.md`. A test compares the two.
#![allow(clippy::print_stdout, reason = "a terminal program: what it prints is its purpose")]

fn main() {
    print!("{}", gpuemu::reference::markdown());
}
