//! Prints the JSON Schema of a report on a run: `cargo run -p gpuemu-common --example report_schema`.
#![allow(clippy::print_stdout, reason = "what it prints is its purpose")]

fn main() {
    print!("{}", gpuemu_common::report::json_schema());
}
