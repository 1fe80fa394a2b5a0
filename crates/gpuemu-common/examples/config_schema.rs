//! Prints the JSON Schema of a configuration file: `cargo run -p gpuemu-common --example config_schema`.
#![allow(clippy::print_stdout, reason = "what it prints is its purpose")]

fn main() {
    print!("{}", gpuemu_common::config::json_schema());
}
