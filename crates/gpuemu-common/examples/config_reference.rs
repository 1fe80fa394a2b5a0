//! Prints the reference of a configuration file: `cargo run -p gpuemu-common --example config_reference`.
#![allow(clippy::print_stdout, reason = "what it prints is its purpose")]

fn main() {
    print!("{}", gpuemu_common::config::reference_page());
}
